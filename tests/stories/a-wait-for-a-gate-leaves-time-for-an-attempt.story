# A call that waits for gates gives up with the reason of the gate when less than attempt_min would be left before the
# deadline.
policy attempts=5 base=1s jitter=none deadline=10s attempt_min=2s when_refused=wait
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=8s breaker.open_jitter=0% breaker.open_max=8s
at 0s     a: begin GET   -> start 1 first_attempt
at 0s     a: reply 1 503 -> give_up 1 breaker_open
at 100ms  b: begin GET   -> wait 8000ms..8003ms breaker_open
# With a limit on all waits, the same.
policy attempts=5 base=1s jitter=none deadline=never waits_max=5s when_refused=wait
at 200ms  c: begin GET   -> give_up 0 breaker_open
at 4s     d: begin GET   -> wait 8000ms..8003ms breaker_open
