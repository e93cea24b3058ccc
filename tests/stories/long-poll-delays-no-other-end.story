# aws_standard_retry_v2_1: spent attempts, success and permanent failures must not delay.
policy preset=aws-2.1 long_poll jitter=none attempts=2
target preset=aws-2.1
at 0ms  a: begin POST key  -> start 1 first_attempt
at 0ms  a: reply 1 500     -> wait 50ms backoff
expect budget=486
at 50ms a: wake            -> start 2 retry
at 50ms a: reply 2 500     -> give_up 2 attempts_spent
expect budget=486
at 50ms b: begin POST key  -> start 1 first_attempt
at 50ms b: reply 1 404     -> give_up 1 permanent
expect budget=486
