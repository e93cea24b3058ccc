policy attempts=3
target breaker.kind=off budget.capacity=0
at 0s  crowd 5 GET 200 -> succeeded=5
at 0s  crowd 5 GET 503 -> budget_empty=5
at 10h crowd 1 GET 503 -> budget_empty=1
expect budget=0
