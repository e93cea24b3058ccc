# An attempt that began while the breaker was closed succeeds during the probe: its generation is too old to vote.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.ramp=0
at 0s      old: begin GET        -> start 1 first_attempt
at 0s      older: begin GET      -> start 1 first_attempt
at 0s      crowd 1 GET 503       -> attempts_spent=1
at 5010ms  probe: begin GET      -> start 1 first_attempt
at 5020ms  old: reply 1 200      -> done 1 succeeded
expect breaker=half_open
at 5030ms  probe: reply 1 200    -> done 1 succeeded
at 5040ms  older: reply 1 503    -> give_up 1 attempts_spent
expect breaker=closed
