policy attempts=1
target breaker.kind=consecutive breaker.consecutive=3
at 0s  crowd 2 GET 503  -> attempts_spent=2
at 0s  crowd 1 GET 200  -> succeeded=1
at 0s  crowd 2 GET 503  -> attempts_spent=2
expect breaker=closed
at 0s  crowd 2 GET 503  -> attempts_spent=1 breaker_open=1
expect breaker=open
