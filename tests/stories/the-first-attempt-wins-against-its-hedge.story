# The first attempt answers before, and in the second call after, its hedge has started.
policy attempts=3 hedges_max=1 hedge_delay=100ms
target breaker.kind=off budget.earn_success=0
at 0ms    a: begin GET     -> start 1 first_attempt wake=100ms
at 90ms   a: reply 1 200   -> done 1 succeeded
at 100ms  a: wake          -> none
at 1s     b: begin GET     -> start 1 first_attempt wake=1100ms
at 1100ms b: wake          -> start 2 hedge
at 1110ms b: reply 1 200   -> done 1 succeeded
at 1120ms b: reply 2 503   -> none
expect budget=9
