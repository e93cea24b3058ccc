# SRE book: when the server accepts less than one request in K, the surplus is refused here, with a probability of
# (requests - K * accepts) / (requests + 1): of the 200 last ones 61 on average. At most nine in ten, so that its recovery
# is seen; and once the window has passed, none.
policy attempts=1
target throttle_k=2x throttle_min_volume=10 throttle_window=2min throttle_max=90% breaker.kind=off
at 0s   crowd 100 GET 200  -> succeeded=100
at 1s   crowd 100 GET 503  -> attempts_spent=100
at 1s   crowd 200 GET 503  -> attempts_spent=110..170 throttle=30..90
at 300s crowd 10 GET 200   -> succeeded=10
