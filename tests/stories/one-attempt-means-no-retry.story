policy attempts=1
at 0ms  begin GET    -> start 1 first_attempt
at 10ms reply 1 503  -> give_up 1 attempts_spent
