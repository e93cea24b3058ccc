# Held open, the breaker refuses every call at any time; held closed, it admits every call; released, it starts
# without evidence.
policy attempts=1
target breaker.kind=consecutive breaker.consecutive=1 breaker.open=5s breaker.ramp=0
at 0s    hold open
expect breaker=held_open
at 0s    crowd 2 GET 200  -> breaker_open=2
at 1h    crowd 2 GET 200  -> breaker_open=2
at 1h    hold closed
at 1h    crowd 5 GET 503  -> attempts_spent=5
expect breaker=held_closed
at 1h    hold release
expect breaker=closed
at 1h    crowd 1 GET 503  -> attempts_spent=1
expect breaker=open
