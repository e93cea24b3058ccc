# A wait that would end after the deadline is not started; a wait that ends just before it is.
policy attempts=5 base=400ms cap=400ms jitter=none deadline=1s
at 0ms    a: begin GET     -> start 1     first_attempt  cut=1s
at 500ms  a: reply 1 503   -> wait 900ms  backoff
at 900ms  a: wake          -> start 2     retry          cut=1s
at 950ms  a: reply 2 503   -> give_up 2   deadline_near
