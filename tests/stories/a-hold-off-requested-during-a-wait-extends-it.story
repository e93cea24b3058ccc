# Call b already waits when a 429 requests a hold-off: at its wake it waits on.
policy attempts=3 base=1s jitter=none
target breaker.kind=off
at 0s    a: begin GET            -> start 1 first_attempt
at 0s    b: begin GET            -> start 1 first_attempt
at 0s    b: reply 1 503          -> wait 1000ms backoff
at 500ms a: reply 1 429 hint=5s  -> wait 5500ms server_hint
at 1s    b: wake                 -> wait 5500ms hold_off
at 5500ms b: wake                -> start 2 retry
at 5600ms b: reply 2 200         -> done 2 succeeded
