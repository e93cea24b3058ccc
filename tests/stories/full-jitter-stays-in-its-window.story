# Full jitter with a floor of 50 ms: uniform between the floor and the envelope, never above the cap.
policy attempts=5 base=200ms cap=500ms floor=50ms jitter=full deadline=never
at 0ms   begin GET seed=7  -> start 1 first_attempt
at 0ms   reply 1 503       -> wait 50ms..200ms backoff
at 1s    wake              -> start 2 retry
at 1s    reply 2 503       -> wait 1050ms..1400ms backoff
at 2s    wake              -> start 3 retry
at 2s    reply 3 503       -> wait 2050ms..2500ms backoff
at 3s    wake              -> start 4 retry
at 3s    reply 4 503       -> wait 3050ms..3500ms backoff
at 3500ms wake             -> start 5 retry
at 3600ms reply 5 503      -> give_up 5 attempts_spent
