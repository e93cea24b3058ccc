# The probe timeout passes and another call claims the slot; the late result of the first probe does not vote.
policy attempts=1 attempt_timeout=2s
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.probe_timeout=2s breaker.ramp=0
at 0s      crowd 1 GET 503       -> attempts_spent=1
at 5010ms  lost: begin GET       -> start 1 first_attempt
at 6s      blocked: begin GET    -> give_up 0 breaker_probing
at 7020ms  next: begin GET       -> start 1 first_attempt
at 7030ms  lost: reply 1 503     -> give_up 1 attempts_spent
expect breaker=half_open
at 7040ms  next: reply 1 200     -> done 1 succeeded
expect breaker=closed
