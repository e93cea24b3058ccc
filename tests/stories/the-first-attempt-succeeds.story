# The common case. START carries the deadlines of the attempt: 10 s, and 3 s to connect.
policy preset=service
target preset=service
at 0ms  begin GET    -> start 1 first_attempt cut=10s connect=3s
at 20ms reply 1 200  -> done 1 succeeded
expect budget=10 breaker=closed hold_off=none evictable=yes
