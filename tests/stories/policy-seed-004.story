# The wrapper of seed 004: mutating requests need a key; a ratio of 20 % after a warm-up of 10 requests; floor 50 ms;
# and a cooldown after the ratio was exceeded.
policy file=scenarios/seeds.conf#seed-004
target file=scenarios/seeds.conf#seed-004
at 0s   post: begin POST       -> give_up 0 key_required
at 0s   a: begin POST key      -> start 1 first_attempt
at 0s   a: reply 1 503         -> wait 50ms..200ms backoff
at 0s   crowd 9 GET 200        -> succeeded=9
at 0s   b: begin GET           -> start 1 first_attempt
at 0s   b: reply 1 503         -> wait 50ms..200ms backoff
at 0s   c: begin GET           -> start 1 first_attempt
at 0s   c: reply 1 503         -> give_up 1 budget_empty
at 5s   crowd 20 GET 200       -> succeeded=20
at 9s   d: begin GET           -> start 1 first_attempt
at 9s   d: reply 1 503         -> give_up 1 budget_empty
at 11s  e: begin GET           -> start 1 first_attempt
at 11s  e: reply 1 503         -> wait 11050ms..11200ms backoff
