# The machine was suspended for an hour: every waiting call would start at the same instant. The wake is jittered
# again, once.
policy attempts=3 base=1s cap=1s jitter=full deadline=never
at 0s     begin GET        -> start 1 first_attempt
at 0s     reply 1 503      -> wait 0s..1s backoff
at 1h     wake             -> wait 3600s..3601s late_wake
at 2h     wake             -> start 2 retry
at 2h     reply 2 200      -> done 2 succeeded
