policy attempts=3 base=1ms jitter=none
target budget.kind=none breaker.kind=off
at 0s  crowd 50 GET 503 -> backoff=50
expect budget=unlimited
