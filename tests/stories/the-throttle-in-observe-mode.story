policy attempts=1
target throttle_k=2x throttle_min_volume=10 breaker.kind=off observe=throttle
at 0s  crowd 200 GET 503 -> attempts_spent=200
