# "AWS SDKs use a token bucket: 500 initial tokens, 5 per successful call refunded, 5 per retry." Its Verify: line
# states that after 100 consecutive failures acquire() returns False.
policy file=scenarios/seeds.conf#seed-001
target file=scenarios/seeds.conf#seed-001
at 0s  expect budget=500
at 0s  begin GET    -> start 1 first_attempt
at 0s  reply 1 503  -> wait 0s..1s backoff
expect budget=495
at 1s  wake         -> start 2 retry
at 1s  reply 2 200  -> done 2 succeeded
expect budget=500
at 1s  add -495
at 1s  b: begin GET    -> start 1 first_attempt
at 1s  b: reply 1 503  -> wait 1s..2s backoff
expect budget=0
at 2s  b: wake         -> start 2 retry
at 2s  b: reply 2 503  -> give_up 2 budget_empty
