# curl: exactly the hint. gRPC: exactly, 0 included, after which the backoff restarts. AWS: clamped into a window.
policy preset=curl
at 0s   curl: begin GET              -> start 1 first_attempt
at 0s   curl: reply 1 503 hint=7s    -> wait 7000ms server_hint
at 7s   curl: wake                   -> start 2 retry
at 7s   curl: reply 2 503            -> wait 8s backoff
at 7s   curl: cancel                 -> give_up 2 cancelled
policy preset=grpc jitter_lo=100% jitter_hi=100%
at 10s  grpc: begin GET              -> start 1 first_attempt
at 10s  grpc: reply 1 503            -> wait 10100ms backoff
at 10100ms grpc: wake                -> start 2 retry
at 10100ms grpc: reply 2 503 hint=0  -> wait 10100ms server_hint
at 10100ms grpc: wake                -> start 3 retry
at 10100ms grpc: reply 3 503         -> wait 10200ms backoff
at 10100ms grpc: cancel              -> give_up 3 cancelled
policy preset=aws-2.1 jitter=none
at 20s  aws: begin GET                -> start 1 first_attempt
at 20s  aws: reply 1 500 hint=1500ms  -> wait 21500ms server_hint
at 21500ms aws: wake                  -> start 2 retry
at 21500ms aws: cancel                -> give_up 2 cancelled
at 30s  low: begin GET                -> start 1 first_attempt
at 30s  low: reply 1 500 hint=0       -> wait 30050ms backoff
at 30s  high: begin GET               -> start 1 first_attempt
at 30s  high: reply 1 500 hint=10s    -> wait 35050ms server_hint
