# 10 % of 20 s is 2 s: the wait is between 20 and 22 s, never shorter than the hint. 10 % of 800 ms would be too
# narrow to spread a fleet: the base of the policy is the width then.
policy attempts=3 base=500ms jitter=full hint_jitter=10%
at 0ms   a: begin GET                -> start 1 first_attempt
at 1s    a: reply 1 429 hint=20s     -> wait 21s..23s server_hint
at 1s    b: begin GET                -> start 1 first_attempt
at 1s    b: reply 1 429 hint=800ms   -> wait 1800ms..2300ms server_hint
at 1s    a: cancel                   -> give_up 1 cancelled
