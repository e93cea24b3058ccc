policy attempts=3 hedges_max=2 hedge_delay=100ms
target breaker.kind=off budget.earn_success=0 budget.refill_per_minute=0
at 0ms    begin GET     -> start 1 first_attempt wake=100ms
at 100ms  wake          -> start 2 hedge wake=200ms
at 200ms  wake          -> start 3 hedge
at 250ms  reply 1 503   -> none
at 260ms  reply 3 200   -> done 3 succeeded
expect budget=8
