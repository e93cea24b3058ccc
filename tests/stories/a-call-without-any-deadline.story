policy attempts=2 base=1s jitter=none deadline=never attempt_timeout=never connect_timeout=never
at 0s    begin GET    -> start 1 first_attempt cut=never connect=never
at 1000h reply 1 503  -> wait 3600001s backoff
