# Every preset sets all timeouts and the deadline. The duration of a command is unknown: that preset sets none.
policy preset=interactive
target preset=interactive
at 0s  interactive: begin GET      -> start 1 first_attempt cut=2s connect=500ms
at 0s  interactive: reply 1 503    -> wait 0..100ms backoff
policy preset=external
at 0s  external: begin GET         -> start 1 first_attempt cut=30s connect=5s
at 0s  external: reply 1 503       -> wait 0..1s backoff
policy preset=background
at 0s  background: begin GET       -> start 1 first_attempt cut=60s connect=5s
at 0s  background: reply 1 503     -> wait 1s..3s backoff
policy preset=serverless
at 0s  serverless: begin GET       -> start 1 first_attempt cut=3s connect=1s
at 0s  serverless: reply 1 503     -> wait 0..100ms backoff
policy preset=command
at 0s  command: begin GET          -> start 1 first_attempt cut=never connect=never
at 0s  command: reply 1 503        -> wait 0..200ms backoff
