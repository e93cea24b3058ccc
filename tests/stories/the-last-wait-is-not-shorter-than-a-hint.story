# Hints apply to the last wait unchanged: one beyond the deadline gives up at once, and none is cut short.
policy attempts=9 base=4s cap=30s jitter=none deadline=10s attempt_min=1s last_wait=yes hint_jitter=0%
at 0s  a: begin GET             -> start 1 first_attempt
at 2s  a: reply 1 503 hint=9s   -> give_up 1 deadline_near
at 10s b: begin GET deadline=18s -> start 1 first_attempt
at 14s b: reply 1 503 hint=1s   -> give_up 1 deadline_near
policy attempts=9 base=2s cap=30s jitter=none deadline=10s attempt_min=1s last_wait=yes hint_jitter=0%
at 20s c: begin GET deadline=24s -> start 1 first_attempt
at 20s c: reply 1 503            -> wait 22s backoff
at 22s c: cancel                 -> give_up 1 cancelled
at 30s d: begin GET deadline=36s -> start 1 first_attempt
at 30s d: reply 1 503            -> wait 32s backoff
at 32s d: wake                   -> start 2 retry
at 32s d: reply 2 503 hint=2900ms -> wait 34900ms..35s last_wait
at 35s d: cancel                 -> give_up 2 cancelled
# Presets that copy other systems have no last wait.
policy preset=envoy base=4s cap=30s jitter=none deadline=5s attempts=3
at 40s e: begin GET deadline=43s -> start 1 first_attempt
at 40s e: reply 1 503            -> give_up 1 deadline_near
