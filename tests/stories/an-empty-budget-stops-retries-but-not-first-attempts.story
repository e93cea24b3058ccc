# The bucket holds three retries. Failing calls use them up; after that first attempts are still sent, but no request
# is retried.
policy attempts=6 base=1ms cap=1ms jitter=none
target breaker.kind=off budget.capacity=3 budget.refill_per_minute=0
at 0ms   a: begin GET    -> start 1 first_attempt
at 0ms   a: reply 1 503  -> wait 1ms backoff
at 1ms   a: wake         -> start 2 retry
at 1ms   a: reply 2 503  -> wait 2ms backoff
at 2ms   a: wake         -> start 3 retry
at 2ms   a: reply 3 503  -> wait 3ms backoff
at 3ms   a: wake         -> start 4 retry
expect budget=0
at 3ms   a: reply 4 503  -> give_up 4 budget_empty
at 4ms   b: begin GET    -> start 1 first_attempt
at 4ms   b: reply 1 503  -> give_up 1 budget_empty
at 5ms   crowd 10 GET 200 -> succeeded=10
expect budget=1
at 5ms   c: begin GET    -> start 1 first_attempt
at 5ms   c: reply 1 503  -> wait 6ms backoff
expect budget=0
expect refused budget=2
