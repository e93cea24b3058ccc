# Several attempts were in flight when the server requested a hold-off from one of them: their successes are no news.
policy attempts=3 base=100ms jitter=none
target breaker.kind=off
at 0s  old: begin GET             -> start 1 first_attempt
at 0s  told: begin GET            -> start 1 first_attempt
at 1s  told: reply 1 429 hint=9s  -> wait 10s server_hint
at 2s  old: reply 1 200           -> done 1 succeeded
expect hold_off=10s
at 3s  new: begin GET             -> start 1 first_attempt
at 4s  new: reply 1 200           -> done 1 succeeded
expect hold_off=none
