# From tokens to a window and back while a charged retry waits: nothing is refilled.
policy attempts=4 base=1s jitter=none cap=1s
target breaker.kind=off budget.capacity=2 budget.earn_success=0 budget.refill_per_minute=0
at 0s  a: begin GET     -> start 1 first_attempt
at 0s  a: reply 1 503   -> wait 1000ms backoff
at 0s  b: begin GET     -> start 1 first_attempt
at 0s  b: reply 1 503   -> wait 1000ms backoff
expect budget=0
at 0s  configure budget.kind=window budget.ratio=10% budget.window=10s
at 0s  c: begin GET     -> start 1 first_attempt
at 0s  c: reply 1 503   -> give_up 1 budget_empty
at 1s  a: wake          -> start 2 retry
at 1s  configure budget.kind=tokens
expect budget=0..1
at 1s  a: reply 2 503   -> give_up 2 budget_empty
