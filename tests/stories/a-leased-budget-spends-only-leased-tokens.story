# The fleet leases the tokens. Earnings of calls are recorded for the fleet and not spent here.
policy attempts=2 base=100ms jitter=none
target breaker.kind=off
expect budget=10
at 0s     lease begin
at 0s     lease until 10s
at 0s     expect budget=0 evictable=no
at 1s     a: begin GET   -> start 1 first_attempt
at 1s     a: reply 1 503 -> give_up 1 budget_empty
at 2s     add 2
at 3s     b: begin GET   -> start 1 first_attempt
at 3s     b: reply 1 503 -> wait 3100ms backoff
at 3s     expect budget=1
at 3100ms b: wake        -> start 2 retry
at 3200ms b: reply 2 200 -> done 2 succeeded
at 3200ms expect budget=1
at 3200ms collect firsts=2 successes=1 earned=0.1
at 3200ms collect firsts=0 successes=0 earned=0
at 4s     c: begin GET   -> start 1 first_attempt
at 4s     c: reply 1 503 -> wait 4100ms backoff
at 4050ms c: cancel      -> give_up 1 cancelled
at 4050ms expect budget=1
at 5s     lease end
at 5s     d: begin GET   -> start 1 first_attempt
at 5s     d: reply 1 200 -> done 1 succeeded
at 5s     expect budget=1.1
