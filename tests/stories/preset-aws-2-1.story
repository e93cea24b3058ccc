# aws_standard_retry_v2_1, "retry quota recovery": 14 per retry, 5 when throttled; a success refunds the last charge.
policy preset=aws-2.1 jitter=none attempts=5
target preset=aws-2.1 budget.capacity=30
at 0ms   a: begin GET     -> start 1 first_attempt
at 0ms   a: reply 1 500   -> wait 50ms backoff
expect budget=16
at 50ms  a: wake          -> start 2 retry
at 50ms  a: reply 2 502   -> wait 150ms backoff
expect budget=2
at 150ms a: wake          -> start 3 retry
at 150ms a: reply 3 200   -> done 3 succeeded
expect budget=16
at 150ms b: begin GET     -> start 1 first_attempt
at 150ms b: reply 1 500   -> wait 200ms backoff
expect budget=2
at 200ms b: wake          -> start 2 retry
at 200ms b: reply 2 500   -> give_up 2 budget_empty
expect budget=2
at 200ms add 28
at 200ms c: begin GET     -> start 1 first_attempt
at 200ms c: reply 1 429   -> wait 1200ms backoff
expect budget=25
at 1200ms c: wake         -> start 2 retry
at 1200ms c: reply 2 200  -> done 2 succeeded
expect budget=30
