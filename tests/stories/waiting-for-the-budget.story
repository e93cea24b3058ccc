# when_refused=wait with an empty budget: the retry waits, its failed attempts stay counted, and it pays when it starts.
policy attempts=3 base=1s cap=4s jitter=none when_refused=wait
target budget.initial=0 budget.refill_per_minute=0
at 0s a: begin GET     -> start 1 first_attempt
at 0s a: reply 1 503   -> wait 1s budget_empty
# It asks less and less often.
at 1s a: wake          -> wait 3s budget_empty
at 3s a: wake          -> wait 7s budget_empty
at 5s add 1.5
at 7s a: wake          -> start 2 retry
expect budget=0.5
at 7s a: fail 2 throttled -> wait 11s budget_empty
at 8s add 1
at 11s a: wake         -> start 3 retry
expect budget=0.5
at 11s a: reply 3 503  -> give_up 3 attempts_spent
expect refused budget=4
