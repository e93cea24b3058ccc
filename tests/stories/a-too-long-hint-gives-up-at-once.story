# Retry-After: 9223372037 (an epoch sent as seconds) is no reason to wait for 292 years, nor to retry at once.
policy attempts=3 base=100ms jitter=none deadline=never hint_max=5min
at 0ms  exact: begin GET                       -> start 1 first_attempt
at 0ms  exact: reply 1 429 hint=5min           -> wait 300s server_hint
at 0ms  more: begin GET                        -> start 1 first_attempt
at 0ms  more: reply 1 429 hint=300000000001ns  -> give_up 1 hint_too_long
at 0ms  huge: begin GET                        -> start 1 first_attempt
at 0ms  huge: reply 1 429 hint=9223372036s     -> give_up 1 hint_too_long
at 0ms  never: begin GET                       -> start 1 first_attempt
at 0ms  never: reply 1 429 hint=never          -> give_up 1 hint_too_long
