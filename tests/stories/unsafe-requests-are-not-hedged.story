# A hedge repeats a request before the evidence is known: only safe, idempotent and keyed requests are hedged.
policy attempts=3 hedges_max=1 hedge_delay=100ms
at 0ms post: begin POST       -> start 1 first_attempt
at 0ms keyed: begin POST key  -> start 1 first_attempt wake=100ms
at 0ms put: begin PUT         -> start 1 first_attempt wake=100ms
