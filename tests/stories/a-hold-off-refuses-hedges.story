# The server requested a hold-off: a hedge would be an additional request, so it is refused.
policy attempts=4 hedges_max=2 hedge_delay=100ms base=200ms jitter=none
target breaker.kind=off
at 0ms    a: begin GET              -> start 1 first_attempt wake=100ms
at 0ms    b: begin GET              -> start 1 first_attempt wake=100ms
at 50ms   b: reply 1 429 hint=10s   -> wait 10050ms server_hint
at 100ms  a: wake                   -> none hold_off
at 200ms  a: reply 1 200            -> done 1 succeeded
