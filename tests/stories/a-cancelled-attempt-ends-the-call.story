# The driver reports that our own side stopped the attempt: nothing was learnt of the server, and nobody wants more.
policy attempts=3
target breaker.kind=consecutive breaker.consecutive=1
at 0s begin GET                -> start 1 first_attempt
at 1s fail 1 cancelled         -> give_up 1 cancelled
expect breaker=closed budget=10
