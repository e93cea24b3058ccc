# 425: worth a second attempt, without early data, but no third.
policy attempts=4 base=100ms jitter=none
at 0ms   begin POST      -> start 1     first_attempt
at 0ms   reply 1 425     -> wait 100ms  backoff
at 100ms wake            -> start 2     retry
at 100ms reply 2 425     -> give_up 2   permanent
