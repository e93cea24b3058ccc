policy struct_size=16
at 0ms begin GET -> give_up 0 bad_policy
at 0ms wake      -> none
