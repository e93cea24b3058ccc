# trust=throttled: the server guarantees that a throttled request did not run, so a POST may be repeated after 429,
# but not after 503. trust=unavailable: the reverse.
policy attempts=2 base=100ms jitter=none
target trust=throttled breaker.kind=off
at 0ms a: begin POST        -> start 1 first_attempt
at 0ms a: reply 1 429       -> wait 100ms backoff
at 0ms b: begin POST        -> start 1 first_attempt
at 0ms b: reply 1 503       -> give_up 1 not_repeatable
at 0ms configure trust=unavailable
at 0ms c: begin POST        -> start 1 first_attempt
at 0ms c: reply 1 503       -> wait 100ms backoff
at 0ms d: begin POST        -> start 1 first_attempt
at 0ms d: reply 1 429       -> give_up 1 not_repeatable
at 0ms e: begin POST        -> start 1 first_attempt
at 0ms e: reply 1 500       -> give_up 1 not_repeatable
