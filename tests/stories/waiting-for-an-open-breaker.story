# when_refused=wait: a call that the breaker refuses waits until probing may begin. It is charged when its retry starts.
policy attempts=3 base=1s jitter=none when_refused=wait
target breaker.kind=consecutive breaker.consecutive=2 breaker.open=5s breaker.open_jitter=0% breaker.ramp=0s budget.refill_per_minute=0
at 0s     a: begin GET   -> start 1 first_attempt
at 0s     b: begin GET   -> start 1 first_attempt
at 0s     a: reply 1 503 -> wait 1000ms backoff
expect budget=9
# The second failure opens the breaker; its retry would come while it is open.
at 0s     b: reply 1 503 -> wait 5000ms..5003ms breaker_open
expect budget=9 breaker=open
at 100ms  c: begin GET   -> wait 5000ms..5003ms breaker_open
# The charge of a retry that may not start is refunded while it waits.
at 1s     a: wake        -> wait 5000ms..5003ms breaker_open
expect budget=10
# One of them is the probe; the others wait for its result, and ask again after their backoff.
at 5010ms a: wake        -> start 2 retry
expect budget=9 breaker=half_open
at 5010ms b: wake        -> wait 7010ms breaker_probing
at 5010ms c: wake        -> wait 6010ms breaker_probing
at 5020ms a: reply 2 200 -> done 2 succeeded
at 6010ms c: wake        -> start 1 first_attempt
at 7010ms b: wake        -> start 2 retry
expect budget=8.1
