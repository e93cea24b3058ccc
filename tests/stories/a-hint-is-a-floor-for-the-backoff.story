# The hint is 50 ms, the backoff 400 ms: the longer wait applies. A hinted wait does not count as a backoff step.
policy attempts=5 base=400ms cap=30s jitter=none
at 0ms    begin GET               -> start 1      first_attempt
at 0ms    reply 1 503 hint=50ms   -> wait 400ms   backoff
at 400ms  wake                    -> start 2      retry
at 400ms  reply 2 429 hint=5s     -> wait 5400ms  server_hint
at 5400ms wake                    -> start 3      retry
at 5400ms reply 3 503             -> wait 6200ms  backoff
at 6200ms cancel                  -> give_up 3    cancelled
