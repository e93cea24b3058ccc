policy attempts=2 base=1s jitter=none
target breaker.kind=off budget.capacity=20 budget.cost=1 budget.cost_throttled=2 budget.cost_timeout=5 budget.refill_per_minute=0
at 0s a: begin GET               -> start 1 first_attempt
at 0s a: reply 1 503             -> wait 1000ms backoff
expect budget=19
at 0s b: begin GET               -> start 1 first_attempt
at 0s b: reply 1 429             -> wait 1000ms backoff
expect budget=17
at 0s c: begin GET               -> start 1 first_attempt
at 0s c: fail 1 transient timeout -> wait 1000ms backoff
expect budget=12
