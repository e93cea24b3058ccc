# 5 s plus or minus half, so that the clients of a fleet do not return together.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=50%
at 0s  crowd 1 GET 503  -> attempts_spent=1
expect breaker=open until=2500ms..7502ms
