# A stored instant that is absurdly far away (another clock, a hostile header) counts as quiet_max from now.
policy attempts=3 base=100ms jitter=none deadline=never
target breaker.kind=off quiet_max=1min
at 0s  quiet 1000h
expect quiet=60s
at 0s  begin GET    -> start 1 first_attempt
at 0s  reply 1 503  -> wait 60s quiet
