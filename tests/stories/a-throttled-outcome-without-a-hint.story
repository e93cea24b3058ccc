# By default a 429 without a hint backs off; with throttled_needs_hint (seed 004) the call gives up.
policy attempts=3 base=100ms jitter=none
at 0ms  lax: begin GET       -> start 1 first_attempt
at 0ms  lax: reply 1 429     -> wait 100ms backoff
policy attempts=3 base=100ms jitter=none throttled_needs_hint
at 0ms  strict: begin GET                 -> start 1 first_attempt
at 0ms  strict: reply 1 429               -> give_up 1 hint_missing
at 0ms  told: begin GET                   -> start 1 first_attempt
at 0ms  told: reply 1 429 hint=1s         -> wait 1000ms server_hint
at 0ms  transient: begin GET              -> start 1 first_attempt
at 0ms  transient: reply 1 503            -> wait 100ms backoff
