# Idempotency-Key draft: 409 means that the first request is still being processed. Without a key, 409 is a conflict
# that the caller must resolve.
policy attempts=3 base=100ms jitter=none
at 0ms    keyed: begin POST key   -> start 1     first_attempt
at 0ms    keyed: reply 1 409      -> wait 100ms  backoff
at 100ms  keyed: wake             -> start 2     retry
at 110ms  keyed: reply 2 201      -> done 2      succeeded
at 200ms  bare: begin POST        -> start 1     first_attempt
at 200ms  bare: reply 1 409       -> give_up 1   permanent
at 200ms  put: begin PUT          -> start 1     first_attempt
at 200ms  put: reply 1 409        -> give_up 1   permanent
