# The retry was charged when it was decided. At its wake the breaker is open: the retry is refused and the token
# refunded.
policy attempts=3 base=1s jitter=none
target breaker.kind=consecutive breaker.consecutive=9 budget.refill_per_minute=0
at 0s    a: begin GET    -> start 1 first_attempt
at 0s    a: reply 1 503  -> wait 1000ms backoff
expect budget=9
at 500ms hold open
at 1s    a: wake         -> give_up 1 breaker_open
expect budget=10
