# The payment client of seed 003: 4 attempts of 150 ms, full jitter from 100 ms. The worst case is 1.3 s, not 6.6 s.
policy file=scenarios/seeds.conf#paysetu
target file=scenarios/seeds.conf#paysetu
at 0ms    begin POST key                -> start 1 first_attempt cut=150ms connect=30ms
at 150ms  fail 1 transient timeout      -> wait 150ms..250ms backoff
at 250ms  wake                          -> start 2 retry cut=400ms connect=280ms
at 400ms  fail 2 transient timeout      -> wait 400ms..600ms backoff
at 600ms  wake                          -> start 3 retry
at 750ms  fail 3 transient timeout      -> wait 750ms..1150ms backoff
at 1150ms wake                          -> start 4 retry
at 1300ms fail 4 transient timeout      -> give_up 4 attempts_spent
