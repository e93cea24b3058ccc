# Cancelled while it waits: the token is refunded. Cancelled after it was sent: the token is spent.
policy attempts=3 base=1s jitter=none
target breaker.kind=off budget.refill_per_minute=0
at 0s  a: begin GET     -> start 1 first_attempt
at 0s  a: reply 1 503   -> wait 1000ms backoff
expect budget=9
at 0s  a: cancel        -> give_up 1 cancelled
expect budget=10
at 0s  b: begin GET     -> start 1 first_attempt
at 0s  b: reply 1 503   -> wait 1000ms backoff
at 1s  b: wake          -> start 2 retry
at 1s  b: cancel        -> give_up 2 cancelled
expect budget=9
