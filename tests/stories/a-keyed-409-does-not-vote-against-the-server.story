# 409 to a keyed request means that the first request still runs, so the server is healthy: the request is retried,
# but it does not vote against the breaker.
policy attempts=2
target breaker.kind=consecutive breaker.consecutive=2
at 0s  crowd 9 POST 409 key_409 -> permanent=9
at 1s  a: begin POST key   -> start 1 first_attempt
at 1s  a: reply 1 409      -> wait 1s..1200ms backoff
at 1s  b: begin POST key   -> start 1 first_attempt
at 1s  b: reply 1 409      -> wait 1s..1200ms backoff
expect breaker=closed
