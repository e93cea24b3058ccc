# A breaker held closed by an operator counts as closed: a slow attempt gets its hedge.
policy attempts=3 hedges_max=1 hedge_delay=100ms
target budget.earn_success=0
at 0ms    hold closed
at 0ms    begin GET     -> start 1 first_attempt wake=100ms
at 100ms  wake          -> start 2 hedge
at 120ms  reply 2 200   -> done 2 succeeded
