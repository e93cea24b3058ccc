# Four attempts are a first attempt and three retries; the failure of the third retry ends the call.
policy attempts=4 base=100ms cap=30s jitter=none
at 0ms    begin GET     -> start 1     first_attempt
at 10ms   reply 1 503   -> wait 110ms  backoff
at 110ms  wake          -> start 2     retry
at 120ms  reply 2 503   -> wait 320ms  backoff
at 320ms  wake          -> start 3     retry
at 330ms  reply 3 503   -> wait 730ms  backoff
at 730ms  wake          -> start 4     retry
at 740ms  reply 4 503   -> give_up 4   attempts_spent
