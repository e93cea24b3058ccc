# GET changes nothing, a repeated PUT has the effect of one, and a key lets the server recognize the repetition.
policy attempts=2 base=100ms jitter=none
at 0ms get: begin GET                          -> start 1 first_attempt
at 0ms get: fail 1 transient evidence=unknown   -> wait 100ms backoff
at 0ms put: begin PUT                          -> start 1 first_attempt
at 0ms put: fail 1 transient evidence=answered    -> wait 100ms backoff
at 0ms delete: begin DELETE                    -> start 1 first_attempt
at 0ms delete: fail 1 transient timeout        -> wait 100ms backoff
at 0ms post: begin POST key                    -> start 1 first_attempt
at 0ms post: fail 1 transient evidence=unknown  -> wait 100ms backoff
at 0ms patch: begin PATCH key                  -> start 1 first_attempt
at 0ms patch: reply 1 500                      -> wait 100ms backoff
