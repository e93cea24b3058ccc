# A smaller capacity, a stricter gate: the state survives, calls in flight continue, a bad reload changes nothing and
# the next reload works.
policy attempts=4 base=1s jitter=none cap=1s
target breaker.kind=consecutive breaker.consecutive=5 budget.refill_per_minute=0
at 0s    a: begin GET     -> start 1 first_attempt
at 0s    a: reply 1 503   -> wait 1000ms backoff
expect budget=9
at 500ms configure budget.capacity=4
expect budget=4
at 500ms configure budget.ratio=200% -> refused budget.ratio_ppm
at 500ms configure breaker.consecutive=0 -> refused breaker.consecutive
expect budget=4 breaker=closed
at 1s    a: wake          -> start 2 retry
at 1s    hold open
at 1s    configure breaker.open=1s
expect breaker=held_open
at 1s    a: reply 2 503   -> give_up 2 breaker_open
at 1s    hold release
at 1s    configure in_flight_max=1
at 1s    b: begin GET     -> start 1 first_attempt
at 1s    c: begin GET     -> give_up 0 in_flight_full
at 1s    configure in_flight_max=0
at 1s    d: begin GET     -> start 1 first_attempt
at 1s    b: reply 1 200   -> done 1 succeeded
at 1s    d: reply 1 200   -> done 1 succeeded
at 1s    configure in_flight_max=1
at 1s    e: begin GET     -> start 1 first_attempt
