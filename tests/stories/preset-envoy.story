# A concurrency budget: retries in flight, from the decision to the end, at most 20 % of the calls, but at least 3.
policy preset=envoy
target preset=envoy
at 0ms  a: begin GET    -> start 1 first_attempt
at 0ms  b: begin GET    -> start 1 first_attempt
at 0ms  c: begin GET    -> start 1 first_attempt
at 0ms  d: begin GET    -> start 1 first_attempt
at 0ms  a: reply 1 503  -> wait 0..25ms backoff
at 0ms  b: reply 1 503  -> wait 0..25ms backoff
expect budget=1
at 0ms  c: reply 1 503  -> wait 0..25ms backoff
at 0ms  d: reply 1 503  -> give_up 1 budget_empty
at 25ms a: wake         -> start 2 retry
expect budget=0
at 26ms a: reply 2 200  -> done 2 succeeded
expect budget=1
at 26ms b: cancel       -> give_up 1 cancelled
expect budget=2
