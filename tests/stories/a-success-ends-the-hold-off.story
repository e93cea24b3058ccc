policy attempts=3 base=100ms jitter=none
target breaker.kind=off
at 0s  hold_off 10s
at 0s  a: begin GET    -> start 1 first_attempt
at 1s  a: reply 1 200  -> done 1 succeeded
expect hold_off=none
at 1s  b: begin GET    -> start 1 first_attempt
at 1s  b: reply 1 503  -> wait 1100ms backoff
