# The request body came from a pipe, and a part of it was already read.
policy attempts=3 base=100ms jitter=none
at 0ms spent: begin PUT                                             -> start 1 first_attempt
at 0ms spent: fail 1 transient evidence=rejected body_spent             -> give_up 1 body_spent
at 0ms whole: begin PUT                                             -> start 1 first_attempt
at 0ms whole: fail 1 transient evidence=rejected                        -> wait 100ms backoff
