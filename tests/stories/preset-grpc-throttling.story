# gRFC A6: a failure removes one token, a success adds a tenth; retries stop at half the tokens. Permanent failures
# remove none.
policy preset=grpc jitter_lo=100% jitter_hi=100%
target preset=grpc budget.capacity=4 budget.threshold=2 budget.earn_success=0.8
at 0ms   a: begin GET     -> start 1 first_attempt
at 0ms   a: reply 1 404   -> give_up 1 permanent
expect budget=4
at 0ms   b: begin GET     -> start 1 first_attempt
at 0ms   b: reply 1 503   -> wait 100ms backoff
expect budget=3
at 100ms b: wake          -> start 2 retry
at 100ms b: reply 2 503   -> give_up 2 budget_empty
expect budget=2
at 100ms crowd 3 GET 503  -> budget_empty=3
expect budget=0
at 100ms crowd 2 GET 200  -> succeeded=2
expect budget=1.6
at 100ms crowd 1 GET 200  -> succeeded=1
expect budget=2.4
at 100ms c: begin GET             -> start 1 first_attempt
at 100ms c: reply 1 503 hint=stop -> give_up 1 server_stop
expect budget=1.4
