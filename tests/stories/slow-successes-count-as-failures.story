policy attempts=1
target breaker.kind=consecutive breaker.consecutive=2 breaker.slow=2s
at 0s   crowd 2 GET 200 took=1s -> succeeded=2
expect breaker=closed
at 10s  crowd 2 GET 200 took=2s -> succeeded=2
expect breaker=open
