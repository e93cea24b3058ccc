policy attempts=2 base=100ms jitter=none
target breaker.kind=off
at 0s  lease begin
at 0s  lease until 1h
at 0s  add 5
at 1s  configure budget.kind=window budget.ratio=10%  -> refused budget.kind
at 1s  configure budget.capacity=20 budget.threshold=5 -> refused budget.threshold_milli
at 1s  configure budget.capacity=3 budget.earn_success=1
at 1s  expect budget=3
at 2s  crowd 5 GET 200 -> succeeded=5
at 2s  expect budget=3
at 2s  collect firsts=5 successes=5 earned=5
at 3s  lease end
at 3s  configure budget.kind=window budget.ratio=10%
