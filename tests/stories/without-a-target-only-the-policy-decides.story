policy attempts=3 base=100ms jitter=none hedges_max=1 hedge_delay=50ms
at 0ms   begin GET             -> start 1 first_attempt wake=50ms
at 50ms  wake                  -> start 2 hedge
at 60ms  reply 1 503           -> none
at 60ms  reply 2 429 hint=1s   -> wait 1060ms server_hint
at 1060ms wake                 -> start 3 retry
at 1070ms reply 3 200          -> done 3 succeeded
