/* dry_run.c - runs the engine with a scratch target to predict its verdicts. See dry_run.h for the model. */
#include "dry_run.h"

#include <stdio.h>
#include <string.h>

#include "core/saturate.h"
#include "schedule.h"

#define BEGAN_NS    (3600 * BIDE_S) /* an arbitrary instant */
#define COUNT(of)   (sizeof(of) / sizeof *(of))
#define BIT(reason) (UINT64_C(1) << BIDE_REASON_##reason)

/* ---- prediction ---- */

/* Fails earlier attempts with evidence "not sent", which any request may retry, until the requested attempt starts. */
static struct bide_verdict call_advance_to_attempt(struct bide_call *call, const struct explain_case *s,
                                                   struct bide_verdict v, int64_t *now_ns)
{
    const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    while (v.action == BIDE_ACTION_START && v.attempt < s->attempt) {
        v = bide_call_outcome(call, v.attempt, &failed, *now_ns);
        if (v.action != BIDE_ACTION_WAIT)
            break;
        *now_ns = v.wake_ns;
        v = bide_call_wake(call, *now_ns);
    }
    return v;
}

static int64_t hint_width(const struct bide_policy *p, int64_t hint_ns)
{
    if (p->jitter == BIDE_JITTER_NONE)
        return 0;
    return core_max(core_share(hint_ns, p->hint_jitter_permille, 1000), p->base_ns);
}

static int64_t hint_clamped(const struct bide_policy *p, int64_t hint_ns, int64_t own_ns)
{
    return core_max(own_ns, core_min(hint_ns, core_sum(own_ns, p->hint_over_ns)));
}

/* For display: repeats the engine's rule to get the window, as the engine returns only the drawn wait. */
static struct bide_range hinted_window(const struct bide_policy *p, int64_t hint_ns, struct bide_range own)
{
    if (p->hint_long == BIDE_HINT_LONG_CLAMP)
        hint_ns = core_min(hint_ns, p->hint_max_ns);
    if (p->hint_rule == BIDE_HINT_RULE_CLAMP)
        return (struct bide_range){hint_clamped(p, hint_ns, own.lo_ns), hint_clamped(p, hint_ns, own.hi_ns)};
    if (p->hint_rule != BIDE_HINT_RULE_FLOOR)
        return (struct bide_range){hint_ns, hint_ns};
    int64_t most_ns = core_sum(hint_ns, hint_width(p, hint_ns));
    return (struct bide_range){core_max(hint_ns, own.lo_ns), core_max(most_ns, own.hi_ns)};
}

static bool hint_applies(const struct bide_policy *p, const struct bide_hint *hint)
{
    bool ignored = hint->wait_ns > p->hint_max_ns && p->hint_long == BIDE_HINT_LONG_IGNORE;
    bool zero = hint->wait_ns == 0 && p->hint_rule != BIDE_HINT_RULE_PUSHBACK;
    return hint->kind == BIDE_HINT_WAIT && p->hint_rule != BIDE_HINT_RULE_IGNORE && !ignored && !zero;
}

/* No earlier wait followed a hint, so each advanced the backoff by one step. */
static struct bide_range wait_window(const struct explain_case *s, enum bide_reason reason)
{
    const struct bide_policy *p = &s->pair.policy;
    struct bide_step step = {.step = s->attempt - 1, .throttled = s->outcome.kind == BIDE_KIND_THROTTLED};
    if (reason == BIDE_REASON_CONFLICT)
        return (struct bide_range){0, 0};
    struct bide_range own = explain_window(p, step);
    return hint_applies(p, &s->outcome.hint) ? hinted_window(p, s->outcome.hint.wait_ns, own) : own;
}

void explain_dry_run(struct explain_prediction *a, const struct explain_case *s)
{
    struct bide_target target;
    struct bide_call call;
    int64_t now_ns = BEGAN_NS;
    *a = (struct explain_prediction){.elapsed_ns = s->elapsed_ns};
    bide_target_init(&target, &s->pair.target, now_ns, NULL);
    struct bide_verdict v = bide_call_begin(&call, &s->pair.policy, &target, &s->request, now_ns);
    v = call_advance_to_attempt(&call, s, v, &now_ns);
    a->reached = v.action == BIDE_ACTION_START && v.attempt == s->attempt;
    now_ns = core_max(now_ns, core_sum(BEGAN_NS, s->elapsed_ns));
    a->elapsed_ns = now_ns - BEGAN_NS;
    a->verdict = a->reached ? bide_call_outcome(&call, s->attempt, &s->outcome, now_ns) : v;
    if (a->verdict.action == BIDE_ACTION_WAIT) {
        a->wait_ns = a->verdict.wake_ns - now_ns;
        a->wait = wait_window(s, a->verdict.reason);
    }
    bide_call_cancel(&call, now_ns);
}

/* ---- gates ---- */

/* Returns a copy of the case in which no gate refuses; the caller restores a gate. */
static struct explain_case case_loosened(const struct explain_case *s)
{
    struct explain_case loose = *s;
    struct bide_policy *p = &loose.pair.policy;
    p->attempts_max = UINT32_MAX;
    p->call_timeout_ns = BIDE_NEVER;
    p->waits_max_ns = BIDE_NEVER;
    p->require_key = false;
    p->observe = BIDE_POLICY_GATES;
    loose.pair.target.observe = BIDE_TARGET_GATES;
    loose.outcome.flags &= ~(uint32_t)(BIDE_FLAG_BODY_SPENT | BIDE_FLAG_ONCE | BIDE_FLAG_KEY_409);
    if (loose.outcome.kind == BIDE_KIND_PERMANENT || loose.outcome.kind == BIDE_KIND_CANCELLED)
        loose.outcome.kind = BIDE_KIND_TRANSIENT;
    if (loose.outcome.evidence == BIDE_EVIDENCE_BODY_DELIVERED)
        loose.outcome.evidence = BIDE_EVIDENCE_ANSWERED;
    return loose;
}

static void restore_key(struct explain_case *loose, const struct explain_case *s)
{
    loose->pair.policy.require_key = s->pair.policy.require_key;
}

static void restore_kind(struct explain_case *loose, const struct explain_case *s)
{
    loose->outcome.kind = s->outcome.kind;
    loose->outcome.flags |= s->outcome.flags & BIDE_FLAG_KEY_409;
}

static void restore_evidence(struct explain_case *loose, const struct explain_case *s)
{
    loose->outcome.evidence = s->outcome.evidence;
}

static void restore_attempts(struct explain_case *loose, const struct explain_case *s)
{
    loose->pair.policy.attempts_max = s->pair.policy.attempts_max;
}

static void restore_deadline(struct explain_case *loose, const struct explain_case *s)
{
    loose->pair.policy.call_timeout_ns = s->pair.policy.call_timeout_ns;
}

static void restore_waits_max(struct explain_case *loose, const struct explain_case *s)
{
    loose->pair.policy.waits_max_ns = s->pair.policy.waits_max_ns;
}

static void restore_body(struct explain_case *loose, const struct explain_case *s)
{
    loose->outcome.flags |= s->outcome.flags & BIDE_FLAG_BODY_SPENT;
}

/* For a gate that only needs its bit removed from `observe`. */
static void restore_nothing(struct explain_case *loose, const struct explain_case *s)
{
    (void)loose;
    (void)s;
}

static const struct gate_question {
    const char *name;
    const char *question;
    void (*restore)(struct explain_case *loose, const struct explain_case *s);
    uint32_t gate; /* enum bide_gate; 0: cannot observe */
    uint64_t reasons;
} gate_questions[EXPLAIN_GATES] = {
    {"key", "does it have a key, if required?", restore_key, BIDE_GATE_KEY, BIT(KEY_REQUIRED)},
    {"kind", "can the failure go away by itself?", restore_kind, 0, BIT(PERMANENT) | BIT(CANCELLED) | BIT(SUCCEEDED)},
    {"delivered", "has the caller seen no response data?", restore_evidence, 0, BIT(BODY_DELIVERED)},
    {"attempts", "is there an attempt left?", restore_attempts, 0, BIT(ATTEMPTS_SPENT)},
    {"deadline", "is there time left?", restore_deadline, 0, BIT(DEADLINE)},
    {"layer", "is this the layer that retries?", restore_nothing, BIDE_GATE_LAYER, BIT(INNER_LAYER)},
    {"repeat", "is the request safe to repeat?", restore_nothing, BIDE_GATE_REPEAT, BIT(NOT_REPEATABLE)},
    {"body", "can the body be sent again?", restore_body, 0, BIT(BODY_SPENT)},
    {"hint", "does the server's hint allow a retry?", restore_nothing, BIDE_GATE_HINT,
     BIT(SERVER_STOP) | BIT(HINT_TOO_LONG) | BIT(HINT_MISSING)},
    {"wait", "does the wait end before the deadline?", restore_deadline, 0, BIT(DEADLINE_NEAR)},
    {"waits", "do all waits stay within waits_max?", restore_waits_max, 0, BIT(WAITS_SPENT)},
    {"breaker", "does the circuit breaker allow it?", restore_nothing, BIDE_GATE_BREAKER,
     BIT(BREAKER_OPEN) | BIT(BREAKER_PROBING) | BIT(BREAKER_RAMPING)},
    {"budget", "does the retry budget pay for it?", restore_nothing, BIDE_GATE_BUDGET, BIT(BUDGET_EMPTY)},
};

static void gate_run_alone(struct explain_gate *gate, const struct gate_question *q, const struct explain_case *s)
{
    struct explain_case alone = case_loosened(s);
    struct explain_prediction prediction;
    uint32_t observe = s->pair.policy.observe | s->pair.target.observe;
    alone.pair.policy.observe &= ~q->gate;
    alone.pair.target.observe &= ~q->gate;
    q->restore(&alone, s);
    explain_dry_run(&prediction, &alone);
    bool ends = prediction.verdict.action == BIDE_ACTION_GIVE_UP || prediction.verdict.action == BIDE_ACTION_DONE ||
                prediction.verdict.reason == BIDE_REASON_BUDGET_EMPTY; /* long_poll waits once before giving up */
    bool refuses = ends && q->reasons >> prediction.verdict.reason & 1;
    *gate = (struct explain_gate){.name = q->name, .question = q->question};
    if (refuses) {
        gate->result = observe & q->gate ? EXPLAIN_ONLY_OBSERVES : EXPLAIN_REFUSES;
        gate->reason = prediction.verdict.reason;
    }
}

void explain_gates(struct explain_gate gates[EXPLAIN_GATES], const struct explain_case *s)
{
    bool decided = false;
    for (size_t i = 0; i < EXPLAIN_GATES; i++) {
        gate_run_alone(&gates[i], &gate_questions[i], s);
        if (gates[i].result == EXPLAIN_REFUSES && decided)
            gates[i].result = EXPLAIN_WOULD_REFUSE_TOO;
        decided = decided || gates[i].result == EXPLAIN_REFUSES;
    }
}

/* ---- changes that lead to a retry ---- */

static bool change_add_key(struct explain_case *s, char *text)
{
    bool without = s->request.safety == BIDE_UNSAFE || s->request.safety == BIDE_IDEMPOTENT;
    s->request.safety = BIDE_KEYED;
    snprintf(text, 64, "an idempotency key");
    return without;
}

static bool change_trust_server(struct explain_case *s, char *text)
{
    bool throttled = s->outcome.kind == BIDE_KIND_THROTTLED, unavailable = s->outcome.flags & BIDE_FLAG_UNAVAILABLE;
    uint32_t bit = throttled ? BIDE_TRUST_THROTTLED : BIDE_TRUST_UNAVAILABLE;
    bool news = (throttled || unavailable) && !(s->pair.target.trust & bit);
    s->pair.target.trust |= bit;
    snprintf(text, 64, "trust = %s", throttled ? "throttled" : "unavailable");
    return news;
}

static bool change_one_more_attempt(struct explain_case *s, char *text)
{
    s->pair.policy.attempts_max = s->attempt + 1;
    snprintf(text, 64, "attempts = %u", s->attempt + 1);
    return true;
}

static bool change_longer_deadline(struct explain_case *s, char *text)
{
    struct bide_policy *p = &s->pair.policy;
    bool bounded = p->call_timeout_ns != BIDE_NEVER;
    p->call_timeout_ns = BIDE_NEVER;
    snprintf(text, 64, "a longer deadline");
    return bounded;
}

static bool change_more_waits(struct explain_case *s, char *text)
{
    struct bide_policy *p = &s->pair.policy;
    bool bounded = p->waits_max_ns != BIDE_NEVER;
    p->waits_max_ns = BIDE_NEVER;
    snprintf(text, 64, "a longer waits_max");
    return bounded;
}

static bool change_raise_hint_max(struct explain_case *s, char *text)
{
    char value[TEXT_VALUE_SIZE];
    bool asked = s->outcome.hint.kind == BIDE_HINT_WAIT && s->outcome.hint.wait_ns <= BIDE_DURATION_MAX;
    s->pair.policy.hint_max_ns = s->outcome.hint.wait_ns;
    snprintf(text, 64, "hint_max = %s", text_duration_format(value, s->outcome.hint.wait_ns));
    return asked;
}

static bool change_drop_hint(struct explain_case *s, char *text)
{
    bool had = s->outcome.hint.kind != BIDE_HINT_NONE;
    s->outcome.hint = (struct bide_hint){0};
    snprintf(text, 64, "no hint from the server");
    return had;
}

static bool change_add_hint(struct explain_case *s, char *text)
{
    bool none = s->outcome.hint.kind == BIDE_HINT_NONE;
    s->outcome.hint = (struct bide_hint){BIDE_HINT_WAIT, BIDE_S};
    snprintf(text, 64, "a hint such as Retry-After: 1");
    return none;
}

static bool change_become_outermost(struct explain_case *s, char *text)
{
    bool inner = s->request.inbound.attempt > 1 || s->request.inbound.no_retry;
    s->request.inbound = (struct bide_inbound){0};
    snprintf(text, 64, "no retry by the caller above");
    return inner;
}

static bool change_layer_rule(struct explain_case *s, char *text)
{
    bool never = s->pair.policy.layer == BIDE_LAYER_NEVER;
    s->pair.policy.layer = BIDE_LAYER_OUTERMOST;
    snprintf(text, 64, "layer = outermost");
    return never;
}

static bool change_fill_budget(struct explain_case *s, char *text)
{
    s->pair.target.budget.kind = BIDE_BUDGET_NONE;
    snprintf(text, 64, "tokens in the budget");
    return true;
}

static bool change_rewindable_body(struct explain_case *s, char *text)
{
    bool spent = s->outcome.flags & BIDE_FLAG_BODY_SPENT;
    s->outcome.flags &= ~(uint32_t)BIDE_FLAG_BODY_SPENT;
    snprintf(text, 64, "a body that can be sent again");
    return spent;
}

static bool change_prove_not_sent(struct explain_case *s, char *text)
{
    bool sent = s->outcome.evidence == BIDE_EVIDENCE_UNKNOWN;
    s->outcome.evidence = BIDE_EVIDENCE_NOT_SENT;
    snprintf(text, 64, "proof that no byte was sent (--evidence not_sent)");
    return sent;
}

/* Each function applies its change to the case and describes it; it returns false if there is nothing to change.
 * Changes that a user can make come first. */
static bool (*const changes_known[])(struct explain_case *s, char *text) = {
    change_add_key,    change_one_more_attempt, change_longer_deadline, change_more_waits,     change_raise_hint_max,
    change_add_hint,   change_trust_server,     change_drop_hint,       change_prove_not_sent, change_become_outermost,
    change_layer_rule, change_fill_budget,      change_rewindable_body,
};

static bool case_is_retried(const struct explain_case *s)
{
    struct explain_prediction prediction;
    explain_dry_run(&prediction, s);
    return prediction.reached && prediction.verdict.action == BIDE_ACTION_WAIT &&
           prediction.verdict.reason != BIDE_REASON_BUDGET_EMPTY;
}

static size_t find_single_changes(struct explain_change *changes, const struct explain_case *s)
{
    size_t count = 0;
    for (size_t i = 0; i < COUNT(changes_known) && count < EXPLAIN_CHANGES_MAX; i++) {
        struct explain_case changed = *s;
        char text[64];
        if (changes_known[i](&changed, text) && case_is_retried(&changed))
            snprintf(changes[count++].text, sizeof changes->text, "with %s it would be retried", text);
    }
    return count;
}

/* Finds the first pair of changes that leads to a retry. */
static size_t find_pair_of_changes(struct explain_change *change, const struct explain_case *s)
{
    for (size_t i = 0; i < COUNT(changes_known); i++)
        for (size_t j = i + 1; j < COUNT(changes_known); j++) {
            struct explain_case changed = *s;
            char one[64], other[64];
            if (!changes_known[i](&changed, one) || !changes_known[j](&changed, other) || !case_is_retried(&changed))
                continue;
            snprintf(change->text, sizeof change->text, "with %s and %s it would be retried", one, other);
            return 1;
        }
    return 0;
}

/* For a case that is retried: finds the condition without which it would not be. */
static size_t find_conditions(struct explain_change *changes, const struct explain_case *s)
{
    static const char *const names[] = {[BIDE_UNSAFE] = "",
                                        [BIDE_IDEMPOTENT] = "an unsafe method (POST)",
                                        [BIDE_SAFE] = "an unsafe method (POST)",
                                        [BIDE_KEYED] = "no idempotency key"};
    struct explain_case unsafe = *s;
    unsafe.request.safety = BIDE_UNSAFE;
    if (s->request.safety == BIDE_UNSAFE || case_is_retried(&unsafe))
        return 0;
    snprintf(changes[0].text, sizeof changes->text, "with %s it would not be retried", names[s->request.safety]);
    return 1;
}

size_t explain_changes(struct explain_change changes[EXPLAIN_CHANGES_MAX], const struct explain_case *s)
{
    if (s->outcome.kind == BIDE_KIND_OK)
        return 0;
    if (case_is_retried(s))
        return find_conditions(changes, s);
    size_t count = find_single_changes(changes, s);
    return count > 0 ? count : find_pair_of_changes(changes, s);
}

/* ---- classes of failure ---- */

const struct explain_column explain_columns[EXPLAIN_COLUMNS] = {
    {BIDE_SAFE, BIDE_EVIDENCE_NOT_SENT},   {BIDE_SAFE, BIDE_EVIDENCE_UNKNOWN},   {BIDE_SAFE, BIDE_EVIDENCE_ANSWERED},
    {BIDE_KEYED, BIDE_EVIDENCE_NOT_SENT},  {BIDE_KEYED, BIDE_EVIDENCE_UNKNOWN},  {BIDE_KEYED, BIDE_EVIDENCE_ANSWERED},
    {BIDE_UNSAFE, BIDE_EVIDENCE_NOT_SENT}, {BIDE_UNSAFE, BIDE_EVIDENCE_UNKNOWN}, {BIDE_UNSAFE, BIDE_EVIDENCE_ANSWERED},
};

struct failure {
    const char *name, *examples;
    struct bide_outcome outcome;
    int status; /* of HTTP, which decides kind and flags of the outcome; 0: none */
};

static const struct failure failures[EXPLAIN_CLASSES] = {
    {"transient", "500 502 504, reset", {.kind = BIDE_KIND_TRANSIENT}, 0},
    {"unavailable", "503", {.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_UNAVAILABLE}, 0},
    {"throttled", "429", {.kind = BIDE_KIND_THROTTLED}, 0},
    {"throttled, hint 2s", "429 + Retry-After", {.kind = BIDE_KIND_THROTTLED, .hint = {BIDE_HINT_WAIT, 2 * BIDE_S}}, 0},
    {"conflict", "ABORTED", {.kind = BIDE_KIND_CONFLICT}, 0},
    {"still running", "409", {.kind = BIDE_KIND_PERMANENT, .flags = BIDE_FLAG_KEY_409}, 0},
    {"permanent", "400 401 403 404", {.kind = BIDE_KIND_PERMANENT}, 0},
    {"cancelled", "by the caller", {.kind = BIDE_KIND_CANCELLED}, 0},
};

static const struct failure statuses[EXPLAIN_STATUSES] = {
    {"reset, timeout", "no response", {.kind = BIDE_KIND_TRANSIENT}, 0},
    {"500", "internal server error", {0}, 500},
    {"502", "bad gateway", {0}, 502},
    {"503", "service unavailable", {0}, 503},
    {"504", "gateway timeout", {0}, 504},
    {"429", "too many requests", {0}, 429},
    {"429, hint 2s", "429 + Retry-After", {.hint = {BIDE_HINT_WAIT, 2 * BIDE_S}}, 429},
    {"409", "conflict", {0}, 409},
    {"408", "request timeout", {0}, 408},
    {"404", "not found", {0}, 404},
    {"400", "bad request", {0}, 400},
    {"cancelled", "by the caller", {.kind = BIDE_KIND_CANCELLED}, 0},
};

static struct bide_outcome failure_outcome(const struct failure *failure, const struct bide_rules *rules)
{
    struct bide_outcome outcome = failure->outcome;
    if (failure->status > 0)
        outcome = bide_classify_http(failure->status, rules);
    outcome.hint = failure->outcome.hint;
    return outcome;
}

static void class_predict(struct explain_class *class, const struct conf_pair *pair, const struct bide_outcome *outcome,
                          uint64_t seed)
{
    for (size_t i = 0; i < EXPLAIN_COLUMNS; i++) {
        struct explain_case s = {.pair = *pair, .outcome = *outcome, .attempt = 1};
        s.request = (struct bide_request){.safety = explain_columns[i].safety, .seed = seed};
        s.outcome.evidence = explain_columns[i].evidence;
        explain_dry_run(&class->cell[i], &s);
    }
}

/* ---- exit statuses ---- */

struct exit_rows {
    int32_t number[EXPLAIN_EXITS_MAX]; /* in ascending order */
    size_t count;
};

static void exit_rows_add(struct exit_rows *rows, int32_t number)
{
    size_t at = 0;
    while (at < rows->count && rows->number[at] < number)
        at++;
    if (number == 0 || rows->count == EXPLAIN_EXITS_MAX || (at < rows->count && rows->number[at] == number))
        return;
    memmove(&rows->number[at + 1], &rows->number[at], (rows->count - at) * sizeof *rows->number);
    rows->number[at] = number;
    rows->count++;
}

/* General failure, usage, temporary failure (sysexits.h), timeout(1), command not found; then the ends of each range of
 * the lists. */
static void exit_rows_choose(struct exit_rows *rows, const struct conf_rules *rules)
{
    static const int32_t common[] = {1, 64, 75, 124, 127};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        exit_rows_add(rows, common[i]);
    for (size_t i = 0; i < rules->count; i++) {
        exit_rows_add(rows, rules->rule[i].first);
        exit_rows_add(rows, rules->rule[i].last);
    }
}

static size_t explain_exits(struct explain_class *classes, const struct conf_policy *policy, uint64_t seed)
{
    struct bide_rules space;
    const struct bide_rules *rules = conf_rules_for_engine(&policy->exits, &space);
    struct exit_rows rows = {.count = 0};
    if (rules == NULL)
        return 0;
    exit_rows_choose(&rows, &policy->exits);
    for (size_t i = 0; i < rows.count; i++) {
        struct bide_outcome outcome = bide_classify_exit(rows.number[i], rules);
        snprintf(classes[i].name, sizeof classes[i].name, "exit %d", (int)rows.number[i]);
        classes[i].examples = "exit status";
        class_predict(&classes[i], &policy->pair, &outcome, seed);
    }
    return rows.count;
}

size_t explain_classes(struct explain_class classes[EXPLAIN_ROWS_MAX], const struct conf_policy *policy, uint64_t seed)
{
    struct bide_rules space;
    const struct bide_rules *rules = conf_rules_for_engine(&policy->status, &space);
    const struct failure *rows = rules != NULL ? statuses : failures;
    size_t count = rules != NULL ? EXPLAIN_STATUSES : EXPLAIN_CLASSES;
    for (size_t i = 0; i < count; i++) {
        struct bide_outcome outcome = failure_outcome(&rows[i], rules);
        snprintf(classes[i].name, sizeof classes[i].name, "%s", rows[i].name);
        classes[i].examples = rows[i].examples;
        class_predict(&classes[i], &policy->pair, &outcome, seed);
    }
    return count + explain_exits(classes + count, policy, seed);
}
