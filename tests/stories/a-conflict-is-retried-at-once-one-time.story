# An optimistic write lost its race: retried at once (a wait that ends now), then with backoff. No other failure is
# retried without a wait.
policy attempts=4 base=100ms jitter=none
at 0ms   begin PUT                              -> start 1     first_attempt
at 10ms  fail 1 conflict evidence=answered         -> wait 10ms   conflict
at 10ms  wake                                   -> start 2     retry
at 20ms  fail 2 conflict evidence=answered         -> wait 120ms  backoff
at 120ms wake                                   -> start 3     retry
at 130ms fail 3 conflict evidence=answered         -> wait 330ms  backoff
at 330ms wake                                   -> start 4     retry
at 340ms reply 4 200                            -> done 4      succeeded
