# Our own side cancels one of two attempts: the outcome is neutral, the other attempt decides.
policy attempts=3 hedges_max=1 hedge_delay=100ms
at 0ms    begin GET                                -> start 1 first_attempt wake=100ms
at 100ms  wake                                     -> start 2 hedge
at 110ms  fail 1 cancelled                         -> none
at 120ms  reply 2 200                              -> done 2 succeeded
