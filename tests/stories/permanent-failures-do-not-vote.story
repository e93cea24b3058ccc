# 404 is the caller's mistake: neither a failure nor a reason to open.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=2
at 0s  crowd 9 GET 404 -> permanent=9
expect breaker=closed
