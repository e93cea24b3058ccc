# The calling layer already retries, or forbids retries: this layer makes one attempt.
policy attempts=3 base=100ms jitter=none
at 0ms first: begin GET inbound=1        -> start 1 first_attempt
at 0ms first: reply 1 503                -> wait 100ms backoff
at 0ms retried: begin GET inbound=2      -> start 1 first_attempt
at 0ms retried: reply 1 503              -> give_up 1 inner_layer
at 0ms forbidden: begin GET no_retry     -> start 1 first_attempt
at 0ms forbidden: reply 1 503            -> give_up 1 inner_layer
policy attempts=3 base=100ms jitter=none layer=any
at 0ms any: begin GET inbound=2          -> start 1 first_attempt
at 0ms any: reply 1 503                  -> wait 100ms backoff
at 0ms anyno: begin GET no_retry         -> start 1 first_attempt
at 0ms anyno: reply 1 503                -> give_up 1 inner_layer
policy attempts=3 base=100ms jitter=none layer=never
at 0ms never: begin GET                  -> start 1 first_attempt
at 0ms never: reply 1 503                -> give_up 1 inner_layer
