/* finding.c - the checks of the policy linter, one function each, and their table. See finding.h for the model and
 * check.h for the form of a check.
 *
 * Context: no deadline, no attempt timeout and no budget are warnings for a service, which has callers that wait and
 * siblings that retry at the same time. The presets `command` and `transfer` are for one command or one download that a
 * person or a script waits for and can interrupt; they have none of the three by design. In a policy that extends them
 * and does not change the value, the finding is a note, unless traffic is given (--rate, --clients, --layers,
 * --shared): then there are many callers, and it is a warning again. */
#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amplify.h"
#include "core/saturate.h"

#define NONE          CHECK_NONE
#define ATTEMPTS_MANY 6u              /* common advice is 3 to 6 */
#define CAP_LONG_NS   (120 * BIDE_S)  /* common advice is 30 to 120 s */
#define BASE_SHORT_NS BIDE_MS         /* a shorter wait does not relieve a server */
#define RATE_SHARED   100.0           /* requests per second above which a shared budget is advised */
#define FILL_LONG_S   600.0           /* a budget that binds only after this time protects nothing */
#define SLOW_GROWTH   1500u           /* multiplier in thousandths */
#define WAIT_SHORT_NS (25 * BIDE_MS)  /* a server in trouble needs longer, and so does a connection that must recover */
#define WAITS_FEW_NS  (100 * BIDE_MS) /* ... also if they grow, but end before they add up to this */
#define JITTER_LITTLE 10              /* a window narrower than this fraction of its end is hardly random */
#define HINT_SHORT_NS (5 * BIDE_S)    /* servers commonly send 1 to 120 s */
#define OPEN_LONG_NS  (60 * BIDE_S)   /* a breaker that opens for longer outlasts common outages ... */
#define OPEN_MAX_NS   (300 * BIDE_S)  /* ... and after repeated openings, too */
#define HEDGE_SHORT   (10 * BIDE_MS)  /* most responses of a remote server take longer */
#define QUANTILE_LOW  900u            /* in permille: more than a tenth of all calls is hedged */
#define LAYERS_COMMON 3u              /* number of layers in the example for layer = any */

/* All keys that the check requires, whatever the previous kind of budget. */
#define TOKENS                                                                                                         \
    "budget.kind = tokens, budget.capacity = 10, budget.earn_success = 0.1; and 1 for budget.cost, "                   \
    "budget.cost_throttled, budget.cost_timeout"

/* ---- texts ---- */

void finding_set_text(struct explain_finding *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
}

void finding_set_fix(struct explain_finding *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->fix, sizeof f->fix, format, arguments);
    va_end(arguments);
}

const char *finding_format_time(struct time_text *time_text, int64_t ns)
{
    return text_duration_format_short(time_text->text, ns);
}

#define format_time finding_format_time

/* ---- context ---- */

bool policy_retries(const struct check_input *v)
{
    return v->p->attempts_max > 1 && v->p->layer != BIDE_LAYER_NEVER;
}

bool key_is_inherited(const struct check_input *v, const char *key)
{
    struct conf_pair preset;
    if (v->subject->policy == NULL)
        return false;
    conf_pair_init(&preset, v->subject->policy->preset);
    return conf_field_equal(conf_field_find(key, strlen(key)), v->subject->pair, &preset);
}

/* Returns NOTE if the preset is for a single call and chose this value by design, else WARNING. */
static int severity_in_context(const struct check_input *v, const char *key)
{
    const struct explain_subject *s = v->subject;
    bool single =
        s->policy != NULL && (s->policy->preset == BIDE_PRESET_COMMAND || s->policy->preset == BIDE_PRESET_TRANSFER);
    bool fleet = s->rate_per_minute_milli > 0 || s->clients > 0 || s->layers > 1 || s->shared;
    return single && !fleet && key_is_inherited(v, key) ? EXPLAIN_NOTE : EXPLAIN_WARNING;
}

/* ---- invalid policies ---- */

static int check_cap_below_base(const struct check_input *v)
{
    struct time_text cap, base;
    if (v->p->cap_ns >= v->p->base_ns)
        return NONE;
    finding_set_text(v->f, "the cap of %s is below the base of %s", format_time(&cap, v->p->cap_ns),
                     format_time(&base, v->p->base_ns));
    finding_set_fix(v->f, "cap = %s or more", base.text);
    return EXPLAIN_ERROR;
}

static int check_invalid(const struct check_input *v)
{
    struct bide_problem problem;
    bool wrong = bide_policy_check(v->p, &problem) != BIDE_OK || bide_target_config_check(v->t, &problem) != BIDE_OK;
    if (!wrong || v->p->cap_ns < v->p->base_ns)
        return NONE;
    finding_set_text(v->f, "%s is %lld, which the engine rejects", problem.field, (long long)problem.value);
    finding_set_fix(v->f, "%s", problem.want);
    return EXPLAIN_ERROR;
}

/* ---- attempts and waits ---- */

static int check_no_retry(const struct check_input *v)
{
    bool one = v->p->attempts_max == 1;
    if (policy_retries(v))
        return NONE;
    finding_set_text(v->f, "nothing is retried: %s", one ? "there is only one attempt" : "the layer rule is never");
    finding_set_fix(v->f, "%s", one ? "attempts = 3 or more" : "layer = outermost");
    return EXPLAIN_NOTE;
}

static int check_many_attempts(const struct check_input *v)
{
    if (!policy_retries(v) || v->p->attempts_max <= ATTEMPTS_MANY)
        return NONE;
    if (v->p->attempts_max == UINT32_MAX)
        finding_set_text(v->f, "attempts without a limit: in an outage %s the retries of a caller",
                         v->p->call_timeout_ns == BIDE_NEVER ? "nothing ends" : "only the deadline ends");
    else
        finding_set_text(v->f, "%u attempts: in an outage each caller sends %u times its load", v->p->attempts_max,
                         v->p->attempts_max);
    finding_set_fix(v->f, "attempts = 3 to %u; put work that must not be lost into a queue", ATTEMPTS_MANY);
    return EXPLAIN_WARNING;
}

static int check_no_wait(const struct check_input *v)
{
    struct time_text base;
    if (!policy_retries(v))
        return NONE;
    if (v->p->backoff == BIDE_BACKOFF_NONE)
        finding_set_text(v->f, "retries start at once, without a wait");
    else if (v->p->base_ns < BASE_SHORT_NS)
        finding_set_text(v->f, "the base of %s is too short to relieve a server", format_time(&base, v->p->base_ns));
    else
        return NONE;
    finding_set_fix(v->f, "backoff = exponential with a base of 100ms to 1s");
    return EXPLAIN_WARNING;
}

/* Waits are too short if they begin short and either stay short, or end before they have grown. */
static int check_short_waits(const struct check_input *v)
{
    const struct explain_schedule *s = v->schedule;
    struct time_text all;
    int64_t longest_ns = 0;
    if (!policy_retries(v) || v->p->backoff == BIDE_BACKOFF_NONE || v->p->base_ns < BASE_SHORT_NS)
        return NONE;
    for (uint32_t i = 0; i < s->waits; i++)
        longest_ns = core_max(longest_ns, s->wait[i].window.hi_ns);
    if (v->p->base_ns >= WAIT_SHORT_NS || (longest_ns >= WAIT_SHORT_NS && s->waits_longest_ns >= WAITS_FEW_NS))
        return NONE;
    if (s->waits_longest_ns < WAITS_FEW_NS)
        finding_set_text(v->f, "the waits last at most %s together: retries hammer a server that needs time to recover",
                         format_time(&all, s->waits_longest_ns));
    else
        finding_set_text(v->f, "no wait is longer than %s: retries hammer a server that needs time to recover",
                         format_time(&all, longest_ns));
    finding_set_fix(v->f, "base = 100ms to 1s, and a cap of several seconds");
    return EXPLAIN_WARNING;
}

/* Growth has an effect from the second wait on. */
static int check_no_growth(const struct check_input *v)
{
    if (!policy_retries(v) || v->p->attempts_max < 3 || v->p->backoff == BIDE_BACKOFF_NONE)
        return NONE;
    bool fixed = v->p->backoff == BIDE_BACKOFF_FIXED || v->p->cap_ns == v->p->base_ns;
    bool linear = v->p->backoff == BIDE_BACKOFF_LINEAR;
    bool slow = v->p->backoff == BIDE_BACKOFF_EXPONENTIAL && v->p->multiplier_milli < SLOW_GROWTH;
    bool own = v->p->jitter == BIDE_JITTER_DECORRELATED || v->p->jitter == BIDE_JITTER_DECORRELATED_AWS;
    if (!fixed && (own || (!linear && !slow)))
        return NONE;
    finding_set_text(v->f, "the wait %s: a long outage gets as many requests per second as a short one",
                     fixed ? "does not grow" : "grows slowly");
    finding_set_fix(v->f, "backoff = exponential, multiplier = 2x, and a cap above the base");
    return fixed ? EXPLAIN_WARNING : EXPLAIN_NOTE;
}

static int check_no_jitter(const struct check_input *v)
{
    if (!policy_retries(v) || v->p->jitter != BIDE_JITTER_NONE || v->p->backoff == BIDE_BACKOFF_NONE)
        return NONE;
    finding_set_text(v->f, "no jitter: callers that fail together retry together, every time (thundering herd)");
    finding_set_fix(v->f, "jitter = full");
    return EXPLAIN_WARNING;
}

static bool window_is_narrow(struct bide_range window)
{
    return window.hi_ns > 0 && window.hi_ns - window.lo_ns < window.hi_ns / JITTER_LITTLE;
}

/* Formats both ends of a narrow window with as many digits as they need to differ. */
static void format_window(struct time_text ends[2], struct bide_range window)
{
    format_time(&ends[0], window.lo_ns);
    format_time(&ends[1], window.hi_ns);
    if (strcmp(ends[0].text, ends[1].text) != 0)
        return;
    text_duration_format(ends[0].text, window.lo_ns);
    text_duration_format(ends[1].text, window.hi_ns);
}

static int check_little_jitter(const struct check_input *v)
{
    const struct explain_schedule *s = v->schedule;
    struct time_text ends[2];
    bool narrow = policy_retries(v) && v->p->jitter != BIDE_JITTER_NONE && v->p->backoff != BIDE_BACKOFF_NONE;
    for (uint32_t i = 0; i < s->waits && narrow; i++)
        narrow = window_is_narrow(s->wait[i].window);
    if (!narrow)
        return NONE;
    format_window(ends, s->wait[0].window);
    if (s->wait[0].window.lo_ns == s->wait[0].window.hi_ns)
        finding_set_text(
            v->f, "no jitter in effect: the first wait is always %s, so callers that fail together retry together",
            ends[0].text);
    else
        finding_set_text(v->f,
                         "hardly any jitter: the first wait is %s to %s, so callers that fail together retry together",
                         ends[0].text, ends[1].text);
    finding_set_fix(v->f, "jitter = full, or a window of at least half of the wait");
    return EXPLAIN_WARNING;
}

static int check_lumped_jitter(const struct check_input *v)
{
    struct time_text cap;
    if (!policy_retries(v) || v->p->jitter != BIDE_JITTER_DECORRELATED_AWS)
        return NONE;
    finding_set_text(v->f, "decorrelated_aws caps the drawn value: many waits are exactly the cap of %s",
                     format_time(&cap, v->p->cap_ns));
    finding_set_fix(v->f, "jitter = decorrelated, which caps the window instead");
    return EXPLAIN_NOTE;
}

static int check_jitter_past_cap(const struct check_input *v)
{
    struct time_text cap;
    if (!v->p->jitter_past_cap || v->p->jitter != BIDE_JITTER_PROPORTIONAL || v->p->jitter_hi_permille <= 1000)
        return NONE;
    finding_set_text(v->f, "jitter may exceed the cap of %s by %u.%u %%", format_time(&cap, v->p->cap_ns),
                     (v->p->jitter_hi_permille - 1000) / 10, v->p->jitter_hi_permille % 10);
    finding_set_fix(v->f, "jitter_hi = 100%% and jitter_past_cap = no, unless it must equal gRPC");
    return EXPLAIN_NOTE;
}

static int check_long_cap(const struct check_input *v)
{
    struct time_text cap;
    if (!policy_retries(v) || v->p->cap_ns <= CAP_LONG_NS)
        return NONE;
    finding_set_text(v->f, "the cap of %s is longer than callers wait", format_time(&cap, v->p->cap_ns));
    finding_set_fix(v->f, "cap = 30s to 120s");
    return EXPLAIN_WARNING;
}

/* ---- time ---- */

static int check_no_deadline(const struct check_input *v)
{
    struct time_text worst;
    int64_t attempts_ns = core_product(v->schedule->timeout_ns, v->schedule->attempts);
    if (v->p->call_timeout_ns != BIDE_NEVER)
        return NONE;
    if (v->schedule->worst_without_deadline_ns == BIDE_NEVER)
        finding_set_text(v->f, "no deadline: nothing ends a call whose attempt hangs");
    else if (v->p->waits_max_ns != BIDE_NEVER)
        finding_set_text(v->f, "no deadline: a call may take %s if a server sends hints",
                         format_time(&worst, core_sum(attempts_ns, v->p->waits_max_ns)));
    else
        finding_set_text(v->f, "no deadline: a call may take %s, and longer if a server sends hints",
                         format_time(&worst, v->schedule->worst_without_deadline_ns));
    finding_set_fix(v->f, "deadline = the time after which the result is useless");
    return severity_in_context(v, "deadline");
}

static int check_no_attempt_timeout(const struct check_input *v)
{
    if (v->p->attempt_timeout_ns != BIDE_NEVER || !policy_retries(v))
        return NONE;
    finding_set_text(v->f, "no attempt timeout: a first attempt that hangs leaves no %s for a second",
                     v->p->call_timeout_ns == BIDE_NEVER ? "chance" : "time");
    finding_set_fix(v->f, "attempt_timeout = a little above the slowest normal response");
    return severity_in_context(v, "attempt_timeout");
}

static int check_deadline_below_timeout(const struct check_input *v)
{
    struct time_text deadline, timeout;
    if (!policy_retries(v) || v->p->attempt_timeout_ns == BIDE_NEVER ||
        v->p->attempt_timeout_ns < v->p->call_timeout_ns)
        return NONE;
    finding_set_text(
        v->f, "the deadline of %s does not exceed the attempt timeout of %s: after a slow attempt there is no retry",
        format_time(&deadline, v->p->call_timeout_ns), format_time(&timeout, v->p->attempt_timeout_ns));
    finding_set_fix(v->f, "attempt_timeout well below the deadline");
    return EXPLAIN_WARNING;
}

static int check_deadline_below_backoff(const struct check_input *v)
{
    struct time_text deadline, wait;
    int64_t longest_ns = 0;
    if (!policy_retries(v) || v->p->call_timeout_ns == BIDE_NEVER)
        return NONE;
    for (uint32_t i = 0; i < v->schedule->waits; i++)
        longest_ns = core_max(longest_ns, v->schedule->wait[i].window.hi_ns);
    bool never = v->schedule->wait[0].window.lo_ns >= v->p->call_timeout_ns;
    if (longest_ns < v->p->call_timeout_ns)
        return NONE;
    finding_set_text(v->f, "the deadline of %s is shorter than one backoff of %s%s",
                     format_time(&deadline, v->p->call_timeout_ns), format_time(&wait, longest_ns),
                     never ? ": no retry can start" : "");
    finding_set_fix(v->f, "a longer deadline, or a smaller base or cap");
    return never ? EXPLAIN_ERROR : EXPLAIN_WARNING;
}

static int check_waits_max_below_backoff(const struct check_input *v)
{
    struct time_text most, all;
    const struct explain_schedule *s = v->schedule;
    if (!policy_retries(v) || s->waits_longest_ns <= s->waits_max_ns)
        return NONE;
    bool never = s->wait[0].window.lo_ns > s->waits_max_ns;
    finding_set_text(v->f, "waits_max of %s is shorter than all backoffs together, up to %s%s",
                     format_time(&most, s->waits_max_ns), format_time(&all, s->waits_longest_ns),
                     never ? ": no retry can start" : "");
    finding_set_fix(v->f, "a longer waits_max, fewer attempts, or a smaller base or cap");
    return never ? EXPLAIN_ERROR : EXPLAIN_NOTE;
}

static int check_binds_first(const struct check_input *v)
{
    const struct explain_schedule *s = v->schedule;
    struct time_text left;
    if (!policy_retries(v))
        return NONE;
    if (s->deadline_ns == BIDE_NEVER)
        finding_set_text(v->f, s->waits_longest_ns > s->waits_max_ns
                                   ? "attempts or waits_max bind: there is no deadline"
                                   : "attempts bind: there is no deadline");
    else if (explain_binds(s) == EXPLAIN_DEADLINE_BINDS)
        finding_set_text(v->f, "the deadline binds first: at most %u of %u attempts can start", s->attempts_best_case,
                         s->attempts);
    else if (explain_binds(s) == EXPLAIN_EITHER_BINDS)
        finding_set_text(
            v->f, "attempts bind if they fail quickly; if they time out, the deadline does, after attempt %u of %u",
            s->attempts_worst_case, s->attempts);
    else if (s->worst_without_deadline_ns > s->deadline_ns)
        finding_set_text(v->f, "attempts bind first: in the worst case all %u start, the last with %s left",
                         s->attempts, format_time(&left, s->deadline_ns - s->wait[s->waits - 1].latest_ns));
    else
        finding_set_text(v->f, "attempts bind first: in the worst case all %u end %s before the deadline", s->attempts,
                         format_time(&left, s->deadline_ns - s->worst_without_deadline_ns));
    return EXPLAIN_NOTE;
}

static int check_slo(const struct check_input *v)
{
    struct time_text retries_take, third, all;
    if (v->subject->slo_ns == 0)
        return NONE;
    struct explain_slo slo = explain_slo(v->schedule, v->subject->slo_ns);
    if (slo.fits)
        return NONE;
    if (slo.retries_ns == BIDE_NEVER)
        finding_set_text(v->f, "retries have no time limit: a third of an SLO of %s is %s",
                         format_time(&all, v->subject->slo_ns), format_time(&third, slo.third_ns));
    else
        finding_set_text(v->f, "retries take up to %s; a third of an SLO of %s is %s",
                         format_time(&retries_take, slo.retries_ns), format_time(&all, v->subject->slo_ns),
                         format_time(&third, slo.third_ns));
    if (v->p->attempt_timeout_ns == BIDE_NEVER)
        finding_set_fix(v->f, "set attempt_timeout, so that attempts end");
    else
        finding_set_fix(v->f, "attempts = %u%s", slo.attempts_that_fit,
                        slo.attempts_that_fit == 1 ? ", no retry, or shorter attempts" : "");
    return EXPLAIN_WARNING;
}

/* ---- hints ---- */

static int check_hints_ignored(const struct check_input *v)
{
    if (!policy_retries(v) || v->p->hint_rule != BIDE_HINT_RULE_IGNORE)
        return NONE;
    finding_set_text(v->f, "Retry-After and other hints are ignored: a server cannot ask for a pause");
    finding_set_fix(v->f, "hint_rule = floor");
    return EXPLAIN_WARNING;
}

/* The clamp rule limits the hint by our own backoff, which is jittered. */
static int check_hints_without_jitter(const struct check_input *v)
{
    bool exact = v->p->hint_rule == BIDE_HINT_RULE_EXACT || v->p->hint_rule == BIDE_HINT_RULE_PUSHBACK;
    if (!policy_retries(v) || !exact)
        return NONE;
    finding_set_text(v->f,
                     "hints get no jitter: callers with the same hint retry at the same instant (thundering herd)");
    finding_set_fix(v->f, "hint_rule = floor, which adds jitter");
    return EXPLAIN_NOTE;
}

/* Giving up on a long hint and giving up because it ends after the deadline have the same effect. */
static int check_hint_beyond_deadline(const struct check_input *v)
{
    struct time_text most, deadline;
    bool follows_hints = v->p->hint_rule != BIDE_HINT_RULE_IGNORE && v->p->hint_long != BIDE_HINT_LONG_GIVE_UP;
    if (!policy_retries(v) || !follows_hints || v->p->call_timeout_ns == BIDE_NEVER ||
        v->p->hint_max_ns < v->p->call_timeout_ns)
        return NONE;
    finding_set_text(v->f, "hint_max of %s exceeds the deadline of %s: hint_long never applies",
                     format_time(&most, v->p->hint_max_ns), format_time(&deadline, v->p->call_timeout_ns));
    finding_set_fix(v->f, "hint_max below the deadline");
    return EXPLAIN_NOTE;
}

/* With a deadline below hint_max, the deadline refuses such hints in any case. */
static int check_short_hint_max(const struct check_input *v)
{
    struct time_text most;
    bool gives_up = v->p->hint_long == BIDE_HINT_LONG_GIVE_UP;
    if (!policy_retries(v) || v->p->hint_rule == BIDE_HINT_RULE_IGNORE || v->p->hint_max_ns >= HINT_SHORT_NS ||
        v->p->hint_max_ns >= v->p->call_timeout_ns)
        return NONE;
    finding_set_text(v->f, "hint_max of %s: after an ordinary Retry-After of 5 or 30 seconds the call %s",
                     format_time(&most, v->p->hint_max_ns),
                     gives_up ? "gives up, without a retry" : "comes back before the server is ready");
    finding_set_fix(v->f, "hint_max = 60s or more; the deadline limits the wait anyway");
    return EXPLAIN_WARNING;
}

/* ---- idempotency ---- */

static int check_unsafe_repeat(const struct check_input *v)
{
    if (!policy_retries(v))
        return NONE;
    if (v->p->observe & BIDE_GATE_REPEAT) {
        finding_set_text(v->f, "the repeat gate only observes: a POST that may have run is repeated");
        finding_set_fix(v->f, "take repeat out of observe, and send an idempotency key");
        return EXPLAIN_WARNING;
    }
    if (v->t->trust == 0)
        return NONE;
    finding_set_text(v->f, "an unsafe request is repeated after %s%s%s: correct only if the server never executed it",
                     v->t->trust & BIDE_TRUST_THROTTLED ? "429" : "", v->t->trust == 3 ? " or " : "",
                     v->t->trust & BIDE_TRUST_UNAVAILABLE ? "503" : "");
    finding_set_fix(v->f, "trust = none, unless the server's documentation guarantees that");
    return EXPLAIN_NOTE;
}

static int check_observing(const struct check_input *v)
{
    uint32_t gates = (v->p->observe & ~(uint32_t)BIDE_GATE_REPEAT) | (v->t->observe & ~(uint32_t)BIDE_GATE_BUDGET);
    int length = 0;
    if (gates == 0)
        return NONE;
    char list[128] = "";
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        if (gates & 1u << i)
            length += snprintf(list + length, sizeof list - (size_t)length, "%s%s", length > 0 ? ", " : "",
                               bide_gate_label((enum bide_gate)(1u << i)));
    finding_set_text(v->f, "gates in observe mode, which refuse nothing: %s", list);
    finding_set_fix(v->f, "observe = none, once the counters are as expected");
    return EXPLAIN_NOTE;
}

/* ---- budget ---- */

static int check_no_budget(const struct check_input *v)
{
    bool observes = (v->t->observe & BIDE_GATE_BUDGET) != 0;
    if (!policy_retries(v) || (v->t->budget.kind != BIDE_BUDGET_NONE && !observes))
        return NONE;
    const char *what = observes ? "the budget only observes" : "no retry budget";
    if (v->p->attempts_max == UINT32_MAX)
        finding_set_text(v->f, "%s: when all calls fail, none of them has a limit of attempts", what);
    else
        finding_set_text(v->f, "%s: when all calls fail, all of them use all %u attempts", what, v->p->attempts_max);
    finding_set_fix(v->f, "%s", observes ? "take budget out of observe" : TOKENS);
    return observes ? EXPLAIN_WARNING : severity_in_context(v, "budget.kind");
}

static int check_budget_without_tokens(const struct check_input *v)
{
    if (!policy_retries(v) || v->t->budget.kind != BIDE_BUDGET_TOKENS || v->t->budget.capacity_milli > 0)
        return NONE;
    finding_set_text(v->f, "the budget holds no tokens: only the first of %u attempts is made", v->p->attempts_max);
    finding_set_fix(v->f, "budget.capacity = 10, or attempts = 1 if that is intended");
    return EXPLAIN_WARNING;
}

/* Returns the seconds of total failure until a full bucket is empty, with its income meanwhile; negative: never. */
static double seconds_to_bind(const struct check_input *v, double rate)
{
    const struct bide_budget_config *b = &v->t->budget;
    double cost = b->cost_milli + (double)b->cost_failure_milli, want = rate * (v->p->attempts_max - 1.0);
    double drain = want * cost - rate * b->earn_first_milli - b->refill_per_minute_milli / 60.0;
    return drain > 0 ? (b->capacity_milli - (double)b->threshold_milli) / drain : -1.0;
}

static int check_loose_tokens(const struct check_input *v)
{
    const struct bide_budget_config *b = &v->t->budget;
    double rate = explain_rate(v->subject), most = v->p->attempts_max - 1.0;
    if (b->cost_failure_milli == 0 && b->earn_first_milli >= most * b->cost_milli) {
        finding_set_text(v->f, "the budget never binds: each first attempt earns the cost of all its retries");
        finding_set_fix(v->f, "budget.earn_first = 0, and earn by success");
        return EXPLAIN_WARNING;
    }
    double seconds = rate > 0 ? seconds_to_bind(v, rate) : 0.0;
    if (seconds >= 0 && seconds <= FILL_LONG_S)
        return NONE;
    if (seconds < 0)
        finding_set_text(v->f, "the budget never binds at %g requests/s: its income exceeds the cost of all retries",
                         rate);
    else
        finding_set_text(v->f, "at %g requests/s the budget binds after %.0f s of total failure", rate, seconds);
    finding_set_fix(v->f, "a smaller budget.capacity%s", seconds < 0 ? " and budget.refill_per_minute" : "");
    return EXPLAIN_WARNING;
}

static int check_loose_window(const struct check_input *v)
{
    const struct bide_budget_config *b = &v->t->budget;
    double rate = explain_rate(v->subject), most = v->p->attempts_max - 1.0;
    double requests = rate * (double)b->window_ns / (double)BIDE_S;
    if (b->ratio_ppm / 1e6 >= most)
        finding_set_text(v->f, "the budget never binds: it allows every possible retry");
    else if (rate > 0 && requests < b->min_volume)
        finding_set_text(v->f,
                         "the budget never binds at %g requests/s: its window has %.1f requests and min_volume is %u",
                         rate, requests, b->min_volume);
    else if (rate > 0 && requests * b->ratio_ppm / 1e6 + b->reserve >= requests * most)
        finding_set_text(v->f, "the budget never binds at %g requests/s: its reserve of %u pays for all retries", rate,
                         b->reserve);
    else
        return NONE;
    finding_set_fix(v->f, "%s", b->ratio_ppm / 1e6 >= most ? "budget.ratio = 10%" : TOKENS);
    return EXPLAIN_WARNING;
}

static int check_budget_never_binds(const struct check_input *v)
{
    const struct bide_budget_config *b = &v->t->budget;
    if (!policy_retries(v) || v->t->observe & BIDE_GATE_BUDGET)
        return NONE;
    if (b->kind == BIDE_BUDGET_TOKENS && b->capacity_milli > 0)
        return check_loose_tokens(v);
    if (b->kind == BIDE_BUDGET_WINDOW)
        return check_loose_window(v);
    if (b->kind != BIDE_BUDGET_CONCURRENCY || b->ratio_ppm < 1000000)
        return NONE;
    finding_set_text(v->f, "the budget never binds: every call in flight may be in a retry");
    finding_set_fix(v->f, "budget.ratio = 20%%");
    return EXPLAIN_WARNING;
}

static int check_budget_earns_in_outage(const struct check_input *v)
{
    if (!policy_retries(v) || v->t->budget.kind != BIDE_BUDGET_TOKENS || v->t->budget.earn_first_milli == 0)
        return NONE;
    finding_set_text(v->f, "first attempts earn tokens even in an outage: an overloaded server may never recover");
    finding_set_fix(v->f, "budget.earn_first = 0, and earn by success");
    return EXPLAIN_NOTE;
}

/* A policy cannot fix this: a target is shared by the way a program opens it. With --shared the user says so. */
static int check_needs_sharing(const struct check_input *v)
{
    double rate = explain_rate(v->subject);
    if (!policy_retries(v) || rate <= RATE_SHARED || v->subject->shared)
        return NONE;
    finding_set_text(v->f, "%g requests/s: each process has its own budget, so n processes spend n budgets", rate);
    finding_set_fix(v->f, "bide run --shared, bide fetch --shared or bide_shared_open, for one budget per host (and "
                          "--shared here); for several hosts use a fleet, or divide the capacity by their number");
    return EXPLAIN_WARNING;
}

/* ---- breaker ---- */

static int check_no_breaker(const struct check_input *v)
{
    if (v->t->breaker.kind != BIDE_BREAKER_OFF)
        return NONE;
    finding_set_text(v->f, "no circuit breaker: first attempts continue throughout an outage");
    finding_set_fix(v->f, "breaker.kind = time_window");
    return EXPLAIN_NOTE;
}

/* Returns how many of the wanted retries the budget can pay during some seconds of total failure: from a full bucket
 * and its income meanwhile. */
static double paid_retries(const struct check_input *v, double seconds, double wanted)
{
    const struct bide_budget_config *b = &v->t->budget;
    double rate = explain_rate(v->subject), window = (double)b->window_ns / (double)BIDE_S, paid = wanted;
    double cost = (double)core_min(b->cost_milli, core_min(b->cost_throttled_milli, b->cost_timeout_milli));
    if (v->t->observe & BIDE_GATE_BUDGET)
        return wanted;
    cost += b->cost_failure_milli;
    double share = b->ratio_ppm / 1e6,
           earned = seconds * (rate * b->earn_first_milli + b->refill_per_minute_milli / 60.0);
    if (b->kind == BIDE_BUDGET_TOKENS && cost > 0)
        paid = floor((b->capacity_milli - (double)b->threshold_milli + earned) / cost);
    else if (b->kind == BIDE_BUDGET_WINDOW && rate * window >= b->min_volume)
        paid = ceil(seconds / window) * (rate * window * share + b->reserve);
    else if (b->kind == BIDE_BUDGET_CONCURRENCY && b->reserve == 0 && share < 1)
        paid = rate * seconds * share / (1 - share);
    return paid < wanted ? paid : wanted;
}

/* Every attempt is a vote, and a vote stays in the window for at most its length. */
static int check_breaker_never_opens(const struct check_input *v)
{
    const struct bide_breaker_config *b = &v->t->breaker;
    double seconds = (double)b->window_ns / (double)BIDE_S, firsts = explain_rate(v->subject) * seconds;
    double again = paid_retries(v, seconds, policy_retries(v) ? firsts * (v->p->attempts_max - 1.0) : 0);
    if (b->kind != BIDE_BREAKER_BY_TIME || firsts == 0 || firsts + again >= b->min_volume)
        return NONE;
    struct time_text window;
    finding_set_text(
        v->f,
        "the breaker never opens at %g requests/s: at most %.1f votes in %s, %.1f of them retries, and it needs %u",
        explain_rate(v->subject), firsts + again, format_time(&window, b->window_ns), again, b->min_volume);
    finding_set_fix(v->f, "a smaller breaker.min_volume, a longer breaker.window, or breaker.kind = consecutive");
    return EXPLAIN_WARNING;
}

static int check_breaker_needs_all_failures(const struct check_input *v)
{
    const struct bide_breaker_config *b = &v->t->breaker;
    bool ratio = b->kind == BIDE_BREAKER_BY_TIME || b->kind == BIDE_BREAKER_BY_COUNT;
    if (!ratio || b->ratio_permille < 1000)
        return NONE;
    finding_set_text(v->f, "a single success in its window keeps the breaker closed");
    finding_set_fix(v->f, "breaker.ratio = 50%%");
    return EXPLAIN_NOTE;
}

/* A window that may be judged by a single vote is the same as one failure in a row. */
static int check_breaker_opens_at_once(const struct check_input *v)
{
    const struct bide_breaker_config *b = &v->t->breaker;
    struct time_text open;
    bool run = b->kind == BIDE_BREAKER_BY_RUN;
    if (b->kind == BIDE_BREAKER_OFF || (run ? b->consecutive : b->min_volume) > 1)
        return NONE;
    finding_set_text(v->f, "a single failed attempt opens the breaker: all other calls are refused for %s",
                     format_time(&open, b->open_ns));
    finding_set_fix(v->f, run ? "breaker.consecutive = 5" : "breaker.min_volume = 10 or more");
    return EXPLAIN_WARNING;
}

static int check_breaker_open_long(const struct check_input *v)
{
    const struct bide_breaker_config *b = &v->t->breaker;
    struct time_text open;
    bool first = b->open_ns > OPEN_LONG_NS;
    if (b->kind == BIDE_BREAKER_OFF || (!first && b->open_max_ns <= OPEN_MAX_NS))
        return NONE;
    finding_set_text(v->f, "the breaker stays open for %s%s: calls are refused long after the server has recovered",
                     first ? "" : "up to ", format_time(&open, first ? b->open_ns : b->open_max_ns));
    finding_set_fix(v->f, "breaker.open = 1s, breaker.open_max = 10s: a probe is a single request");
    return EXPLAIN_WARNING;
}

/* ---- layers and hedges ---- */

static int check_layers_multiply(const struct check_input *v)
{
    uint32_t layers = v->subject->layers;
    if (!policy_retries(v) || layers < 2 || v->p->layer != BIDE_LAYER_ANY)
        return NONE;
    finding_set_text(v->f, "each of %u layers retries: %llu requests at the innermost layer for each request of a user",
                     layers, (unsigned long long)explain_requests_multiplied(v->p->attempts_max, layers));
    finding_set_fix(v->f, "layer = outermost: at most %llu",
                    1 + (unsigned long long)layers * (unsigned long long)(v->p->attempts_max - 1));
    return EXPLAIN_WARNING;
}

/* The number of layers is unknown, or 1; presets of other systems know no layers. */
static int check_layer_any(const struct check_input *v)
{
    if (!policy_retries(v) || v->subject->layers > 1 || v->p->layer != BIDE_LAYER_ANY || key_is_inherited(v, "layer"))
        return NONE;
    finding_set_text(v->f, "layer = any: if %u layers retry like this, %llu requests reach the innermost for each call",
                     LAYERS_COMMON, (unsigned long long)explain_requests_multiplied(v->p->attempts_max, LAYERS_COMMON));
    finding_set_fix(v->f, "layer = outermost, unless no other layer retries");
    return EXPLAIN_NOTE;
}

/* The first round has the first attempt and its hedges; hedges count as attempts. */
static uint32_t hedged_round(const struct check_input *v)
{
    return (uint32_t)core_min((int64_t)v->p->hedges_max + 1, v->p->attempts_max);
}

static int check_hedges_every_call(const struct check_input *v)
{
    struct time_text delay;
    uint32_t quantile = v->t->latency ? v->p->hedge_quantile_permille : 0, sent = hedged_round(v);
    bool paid = v->t->budget.kind != BIDE_BUDGET_NONE && !(v->t->observe & BIDE_GATE_BUDGET);
    const char *limit = paid ? ", until the budget is empty" : "";
    if (v->p->hedges_max == 0 || sent < 2 || quantile >= QUANTILE_LOW ||
        (quantile == 0 && v->p->hedge_delay_ns >= HEDGE_SHORT))
        return NONE;
    if (quantile > 0)
        finding_set_text(v->f, "hedge_quantile of %u.%u %%: %u of 100 calls are sent twice or more%s", quantile / 10,
                         quantile % 10, 100 - quantile / 10, limit);
    else
        finding_set_text(v->f, "hedges start after %s, before most responses: every call is sent %u times%s",
                         format_time(&delay, v->p->hedge_delay_ns), sent, limit);
    finding_set_fix(v->f, "hedge_delay = the time in which 95 %% of the responses arrive, or latency = yes with "
                          "hedge_quantile = 95%%");
    return EXPLAIN_WARNING;
}

static int check_hedges_without_budget(const struct check_input *v)
{
    bool free = v->t->budget.kind == BIDE_BUDGET_NONE || v->t->observe & BIDE_GATE_BUDGET;
    if (v->p->hedges_max == 0 || !free)
        return NONE;
    finding_set_text(v->f, "hedges without a budget: a slow server gets up to %u times its load", v->p->hedges_max + 1);
    finding_set_fix(v->f, "%s", TOKENS);
    return EXPLAIN_WARNING;
}

/* ---- table ---- */

static const struct check {
    const char *id;
    int (*run)(const struct check_input *check_input);
} checks[] = {
    {"cap-below-base", check_cap_below_base},
    {"invalid", check_invalid},
    {"no-retry", check_no_retry},
    {"many-attempts", check_many_attempts},
    {"no-wait", check_no_wait},
    {"short-waits", check_short_waits},
    {"no-growth", check_no_growth},
    {"no-jitter", check_no_jitter},
    {"little-jitter", check_little_jitter},
    {"jitter-piles-up-at-cap", check_lumped_jitter},
    {"jitter-past-cap", check_jitter_past_cap},
    {"long-cap", check_long_cap},
    {"no-deadline", check_no_deadline},
    {"no-attempt-timeout", check_no_attempt_timeout},
    {"deadline-below-timeout", check_deadline_below_timeout},
    {"deadline-below-backoff", check_deadline_below_backoff},
    {"waits-max-below-backoff", check_waits_max_below_backoff},
    {"slo", check_slo},
    {"hints-ignored", check_hints_ignored},
    {"hints-without-jitter", check_hints_without_jitter},
    {"hint-beyond-deadline", check_hint_beyond_deadline},
    {"short-hint-max", check_short_hint_max},
    {"lasting-failure-retried", check_lasting_failure_retried},
    {"contradicting-lists", check_contradicting_lists},
    {"temporary-failure-permanent", check_temporary_failure_permanent},
    {"temporary-failure-unlisted", check_temporary_failure_unlisted},
    {"unsafe-repeat", check_unsafe_repeat},
    {"observing", check_observing},
    {"no-budget", check_no_budget},
    {"budget-without-tokens", check_budget_without_tokens},
    {"budget-never-binds", check_budget_never_binds},
    {"budget-earns-in-outage", check_budget_earns_in_outage},
    {"needs-sharing", check_needs_sharing},
    {"no-breaker", check_no_breaker},
    {"breaker-never-opens", check_breaker_never_opens},
    {"breaker-needs-all-failures", check_breaker_needs_all_failures},
    {"breaker-opens-at-once", check_breaker_opens_at_once},
    {"breaker-open-long", check_breaker_open_long},
    {"layer-any", check_layer_any},
    {"layers-multiply", check_layers_multiply},
    {"hedges-without-budget", check_hedges_without_budget},
    {"hedges-every-call", check_hedges_every_call},
    {"connect-above-attempt", check_connect_above_attempt},
    {"key-without-effect", check_key_without_effect},
    {"wait-for-ready", check_wait_for_ready},
    {"binds-first", check_binds_first},
};
#define CHECKS (sizeof checks / sizeof *checks)
_Static_assert(CHECKS <= EXPLAIN_FINDINGS_MAX, "each check finds at most one thing");

const char *explain_finding_id(size_t i)
{
    return i < CHECKS ? checks[i].id : NULL;
}

/* Inserts a finding: the most severe first, equally severe findings in the order of the checks. */
static void findings_insert(struct explain_findings *all, const struct explain_finding *found)
{
    size_t at = all->count++;
    for (; at > 0 && all->finding[at - 1].severity < found->severity; at--)
        all->finding[at] = all->finding[at - 1];
    all->finding[at] = *found;
}

void explain_run_checks(struct explain_findings *all, const struct explain_subject *subject,
                        const struct explain_schedule *schedule)
{
    all->count = 0;
    for (size_t i = 0; i < CHECKS; i++) {
        struct explain_finding found = {.id = checks[i].id};
        struct check_input check_input = {subject, schedule, &subject->pair->policy, &subject->pair->target, &found};
        int severity = checks[i].run(&check_input);
        if (severity == NONE)
            continue;
        found.severity = (enum explain_severity)severity;
        findings_insert(all, &found);
    }
}

bool explain_has_warnings(const struct explain_findings *all)
{
    return all->count > 0 && all->finding[0].severity > EXPLAIN_NOTE;
}

const char *explain_severity_label(enum explain_severity severity)
{
    static const char *const labels[] = {"note", "warning", "error"};
    return labels[severity];
}
