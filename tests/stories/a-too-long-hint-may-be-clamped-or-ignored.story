policy attempts=3 base=100ms jitter=none hint_max=2s hint_long=clamp
at 0ms  clamp: begin GET              -> start 1 first_attempt
at 0ms  clamp: reply 1 429 hint=1min  -> wait 2s server_hint
policy attempts=3 base=100ms jitter=none hint_max=2s hint_long=ignore
at 0ms  ignore: begin GET              -> start 1 first_attempt
at 0ms  ignore: reply 1 429 hint=1min  -> wait 100ms backoff
policy attempts=3 base=100ms jitter=none hint_rule=ignore
at 0ms  ignore: begin GET              -> start 1 first_attempt
at 0ms  ignore: reply 1 429 hint=1min  -> wait 100ms backoff
at 0ms  deaf: begin GET                 -> start 1 first_attempt
at 0ms  deaf: reply 1 429 hint=stop     -> wait 100ms backoff
