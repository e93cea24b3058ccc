# The first attempt is slow: a hedge starts and answers first. Both belong to one call; the hedge is charged to the
# budget.
policy attempts=3 hedges_max=1 hedge_delay=100ms
target breaker.kind=off budget.earn_success=0
at 0ms    begin GET     -> start 1 first_attempt wake=100ms
at 100ms  wake          -> start 2 hedge
at 120ms  reply 2 200   -> done 2 succeeded
at 130ms  reply 1 200   -> none
expect budget=9
