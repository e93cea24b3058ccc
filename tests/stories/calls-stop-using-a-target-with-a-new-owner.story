# A table gave the target's memory to another name: calls in flight finish without it (a retry that was charged is
# still made) and record nothing there.
policy attempts=3 base=1s jitter=none hedges_max=1 hedge_delay=500ms
target breaker.kind=consecutive breaker.consecutive=1 budget.refill_per_minute=0
at 0s    fails: begin GET     -> start 1 first_attempt wake=500ms
at 0s    works: begin GET     -> start 1 first_attempt wake=500ms
at 0s    slow: begin GET      -> start 1 first_attempt wake=500ms
at 0s    idle: begin GET      -> start 1 first_attempt wake=500ms
at 0s    idle: fail 1 conflict evidence=answered -> wait 0ms conflict
at 0s    waits: begin GET     -> start 1 first_attempt wake=500ms
at 0s    waits: fail 1 conflict evidence=answered -> wait 0ms conflict
at 100ms reuse
expect budget=10 breaker=closed
at 200ms fails: reply 1 503   -> give_up 1 target_gone
at 200ms works: reply 1 200   -> done 1 succeeded
at 500ms slow: wake           -> none target_gone
at 600ms slow: reply 1 200    -> done 1 succeeded
at 700ms idle: cancel         -> give_up 1 cancelled
at 800ms waits: wake          -> start 2 retry wake=1300ms
at 900ms waits: reply 2 503   -> give_up 2 target_gone
expect budget=10 breaker=closed evictable=yes
