# One attempt of the round reports that the body is spent: no hedge starts after that.
policy attempts=3 hedges_max=2 hedge_delay=100ms
target budget.earn_success=0
at 0ms    begin GET                       -> start 1 first_attempt wake=100ms
at 100ms  wake                            -> start 2 hedge wake=200ms
at 150ms  fail 2 transient body_spent     -> none
at 200ms  wake                            -> none
at 300ms  reply 1 503                     -> give_up 2 body_spent
