# 20 % over ten seconds plus ten per second: a hundred retries at first, and one more for every five requests.
policy preset=finagle
target preset=finagle
at 0s  expect budget=100
at 0s  crowd 10 GET 200 -> succeeded=10
expect budget=102
at 0s  begin GET    -> start 1 first_attempt
at 0s  reply 1 503  -> wait 0..200ms backoff
expect budget=101
at 0s  cancel       -> give_up 1 cancelled
expect budget=102
at 20s expect budget=100
