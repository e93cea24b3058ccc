# 404 is a mistake of the caller: not a failure of the server, so no vote.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=2
at 0s  crowd 9 GET 404 -> permanent=9
expect breaker=closed
