# Part of a response has reached the caller: not even a GET may be repeated after that.
policy attempts=3
at 0ms get: begin GET                                    -> start 1 first_attempt
at 0ms get: fail 1 transient evidence=body_delivered        -> give_up 1 body_delivered
at 0ms post: begin POST key                              -> start 1 first_attempt
at 0ms post: fail 1 transient evidence=body_delivered       -> give_up 1 body_delivered
