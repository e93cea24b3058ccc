# The payment preset refuses a mutating request without a key before anything is sent.
policy preset=payment
target preset=payment
at 0ms a: begin POST       -> give_up 0 key_required
at 0ms b: begin POST key   -> start 1 first_attempt cut=5s connect=1s
at 0ms c: begin GET        -> start 1 first_attempt
at 0ms d: begin PATCH      -> give_up 0 key_required
expect refused key=2
