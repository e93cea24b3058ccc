# A server that usually takes 50 ms. Twenty callers allow it 5 ms: their deadline cuts each attempt before the usual
# latency has passed, which is no evidence against the server. A patient caller is not refused.
policy deadline=2s attempts=1
target breaker.kind=consecutive breaker.consecutive=5
at 0s    crowd 1 GET 200 took=50ms -> succeeded=1
policy deadline=5ms attempts=1
at 1s    crowd 20 GET transient took=5ms timeout -> attempts_spent=20
expect breaker=closed
policy deadline=2s attempts=1
at 2s    crowd 1 GET 200 took=50ms -> succeeded=1

# Client libraries count timeouts in whole milliseconds: an attempt that ends up to 2 ms before the deadline was cut by
# it, too. Earlier than that, another limit cut it, and it votes.
policy deadline=5ms attempts=1
at 3s    crowd 20 GET transient took=3ms timeout -> attempts_spent=20
expect breaker=closed
at 4s    crowd 5 GET transient took=2.9ms timeout -> attempts_spent=5
expect breaker=open
