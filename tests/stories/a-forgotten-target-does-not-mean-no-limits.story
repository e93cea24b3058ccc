# The engine keeps no table of targets: NULL is a mistake, and nothing starts. (BIDE_NO_TARGET means that none is wanted:
# stories without a target line.)
policy attempts=3
at 0ms a: begin GET target=NULL -> give_up 0 no_target
at 0ms a: wake                  -> none
at 0ms b: begin GET             -> start 1 first_attempt
