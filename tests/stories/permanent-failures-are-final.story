# Another attempt cannot fix a 4xx, 501 or 505.
policy attempts=3
at 0ms a: begin GET    -> start 1 first_attempt
at 0ms a: reply 1 400  -> give_up 1 permanent
at 0ms b: begin GET    -> start 1 first_attempt
at 0ms b: reply 1 404  -> give_up 1 permanent
at 0ms c: begin GET    -> start 1 first_attempt
at 0ms c: reply 1 501  -> give_up 1 permanent
at 0ms d: begin GET    -> start 1 first_attempt
at 0ms d: reply 1 505  -> give_up 1 permanent
