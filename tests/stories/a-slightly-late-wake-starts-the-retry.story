policy attempts=3 base=100ms jitter=none
at 0ms    begin GET    -> start 1     first_attempt
at 0ms    reply 1 503  -> wait 100ms  backoff
at 1100ms wake         -> start 2     retry
