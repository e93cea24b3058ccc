# 100 ms doubling to 1 s, each with 20 % jitter up or down, which may exceed the maximum.
policy preset=grpc attempts=6
at 0s begin GET       -> start 1 first_attempt
at 0s reply 1 503     -> wait 80ms..120ms backoff
at 1s wake            -> start 2 retry
at 1s reply 2 503     -> wait 1160ms..1240ms backoff
at 2s wake            -> start 3 retry
at 2s reply 3 503     -> wait 2320ms..2480ms backoff
at 3s wake            -> start 4 retry
at 3s reply 4 503     -> wait 3640ms..3960ms backoff
at 4s wake            -> start 5 retry
at 4s reply 5 503     -> wait 4800ms..5200ms backoff
