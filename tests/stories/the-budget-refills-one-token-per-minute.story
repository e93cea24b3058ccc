policy attempts=2
target breaker.kind=off budget.capacity=2 budget.initial=0
at 0s     expect budget=0
at 30s    expect budget=0.49..0.5
at 61s    expect budget=1..1.02
at 61s    a: begin GET   -> start 1 first_attempt
at 61s    a: reply 1 503 -> wait 61s..61.2s backoff
at 61s    expect budget=0..0.02
at 1h     expect budget=2
