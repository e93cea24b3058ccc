# The breaker was held open by an operator and released while the attempt ran: the failure belongs to an older
# generation and does not vote. It is still retried.
policy attempts=2 base=100ms jitter=none
target breaker.kind=time_window breaker.min_volume=1 breaker.ratio=10% breaker.ramp=0
at 0ms   begin GET       -> start 1 first_attempt
at 1ms   hold open
at 2ms   hold release
at 3ms   reply 1 503     -> wait 103ms backoff
expect breaker=closed
