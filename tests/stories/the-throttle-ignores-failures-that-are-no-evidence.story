# Attempts whose end is no evidence against the server are not counted as requested: a server that accepts all others is
# not spared. A third of them would be refused if they were counted.
policy attempts=1
target throttle_k=2x throttle_min_volume=10 throttle_window=2min throttle_max=90% breaker.kind=off
at 0s   crowd 100 GET 200 took=50ms -> succeeded=100
at 10s  crowd 300 GET transient evidence=not_sent local -> attempts_spent=300
policy attempts=1 deadline=5ms
at 20s  crowd 300 GET transient took=5ms timeout -> attempts_spent=300
at 30s  crowd 10 GET 200 -> succeeded=10
