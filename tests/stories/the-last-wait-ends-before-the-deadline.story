# A backoff that leaves too little time before the deadline is replaced once: by a draw from the second half of the
# time in which a useful attempt can start (here 10 s - 1 s - 4 s = 5 s after the third failure).
policy attempts=9 base=1s cap=30s jitter=none deadline=10s attempt_min=1s last_wait=yes
at 0s     a: begin GET   -> start 1 first_attempt
at 0s     a: reply 1 503 -> wait 1s backoff
at 1s     a: wake        -> start 2 retry
at 1s     a: reply 2 503 -> wait 3s backoff
at 3s     a: wake        -> start 3 retry
at 4s     a: reply 3 503 -> wait 8s backoff
at 8s     a: wake        -> start 4 retry
# Not even the base fits into what is left.
at 8100ms a: reply 4 503 -> give_up 4 deadline_near
at 20s    b: begin GET deadline=29s -> start 1 first_attempt
at 20s    b: reply 1 503 -> wait 21s backoff
at 21s    b: wake        -> start 2 retry
at 21s    b: reply 2 503 -> wait 23s backoff
at 23s    b: wake        -> start 3 retry
at 23s    b: fail 3 transient timeout -> wait 27s backoff
at 27s    b: cancel      -> give_up 3 cancelled
at 30s    c: begin GET deadline=36s -> start 1 first_attempt
at 30s    c: reply 1 503 -> wait 31s backoff
at 31s    c: wake        -> start 2 retry
at 31s    c: reply 2 503 -> wait 33s backoff
at 33s    c: wake        -> start 3 retry
at 33s    c: reply 3 503 -> wait 34s..35s last_wait
at 35s    c: wake        -> start 4 retry
at 35s    c: reply 4 503 -> give_up 4 deadline_near
