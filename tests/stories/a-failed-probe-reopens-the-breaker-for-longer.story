# The open time doubles with each consecutive opening, up to its maximum.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.open_growth=2x breaker.open_max=15s
at 0s     crowd 1 GET 503  -> attempts_spent=1
expect until=5000ms..5003ms openings=1
at 5010ms crowd 1 GET 503  -> attempts_spent=1
expect breaker=open until=15010ms..15013ms openings=2
at 15020ms crowd 1 GET 503 -> attempts_spent=1
expect breaker=open until=30020ms..30023ms openings=3
at 30030ms crowd 1 GET 503 -> attempts_spent=1
expect breaker=open until=45030ms..45033ms openings=4
