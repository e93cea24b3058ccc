# The hedge is refused; the first attempt continues, and the call has not ended.
policy attempts=3 hedges_max=1 hedge_delay=100ms
target breaker.kind=off budget.capacity=1 budget.initial=0 budget.earn_success=0 budget.refill_per_minute=0
at 0ms    begin GET     -> start 1 first_attempt wake=100ms
at 100ms  wake          -> none budget_empty
at 500ms  reply 1 200   -> done 1 succeeded
expect refused budget=1
