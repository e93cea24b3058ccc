# Events after the deadline: a failure is final, a success is still a success, a late wake starts no attempt.
policy attempts=5 base=100ms jitter=none deadline=1s
at 0ms    fails: begin GET      -> start 1 first_attempt
at 0ms    works: begin GET      -> start 1 first_attempt
at 0ms    sleeps: begin GET     -> start 1 first_attempt
at 0ms    sleeps: reply 1 503   -> wait 100ms backoff
at 1s     fails: reply 1 503    -> give_up 1 deadline
at 1100ms works: reply 1 200    -> done 1 succeeded
at 1100ms sleeps: wake          -> give_up 1 deadline
