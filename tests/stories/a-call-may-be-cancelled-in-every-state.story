# Before begin, while running, while waiting, during a hold-off, as a probe, and after the end.
policy attempts=3 base=1s jitter=none
target hold_off_first in_flight_max=1 breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% budget.refill_per_minute=0
at 0s      none: cancel              -> none
at 0s      running: begin GET        -> start 1 first_attempt
at 0s      running: cancel           -> give_up 1 cancelled
at 0s      running: reply 1 200      -> none
at 0s      waiting: begin GET        -> start 1 first_attempt
at 0s      waiting: fail 1 conflict  -> wait 0ms conflict
at 0s      waiting: wake             -> start 2 retry
at 0s      waiting: fail 2 conflict  -> wait 1000ms backoff
expect budget=8
at 0s      waiting: cancel           -> give_up 2 cancelled
expect budget=9
at 0s      hold_off 2s
at 0s      held: begin GET           -> wait 2000ms hold_off
at 1s      held: cancel              -> give_up 0 cancelled
at 3s      crowd 1 GET 503           -> breaker_open=1
at 8010ms  probe: begin GET          -> start 1 first_attempt
at 8020ms  probe: cancel             -> give_up 1 cancelled
at 8030ms  next: begin GET           -> start 1 first_attempt
at 8040ms  next: reply 1 200         -> done 1 succeeded
at 8040ms  next: cancel              -> none
expect breaker=closed
