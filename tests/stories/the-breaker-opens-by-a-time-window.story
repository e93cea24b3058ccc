# Failures that are older than the window no longer count.
policy attempts=1
target breaker.kind=time_window breaker.window=10s breaker.min_volume=4 breaker.ratio=50%
at 0s   crowd 3 GET 503  -> attempts_spent=3
expect breaker=closed
at 20s  crowd 3 GET 503  -> attempts_spent=3
expect breaker=closed
at 21s  crowd 1 GET 503  -> attempts_spent=1
expect breaker=open
