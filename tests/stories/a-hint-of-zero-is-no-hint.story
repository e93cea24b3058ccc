# Retry-After: 0, or a date in the past.
policy attempts=3 base=100ms jitter=none
at 0ms  begin GET             -> start 1     first_attempt
at 0ms  reply 1 503 hint=0    -> wait 100ms  backoff
at 50ms cancel                -> give_up 1   cancelled
