# The earlier of the deadlines of policy and request. A request whose deadline has passed makes no attempt.
policy attempts=3 base=100ms jitter=none deadline=10s attempt_timeout=2s connect_timeout=1s
at 5s  request: begin GET deadline=6s     -> start 1 first_attempt cut=6s connect=6s
at 5s  policy: begin GET deadline=60s     -> start 1 first_attempt cut=7s connect=6s
at 5s  late: begin GET deadline=5s        -> give_up 0 deadline
at 5s  later: begin GET deadline=4s       -> give_up 0 deadline
at 5900ms request: reply 1 503            -> give_up 1 deadline_near
at 14s policy: reply 1 503                -> wait 14100ms backoff
at 14100ms policy: wake                   -> start 2 retry cut=15s connect=15s
