# A server that throttles is alive: hold-off, backoff and budget answer it, not the breaker. A throttled probe frees its
# slot without a vote.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=2 breaker.open=5s breaker.open_jitter=0% breaker.ramp=0s
at 0s     crowd 9 GET 429  -> attempts_spent=9
expect breaker=closed
at 1s     crowd 2 GET 503  -> attempts_spent=2
expect breaker=open
at 6010ms crowd 1 GET 429  -> attempts_spent=1
expect breaker=half_open
at 6020ms crowd 1 GET 200  -> succeeded=1
expect breaker=closed
