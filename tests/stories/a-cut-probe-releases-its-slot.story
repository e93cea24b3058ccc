# A probe that the deadline of its call cuts before the usual latency (50 ms) has passed is no evidence: it releases its
# slot. A probe that ran at least as long as usual failed.
policy deadline=2s attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=1s breaker.open_jitter=0% breaker.ramp=0
at 0s       crowd 1 GET 200 took=50ms -> succeeded=1
at 1s       crowd 1 GET 503 -> attempts_spent=1
expect breaker=open
at 3s       a: begin GET deadline=3.005s  -> start 1 first_attempt
at 3.005s   a: fail 1 transient timeout   -> give_up 1 attempts_spent
expect breaker=half_open
at 3.01s    b: begin GET deadline=3.06s   -> start 1 first_attempt
at 3.06s    b: fail 1 transient timeout   -> give_up 1 attempts_spent
expect breaker=open
