# When the open time is over one call may probe; other calls are refused until it ends. Its success closes the
# breaker.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.ramp=0
at 0s     crowd 1 GET 503     -> attempts_spent=1
at 4999ms early: begin GET    -> give_up 0 breaker_open
at 5010ms probe: begin GET    -> start 1 first_attempt
expect breaker=half_open
at 5010ms second: begin GET   -> give_up 0 breaker_probing
at 5020ms probe: reply 1 200  -> done 1 succeeded
expect breaker=closed
at 5020ms third: begin GET    -> start 1 first_attempt
