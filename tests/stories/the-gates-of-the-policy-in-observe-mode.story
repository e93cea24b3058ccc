# Observe mode: each gate decides and reports, and the call continues as if the gate were absent.
policy attempts=3 base=100ms jitter=none require_key observe=key,repeat
at 0ms key: begin POST                          -> start 1 first_attempt observed=key
at 0ms key: reply 1 503                         -> wait 100ms backoff observed=repeat
policy attempts=3 base=100ms jitter=none observe=layer
at 0ms layer: begin GET inbound=2               -> start 1 first_attempt
at 0ms layer: reply 1 503                       -> wait 100ms backoff observed=layer
policy attempts=3 base=100ms jitter=none observe=hint hint_max=1s throttled_needs_hint
at 0ms missing: begin GET                       -> start 1 first_attempt
at 0ms missing: reply 1 429                     -> wait 100ms backoff observed=hint
at 0ms stop: begin GET                          -> start 1 first_attempt
at 0ms stop: reply 1 503 hint=stop              -> wait 100ms backoff observed=hint
at 0ms long: begin GET                          -> start 1 first_attempt
at 0ms long: reply 1 503 hint=30s               -> wait 30s server_hint observed=hint
