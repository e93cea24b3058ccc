# One token per minute is the floor: the bucket refills after the lease has expired, and not before.
policy attempts=2 base=100ms jitter=none
target breaker.kind=off budget.refill_per_minute=1
at 0s     lease begin
at 0s     lease until 5min
at 5min   expect budget=0
at 6min   expect budget=0.99..1
at 361s   a: begin GET   -> start 1 first_attempt
at 361s   a: reply 1 503 -> wait 361100ms backoff
at 361s   expect budget=0..0.02
at 8min   expect budget=1.97..2
at 8min   lease failed
at 8min   expect budget=1.97..2
# The fleet replies again: the unspent refill is removed, and the leased tokens are available.
at 8min   lease until 20min
at 8min   expect budget=0..0.02
at 8min   add 3
at 9min   crowd 10 GET 200 -> succeeded=10
at 9min   expect budget=3..3.02
at 10min  lease failed
at 11min  expect budget=3.99..4.02
