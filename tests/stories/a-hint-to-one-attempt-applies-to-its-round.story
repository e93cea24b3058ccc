# The server requested a wait of 10 s from attempt 1 while its hedge was running. When the hedge fails too, the hint
# still applies.
policy attempts=4 hedges_max=1 hedge_delay=100ms base=200ms jitter=none
at 0ms    begin GET              -> start 1 first_attempt wake=100ms
at 100ms  wake                   -> start 2 hedge
at 120ms  reply 1 429 hint=10s   -> none
at 140ms  reply 2 503            -> wait 10120ms server_hint
at 10120ms wake                  -> start 3 retry wake=10220ms
