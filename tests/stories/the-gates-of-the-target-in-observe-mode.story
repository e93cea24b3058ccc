# Observe mode before a gate is enforced: the refusals it would have made are counted.
policy attempts=3 base=1s jitter=none cap=1s
target observe=in_flight,breaker,key_limit,budget in_flight_max=1 key_retries=1 budget.capacity=1 budget.refill_per_minute=0 breaker.kind=consecutive breaker.consecutive=2 breaker.open=1min breaker.open_max=1min breaker.open_jitter=0%
at 0s  a: begin GET retry_key=k  -> start 1 first_attempt
at 0s  b: begin GET              -> start 1 first_attempt observed=in_flight
at 0s  b: reply 1 200            -> done 1 succeeded
at 0s  a: reply 1 503            -> wait 1000ms backoff
expect budget=0
at 1s  a: wake                   -> start 2 retry
at 1s  a: reply 2 503            -> wait 2000ms backoff observed=breaker,key_limit,budget
expect breaker=open
at 2s  a: wake                   -> start 3 retry observed=breaker
at 2s  a: reply 3 200            -> done 3 succeeded
expect refused in_flight=1 breaker=2 key_limit=1 budget=1
