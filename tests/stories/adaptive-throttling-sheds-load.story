# SRE book: when the server accepts fewer than one request in K, the client sheds the surplus with probability
# (requests - K * accepts) / (requests + 1): of the last 200 requests 61 on average. At most 90 % is refused, so that
# the recovery is noticed; after the window has passed nothing is refused.
policy attempts=1
target throttle_k=2x throttle_min_volume=10 throttle_window=2min throttle_max=90% breaker.kind=off
at 0s   crowd 100 GET 200  -> succeeded=100
at 1s   crowd 100 GET 503  -> attempts_spent=100
at 1s   crowd 200 GET 503  -> attempts_spent=110..170 throttle=30..90
at 300s crowd 10 GET 200   -> succeeded=10
