policy attempts=3 base=100ms jitter=none conflict_at_once=no
at 0ms   begin PUT                       -> start 1     first_attempt
at 10ms  fail 1 conflict evidence=answered  -> wait 110ms  backoff
