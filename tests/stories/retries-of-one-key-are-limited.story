# Two retries in 10 s for the same order, from any call. Other orders, and requests without a key, are not limited.
policy attempts=9 base=1s jitter=none cap=1s
target key_retries=2 key_interval=10s breaker.kind=off
at 0s   a: begin GET retry_key=order-1   -> start 1 first_attempt
at 0s   a: reply 1 503                   -> wait 1000ms backoff
at 1s   a: wake                          -> start 2 retry
at 1s   a: reply 2 503                   -> wait 2000ms backoff
at 2s   a: wake                          -> start 3 retry
at 2s   a: reply 3 503                   -> give_up 3 key_limit
at 2s   b: begin GET retry_key=order-1   -> start 1 first_attempt
at 2s   b: reply 1 503                   -> give_up 1 key_limit
at 2s   c: begin GET retry_key=order-2   -> start 1 first_attempt
at 2s   c: reply 1 503                   -> wait 3000ms backoff
at 2s   d: begin GET                     -> start 1 first_attempt
at 2s   d: reply 1 503                   -> wait 3000ms backoff
at 12s  e: begin GET retry_key=order-1   -> start 1 first_attempt
at 12s  e: reply 1 503                   -> wait 13s backoff
expect refused key_limit=2
