# Each call that waits for the hold-off adds its own upward jitter.
policy attempts=3 base=500ms jitter=full
target breaker.kind=off
at 0s  hold_off 10s
at 0s  a: begin GET    -> start 1 first_attempt
at 0s  b: begin GET    -> start 1 first_attempt
at 0s  a: reply 1 503  -> wait 10s..11s hold_off
at 0s  b: reply 1 503  -> wait 10s..11s hold_off
