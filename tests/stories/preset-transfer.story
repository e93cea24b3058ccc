# A download of unknown length: no timeout but that of connecting, no deadline. All waits together take a minute at
# most: a second Retry-After of 45 s is not waited for.
policy preset=transfer
target preset=transfer
at 0s    a: begin GET            -> start 1 first_attempt cut=never connect=3s
at 500s  a: reply 1 503          -> wait 500s..500200ms backoff
at 501s  a: wake                 -> start 2 retry cut=never connect=504s
at 501s  a: reply 2 503 hint=70s -> give_up 2 waits_spent
policy preset=transfer jitter=none
at 600s  b: begin GET            -> start 1 first_attempt cut=never connect=603s
at 900s  b: reply 1 503 hint=45s -> wait 945s server_hint
at 945s  b: wake                 -> start 2 retry
at 945s  b: reply 2 503 hint=45s -> give_up 2 waits_spent
