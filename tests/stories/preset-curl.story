# As curl --retry 3: 1, 2, 4 seconds, no jitter, no budget, no breaker. (The repeat gate of bide stays: curl would
# repeat a POST.)
policy preset=curl
target preset=curl
at 0s  begin GET    -> start 1 first_attempt
at 0s  reply 1 503  -> wait 1000ms backoff
at 1s  wake         -> start 2 retry
at 1s  reply 2 503  -> wait 3000ms backoff
at 3s  wake         -> start 3 retry
at 3s  reply 3 503  -> wait 7000ms backoff
at 7s  wake         -> start 4 retry
at 7s  reply 4 503  -> give_up 4 attempts_spent
expect budget=unlimited
