/* bide.h - all public headers of an earlier version, without comments: tools/check-abi --write. */
#ifndef BIDE_BIDE_H
#define BIDE_BIDE_H
#ifndef BIDE_BACKOFF_H
#define BIDE_BACKOFF_H
#ifndef BIDE_POLICY_H
#define BIDE_POLICY_H
#ifndef BIDE_BASE_H
#define BIDE_BASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(BIDE_BUILD) && defined(__GNUC__)
#define BIDE_API __attribute__((visibility("default")))
#else
#define BIDE_API
#endif
#ifdef __cplusplus
#define BIDE_BEGIN_DECLS extern "C" {
#define BIDE_END_DECLS   }
#else
#define BIDE_BEGIN_DECLS
#define BIDE_END_DECLS
#endif
#define BIDE_VERSION_MAJOR 0
#define BIDE_VERSION_MINOR 1
#define BIDE_VERSION_PATCH 0
#define BIDE_VERSION       "0.1.0"
#define BIDE_NS            INT64_C(1)
#define BIDE_US            INT64_C(1000)
#define BIDE_MS            INT64_C(1000000)
#define BIDE_S             INT64_C(1000000000)
#define BIDE_MINUTE        (60 * BIDE_S)
#define BIDE_NEVER         INT64_MAX
#define BIDE_DURATION_MAX  INT64_C(1000000000000000000)
BIDE_BEGIN_DECLS
enum bide_err {
    BIDE_OK = 0,
    BIDE_ERR_INVALID = -1,
    BIDE_ERR_NOMEM = -2,
    BIDE_ERR_BUSY = -3,
    BIDE_ERR_SYSTEM = -4,
};
struct bide_problem {
    const char *field;
    const char *want;
    int64_t value;
    int reason;
    int system_errno;
    char text[512];
};
BIDE_API const char *bide_version(void);
BIDE_END_DECLS
#endif
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
enum bide_backoff {
    BIDE_BACKOFF_EXPONENTIAL = 0,
    BIDE_BACKOFF_LINEAR,
    BIDE_BACKOFF_FIXED,
    BIDE_BACKOFF_NONE,
};
enum bide_jitter {
    BIDE_JITTER_FULL = 0,
    BIDE_JITTER_EQUAL,
    BIDE_JITTER_DECORRELATED,
    BIDE_JITTER_DECORRELATED_AWS,
    BIDE_JITTER_PROPORTIONAL,
    BIDE_JITTER_ADDITIVE,
    BIDE_JITTER_NONE,
};
enum bide_hint_rule {
    BIDE_HINT_RULE_FLOOR = 0,
    BIDE_HINT_RULE_EXACT,
    BIDE_HINT_RULE_PUSHBACK,
    BIDE_HINT_RULE_CLAMP,
    BIDE_HINT_RULE_IGNORE,
};
enum bide_hint_long {
    BIDE_HINT_LONG_GIVE_UP = 0,
    BIDE_HINT_LONG_CLAMP,
    BIDE_HINT_LONG_IGNORE,
};
enum bide_hint_step {
    BIDE_HINT_STEP_KEEP = 0,
    BIDE_HINT_STEP_ADVANCE,
    BIDE_HINT_STEP_RESET,
};
enum bide_layer_rule {
    BIDE_LAYER_OUTERMOST = 0,
    BIDE_LAYER_ANY,
    BIDE_LAYER_NEVER,
};
enum bide_when_refused {
    BIDE_WHEN_REFUSED_GIVE_UP = 0,
    BIDE_WHEN_REFUSED_WAIT,
};
#define BIDE_HEDGES_MAX 3u
struct bide_policy {
    uint32_t attempts_max;
    uint32_t observe;
    enum bide_backoff backoff;
    enum bide_jitter jitter;
    int64_t base_ns;
    int64_t cap_ns;
    int64_t floor_ns;
    int64_t throttled_base_ns;
    int64_t jitter_add_ns;
    uint32_t multiplier_milli;
    uint32_t jitter_lo_permille;
    uint32_t jitter_hi_permille;
    uint32_t hedges_max;
    int64_t hedge_delay_ns;
    uint32_t hedge_quantile_permille;
    enum bide_layer_rule layer;
    int64_t attempt_timeout_ns;
    int64_t connect_timeout_ns;
    int64_t call_timeout_ns;
    int64_t waits_max_ns;
    int64_t attempt_min_ns;
    enum bide_hint_rule hint_rule;
    enum bide_hint_long hint_long;
    enum bide_hint_step hint_step;
    uint32_t hint_jitter_permille;
    int64_t hint_max_ns;
    int64_t hint_over_ns;
    enum bide_when_refused when_refused;
    bool require_key;
    bool conflict_at_once;
    bool throttled_needs_hint;
    bool jitter_past_cap;
    bool long_poll;
    bool last_wait;
    bool reserved_flags_[6];
    uint64_t reserved_[6];
};
BIDE_API enum bide_err bide_policy_init(struct bide_policy *policy, enum bide_preset preset);
BIDE_API enum bide_err bide_policy_check(const struct bide_policy *policy, struct bide_problem *problem);
BIDE_API enum bide_preset bide_preset_by_name(const char *name, size_t length);
BIDE_API const char *bide_preset_label(enum bide_preset preset);
BIDE_API const char *bide_preset_purpose(enum bide_preset preset);
BIDE_END_DECLS
#endif
BIDE_BEGIN_DECLS
struct bide_range {
    int64_t lo_ns;
    int64_t hi_ns;
};
struct bide_step {
    uint32_t step;
    bool throttled;
    int64_t previous_ns;
};
BIDE_API int64_t bide_backoff_envelope(const struct bide_policy *policy, struct bide_step step);
BIDE_API struct bide_range bide_backoff_window(const struct bide_policy *policy, struct bide_step step);
BIDE_API int64_t bide_backoff_wait(const struct bide_policy *policy, struct bide_step step, uint64_t seed,
                                   uint32_t draw);
BIDE_END_DECLS
#endif
#ifndef BIDE_BREAKER_H
#define BIDE_BREAKER_H
BIDE_BEGIN_DECLS
enum bide_breaker_kind {
    BIDE_BREAKER_BY_TIME = 0,
    BIDE_BREAKER_BY_COUNT,
    BIDE_BREAKER_BY_RUN,
    BIDE_BREAKER_OFF,
};
enum bide_breaker_state {
    BIDE_BREAKER_CLOSED = 0,
    BIDE_BREAKER_OPEN,
    BIDE_BREAKER_HALF_OPEN,
    BIDE_BREAKER_HELD_CLOSED,
    BIDE_BREAKER_HELD_OPEN,
};
#define BIDE_PROBES_MAX       8u
#define BIDE_COUNT_WINDOW_MAX 256u
struct bide_breaker_config {
    enum bide_breaker_kind kind;
    uint32_t consecutive;
    uint32_t ratio_permille;
    uint32_t min_volume;
    uint32_t count_window;
    uint32_t open_growth_milli;
    uint32_t open_jitter_permille;
    uint32_t probes;
    int64_t window_ns;
    int64_t slow_ns;
    int64_t open_ns;
    int64_t open_max_ns;
    int64_t probe_timeout_ns;
    int64_t ramp_ns;
};
struct bide_breaker_view {
    enum bide_breaker_state state;
    uint32_t generation;
    uint32_t openings;
    uint64_t openings_total;
    int64_t until_ns;
    uint64_t reserved_[1];
};
struct bide_target;
enum bide_hold {
    BIDE_HOLD_RELEASE = 0,
    BIDE_HOLD_CLOSED,
    BIDE_HOLD_OPEN,
};
BIDE_API void bide_breaker_hold(struct bide_target *target, enum bide_hold hold);
BIDE_API bool bide_breaker_trip(struct bide_target *target, uint64_t seed, int64_t now_ns);
BIDE_API const char *bide_breaker_state_label(enum bide_breaker_state state);
BIDE_END_DECLS
#endif
#ifndef BIDE_BUDGET_H
#define BIDE_BUDGET_H
BIDE_BEGIN_DECLS
enum bide_budget_kind {
    BIDE_BUDGET_TOKENS = 0,
    BIDE_BUDGET_WINDOW,
    BIDE_BUDGET_CONCURRENCY,
    BIDE_BUDGET_NONE,
};
enum bide_on_empty {
    BIDE_ON_EMPTY_REFUSE = 0,
    BIDE_ON_EMPTY_OPEN,
};
#define BIDE_CAPACITY_MAX_MILLI 268435455u
#define BIDE_FULL               UINT32_MAX
struct bide_budget_config {
    enum bide_budget_kind kind;
    enum bide_on_empty on_empty;
    uint32_t capacity_milli;
    uint32_t initial_milli;
    uint32_t cost_milli;
    uint32_t cost_throttled_milli;
    uint32_t cost_timeout_milli;
    uint32_t cost_failure_milli;
    uint32_t threshold_milli;
    uint32_t earn_success_milli;
    uint32_t earn_first_milli;
    uint32_t refill_per_minute_milli;
    uint32_t refund_permille;
    uint32_t ratio_ppm;
    uint32_t reserve;
    uint32_t min_volume;
    int64_t window_ns;
    int64_t cooldown_ns;
};
struct bide_target;
BIDE_API int64_t bide_budget_add_milli(struct bide_target *target, int64_t amount_milli, int64_t now_ns);
BIDE_END_DECLS
#endif
#ifndef BIDE_CALL_H
#define BIDE_CALL_H
#ifndef BIDE_OUTCOME_H
#define BIDE_OUTCOME_H
BIDE_BEGIN_DECLS
enum bide_kind {
    BIDE_KIND_PERMANENT = 0,
    BIDE_KIND_TRANSIENT,
    BIDE_KIND_THROTTLED,
    BIDE_KIND_CONFLICT,
    BIDE_KIND_CANCELLED,
    BIDE_KIND_OK,
};
enum bide_evidence {
    BIDE_EVIDENCE_UNKNOWN = 0,
    BIDE_EVIDENCE_NOT_SENT,
    BIDE_EVIDENCE_REJECTED,
    BIDE_EVIDENCE_ANSWERED,
    BIDE_EVIDENCE_BODY_DELIVERED,
};
enum bide_outcome_flag {
    BIDE_FLAG_TIMED_OUT = 1u << 0,
    BIDE_FLAG_UNAVAILABLE = 1u << 1,
    BIDE_FLAG_ONCE = 1u << 2,
    BIDE_FLAG_FRESH = 1u << 3,
    BIDE_FLAG_BODY_SPENT = 1u << 4,
    BIDE_FLAG_KEY_409 = 1u << 5,
    BIDE_FLAG_LOCAL = 1u << 6,
};
enum bide_hint_kind {
    BIDE_HINT_NONE = 0,
    BIDE_HINT_WAIT,
    BIDE_HINT_STOP,
};
struct bide_hint {
    enum bide_hint_kind kind;
    int64_t wait_ns;
};
struct bide_outcome {
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags;
    struct bide_hint hint;
};
BIDE_API const char *bide_kind_label(enum bide_kind kind);
BIDE_API const char *bide_evidence_label(enum bide_evidence evidence);
BIDE_END_DECLS
#endif
#ifndef BIDE_REQUEST_H
#define BIDE_REQUEST_H
BIDE_BEGIN_DECLS
enum bide_safety {
    BIDE_UNSAFE = 0,
    BIDE_IDEMPOTENT,
    BIDE_SAFE,
    BIDE_KEYED,
};
struct bide_inbound {
    uint32_t attempt;
    bool no_retry;
};
struct bide_request {
    enum bide_safety safety;
    uint32_t lane;
    uint64_t seed;
    int64_t deadline_ns;
    uint64_t retry_key;
    struct bide_inbound inbound;
    uint64_t reserved_[2];
};
BIDE_API enum bide_safety bide_method_safety(const char *method, size_t length);
BIDE_API uint64_t bide_hash(const void *bytes, size_t length);
BIDE_END_DECLS
#endif
#ifndef BIDE_TARGET_H
#define BIDE_TARGET_H
#ifndef BIDE_VERDICT_H
#define BIDE_VERDICT_H
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
    BIDE_ACTION_NONE = 0,
    BIDE_ACTION_START,
    BIDE_ACTION_WAIT,
    BIDE_ACTION_DONE,
    BIDE_ACTION_GIVE_UP,
};
enum bide_gate {
    BIDE_GATE_KEY = 1u << 0,
    BIDE_GATE_REPEAT = 1u << 1,
    BIDE_GATE_HINT = 1u << 2,
    BIDE_GATE_LAYER = 1u << 3,
    BIDE_GATE_THROTTLE = 1u << 4,
    BIDE_GATE_IN_FLIGHT = 1u << 5,
    BIDE_GATE_BREAKER = 1u << 6,
    BIDE_GATE_KEY_LIMIT = 1u << 7,
    BIDE_GATE_BUDGET = 1u << 8,
};
#define BIDE_GATE_COUNT       9
#define BIDE_GATE_INDEX(gate) ((unsigned)__builtin_ctz(gate))
#define BIDE_POLICY_GATES     0x00fu
#define BIDE_TARGET_GATES     0x1f0u
struct bide_verdict {
    enum bide_action action;
    enum bide_reason reason;
    uint32_t attempt;
    uint32_t observed;
    int64_t wake_ns;
    int64_t attempt_deadline_ns;
    int64_t connect_deadline_ns;
};
BIDE_API const char *bide_reason_label(enum bide_reason reason);
BIDE_API const char *bide_reason_text(enum bide_reason reason);
BIDE_API const char *bide_action_label(enum bide_action action);
BIDE_API enum bide_gate bide_reason_gate(enum bide_reason reason);
BIDE_API const char *bide_gate_label(enum bide_gate gate);
BIDE_END_DECLS
#endif
BIDE_BEGIN_DECLS
enum bide_trust {
    BIDE_TRUST_THROTTLED = 1u << 0,
    BIDE_TRUST_UNAVAILABLE = 1u << 1,
};
#define BIDE_NO_TARGET ((struct bide_target *)-1)
struct bide_target_config {
    uint32_t observe;
    uint32_t trust;
    uint32_t in_flight_max;
    uint32_t key_retries;
    uint32_t throttle_k_milli;
    uint32_t throttle_max_permille;
    uint32_t throttle_min_volume;
    bool hold_off_first;
    bool latency;
    uint8_t reserved_flags_[2];
    int64_t throttle_window_ns;
    int64_t key_interval_ns;
    int64_t hold_off_max_ns;
    uint64_t reserved_[2];
    struct bide_budget_config budget;
    struct bide_breaker_config breaker;
};
#define BIDE_LANES         8u
#define BIDE_SLOTS         10u
#define BIDE_KEY_WORDS     24u
#define BIDE_LATENCY_WORDS 16u
struct bide_window_words_ {
    uint64_t edge_ns;
    uint64_t mark[BIDE_SLOTS];
    uint64_t count[BIDE_SLOTS];
};
struct bide_lane_words_ {
    uint64_t requests;
    uint64_t attempts;
    uint64_t accepts;
    uint64_t healthy;
    uint64_t firsts;
    uint64_t successes;
    uint64_t earned_milli;
    uint64_t reserved_;
};
struct bide_target {
    uint64_t identity;
    uint64_t active;
    uint64_t claim;
    uint64_t hot[2][2];
    uint64_t breaker;
    uint64_t hold_off_ns;
    uint64_t hold_off_asked_ns;
    uint64_t budget;
    uint64_t retries;
    uint64_t calls;
    uint64_t in_flight;
    uint64_t failures;
    uint64_t probe[BIDE_PROBES_MAX];
    uint64_t refused[BIDE_GATE_COUNT];
    uint64_t openings;
    struct bide_window_words_ votes;
    struct bide_window_words_ spends;
    struct bide_window_words_ asks;
    uint64_t latency[BIDE_LATENCY_WORDS];
    uint64_t key[BIDE_KEY_WORDS];
    uint64_t lease_end_ns;
    uint64_t lease_exchanger;
    uint64_t lease_progress;
    uint64_t lease_base_milli;
    uint64_t usual_ns;
    uint64_t usual_at_ns;
    struct bide_target_config config[2];
    uint64_t reserved_[8];
    struct bide_lane_words_ lane[BIDE_LANES];
} __attribute__((aligned(64)));
struct bide_admission {
    uint32_t attempts;
    enum bide_reason reason;
    int64_t at_ns;
    uint64_t reserved_[2];
};
BIDE_API enum bide_err bide_target_config_init(struct bide_target_config *config, enum bide_preset preset);
BIDE_API enum bide_err bide_target_config_check(const struct bide_target_config *config, struct bide_problem *problem);
BIDE_API enum bide_err bide_target_init(struct bide_target *target, const struct bide_target_config *config,
                                        int64_t now_ns, struct bide_problem *problem);
BIDE_API enum bide_err bide_target_configure(struct bide_target *target, const struct bide_target_config *config,
                                             int64_t now_ns, struct bide_problem *problem);
BIDE_API void bide_target_config_get(const struct bide_target *target, struct bide_target_config *config);
struct bide_target_view {
    int64_t budget_left_milli;
    int64_t hold_off_until_ns;
    struct bide_breaker_view breaker;
    uint64_t refused[BIDE_GATE_COUNT];
    uint64_t reserved_[4];
};
BIDE_API struct bide_target_view bide_target_get(const struct bide_target *target, int64_t now_ns);
BIDE_API void bide_target_hold_off(struct bide_target *target, int64_t until_ns, int64_t now_ns);
BIDE_API int64_t bide_target_latency_get(const struct bide_target *target, uint32_t permille);
BIDE_API struct bide_admission bide_target_next(const struct bide_target *target, int64_t now_ns);
BIDE_END_DECLS
#endif
BIDE_BEGIN_DECLS
struct bide_call {
    const struct bide_policy *policy;
    struct bide_target *target;
    uint64_t seed;
    int64_t deadline_ns;
    int64_t wake_ns;
    int64_t round_ns;
    int64_t wait_ns;
    union {
        uint32_t hedge_us[BIDE_HEDGES_MAX];
        uint32_t key_tick;
    };
    uint32_t attempt;
    uint16_t step;
    uint16_t waited;
    uint32_t charge;
    uint32_t generation;
    uint32_t key;
    uint16_t flags;
    uint16_t owner;
    uint8_t state;
    uint8_t live;
    uint8_t once;
    uint8_t safety : 4;
    uint8_t lane : 4;
};
BIDE_API struct bide_verdict bide_call_begin(struct bide_call *call, const struct bide_policy *policy,
                                             struct bide_target *target, const struct bide_request *request,
                                             int64_t now_ns);
BIDE_API struct bide_verdict bide_call_outcome(struct bide_call *call, uint32_t attempt,
                                               const struct bide_outcome *outcome, int64_t now_ns);
BIDE_API struct bide_verdict bide_call_wake(struct bide_call *call, int64_t now_ns);
BIDE_API struct bide_verdict bide_call_safety(struct bide_call *call, enum bide_safety safety, int64_t now_ns);
BIDE_API struct bide_verdict bide_call_cancel(struct bide_call *call, int64_t now_ns);
BIDE_END_DECLS
#endif
#ifndef BIDE_CLASSIFY_H
#define BIDE_CLASSIFY_H
#ifndef BIDE_HINT_H
#define BIDE_HINT_H
BIDE_BEGIN_DECLS
struct bide_text {
    const char *at;
    size_t length;
};
BIDE_API struct bide_hint bide_hint_retry_after(struct bide_text value, struct bide_text date, int64_t wall_s);
BIDE_API struct bide_hint bide_hint_ratelimit(struct bide_text value);
enum bide_reset_unit {
    BIDE_RESET_IGNORE = 0,
    BIDE_RESET_SECONDS,
    BIDE_RESET_MILLISECONDS,
    BIDE_RESET_UNIX_SECONDS,
    BIDE_RESET_HTTP_DATE,
    BIDE_RESET_RFC3339,
    BIDE_RESET_DURATION,
};
BIDE_API struct bide_hint bide_hint_reset(struct bide_text value, enum bide_reset_unit unit, struct bide_text date,
                                          int64_t wall_s);
BIDE_API struct bide_hint bide_hint_milliseconds(struct bide_text value);
BIDE_API struct bide_hint bide_hint_grpc_pushback(struct bide_text value);
BIDE_API struct bide_hint bide_hint_merge(struct bide_hint a, struct bide_hint b);
BIDE_API bool bide_http_date(struct bide_text value, int64_t wall_s, int64_t *seconds);
BIDE_END_DECLS
#endif
BIDE_BEGIN_DECLS
struct bide_rule {
    int32_t first;
    int32_t last;
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags;
};
struct bide_rules {
    const struct bide_rule *rule;
    size_t count;
    bool only;
};
BIDE_API struct bide_outcome bide_classify_http(int status, const struct bide_rules *rules);
BIDE_API struct bide_outcome bide_classify_grpc(int code, const struct bide_rules *rules);
BIDE_API struct bide_outcome bide_classify_errno(int error, const struct bide_rules *rules);
BIDE_API struct bide_outcome bide_classify_dns(int error, const struct bide_rules *rules);
BIDE_API struct bide_outcome bide_classify_exit(int status, const struct bide_rules *rules);
BIDE_API struct bide_outcome bide_classify_sqlstate(const char *sqlstate);
BIDE_API struct bide_outcome bide_classify_mysql(int error, const struct bide_rules *rules);
BIDE_API struct bide_outcome bide_classify_redis(struct bide_text error);
BIDE_API enum bide_err bide_rules_check(const struct bide_rules *rules, struct bide_problem *problem);
BIDE_END_DECLS
#endif
#ifndef BIDE_CLOCK_H
#define BIDE_CLOCK_H
BIDE_BEGIN_DECLS
BIDE_API int64_t bide_now(void);
BIDE_API int64_t bide_wall_s(void);
BIDE_END_DECLS
#endif
#ifndef BIDE_DETAILS_H
#define BIDE_DETAILS_H
#define BIDE_DETAILS_MAX      65536u
#define BIDE_DETAILS_DEPTH    32u
#define BIDE_DETAILS_TYPE_MAX 256u
BIDE_BEGIN_DECLS
struct bide_details {
    char type[BIDE_DETAILS_TYPE_MAX];
    int status;
    struct bide_hint hint;
};
struct bide_details_rule {
    const char *type;
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags;
};
BIDE_API bool bide_details_media_type(struct bide_text value);
BIDE_API bool bide_details_parse(struct bide_text body, struct bide_details *details);
BIDE_API const struct bide_details_rule *bide_details_find(const struct bide_details *details,
                                                           const struct bide_details_rule *rule, size_t count);
struct bide_details_response {
    const char *type;
    const char *title;
    const char *detail;
    int status;
    int64_t retry_after_ns;
    bool no_retry;
};
BIDE_API size_t bide_details_format(char *text, size_t size, const struct bide_details_response *response);
BIDE_END_DECLS
#endif
#ifndef BIDE_ENTROPY_H
#define BIDE_ENTROPY_H
BIDE_BEGIN_DECLS
BIDE_API uint64_t bide_seed(void);
BIDE_API uint32_t bide_lane(void);
BIDE_END_DECLS
#endif
#ifndef BIDE_EVENT_H
#define BIDE_EVENT_H
#ifndef BIDE_METER_H
#define BIDE_METER_H
BIDE_BEGIN_DECLS
enum bide_meter_attempt {
    BIDE_METER_ATTEMPT_1 = 0,
    BIDE_METER_ATTEMPT_2,
    BIDE_METER_ATTEMPT_3,
    BIDE_METER_ATTEMPT_4_OR_MORE,
    BIDE_METER_HEDGE,
    BIDE_METER_REFRESH,
    BIDE_METER_ATTEMPT_COUNT
};
enum bide_meter_result {
    BIDE_METER_FIRST = 0,
    BIDE_METER_RESCUED,
    BIDE_METER_FAILED,
    BIDE_METER_REFUSED,
    BIDE_METER_CANCELLED,
    BIDE_METER_RESULT_COUNT
};
enum bide_meter_mode { BIDE_METER_ENFORCE = 0, BIDE_METER_OBSERVE, BIDE_METER_MODE_COUNT };
#define BIDE_METER_BINS    20u
#define BIDE_METER_KINDS   8u
#define BIDE_METER_GATES   12u
#define BIDE_METER_REASONS 48u
struct bide_histogram {
    uint64_t count[BIDE_METER_BINS];
    uint64_t sum_us;
};
struct bide_meter_view {
    uint64_t attempts[8];
    uint64_t outcomes[8][BIDE_METER_KINDS];
    uint64_t calls[8];
    uint64_t give_ups[BIDE_METER_REASONS];
    uint64_t refusals[BIDE_METER_GATES][BIDE_METER_MODE_COUNT];
    uint64_t waits[BIDE_METER_REASONS];
    uint64_t waits_ended;
    uint64_t wait_us;
    uint64_t reserved_[6];
    struct bide_histogram call_ok;
    struct bide_histogram call_failed;
    struct bide_histogram attempt_ok;
    struct bide_histogram attempt_failed;
    struct bide_histogram attempt_cancelled;
};
struct bide_meter_lane_ {
    struct bide_histogram at_once;
    struct bide_meter_view rest;
} __attribute__((aligned(64)));
struct bide_meter {
    uint64_t reserved_[8];
    struct bide_meter_lane_ lane[BIDE_LANES];
} __attribute__((aligned(64)));
BIDE_API void bide_meter_get(const struct bide_meter *meter, struct bide_meter_view *view);
BIDE_API int64_t bide_meter_bound_ns(uint32_t bin);
BIDE_API const char *bide_meter_attempt_label(enum bide_meter_attempt attempt);
BIDE_API const char *bide_meter_result_label(enum bide_meter_result result);
BIDE_END_DECLS
#endif
#ifndef BIDE_TARGETS_H
#define BIDE_TARGETS_H
#define BIDE_TARGET_NAME_MAX 127u
BIDE_BEGIN_DECLS
struct bide_targets;
struct bide_targets_view {
    size_t held;
    uint64_t evicted;
    uint64_t overflowed;
    uint64_t reserved_[2];
};
BIDE_API struct bide_targets *bide_targets_default(void);
BIDE_API enum bide_err bide_targets_new(struct bide_targets **table, size_t most,
                                        const struct bide_target_config *config, struct bide_problem *problem);
BIDE_API void bide_targets_free(struct bide_targets *table);
BIDE_API enum bide_err bide_targets_name_check(const char *name, struct bide_problem *problem);
BIDE_API struct bide_target *bide_targets_get(struct bide_targets *table, const char *name, int64_t now_ns);
BIDE_API struct bide_target *bide_targets_find(struct bide_targets *table, const char *name);
BIDE_API enum bide_err bide_targets_configure(struct bide_targets *table, const struct bide_target_config *config,
                                              int64_t now_ns, struct bide_problem *problem);
BIDE_API struct bide_targets_view bide_targets_view_get(struct bide_targets *table);
BIDE_END_DECLS
#endif
#ifndef BIDE_TRACE_H
#define BIDE_TRACE_H
#define BIDE_TRACE_HEADER    "traceparent"
#define BIDE_TRACE_TEXT_SIZE 56u
BIDE_BEGIN_DECLS
enum bide_trace_flag {
    BIDE_TRACE_SAMPLED = 1u << 0,
    BIDE_TRACE_RANDOM = 1u << 1,
};
struct bide_trace {
    uint64_t trace_hi;
    uint64_t trace_lo;
    uint64_t parent;
    uint8_t flags;
};
BIDE_API bool bide_trace_parse(struct bide_text value, struct bide_trace *trace);
BIDE_API struct bide_trace bide_trace_new(void);
BIDE_API struct bide_trace bide_trace_child(const struct bide_trace *trace);
BIDE_API void bide_trace_format(char text[BIDE_TRACE_TEXT_SIZE], const struct bide_trace *trace);
BIDE_END_DECLS
#endif
BIDE_BEGIN_DECLS
enum bide_attempt_kind {
    BIDE_ATTEMPT_REGULAR = 0,
    BIDE_ATTEMPT_HEDGE,
    BIDE_ATTEMPT_REFRESH,
};
struct bide_call_about {
    const char *method;
    const char *url;
    const char *program;
    const char *trace_state;
    uint64_t reserved_[4];
};
struct bide_event {
    const struct bide_verdict *verdict;
    const struct bide_outcome *outcome;
    const char *target;
    size_t target_length;
    const struct bide_trace *trace;
    uint64_t inbound_id;
    uint64_t call_id;
    int64_t begin_ns;
    int64_t now_ns;
    int64_t start_ns;
    int64_t delay_ns;
    uint32_t attempt;
    uint32_t attempts;
    int status;
    enum bide_attempt_kind attempt_kind;
    void (*about)(void *about_context, struct bide_call_about *about);
    void *about_context;
    uint64_t reserved_[4];
};
struct bide_at_once {
    const char *target;
    const struct bide_outcome *outcome;
    uint64_t random[2];
    int64_t begin_ns;
    int64_t now_ns;
};
struct bide_report_call;
struct bide_listener {
    void (*event)(void *context, const struct bide_event *event);
    bool (*sample)(void *context, const struct bide_trace *trace);
    struct bide_meter *(*meter)(void *context, const struct bide_report_call *call);
    void *context;
    bool ends_only;
    void (*at_once)(void *context, const struct bide_at_once *call);
    uint64_t reserved_[1];
};
BIDE_API enum bide_err bide_listen(const struct bide_listener *listener);
BIDE_API const struct bide_listener *bide_listener_get(void);
struct bide_report_call {
    const char *target_name;
    const char *(*find_name)(void *context);
    void *context;
    const struct bide_target *target;
    const struct bide_trace *trace;
    const struct bide_listener *listener;
    uint32_t lane;
    bool is_of_table;
    void (*about)(void *about_context, struct bide_call_about *about);
    void *about_context;
    uint64_t reserved_[4];
};
struct bide_report {
    struct bide_meter_lane_ *lane;
    int64_t begin_ns;
    int64_t since_ns;
    uint32_t attempts;
    uint8_t phase;
    bool is_waiting;
    bool has_listener;
    uint8_t reserved_flag_;
    uint32_t running_count;
    bool has_own;
    bool draws_trace;
    const struct bide_listener *process;
    int64_t ended_ns;
    struct bide_report_attempt {
        int64_t start_ns;
        int64_t delay_ns;
        uint32_t number;
        enum bide_attempt_kind kind;
    } running[1 + BIDE_HEDGES_MAX];
    struct bide_listener own;
    struct bide_trace trace;
    uint64_t call_id;
    void (*about)(void *about_context, struct bide_call_about *about);
    void *about_context;
    const char *target_name;
    char found_name[BIDE_TARGET_NAME_MAX + 1];
    uint64_t reserved_[4];
};
struct bide_attempt_end {
    const struct bide_outcome *outcome;
    uint32_t attempt;
    int status;
};
BIDE_API bool bide_report_wanted(const struct bide_target *target, const struct bide_listener *own);
static inline const char *bide_report_target_name(const struct bide_report_call *call)
{
    const char *name =
        call->target_name != NULL || call->find_name == NULL ? call->target_name : call->find_name(call->context);
    return name != NULL && __builtin_strlen(name) <= BIDE_TARGET_NAME_MAX ? name : "";
}
BIDE_API bool bide_report_begin(struct bide_report *report, const struct bide_report_call *call, int64_t now_ns);
BIDE_API void bide_report_verdict(struct bide_report *report, const struct bide_verdict *verdict,
                                  const struct bide_attempt_end *end, int64_t now_ns);
BIDE_API struct bide_trace bide_report_trace(struct bide_report *report, uint32_t attempt);
BIDE_END_DECLS
#endif
#ifndef BIDE_INBOUND_H
#define BIDE_INBOUND_H
#ifndef BIDE_LAYER_H
#define BIDE_LAYER_H
#define BIDE_LAYER_HEADER   "Bide-Attempt"
#define BIDE_LAYER_TEXT_MAX 64u
BIDE_BEGIN_DECLS
struct bide_layer {
    uint32_t attempt;
    uint32_t attempts_max;
    int64_t left_ns;
    bool no_retry;
};
BIDE_API bool bide_layer_parse(struct bide_text value, struct bide_layer *layer);
BIDE_API size_t bide_layer_format(char *text, size_t size, const struct bide_layer *layer);
BIDE_API void bide_layer_apply(const struct bide_layer *layer, struct bide_request *request, int64_t now_ns);
BIDE_API struct bide_layer bide_layer_outbound(const struct bide_request *request, struct bide_layer own);
BIDE_END_DECLS
#endif
#define BIDE_INBOUND_SLOTS 10u
BIDE_BEGIN_DECLS
struct bide_inbound_ratio_config {
    uint32_t share_permille;
    uint32_t min_volume;
    int64_t window_ns;
    uint64_t reserved_[2];
};
struct bide_inbound_ratio {
    struct bide_inbound_ratio_config config;
    uint64_t first[BIDE_INBOUND_SLOTS];
    uint64_t retry[BIDE_INBOUND_SLOTS];
    uint64_t first_total;
    uint64_t retry_total;
};
struct bide_inbound_ratio_view {
    uint64_t requests;
    uint64_t retries;
    bool overloaded;
    uint64_t requests_total;
    uint64_t retries_total;
    uint64_t reserved_[2];
};
BIDE_API void bide_inbound_ratio_config_init(struct bide_inbound_ratio_config *config);
BIDE_API enum bide_err bide_inbound_ratio_init(struct bide_inbound_ratio *ratio,
                                               const struct bide_inbound_ratio_config *config,
                                               struct bide_problem *problem);
BIDE_API bool bide_inbound_ratio_count(struct bide_inbound_ratio *ratio, const struct bide_layer *inbound,
                                       int64_t now_ns);
BIDE_API struct bide_inbound_ratio_view bide_inbound_ratio_get(const struct bide_inbound_ratio *ratio, int64_t now_ns);
BIDE_END_DECLS
#endif
#ifndef BIDE_KEY_H
#define BIDE_KEY_H
#define BIDE_KEY_HEADER     "Idempotency-Key"
#define BIDE_KEY_MAX        255u
#define BIDE_KEY_TEXT_SIZE  37u
#define BIDE_KEY_VALUE_SIZE 513u
BIDE_BEGIN_DECLS
enum bide_key_form {
    BIDE_KEY_QUOTED = 0,
    BIDE_KEY_RAW,
};
BIDE_API enum bide_err bide_key_make(char text[BIDE_KEY_TEXT_SIZE]);
BIDE_API enum bide_err bide_key_check(const char *key, enum bide_key_form form, struct bide_problem *problem);
BIDE_API size_t bide_key_format(char *text, size_t size, const char *key, enum bide_key_form form);
BIDE_API bool bide_key_parse(struct bide_text value, enum bide_key_form form, char *key, size_t size);
BIDE_END_DECLS
#endif
#ifndef BIDE_RETRY_AFTER_H
#define BIDE_RETRY_AFTER_H
#define BIDE_RETRY_HEADER "Bide-Retry"
BIDE_BEGIN_DECLS
struct bide_retry_after {
    int64_t wait_ns;
    int64_t spread_ns;
    uint64_t seed;
    bool no_retry;
};
BIDE_API int64_t bide_retry_after_seconds(const struct bide_retry_after *retry_after);
BIDE_API size_t bide_retry_after_format(char *text, size_t size, const struct bide_retry_after *retry_after);
BIDE_API struct bide_hint bide_hint_should_retry(struct bide_text value);
BIDE_END_DECLS
#endif
#ifndef BIDE_RUN_H
#define BIDE_RUN_H
#ifndef BIDE_WAIT_H
#define BIDE_WAIT_H
BIDE_BEGIN_DECLS
struct bide_cancel {
    int fd_plus_one;
};
BIDE_API enum bide_err bide_cancel_init(struct bide_cancel *cancel);
BIDE_API void bide_cancel_free(struct bide_cancel *cancel);
BIDE_API void bide_cancel_now(struct bide_cancel *cancel);
BIDE_API bool bide_cancelled(const struct bide_cancel *cancel);
BIDE_API int bide_cancel_fd_get(const struct bide_cancel *cancel);
BIDE_API bool bide_wait_until(int64_t until_ns, const struct bide_cancel *cancel);
BIDE_END_DECLS
#endif
BIDE_BEGIN_DECLS
struct bide_job {
    const char *name;
    const struct bide_policy *policy;
    struct bide_target *target;
    struct bide_request request;
    struct bide_outcome (*attempt)(void *context, const struct bide_verdict *start);
    void (*event)(void *context, const struct bide_event *event);
    void *context;
    const struct bide_cancel *cancel;
    uint64_t reserved_[4];
};
BIDE_API struct bide_verdict bide_run(const struct bide_job *job);
BIDE_END_DECLS
#endif
#ifndef BIDE_SHARED_H
#define BIDE_SHARED_H
#define BIDE_SHARED_PATH_MAX 4096u
BIDE_BEGIN_DECLS
#define BIDE_SHARED_REASON_LIST(X)                                                                                     \
    X(NOTHING, "nothing", "nothing is wrong")                                                                          \
    X(BAD_NAME, "bad_name", "the name must have 1 to 127 bytes and no control characters")                             \
    X(BAD_CONFIG, "bad_config", "the configuration is invalid")                                                        \
    X(IN_FLIGHT, "in_flight", "counts of calls in flight cannot be shared: a killed process never releases them")      \
    X(NO_DIRECTORY, "no_directory", "its directory is missing and cannot be created")                                  \
    X(OPEN_DIRECTORY, "open_directory", "other users may write to the directory")                                      \
    X(NO_SPACE, "no_space", "there is no space for the file")                                                          \
    X(NOT_A_FILE, "not_a_file", "it is a link, or not a regular file")                                                 \
    X(NOT_OURS, "not_ours", "it belongs to another user")                                                              \
    X(OPEN_FILE, "open_file", "other users may write to it, or we may not read and write it")                          \
    X(WRONG_SIZE, "wrong_size", "it has the wrong size")                                                               \
    X(WRONG_VERSION, "wrong_version", "it was made by another version of bide")                                        \
    X(DAMAGED, "damaged", "it is damaged, or not a target")                                                            \
    X(OTHER_NAME, "other_name", "it is the target of another name")                                                    \
    X(NOT_THERE, "not_there", "there is no such target")                                                               \
    X(SYSTEM, "system", "the operating system refused")                                                                \
    X(BAD_DIRECTORY, "bad_directory", "it is not a usable path of a directory")
enum bide_shared_reason {
#define BIDE_SHARED_REASON_ENUM(NAME, label, sentence) BIDE_SHARED_REASON_##NAME,
    BIDE_SHARED_REASON_LIST(BIDE_SHARED_REASON_ENUM)
#undef BIDE_SHARED_REASON_ENUM
        BIDE_SHARED_REASON_COUNT
};
struct bide_shared_options {
    const char *directory;
    bool private_instead;
    bool must_exist;
    bool group;
    uint64_t reserved_[4];
};
struct bide_shared {
    struct bide_target *target;
    bool shared;
    void *map_;
    size_t map_size_;
    uint64_t reserved_[2];
};
BIDE_API const char *bide_shared_directory(char path[BIDE_SHARED_PATH_MAX]);
BIDE_API enum bide_err bide_shared_open(struct bide_shared *shared, const char *name,
                                        const struct bide_target_config *config,
                                        const struct bide_shared_options *options, int64_t now_ns,
                                        struct bide_problem *problem);
BIDE_API void bide_shared_close(struct bide_shared *shared);
BIDE_API const struct bide_meter *bide_shared_meter_get(const struct bide_shared *shared);
BIDE_API enum bide_err bide_shared_list(const struct bide_shared_options *options,
                                        bool (*each)(void *context, const char *name, const struct bide_problem *wrong),
                                        void *context, struct bide_problem *problem);
BIDE_API enum bide_err bide_shared_remove(const char *name, const struct bide_shared_options *options,
                                          struct bide_problem *problem);
BIDE_API bool bide_shared_guard(void);
BIDE_API const char *bide_shared_reason_label(enum bide_shared_reason reason);
BIDE_API const char *bide_shared_reason_text(enum bide_shared_reason reason);
BIDE_END_DECLS
#endif
#ifndef BIDE_TIMERS_H
#define BIDE_TIMERS_H
BIDE_BEGIN_DECLS
struct bide_timer {
    int64_t due_ns;
    uint64_t order;
    size_t place;
};
struct bide_timers {
    struct bide_timer **heap;
    size_t count;
    size_t room;
    uint64_t order;
};
BIDE_API void bide_timers_free(struct bide_timers *queue);
BIDE_API enum bide_err bide_timers_set(struct bide_timers *queue, struct bide_timer *timer, int64_t due_ns);
BIDE_API int64_t bide_timers_due_get(const struct bide_timers *queue);
BIDE_API struct bide_timer *bide_timers_pop(struct bide_timers *queue, int64_t now_ns);
BIDE_END_DECLS
#endif
#endif
#ifndef BIDE_CURL_RECORD_H
#define BIDE_CURL_RECORD_H
#ifndef BIDE_CURL_H
#define BIDE_CURL_H
#include <curl/curl.h>
#define BIDE_CURL_KEEP_MAX          65536u
#define BIDE_CURL_HEAD_MAX          262144u
#define BIDE_CURL_LINES_MAX         512u
#define BIDE_CURL_ATTEMPTS_RECORDED 16u
#define BIDE_CURL_STALL_NS          (30 * BIDE_S)
#define BIDE_CURL_NOT_SENT          CURLE_OBSOLETE57
#define BIDE_CURL_NOT_RECORDED      CURLE_OBSOLETE44
BIDE_BEGIN_DECLS
enum bide_curl_safety {
    BIDE_CURL_BY_METHOD = 0,
    BIDE_CURL_UNSAFE,
    BIDE_CURL_IDEMPOTENT,
    BIDE_CURL_SAFE,
    BIDE_CURL_KEYED,
};
enum bide_curl_body_kind {
    BIDE_CURL_BODY_UNKNOWN = 0,
    BIDE_CURL_BODY_REPEATABLE,
    BIDE_CURL_BODY_MEMORY,
    BIDE_CURL_BODY_FILE,
    BIDE_CURL_BODY_STREAM,
};
struct bide_curl_body {
    enum bide_curl_body_kind kind;
    int fd;
    const void *at;
    bool put;
    int64_t offset;
    int64_t length;
    curl_read_callback read;
    void *read_data;
    curl_seek_callback seek;
    void *seek_data;
};
enum bide_curl_inject {
    BIDE_CURL_INJECT_KEY = 1u << 0,
    BIDE_CURL_INJECT_ATTEMPT = 1u << 1,
    BIDE_CURL_INJECT_TRACE = 1u << 2,
};
enum bide_curl_redirect {
    BIDE_CURL_REDIRECT_STRIP = 0,
    BIDE_CURL_REDIRECT_REFUSE,
};
struct bide_curl_resume_from {
    uint64_t delivered_bytes;
    uint64_t total;
    const char *validator;
};
struct bide_curl_response {
    CURL *easy;
    long status;
    struct bide_text body;
    bool whole;
    uint64_t reserved_[2];
};
struct bide_curl_options {
    enum bide_curl_safety safety;
    enum bide_curl_redirect redirect;
    const struct bide_policy *policy;
    struct bide_targets *targets;
    int64_t deadline_ns;
    int64_t call_timeout_ns;
    int64_t connect_timeout_ns;
    int64_t stall_timeout_ns;
    uint64_t seed;
    uint64_t retry_key;
    const struct bide_layer *inbound;
    const struct bide_cancel *cancel;
    curl_write_callback write;
    void *write_data;
    bool (*rewind)(void *write_data);
    bool resume;
    size_t hold_max;
    curl_write_callback header;
    void *header_data;
    curl_prereq_callback prereq;
    void *prereq_data;
    curl_xferinfo_callback progress;
    void *progress_data;
    struct curl_slist *headers;
    bool no_headers;
    char *error_buffer;
    uint32_t inject;
    enum bide_key_form key_form;
    const char *key;
    const char *traceparent;
    const char *trace_state;
    struct bide_curl_body body;
    bool fresh_if_unsafe;
    bool unobserved;
    const struct bide_rules *status_rules;
    const struct bide_rules *curl_rules;
    const struct bide_details_rule *type_rules;
    size_t type_rule_count;
    const char *reset_header;
    enum bide_reset_unit reset_unit;
    void *context;
    bool (*before)(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers);
    void (*classify)(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome);
    bool (*refresh)(void *context, CURL *easy);
    void (*event)(void *context, const struct bide_event *event);
    const struct bide_curl_resume_from *resume_from;
    const char *target_name;
    uint64_t reserved_[5];
};
enum bide_curl_mismatch {
    BIDE_CURL_MISMATCH_NONE = 0,
    BIDE_CURL_MISMATCH_STATUS,
    BIDE_CURL_MISMATCH_PARTS,
    BIDE_CURL_MISMATCH_NO_RANGE,
    BIDE_CURL_MISMATCH_ENCODED,
    BIDE_CURL_MISMATCH_CHANGED,
    BIDE_CURL_MISMATCH_UNKNOWN,
    BIDE_CURL_MISMATCH_LENGTH,
    BIDE_CURL_MISMATCH_RANGE,
};
struct bide_curl_attempt {
    long status;
    CURLcode code;
    enum bide_kind kind;
    enum bide_evidence evidence;
    struct bide_hint hint;
    int64_t delay_ns;
    int64_t time_ns;
    bool replay_stopped;
    bool stalled;
    enum bide_curl_mismatch mismatch;
};
struct bide_curl_result {
    struct bide_verdict verdict;
    uint32_t attempts;
    uint32_t refreshed;
    long status;
    int64_t total_ns;
    bool body_dropped;
    bool resumed;
    char key[BIDE_KEY_TEXT_SIZE];
    char error[CURL_ERROR_SIZE];
    struct bide_curl_attempt attempt[BIDE_CURL_ATTEMPTS_RECORDED];
    uint64_t reserved_[4];
};
BIDE_API enum bide_err bide_curl_options_check(const struct bide_curl_options *options, struct bide_problem *problem);
#define BIDE_CURL_PLAIN_HANDLE bide_curl_plain_options()
BIDE_API const struct bide_curl_options *bide_curl_plain_options(void);
BIDE_API CURLcode bide_curl_perform(CURL *easy, struct bide_target *target, const struct bide_curl_options *options,
                                    struct bide_curl_result *result);
BIDE_API const char *bide_curl_strerror(CURLcode code);
BIDE_API const char *bide_curl_mismatch_text(enum bide_curl_mismatch mismatch);
BIDE_API struct bide_outcome bide_classify_curl(CURLcode code, const struct bide_rules *rules);
BIDE_API bool bide_curl_origin(char *text, size_t size, const char *url);
BIDE_API bool bide_curl_validator(char *text, size_t size, CURL *easy);
BIDE_END_DECLS
#endif
BIDE_BEGIN_DECLS
BIDE_API CURL *bide_curl_easy_init(void);
BIDE_API CURL *bide_curl_easy_duphandle(CURL *easy);
BIDE_API CURLcode bide_curl_easy_setopt(CURL *easy, CURLoption option, ...);
BIDE_API void bide_curl_easy_reset(CURL *easy);
BIDE_API void bide_curl_easy_cleanup(CURL *easy);
BIDE_API CURLcode bide_curl_easy_getinfo(CURL *easy, CURLINFO info, ...);
BIDE_API CURLcode bide_curl_adopt(CURL *easy);
BIDE_API void bide_curl_release(CURL *easy);
#ifndef BIDE_CURL_RECORD_DECLARE_ONLY
#define BIDE_TEXT_OF_(name)    #name
#define BIDE_SYMBOL_(prefix)   BIDE_TEXT_OF_(prefix)
#define BIDE_RENAMED_TO_(name) __asm__(BIDE_SYMBOL_(__USER_LABEL_PREFIX__) #name)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
CURL_EXTERN CURL *(curl_easy_init)(void)BIDE_RENAMED_TO_(bide_curl_easy_init);
CURL_EXTERN CURL *(curl_easy_duphandle)(CURL *easy)BIDE_RENAMED_TO_(bide_curl_easy_duphandle);
CURL_EXTERN CURLcode(curl_easy_setopt)(CURL *easy, CURLoption option, ...) BIDE_RENAMED_TO_(bide_curl_easy_setopt);
CURL_EXTERN void(curl_easy_reset)(CURL *easy) BIDE_RENAMED_TO_(bide_curl_easy_reset);
CURL_EXTERN void(curl_easy_cleanup)(CURL *easy) BIDE_RENAMED_TO_(bide_curl_easy_cleanup);
CURL_EXTERN CURLcode(curl_easy_getinfo)(CURL *easy, CURLINFO info, ...) BIDE_RENAMED_TO_(bide_curl_easy_getinfo);
CURL_EXTERN const char *(curl_easy_strerror)(CURLcode code)BIDE_RENAMED_TO_(bide_curl_strerror);
#pragma GCC diagnostic pop
#endif
BIDE_END_DECLS
#endif
#ifndef BIDE_MULTI_H
#define BIDE_MULTI_H
BIDE_BEGIN_DECLS
struct bide_multi;
struct bide_multi_call;
struct bide_multi_end {
    CURL *easy;
    CURL *last_easy;
    CURLcode code;
    struct bide_verdict verdict;
    uint64_t reserved_[2];
};
struct bide_multi_job {
    CURL *easy;
    struct bide_target *target;
    const struct bide_curl_options *options;
    struct bide_curl_result *result;
    void (*done)(void *context, const struct bide_multi_end *end);
    void *context;
    uint64_t reserved_[4];
};
BIDE_API enum bide_err bide_multi_new(struct bide_multi **multi);
BIDE_API void bide_multi_free(struct bide_multi *multi);
BIDE_API enum bide_err bide_multi_adopt(struct bide_multi **multi, CURLM *curl);
BIDE_API void bide_multi_on_message(struct bide_multi *multi, void (*message)(void *context, CURLMsg *message),
                                    void *context);
BIDE_API CURLM *bide_multi_handle_get(struct bide_multi *multi);
BIDE_API enum bide_err bide_multi_start(struct bide_multi *multi, const struct bide_multi_job *job,
                                        struct bide_multi_call **call, struct bide_problem *problem);
BIDE_API void bide_multi_cancel(struct bide_multi *multi, struct bide_multi_call *call);
BIDE_API void bide_multi_cancel_all(struct bide_multi *multi);
BIDE_API size_t bide_multi_running_get(const struct bide_multi *multi);
BIDE_API size_t bide_multi_poll(struct bide_multi *multi, int64_t until_ns);
BIDE_API int64_t bide_multi_due_get(const struct bide_multi *multi);
BIDE_API void bide_multi_wakeup(struct bide_multi *multi);
BIDE_API size_t bide_multi_drain(struct bide_multi *multi, int64_t until_ns);
BIDE_API void bide_multi_on_timer(struct bide_multi *multi, void (*timer)(void *context, int64_t due_ns),
                                  void *context);
BIDE_API size_t bide_multi_action(struct bide_multi *multi, curl_socket_t fd, int events);
BIDE_END_DECLS
#endif
#ifndef BIDE_FLEET_H
#define BIDE_FLEET_H
BIDE_BEGIN_DECLS
struct bide_fleet;
struct bide_fleet_options {
    void (*report)(void *context, const char *text);
    void *context;
    uint64_t reserved_[4];
};
struct bide_fleet_view {
    bool connected;
    bool exchanger;
    int64_t fleet_left_milli;
    int64_t leased_milli;
    int64_t share_milli;
    uint64_t members;
    uint64_t exchanges, failures;
    uint64_t granted_milli, returned_milli, earned_milli;
    int64_t disconnected_ns;
    char problem[160];
    uint64_t reserved_[4];
};
struct bide_fleet_bucket {
    bool exists;
    int64_t capacity_milli, per_minute_milli, left_milli;
    uint64_t members, wanting, exchanges;
    uint64_t firsts, successes, spent_milli, granted_milli;
    int64_t age_ms;
    uint64_t reserved_[4];
};
BIDE_API enum bide_err bide_fleet_open(struct bide_fleet **fleet, const char *url,
                                       const struct bide_fleet_options *options, struct bide_problem *problem);
BIDE_API enum bide_err bide_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target,
                                       struct bide_problem *problem);
BIDE_API void bide_fleet_leave(struct bide_fleet *fleet, struct bide_target *target);
BIDE_API bool bide_fleet_get(struct bide_fleet *fleet, const struct bide_target *target, struct bide_fleet_view *view);
BIDE_API void bide_fleet_close(struct bide_fleet *fleet);
BIDE_API enum bide_err bide_fleet_read(const char *url, const char *name, struct bide_fleet_bucket *bucket,
                                       struct bide_problem *problem);
BIDE_END_DECLS
#endif
#ifndef BIDE_TELEMETRY_H
#define BIDE_TELEMETRY_H
#define BIDE_TELEMETRY_TARGETS     128u
#define BIDE_TELEMETRY_INBOUND_MAX 64u
BIDE_BEGIN_DECLS
enum bide_telemetry_log {
    BIDE_TELEMETRY_LOG_NONE = 0,
    BIDE_TELEMETRY_LOG_LOGFMT,
    BIDE_TELEMETRY_LOG_JSON,
};
struct bide_telemetry_options {
    const char *listen;
    uint32_t targets_max;
    struct bide_targets *targets;
    const char *otlp;
    enum bide_telemetry_log log;
    int log_fd;
    bool otlp_spans_only;
    uint64_t reserved_[7];
};
BIDE_API enum bide_err bide_telemetry_start(const struct bide_telemetry_options *options, struct bide_problem *problem);
BIDE_API void bide_telemetry_stop(void);
BIDE_API enum bide_err bide_telemetry_inbound(const char *name, const struct bide_inbound_ratio *ratio,
                                              struct bide_problem *problem);
BIDE_API size_t bide_telemetry_write(char *text, size_t size);
#define BIDE_TELEMETRY_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
BIDE_END_DECLS
#endif
