policy attempts=3 hedges_max=1 hedge_delay=100ms
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.ramp=0
at 0s      crowd 1 GET 404     -> permanent=1
at 0s      a: begin GET        -> start 1 first_attempt wake=100ms
at 0s      a: reply 1 503      -> give_up 1 breaker_open
at 5010ms  probe: begin GET    -> start 1 first_attempt
at 6s      probe: reply 1 200  -> done 1 succeeded
