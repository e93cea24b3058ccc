policy attempts=4 base=100ms throttled_base=1s cap=30s jitter=none
at 0s     begin GET     -> start 1 first_attempt
at 0s     reply 1 503   -> wait 100ms backoff
at 100ms  wake          -> start 2 retry
at 100ms  reply 2 429   -> wait 2100ms backoff
at 2100ms wake          -> start 3 retry
at 2100ms reply 3 503   -> wait 2500ms backoff
