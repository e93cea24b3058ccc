# Half of the last four votes are failures; never before four votes were counted.
policy attempts=1
target breaker.kind=count_window breaker.count_window=4 breaker.min_volume=4 breaker.ratio=50%
at 0s  crowd 1 GET 503  -> attempts_spent=1
at 0s  crowd 2 GET 200  -> succeeded=2
expect breaker=closed
at 0s  crowd 1 GET 503  -> attempts_spent=1
expect breaker=open
