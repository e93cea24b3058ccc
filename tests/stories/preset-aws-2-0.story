# aws_standard_retry_v2_0 with rand() = 1, which is jitter none. 500 tokens, 5 per retry, 10 after a timeout; a
# success refunds the last charge.
policy preset=aws-2.0 jitter=none attempts=5
target preset=aws-2.0
at 0s  a: begin GET               -> start 1 first_attempt
at 0s  a: reply 1 500             -> wait 1000ms backoff
expect budget=495
at 1s  a: wake                    -> start 2 retry
at 1s  a: reply 2 500             -> wait 3000ms backoff
expect budget=490
at 3s  a: wake                    -> start 3 retry
at 3s  a: reply 3 200             -> done 3 succeeded
expect budget=495
at 3s  b: begin GET               -> start 1 first_attempt
at 3s  b: fail 1 transient timeout -> wait 4000ms backoff
expect budget=485
at 3s  b: cancel                  -> give_up 1 cancelled
expect budget=495
at 3s  crowd 2 GET 200            -> succeeded=2
expect budget=497
at 3s  c: begin GET               -> start 1 first_attempt
at 3s  c: reply 1 500 hint=30s    -> wait 23s server_hint
