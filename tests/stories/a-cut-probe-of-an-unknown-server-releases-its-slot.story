# While no success is known, short deadlines open the breaker after ten seconds, but a probe that is cut does not reopen
# it: a patient caller can become the next probe, and its success closes the breaker and is the first sample.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=1s breaker.open_jitter=0% breaker.ramp=0
at 0s       a: begin GET deadline=5ms        -> start 1 first_attempt
at 5ms      a: fail 1 transient timeout      -> give_up 1 attempts_spent
at 10.004s  b: begin GET deadline=10.0049s   -> start 1 first_attempt
at 10.0049s b: fail 1 transient timeout      -> give_up 1 attempts_spent
expect breaker=closed
at 10.005s  c: begin GET deadline=10.01s     -> start 1 first_attempt
at 10.01s   c: fail 1 transient timeout      -> give_up 1 attempts_spent
expect breaker=open
at 12s      d: begin GET deadline=12.005s    -> start 1 first_attempt
at 12.005s  d: fail 1 transient timeout      -> give_up 1 attempts_spent
expect breaker=half_open
at 12.006s  e: begin GET                     -> start 1 first_attempt
at 12.056s  e: reply 1 200                   -> done 1 succeeded
expect breaker=closed
at 13s      f: begin GET deadline=13.005s    -> start 1 first_attempt
at 13.005s  f: fail 1 transient timeout      -> give_up 1 attempts_spent
expect breaker=closed
