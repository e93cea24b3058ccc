# Linear, fixed and none: one call each.
policy attempts=4 base=100ms cap=250ms jitter=none backoff=linear
at 0ms   linear: begin GET    -> start 1 first_attempt
at 0ms   linear: reply 1 500  -> wait 100ms backoff
at 100ms linear: wake         -> start 2 retry
at 100ms linear: reply 2 500  -> wait 300ms backoff
at 300ms linear: wake         -> start 3 retry
at 300ms linear: reply 3 500  -> wait 550ms backoff
at 550ms linear: cancel       -> give_up 3 cancelled
policy attempts=3 base=100ms jitter=none backoff=fixed
at 1s    fixed: begin GET     -> start 1 first_attempt
at 1s    fixed: reply 1 500   -> wait 1100ms backoff
at 1100ms fixed: wake         -> start 2 retry
at 1100ms fixed: reply 2 500  -> wait 1200ms backoff
at 1200ms fixed: cancel       -> give_up 2 cancelled
policy attempts=2 backoff=none
at 2s    none: begin GET      -> start 1 first_attempt
at 2s    none: reply 1 500    -> wait 2s backoff
at 2s    none: wake           -> start 2 retry
at 2s    none: reply 2 200    -> done 2 succeeded
