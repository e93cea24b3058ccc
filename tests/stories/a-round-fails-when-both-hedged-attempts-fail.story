# The failure of one attempt decides nothing while the other runs; the second failure ends the round, and the backoff
# begins.
policy attempts=4 hedges_max=1 hedge_delay=100ms base=200ms jitter=none
target breaker.kind=off budget.refill_per_minute=0
at 0ms    begin GET     -> start 1 first_attempt wake=100ms
at 100ms  wake          -> start 2 hedge
at 120ms  reply 1 503   -> none
at 140ms  reply 2 503   -> wait 340ms backoff
at 340ms  wake          -> start 3 retry wake=440ms
at 440ms  wake          -> start 4 hedge
at 450ms  reply 4 503   -> none
at 460ms  reply 3 503   -> give_up 4 attempts_spent
expect budget=7
