# As in Finagle and others. Caution: this funds retries during an outage.
policy attempts=2 base=1ms jitter=none
target breaker.kind=off budget.initial=0 budget.earn_first=0.5 budget.earn_success=0 budget.refill_per_minute=0
at 0ms  a: begin GET    -> start 1 first_attempt
expect budget=0.5
at 0ms  a: reply 1 503  -> give_up 1 budget_empty
at 0ms  b: begin GET    -> start 1 first_attempt
at 0ms  b: reply 1 503  -> wait 1ms backoff
expect budget=0
