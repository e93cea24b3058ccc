# The deadline cuts a round after 60 ms. Its first attempt ran longer than usual (50 ms) and votes; its hedge ran for
# 20 ms and does not.
policy attempts=2 hedges_max=1 hedge_delay=40ms
target breaker.kind=consecutive breaker.consecutive=2
at 0s     crowd 1 GET 200 took=50ms -> succeeded=1
at 1s     begin GET deadline=1.06s       -> start 1 first_attempt wake=1.04s
at 1.04s  wake                           -> start 2 hedge
at 1.06s  fail 2 transient timeout       -> none
at 1.06s  fail 1 transient timeout       -> give_up 2 attempts_spent
expect breaker=closed
at 2s     crowd 1 GET 503 -> breaker_open=1
expect breaker=open
