# The driver reports that our own side stopped the attempt: the outcome is neutral for the target and ends the call.
policy attempts=3
target breaker.kind=consecutive breaker.consecutive=1
at 0s begin GET                -> start 1 first_attempt
at 1s fail 1 cancelled         -> give_up 1 cancelled
expect breaker=closed budget=10
