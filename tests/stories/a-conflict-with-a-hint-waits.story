# A conflict is retried at once, unless the server requested a wait.
policy attempts=4 base=100ms jitter=none
at 0ms  begin PUT                                 -> start 1      first_attempt
at 0ms  fail 1 conflict evidence=answered hint=2s    -> wait 2000ms  server_hint
at 2s   wake                                      -> start 2      retry
at 2s   fail 2 conflict evidence=answered            -> wait 2000ms  conflict
