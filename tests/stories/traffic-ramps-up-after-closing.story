# At first one call in ten is admitted, in the end all of them.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.ramp=10s
at 0s      crowd 1 GET 503     -> attempts_spent=1
at 5010ms  crowd 1 GET 200     -> succeeded=1
expect breaker=closed
at 5020ms  crowd 100 GET 200   -> succeeded=1..25 breaker_ramping=75..99
at 10s     crowd 100 GET 200   -> succeeded=35..75 breaker_ramping=25..65
at 15100ms crowd 100 GET 200   -> succeeded=100
