/* verdict.h - the single next action of a call, and its reason.
 *
 * Every event given to a call returns one verdict, by value. A driver executes it with one action and decides nothing:
 * start the given attempt, wait, or finish. DONE or GIVE_UP is returned exactly once per call.
 *
 * wake_ns is part of every verdict: set a timer for it and call bide_call_wake when it fires; BIDE_NEVER clears the
 * timer. It is set on START too when a hedge is due while the attempt runs.
 *
 * `reason` comes from the list below: metric label, log text, and the vocabulary of `bide explain` and of stories.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_VERDICT_H
#define BIDE_VERDICT_H

#include <bide/base.h>

/* X(NAME, label, sentence). Append only: the numbers are part of the ABI. */
#define BIDE_REASON_LIST(X)                                                                                            \
    X(NOTHING, "nothing", "nothing to do: the event was late, repeated or early")                                      \
    X(FIRST_ATTEMPT, "first_attempt", "the first attempt may start")                                                   \
    X(RETRY, "retry", "the wait is over and the retry may start")                                                      \
    X(HEDGE, "hedge", "the attempt is slow: a second attempt starts beside it")                                        \
    X(BACKOFF, "backoff", "waiting the backoff before the next attempt")                                               \
    X(SERVER_HINT, "server_hint", "waiting as long as the server asked")                                               \
    X(HOLD_OFF, "hold_off", "waiting because the server asked another call to hold off")                               \
    X(CONFLICT, "conflict", "a conflict is retried at once, one time")                                                 \
    X(LATE_WAKE, "late_wake", "the wait ended late (suspend?), so the retry is jittered again")                        \
    X(SUCCEEDED, "succeeded", "an attempt succeeded")                                                                  \
    X(ATTEMPTS_SPENT, "attempts_spent", "no attempts left")                                                            \
    X(DEADLINE, "deadline", "the deadline has passed")                                                                 \
    X(DEADLINE_NEAR, "deadline_near", "the wait would end after the deadline")                                         \
    X(PERMANENT, "permanent", "permanent: a retry would not help")                                                     \
    X(NOT_REPEATABLE, "not_repeatable", "it may have run and is not safe to repeat")                                   \
    X(BODY_DELIVERED, "body_delivered", "part of the response was delivered")                                          \
    X(BODY_SPENT, "body_spent", "the request body cannot be sent again")                                               \
    X(KEY_REQUIRED, "key_required", "the policy requires an idempotency key")                                          \
    X(SERVER_STOP, "server_stop", "the server asked not to retry")                                                     \
    X(HINT_TOO_LONG, "hint_too_long", "the server asked for more than hint_max")                                       \
    X(HINT_MISSING, "hint_missing", "throttled without the required hint")                                             \
    X(INNER_LAYER, "inner_layer", "the caller above retries")                                                          \
    X(THROTTLE, "throttle", "the server accepts too few requests")                                                     \
    X(IN_FLIGHT_FULL, "in_flight_full", "the in-flight limit is reached")                                              \
    X(BREAKER_OPEN, "breaker_open", "the circuit breaker is open")                                                     \
    X(BREAKER_PROBING, "breaker_probing", "the circuit breaker is probing")                                            \
    X(BREAKER_RAMPING, "breaker_ramping", "the circuit breaker is ramping up")                                         \
    X(KEY_LIMIT, "key_limit", "the limit of the retry key is reached")                                                 \
    X(BUDGET_EMPTY, "budget_empty", "the retry budget is empty")                                                       \
    X(CANCELLED, "cancelled", "the caller cancelled the call")                                                         \
    X(TARGET_GONE, "target_gone", "the target was evicted from its table")                                             \
    X(WAITS_SPENT, "waits_spent", "the waits would exceed waits_max")                                                  \
    X(LAST_WAIT, "last_wait", "waiting for the last attempt that fits before the deadline")                            \
    X(NO_TARGET, "no_target", "the call has no target; BIDE_NO_TARGET states that none is wanted")

BIDE_BEGIN_DECLS

enum bide_reason {
#define BIDE_REASON_ENUM(NAME, label, sentence) BIDE_REASON_##NAME,
    BIDE_REASON_LIST(BIDE_REASON_ENUM)
#undef BIDE_REASON_ENUM
        BIDE_REASON_COUNT
};

enum bide_action {
    BIDE_ACTION_NONE = 0, /* nothing to do; the timer still follows wake_ns. A refused hedge has a reason */
    BIDE_ACTION_START,    /* start attempt number `attempt` */
    BIDE_ACTION_WAIT,     /* start nothing until wake_ns */
    BIDE_ACTION_DONE,     /* the call succeeded; attempt number `attempt` won */
    BIDE_ACTION_GIVE_UP,  /* the call failed; `reason` names the gate or rule that decided */
};

/* The gates that can refuse. A gate in observe mode decides, counts and reports, but does not refuse. */
enum bide_gate {
    BIDE_GATE_KEY = 1u << 0,       /* policy: require_key */
    BIDE_GATE_REPEAT = 1u << 1,    /* policy: the idempotency gate. In observe mode unsafe requests are repeated */
    BIDE_GATE_HINT = 1u << 2,      /* policy: hints that are too long, forbid retries, or are missing */
    BIDE_GATE_LAYER = 1u << 3,     /* policy: inner layers do not retry */
    BIDE_GATE_THROTTLE = 1u << 4,  /* target: adaptive throttling (load shedding) */
    BIDE_GATE_IN_FLIGHT = 1u << 5, /* target: in-flight limit (bulkhead) */
    BIDE_GATE_BREAKER = 1u << 6,   /* target: circuit breaker */
    BIDE_GATE_KEY_LIMIT = 1u << 7, /* target: retries per retry key */
    BIDE_GATE_BUDGET = 1u << 8,    /* target: retry budget */
};
#define BIDE_GATE_COUNT       9
#define BIDE_GATE_INDEX(gate) ((unsigned)__builtin_ctz(gate)) /* number of the bit of one gate, 0 to 8 */
#define BIDE_POLICY_GATES     0x00fu
#define BIDE_TARGET_GATES     0x1f0u

/* Final: its size will not change. */
struct bide_verdict {
    enum bide_action action;
    enum bide_reason reason;
    uint32_t attempt;            /* number of the attempt, from 1; 0 when none was made */
    uint32_t observed;           /* enum bide_gate bits: gates that would have refused, but only observe */
    int64_t wake_ns;             /* when to call bide_call_wake; BIDE_NEVER: no timer */
    int64_t attempt_deadline_ns; /* START: stop the attempt at this instant; else BIDE_NEVER */
    int64_t connect_deadline_ns; /* START: stop the attempt if it is not connected by then; else BIDE_NEVER */
};

/* Returns "budget_empty": lower case, for a metric label. Never NULL; "unknown" for a value outside the list. */
BIDE_API const char *bide_reason_label(enum bide_reason reason);

/* Returns "the retry budget is empty": for people. Never NULL. */
BIDE_API const char *bide_reason_text(enum bide_reason reason);

/* Returns "start", "wait", "done", "give_up" or "none". Never NULL. */
BIDE_API const char *bide_action_label(enum bide_action action);

/* Returns the gate that refuses with this reason; 0: the reason is no refusal of a gate. */
BIDE_API enum bide_gate bide_reason_gate(enum bide_reason reason);

/* Returns "budget" for a single bit of enum bide_gate. Never NULL. */
BIDE_API const char *bide_gate_label(enum bide_gate gate);

BIDE_END_DECLS
#endif
