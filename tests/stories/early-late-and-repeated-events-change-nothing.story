# An early wake, a repeated outcome, a repeated wake, outcomes of attempts that never existed, and all of them again
# after the end.
policy attempts=3 base=100ms jitter=none
target breaker.kind=off budget.refill_per_minute=0
at 0ms    wake                     -> none
at 0ms    cancel                   -> none
at 0ms    reply 1 200              -> none
at 0ms    begin GET                -> start 1 first_attempt
at 0ms    wake                     -> none
at 0ms    reply 0 503              -> none
at 0ms    reply 2 503              -> none
at 10ms   reply 1 503              -> wait 110ms backoff
at 10ms   reply 1 503              -> none wake=110ms
at 10ms   reply 1 200              -> none wake=110ms
at 10ms   reply 2 200              -> none wake=110ms
at 109ms  wake                     -> none wake=110ms
at 110ms  wake                     -> start 2 retry
at 110ms  wake                     -> none
at 110ms  reply 1 200              -> none
at 120ms  reply 2 200              -> done 2 succeeded
at 120ms  reply 2 200              -> none
at 120ms  reply 1 503              -> none
at 120ms  wake                     -> none
at 120ms  cancel                   -> none
expect budget=9.1
