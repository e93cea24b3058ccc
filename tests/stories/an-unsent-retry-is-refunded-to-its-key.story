policy attempts=9 base=1s jitter=none cap=1s
target key_retries=1 key_interval=10s breaker.kind=off
at 0s   a: begin GET retry_key=order-1   -> start 1 first_attempt
at 0s   a: reply 1 503                   -> wait 1000ms backoff
at 0s   a: cancel                        -> give_up 1 cancelled
at 0s   b: begin GET retry_key=order-1   -> start 1 first_attempt
at 0s   b: reply 1 503                   -> wait 1000ms backoff
