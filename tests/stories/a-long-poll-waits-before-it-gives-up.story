# AWS 2.1: an empty bucket and a polling loop. The call waits for its backoff and then fails, so the loop does not
# spin.
policy preset=aws-2.1 long_poll jitter=none
target preset=aws-2.1 budget.initial=0
at 0ms   a: begin POST key -> start 1     first_attempt
at 0ms   a: reply 1 500    -> wait 50ms   budget_empty
at 40ms  a: wake           -> none wake=50ms
at 50ms  a: wake           -> give_up 1   budget_empty
at 50ms  a: wake           -> none
at 100ms b: begin POST key -> start 1     first_attempt
at 100ms b: reply 1 429    -> wait 1100ms budget_empty
at 200ms b: cancel         -> give_up 1   cancelled
expect budget=0
