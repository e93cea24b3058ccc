# A hold-off that is requested until an absurdly distant instant (another clock, a hostile header) is stored as
# hold_off_max from now.
policy attempts=3 base=100ms jitter=none deadline=never
target breaker.kind=off hold_off_max=1min
at 0s  hold_off 1000h
expect hold_off=60s
at 0s  begin GET    -> start 1 first_attempt
at 0s  reply 1 503  -> wait 60s hold_off
