# No descriptor is left (EMFILE), no address is known for the name: neither is evidence against the server, so neither
# votes, and a probe releases its slot. The failure is retried, charged and limited as before.
policy attempts=3 base=100ms jitter=none
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.open_jitter=0% breaker.ramp=0
at 0s      crowd 9 GET transient evidence=not_sent local -> backoff=9
at 0s      crowd 1 GET throttled local                   -> backoff=1
at 0s      crowd 1 GET permanent evidence=not_sent local -> permanent=1
expect breaker=closed
at 1s      a: begin POST                                 -> start 1 first_attempt
at 1s      a: fail 1 transient evidence=not_sent local   -> wait 1.1s backoff
at 1.1s    a: wake                                       -> start 2 retry
at 1.2s    a: fail 2 transient evidence=not_sent         -> give_up 2 breaker_open
expect breaker=open
at 6.3s    b: begin GET                                  -> start 1 first_attempt
at 6.3s    b: fail 1 transient evidence=not_sent local   -> wait 6.4s backoff
expect breaker=half_open
at 6.4s    b: wake                                       -> start 2 retry
at 6.5s    b: reply 2 200                                -> done 2 succeeded
expect breaker=closed
