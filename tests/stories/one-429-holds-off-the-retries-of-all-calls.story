# The server requests a wait until 10 s from call a. Call b fails at 1 s: its retry waits until then, too.
policy attempts=3 base=100ms jitter=none
target breaker.kind=off
at 0s    a: begin GET            -> start 1 first_attempt
at 0s    b: begin GET            -> start 1 first_attempt
at 0s    a: reply 1 429 hint=10s -> wait 10s server_hint
expect hold_off=10s
at 1s    b: reply 1 503          -> wait 10s hold_off
at 2s    c: begin GET            -> start 1 first_attempt
at 10s   b: wake                 -> start 2 retry
at 10s   b: reply 2 200          -> done 2 succeeded
at 10s   a: wake                 -> start 2 retry
at 10s   a: reply 2 200          -> done 2 succeeded
expect hold_off=none
