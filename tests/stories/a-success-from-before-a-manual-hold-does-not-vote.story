# The breaker was held open by an operator and released while the attempt ran: it is closed again, but the attempt
# belongs to an older generation.
policy attempts=1
target breaker.kind=time_window breaker.min_volume=2 breaker.ratio=60% breaker.ramp=0
at 0ms   old: begin GET      -> start 1 first_attempt
at 1ms   hold open
at 2ms   hold release
at 3ms   old: reply 1 200    -> done 1 succeeded
at 4ms   crowd 2 GET 503     -> attempts_spent=2
expect breaker=open
