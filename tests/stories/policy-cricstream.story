# The video player of seed 003: one retry, spread over 4 s, and at most one retry in 30 s for the same segment.
policy file=scenarios/seeds.conf#cricstream
target file=scenarios/seeds.conf#cricstream
at 0s   a: begin GET retry_key=segment-17   -> start 1 first_attempt
at 0s   a: reply 1 503                      -> wait 0..4s backoff
at 1s   b: begin GET retry_key=segment-17   -> start 1 first_attempt
at 1s   b: reply 1 503                      -> give_up 1 key_limit
at 1s   c: begin GET retry_key=segment-18   -> start 1 first_attempt
at 1s   c: reply 1 503 hint=2s              -> wait 3s..7s server_hint
policy file=scenarios/seeds.conf#cricstream jitter=none
at 31s  d: begin GET retry_key=segment-17   -> start 1 first_attempt
at 31s  d: reply 1 503                      -> wait 35s backoff
at 35s  d: wake                             -> start 2 retry
at 35s  d: reply 2 503                      -> give_up 2 attempts_spent
