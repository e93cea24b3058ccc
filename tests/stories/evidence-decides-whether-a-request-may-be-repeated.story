# A POST without a key is repeated only where the evidence proves that it cannot have run.
policy attempts=2 base=100ms jitter=none
at 0ms not_sent: begin POST                                  -> start 1 first_attempt
at 0ms not_sent: fail 1 transient evidence=not_sent           -> wait 100ms backoff
at 0ms refused: begin POST                                     -> start 1 first_attempt
at 0ms refused: fail 1 transient evidence=rejected                 -> wait 100ms backoff
at 0ms misdirected: begin POST                                 -> start 1 first_attempt
at 0ms misdirected: reply 1 421                                -> wait 100ms backoff
at 0ms unknown: begin POST                                   -> start 1 first_attempt
at 0ms unknown: fail 1 transient evidence=unknown timeout     -> give_up 1 not_repeatable
at 0ms answered: begin POST                                    -> start 1 first_attempt
at 0ms answered: reply 1 503                                   -> give_up 1 not_repeatable
at 0ms throttled: begin POST                                   -> start 1 first_attempt
at 0ms throttled: reply 1 429 hint=1s                          -> give_up 1 not_repeatable
at 0ms delivered: begin POST                                   -> start 1 first_attempt
at 0ms delivered: fail 1 transient evidence=body_delivered        -> give_up 1 body_delivered
at 0ms patch: begin PATCH                                      -> start 1 first_attempt
at 0ms patch: fail 1 transient                                 -> give_up 1 not_repeatable
