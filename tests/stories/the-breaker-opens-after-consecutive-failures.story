# Three consecutive failures open the breaker: first attempts and retries are refused, each with its reason.
policy attempts=4 base=100ms jitter=none deadline=never
target breaker.kind=consecutive breaker.consecutive=3 breaker.open=5s breaker.open_jitter=0%
at 0s     a: begin GET    -> start 1 first_attempt
at 0s     a: reply 1 503  -> wait 100ms backoff
at 100ms  a: wake         -> start 2 retry
at 100ms  a: reply 2 503  -> wait 300ms backoff
expect breaker=closed
at 200ms  b: begin GET    -> start 1 first_attempt
at 200ms  b: reply 1 503  -> give_up 1 breaker_open
expect breaker=open until=5200ms..5203ms openings=1
at 300ms  a: wake         -> give_up 2 breaker_open
at 400ms  c: begin GET    -> give_up 0 breaker_open
expect refused breaker=3
expect budget=9..9.1
