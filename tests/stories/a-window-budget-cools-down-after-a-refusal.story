policy attempts=2 base=1ms jitter=none
target breaker.kind=off budget.kind=window budget.ratio=50% budget.reserve=1 budget.window=10s budget.cooldown=3s
at 0s  a: begin GET    -> start 1 first_attempt
at 0s  a: reply 1 503  -> wait 1ms backoff
at 0s  b: begin GET    -> start 1 first_attempt
at 0s  b: reply 1 503  -> wait 1ms backoff
at 0s  c: begin GET    -> start 1 first_attempt
at 0s  c: reply 1 503  -> give_up 1 budget_empty
at 1s  crowd 10 GET 200 -> succeeded=10
at 2s  d: begin GET    -> start 1 first_attempt
at 2s  d: reply 1 503  -> give_up 1 budget_empty
at 4s  e: begin GET    -> start 1 first_attempt
at 4s  e: reply 1 503  -> wait 4001ms backoff
at 30s f: begin GET    -> start 1 first_attempt
at 30s f: reply 1 503  -> wait 30001ms backoff
