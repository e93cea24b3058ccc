# No success is known, so nothing shows whether the server hangs or the callers are impatient. For ten seconds after the
# first of them such attempts cast no vote; then they do, so that a server that is dead from the start is noticed.
policy deadline=5ms attempts=1
target breaker.kind=consecutive breaker.consecutive=3 breaker.open=1s breaker.open_jitter=0% breaker.ramp=0
at 0s       crowd 20 GET transient took=5ms timeout -> attempts_spent=20
at 9.9s     crowd 20 GET transient took=5ms timeout -> attempts_spent=20
expect breaker=closed
at 10.1s    crowd 20 GET transient took=5ms timeout -> attempts_spent=3 breaker_open=17
