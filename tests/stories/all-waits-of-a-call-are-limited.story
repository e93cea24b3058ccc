# waits_max limits the waits of a call together, not its attempts. A wait that would exceed the rest is not started, and
# costs no token.
policy attempts=5 base=1s cap=30s jitter=none deadline=never waits_max=10s
target hold_off_first budget.refill_per_minute=0
at 0s    a: begin GET           -> start 1   first_attempt
at 60s   a: reply 1 503         -> wait 61s  backoff
at 61s   a: wake                -> start 2   retry
at 90s   a: reply 2 503 hint=7s -> wait 97s  server_hint
at 97s   a: wake                -> start 3   retry
at 97s   a: reply 3 503         -> wait 99s  backoff
at 99s   a: wake                -> start 4   retry
at 99s   expect budget=7
at 99s   a: reply 4 503         -> give_up 4 waits_spent
at 99s   expect budget=7

# The rest is too short for the hint of a server, and for the hold-off that it asked of other calls.
policy attempts=5 base=1s jitter=none deadline=never waits_max=10s
at 200s  b: begin GET            -> start 1   first_attempt
at 200s  b: reply 1 503 hint=11s -> give_up 1 waits_spent
at 200s  c: begin GET            -> give_up 0 waits_spent
at 201s  d: begin GET            -> wait 211s hold_off
at 211s  d: wake                 -> start 1   first_attempt
at 211s  d: reply 1 503          -> give_up 1 waits_spent
