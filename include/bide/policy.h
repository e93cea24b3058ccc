/* policy.h - what the operator allows a call: attempts, backoff, timeouts, hint rules, hedging.
 *
 * A policy is a plain value. Start it from a preset, assign the fields that differ, check it once, then share it
 * freely: nothing writes to it afterwards, and it must outlive the calls that use it.
 *
 *     struct bide_policy p;
 *     struct bide_problem problem;
 *     bide_policy_init(&p, BIDE_PRESET_SERVICE);
 *     p.attempts_max = 3;
 *     if (bide_policy_check(&p, &problem) != BIDE_OK) ... report problem.text
 *
 * Optional durations are BIDE_NEVER when absent; 0 is then an error, never a surprise.
 *
 * Threads: all functions may be called from any thread; a policy may be shared by all threads once none writes to
 * it. */
#ifndef BIDE_POLICY_H
#define BIDE_POLICY_H

#include <bide/base.h>

/* X(NAME, label, purpose). Every preset is complete: it sets all of a policy and, through bide_target_config_init, the
 * gates of a target. The first eight are bide's own, and all but COMMAND and TRANSFER have a deadline; the others
 * follow the system that they are named after, which may have none. The numbers are in a table in lib/core/policy.c. */
#define BIDE_PRESET_LIST(X)                                                                                            \
    X(SERVICE, "service", "service to service; the default")                                                           \
    X(INTERACTIVE, "interactive", "a person is waiting")                                                               \
    X(EXTERNAL, "external", "rate-limited APIs of others")                                                             \
    X(BACKGROUND, "background", "jobs and queue workers")                                                              \
    X(SERVERLESS, "serverless", "billed by the millisecond")                                                           \
    X(PAYMENT, "payment", "money: a mutating request needs a key")                                                     \
    X(COMMAND, "command", "commands of unknown length; bide run's default")                                            \
    X(TRANSFER, "transfer", "downloads and uploads of unknown length; the default over libcurl")                       \
    X(AWS_2_0, "aws-2.0", "as the AWS SDKs' standard mode, version 2.0")                                               \
    X(AWS_2_1, "aws-2.1", "as the AWS SDKs' standard mode, version 2.1")                                               \
    X(GRPC, "grpc", "as gRPC (gRFC A6) with retryThrottling 10 / 0.1")                                                 \
    X(ENVOY, "envoy", "as Envoy with a retry budget of 20 %")                                                          \
    X(CURL, "curl", "as curl --retry 3")                                                                               \
    X(FINAGLE, "finagle", "as Finagle's and Linkerd's RetryBudget")                                                    \
    X(SRE, "sre", "as the Google SRE book: 3 attempts, 10 % retries")

BIDE_BEGIN_DECLS

enum bide_preset {
#define BIDE_PRESET_ENUM(NAME, label, purpose) BIDE_PRESET_##NAME,
    BIDE_PRESET_LIST(BIDE_PRESET_ENUM)
#undef BIDE_PRESET_ENUM
        BIDE_PRESET_COUNT
};

/* How the envelope of the wait grows. n counts the waits before this one, from 0. */
enum bide_backoff {
    BIDE_BACKOFF_EXPONENTIAL = 0, /* base * multiplier^n */
    BIDE_BACKOFF_LINEAR,          /* base * (n + 1) */
    BIDE_BACKOFF_FIXED,           /* base */
    BIDE_BACKOFF_NONE,            /* no wait: for comparisons, and for servers with a single client */
};

/* How the wait is drawn from the envelope e = min(cap, ...). Both ends are included. */
enum bide_jitter {
    BIDE_JITTER_FULL = 0,         /* floor ... e */
    BIDE_JITTER_EQUAL,            /* e/2 ... e */
    BIDE_JITTER_DECORRELATED,     /* base ... min(cap, 3 * previous wait) */
    BIDE_JITTER_DECORRELATED_AWS, /* min(cap, base ... 3 * previous wait): the literal formula, in which waits pile up
                                   * at the cap */
    BIDE_JITTER_PROPORTIONAL,     /* jitter_lo_permille ... jitter_hi_permille of e */
    BIDE_JITTER_ADDITIVE,         /* e ... e + jitter_add_ns, moved down so that it ends at the cap */
    BIDE_JITTER_NONE,             /* e: all clients retry in step, a thundering herd. `bide explain` warns about it */
};

/* How a server's hint changes the wait. */
enum bide_hint_rule {
    BIDE_HINT_RULE_FLOOR = 0, /* hint plus upward jitter, or our own backoff if that is longer */
    BIDE_HINT_RULE_EXACT,     /* exactly the hint; a hint of 0 counts as none (curl) */
    BIDE_HINT_RULE_PUSHBACK,  /* exactly the hint, 0 included (gRPC) */
    BIDE_HINT_RULE_CLAMP,     /* the hint, moved into own backoff ... own backoff + hint_over_ns (AWS 2.1) */
    BIDE_HINT_RULE_IGNORE,    /* hints are ignored */
};

/* Handling of a hint beyond hint_max_ns or BIDE_DURATION_MAX. (A wait beyond the deadline always gives up.) */
enum bide_hint_long {
    BIDE_HINT_LONG_GIVE_UP = 0,
    BIDE_HINT_LONG_CLAMP,  /* wait hint_max_ns */
    BIDE_HINT_LONG_IGNORE, /* as if there were no hint */
};

/* How a hinted wait changes the backoff sequence. */
enum bide_hint_step {
    BIDE_HINT_STEP_KEEP = 0, /* the sequence continues where it was */
    BIDE_HINT_STEP_ADVANCE,  /* the hinted wait counts as a step */
    BIDE_HINT_STEP_RESET,    /* the sequence restarts (gRPC) */
};

/* May this layer retry when the request came from a caller that retries? */
enum bide_layer_rule {
    BIDE_LAYER_OUTERMOST = 0, /* not if the inbound request is a retry already, or forbids it */
    BIDE_LAYER_ANY,           /* yes, unless the inbound request has no_retry */
    BIDE_LAYER_NEVER,         /* this layer never retries */
};

/* What a call does when a gate of its target refuses: circuit breaker, adaptive throttling, in-flight limit, key limit,
 * budget. (Hold-offs are waited for in either case.) */
enum bide_when_refused {
    BIDE_WHEN_REFUSED_GIVE_UP = 0,
    BIDE_WHEN_REFUSED_WAIT, /* waits until the gate may admit it, as long as attempt_min_ns is left before the deadline
                             * (without a deadline and waits_max_ns, perhaps for ever): for batches and queues, whose
                             * callers can wait. Nothing is charged meanwhile */
};

#define BIDE_HEDGES_MAX 3u

struct bide_policy {
    uint32_t attempts_max; /* the first included; 1 means no retry */
    uint32_t observe;      /* enum bide_gate bits: gates of the policy that only observe */

    enum bide_backoff backoff;
    enum bide_jitter jitter;
    int64_t base_ns;
    int64_t cap_ns;              /* no wait is longer (except with jitter_past_cap, and hints) */
    int64_t floor_ns;            /* no wait is shorter; 0 to base_ns */
    int64_t throttled_base_ns;   /* the base after a throttled outcome; 0: base_ns */
    int64_t jitter_add_ns;       /* additive jitter: its width */
    uint32_t multiplier_milli;   /* 2000 doubles; above 1000 */
    uint32_t jitter_lo_permille; /* proportional jitter */
    uint32_t jitter_hi_permille;

    uint32_t hedges_max;              /* 0: no hedging */
    int64_t hedge_delay_ns;           /* a hedge starts this long after the previous attempt ... */
    uint32_t hedge_quantile_permille; /* ... or after this quantile of the latency, once known; 0: delay only */

    enum bide_layer_rule layer;

    int64_t attempt_timeout_ns; /* BIDE_NEVER: only the deadline */
    int64_t connect_timeout_ns; /* BIDE_NEVER: only the timeout of the attempt */
    int64_t call_timeout_ns;    /* the whole call, attempts and waits; BIDE_NEVER: none */
    int64_t waits_max_ns;       /* all waits of a call together; BIDE_NEVER: no limit. A wait that would exceed it is
                                 * not begun: the call gives up */
    int64_t attempt_min_ns;     /* time that an attempt needs to be useful; 0: connect_timeout_ns (nothing, if there is
                                 * none). The last wait leaves it, and so does a wait for a gate */

    enum bide_hint_rule hint_rule;
    enum bide_hint_long hint_long;
    enum bide_hint_step hint_step;
    uint32_t hint_jitter_permille; /* floor rule: up to this much longer, and at least base_ns wide */
    int64_t hint_max_ns;
    int64_t hint_over_ns; /* clamp rule */

    enum bide_when_refused when_refused;
    bool require_key;          /* a mutating request without an idempotency key is refused before it is sent */
    bool conflict_at_once;     /* the first conflict is retried without a wait */
    bool throttled_needs_hint; /* throttled without a hint: give up instead of backing off */
    bool jitter_past_cap;      /* proportional jitter may exceed the cap (gRPC) */
    bool long_poll;            /* when the budget is empty, wait for the backoff before giving up, so that a polling
                                * loop does not spin (AWS 2.1) */
    bool last_wait;            /* a backoff that would leave too little time before the deadline is replaced, once per
                                * call, by a shorter one: drawn from the second half of the time that is left, so that
                                * clients with the same deadline do not come back together */
    bool reserved_flags_[6];
    uint64_t reserved_[6]; /* zero: room to grow */
};

/* Sets every field from a preset. BIDE_ERR_INVALID for a preset outside the list. */
BIDE_API enum bide_err bide_policy_init(struct bide_policy *policy, enum bide_preset preset);

/* Reports the first invalid field, its value and the valid values. */
BIDE_API enum bide_err bide_policy_check(const struct bide_policy *policy, struct bide_problem *problem);

/* Returns the preset with this label ("service"), or BIDE_PRESET_COUNT for an unknown name. */
BIDE_API enum bide_preset bide_preset_by_name(const char *name, size_t length);

/* Return the label ("service") and the purpose ("service to service; the default"). Never NULL. */
BIDE_API const char *bide_preset_label(enum bide_preset preset);
BIDE_API const char *bide_preset_purpose(enum bide_preset preset);

BIDE_END_DECLS
#endif
