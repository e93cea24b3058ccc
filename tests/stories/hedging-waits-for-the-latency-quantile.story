# Twenty responses of 40 ms are known: the hedge is due when 90 % would have answered (an upper bound from the
# histogram).
policy attempts=3 hedges_max=1 hedge_delay=10s hedge_quantile=90%
target latency breaker.kind=off
at 0s    early: begin GET    -> start 1 first_attempt wake=10s
at 0s    early: reply 1 200  -> done 1 succeeded
at 0s    crowd 20 GET 200 took=40ms -> succeeded=20
expect p50=40ms..50ms
at 1s    known: begin GET    -> start 1 first_attempt wake=1040ms..1050ms
at 2s    known: wake         -> start 2 hedge
at 2s    known: reply 2 200  -> done 2 succeeded
