# grpc-retry-pushback-ms: -1, or "overloaded; don't retry".
policy attempts=3
at 0ms  begin GET              -> start 1   first_attempt
at 10ms reply 1 503 hint=stop  -> give_up 1 server_stop
