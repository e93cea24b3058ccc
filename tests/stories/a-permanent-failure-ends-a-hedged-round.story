# One of two attempts failed permanently: the call ends, and the verdict names that attempt.
policy attempts=3 hedges_max=1 hedge_delay=100ms
at 0ms    a: begin GET      -> start 1 first_attempt wake=100ms
at 100ms  a: wake           -> start 2 hedge
at 110ms  a: reply 2 404    -> give_up 2 permanent
at 120ms  a: reply 1 200    -> none
at 200ms  b: begin GET      -> start 1 first_attempt wake=300ms
at 300ms  b: wake           -> start 2 hedge
at 310ms  b: reply 1 404    -> give_up 1 permanent
