policy attempts=3 base=100ms jitter=none deadline=10s
at 0s  begin GET             -> start 1   first_attempt
at 1s  reply 1 503 hint=20s  -> give_up 1 deadline_near
