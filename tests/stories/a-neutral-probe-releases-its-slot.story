# A probe that is cancelled, answered 404, or ends in a conflict is no evidence of health: it releases its slot, and
# the next call probes.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.ramp=0
at 0s      crowd 1 GET 503                     -> attempts_spent=1
at 5010ms  cancelled: begin GET                -> start 1 first_attempt
at 5020ms  cancelled: cancel                   -> give_up 1 cancelled
expect breaker=half_open
at 5030ms  missing: begin GET                  -> start 1 first_attempt
at 5040ms  missing: reply 1 404                -> give_up 1 permanent
expect breaker=half_open
at 5050ms  raced: begin PUT                    -> start 1 first_attempt
at 5060ms  raced: fail 1 conflict              -> give_up 1 attempts_spent
expect breaker=half_open
at 5070ms  probe: begin GET                    -> start 1 first_attempt
at 5080ms  probe: reply 1 200                  -> done 1 succeeded
expect breaker=closed
