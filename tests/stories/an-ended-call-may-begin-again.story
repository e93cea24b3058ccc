# begin is the constructor: the memory of an ended call serves the next call, with any previous contents.
policy attempts=2 base=100ms jitter=none
at 0ms    begin GET      -> start 1 first_attempt
at 0ms    reply 1 503    -> wait 100ms backoff
at 100ms  wake           -> start 2 retry
at 100ms  reply 2 503    -> give_up 2 attempts_spent
at 200ms  begin POST     -> start 1 first_attempt
at 200ms  reply 2 200    -> none
at 200ms  reply 1 503    -> give_up 1 not_repeatable
at 300ms  begin GET      -> start 1 first_attempt
at 300ms  reply 1 200    -> done 1 succeeded
