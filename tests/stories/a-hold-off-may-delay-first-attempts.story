# With hold_off_first a new call waits before its first attempt, and its deadline still applies.
policy attempts=3 base=100ms jitter=none
target hold_off_first
at 0s  a: begin GET             -> start 1 first_attempt
at 0s  a: reply 1 429 hint=3s   -> wait 3000ms server_hint
at 1s  b: begin GET             -> wait 3000ms hold_off
at 2s  c: begin GET deadline=2500ms -> give_up 0 deadline_near
at 3s  b: wake                  -> start 1 first_attempt
at 3s  b: reply 1 200           -> done 1 succeeded
at 3s  a: wake                  -> start 2 retry
