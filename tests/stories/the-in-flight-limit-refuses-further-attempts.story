# A bulkhead of two: a third attempt is refused at once; every end of an attempt releases its permit.
policy attempts=3 base=1s jitter=none
target in_flight_max=2 breaker.kind=off budget.refill_per_minute=0
at 0s  a: begin GET     -> start 1 first_attempt
at 0s  b: begin GET     -> start 1 first_attempt
at 0s  c: begin GET     -> give_up 0 in_flight_full
at 0s  a: reply 1 503   -> wait 1000ms backoff
at 0s  d: begin GET     -> start 1 first_attempt
at 1s  a: wake          -> give_up 1 in_flight_full
expect budget=10
at 1s  b: cancel        -> give_up 1 cancelled
at 1s  e: begin GET     -> start 1 first_attempt
at 1s  e: reply 1 200   -> done 1 succeeded
at 1s  f: begin GET     -> start 1 first_attempt
expect refused in_flight=2
