# A 429 requests two seconds; the second attempt starts after them and succeeds.
policy attempts=3 base=100ms jitter=none
at 0ms    begin GET             -> start 1      first_attempt
at 40ms   reply 1 429 hint=2s   -> wait 2040ms  server_hint
at 2040ms wake                  -> start 2      retry
at 2060ms reply 2 200           -> done 2       succeeded
