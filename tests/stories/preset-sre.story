# Three attempts per request, retries below a tenth of the requests of two minutes, and a short warm-up.
policy preset=sre
target preset=sre
at 0s  crowd 10 GET 200  -> succeeded=10
at 1s  a: begin GET      -> start 1 first_attempt
at 1s  a: reply 1 503    -> wait 1s..1.2s backoff
at 1s  b: begin GET      -> start 1 first_attempt
at 1s  b: reply 1 503    -> give_up 1 budget_empty
at 1s  crowd 10 GET 200  -> succeeded=10
at 2s  c: begin GET      -> start 1 first_attempt
at 2s  c: reply 1 503    -> wait 2s..2.2s backoff
