policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.probes=2 breaker.ramp=0
at 0s      crowd 1 GET 503    -> attempts_spent=1
at 5010ms  a: begin GET       -> start 1 first_attempt
at 5010ms  b: begin GET       -> start 1 first_attempt
at 5010ms  c: begin GET       -> give_up 0 breaker_probing
at 5020ms  a: reply 1 200     -> done 1 succeeded
expect breaker=half_open
at 5030ms  d: begin GET       -> give_up 0 breaker_probing
at 5040ms  b: reply 1 200     -> done 1 succeeded
expect breaker=closed
