# A server that usually takes 2 ms hangs: callers that allow it 5 ms have waited for longer than usual, so each of
# their attempts votes. The first success after a lull counts as much as the others: the estimate is 2 ms.
policy deadline=5ms attempts=1
target breaker.kind=consecutive breaker.consecutive=20
at 0s    crowd 10 GET 200 took=2ms every=200ms -> succeeded=10
at 3s    crowd 19 GET transient took=5ms timeout -> attempts_spent=19
expect breaker=closed
at 4s    crowd 1 GET transient took=5ms timeout -> attempts_spent=1
expect breaker=open
