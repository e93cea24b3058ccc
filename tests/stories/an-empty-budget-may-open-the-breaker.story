# on_empty=open (seed 002: "when the bucket empties, the client opens a circuit"): first attempts stop as well.
policy attempts=3 base=100ms jitter=none
target budget.on_empty=open budget.capacity=1 budget.refill_per_minute=0 breaker.open=5s breaker.open_jitter=0%
at 0ms    a: begin GET    -> start 1 first_attempt
at 0ms    a: reply 1 503  -> wait 100ms backoff
at 100ms  a: wake         -> start 2 retry
at 100ms  a: reply 2 503  -> give_up 2 budget_empty
expect breaker=open until=5100ms..5103ms
at 200ms  b: begin GET    -> give_up 0 breaker_open
