/* schedule.c - windows, means and sums of the waits if every attempt fails. See schedule.h for the model. */
#include "schedule.h"

#include <bide/call.h>

#include "core/saturate.h"

#define STEPS  64u     /* a decorrelated wait at most triples, so windows and means are constant after this many */
#define SEEDS  10000u  /* draws of each wait, for the mean of decorrelated jitter */
#define CALLS  2000u   /* calls that are executed for a mean, if a limit may bind ... */
#define EFFORT 500000u /* ... as long as they make no more attempts than this together; a call is cut there */

/* ---- windows ---- */

/* Returns the union of the windows after any previous wait in `before`. A window grows monotonically with the previous
 * wait, so the two ends of its range suffice. */
static struct bide_range window_after(const struct bide_policy *policy, struct bide_step step, struct bide_range before)
{
    step.previous_ns = before.lo_ns;
    struct bide_range low = bide_backoff_window(policy, step);
    step.previous_ns = before.hi_ns;
    struct bide_range high = bide_backoff_window(policy, step);
    return (struct bide_range){core_min(low.lo_ns, high.lo_ns), core_max(low.hi_ns, high.hi_ns)};
}

struct bide_range explain_window(const struct bide_policy *policy, struct bide_step step)
{
    struct bide_range before = {0, 0};
    for (uint32_t i = 0; i < step.step && i < STEPS; i++)
        before = window_after(policy, (struct bide_step){.step = i}, before);
    return window_after(policy, step, before);
}

/* ---- waits ---- */

static int64_t range_middle(struct bide_range range)
{
    return range.lo_ns + (range.hi_ns - range.lo_ns) / 2;
}

static bool is_decorrelated(const struct bide_policy *p)
{
    bool kind = p->jitter == BIDE_JITTER_DECORRELATED || p->jitter == BIDE_JITTER_DECORRELATED_AWS;
    return kind && p->backoff != BIDE_BACKOFF_NONE;
}

static void schedule_plain_waits(struct explain_schedule *s, const struct bide_policy *p)
{
    for (uint32_t i = 0; i < s->waits; i++) {
        struct bide_range w = bide_backoff_window(p, (struct bide_step){.step = i});
        s->wait[i].window = w;
        s->wait[i].mean_ns = range_middle(w);
    }
}

/* Each window depends on the previous wait, so the mean of a wait is that over many seeds: of the middle of each seed's
 * window or, in the literal AWS form, which caps the drawn value, of the wait that it draws. */
static void schedule_decorrelated_waits(struct explain_schedule *s, const struct bide_policy *p)
{
    int64_t drawn_ns[SEEDS] = {0};
    struct bide_range window = {0, 0};
    double mean_ns = 0;
    for (uint32_t i = 0; i < s->waits; i++) {
        if (i < STEPS) {
            window = window_after(p, (struct bide_step){.step = i}, window);
            mean_ns = 0;
            for (uint32_t seed = 0; seed < SEEDS; seed++) {
                struct bide_step step = {.step = i, .previous_ns = drawn_ns[seed]};
                drawn_ns[seed] = bide_backoff_wait(p, step, seed + 1, i + 1);
                bool is_cut = p->jitter == BIDE_JITTER_DECORRELATED_AWS;
                mean_ns += (double)(is_cut ? drawn_ns[seed] : range_middle(bide_backoff_window(p, step))) / SEEDS;
            }
        }
        s->wait[i].window = window;
        s->wait[i].mean_ns = (int64_t)(mean_ns + 0.5);
    }
}

/* ---- instants ---- */

static void schedule_place_attempts(struct explain_schedule *s)
{
    int64_t soonest = 0, latest = 0;
    for (uint32_t i = 0; i < s->waits; i++) {
        struct explain_wait *w = &s->wait[i];
        soonest = core_sum(soonest, w->window.lo_ns);
        latest = core_sum(core_sum(latest, s->timeout_ns), w->window.hi_ns);
        *w = (struct explain_wait){i + 2, w->window, w->mean_ns, soonest, latest};
        s->waits_mean_ns = core_sum(s->waits_mean_ns, w->mean_ns);
        s->waits_worst_ns = core_sum(s->waits_worst_ns, w->window.hi_ns);
    }
}

/* Unlisted waits are taken to equal the last listed wait. */
static void schedule_add_unlisted(struct explain_schedule *s)
{
    if (s->unlisted == 0)
        return;
    const struct explain_wait *last = &s->wait[s->waits - 1];
    s->waits_mean_ns = core_sum(s->waits_mean_ns, core_product(last->mean_ns, s->unlisted));
    s->waits_worst_ns = core_sum(s->waits_worst_ns, core_product(last->window.hi_ns, s->unlisted));
}

/* ---- limits ---- */

/* A call whose attempts all fail after the same time, without gates. */
struct failing_call {
    uint32_t attempts;
    int64_t waits_ns, total_ns;
};

static struct failing_call call_execute(const struct bide_policy *p, int64_t attempt_ns, uint64_t seed)
{
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
    const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    struct failing_call f = {0};
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, p, BIDE_NO_TARGET, &request, 0);
    while (v.action == BIDE_ACTION_START && f.attempts < EFFORT) {
        f.attempts = v.attempt;
        f.total_ns = core_min(core_sum(f.total_ns, attempt_ns), v.attempt_deadline_ns);
        v = bide_call_outcome(&call, v.attempt, &failed, f.total_ns);
        if (v.action == BIDE_ACTION_WAIT) {
            f.waits_ns = core_sum(f.waits_ns, v.wake_ns - f.total_ns);
            f.total_ns = v.wake_ns;
            v = bide_call_wake(&call, f.total_ns);
        }
    }
    return f;
}

/* Fewer if each call makes very many attempts. */
uint32_t explain_seeds(const struct bide_policy *p)
{
    if (p->attempts_max <= EFFORT / CALLS)
        return CALLS;
    return p->attempts_max < EFFORT ? EFFORT / p->attempts_max : 1;
}

static struct failing_call call_mean(const struct bide_policy *p, int64_t attempt_ns)
{
    uint32_t calls = explain_seeds(p);
    double waits_ns = 0, total_ns = 0;
    for (uint32_t seed = 1; seed <= calls; seed++) {
        struct failing_call f = call_execute(p, attempt_ns, seed);
        waits_ns += (double)f.waits_ns / calls;
        total_ns += (double)f.total_ns / calls;
    }
    return (struct failing_call){.waits_ns = (int64_t)waits_ns, .total_ns = (int64_t)total_ns};
}

static void schedule_limit_waits(struct explain_schedule *s, const struct bide_policy *p)
{
    s->waits_longest_ns = s->waits_worst_ns;
    if (!explain_limits_bind(s))
        return;
    s->waits_worst_ns = core_min(s->waits_max_ns, s->deadline_ns);
    s->waits_mean_ns = call_mean(p, 0).waits_ns;
}

bool explain_limits_bind(const struct explain_schedule *s)
{
    return s->waits_longest_ns > core_min(s->waits_max_ns, s->deadline_ns);
}

uint32_t explain_attempts_made(const struct bide_policy *policy, uint64_t seed)
{
    return call_execute(policy, 0, seed).attempts;
}

/* Returns how many unlisted attempts start before the deadline if they follow each other after `every_ns`. */
static uint32_t unlisted_before_deadline(const struct explain_schedule *s, int64_t last_ns, int64_t every_ns)
{
    if (s->deadline_ns == BIDE_NEVER)
        return s->unlisted;
    if (last_ns >= s->deadline_ns)
        return 0;
    return every_ns == 0 ? s->unlisted : (uint32_t)core_min(s->unlisted, (s->deadline_ns - 1 - last_ns) / every_ns);
}

/* Returns 1 if a last wait allows one more attempt, after an attempt that failed at this instant and was the last whose
 * successor would start before the deadline. */
static uint32_t last_wait_adds(const struct bide_policy *p, uint32_t started, int64_t failed_ns)
{
    if (!p->last_wait || started >= p->attempts_max || p->call_timeout_ns == BIDE_NEVER ||
        failed_ns >= p->call_timeout_ns)
        return 0;
    int64_t needs_ns = p->attempt_min_ns > 0 ? p->attempt_min_ns : p->connect_timeout_ns;
    int64_t left_ns = p->call_timeout_ns - failed_ns - (needs_ns == BIDE_NEVER ? 1 : needs_ns);
    return left_ns >= p->base_ns;
}

/* The first attempt always starts. */
static void schedule_count_starts(struct explain_schedule *s, const struct bide_policy *p)
{
    int64_t soonest_ns = 0, latest_ns = 0; /* of the last that starts before the deadline */
    s->attempts_worst_case = s->attempts_best_case = 1;
    for (uint32_t i = 0; i < s->waits; i++) {
        bool late = s->deadline_ns == BIDE_NEVER || s->wait[i].latest_ns < s->deadline_ns;
        bool soon = s->deadline_ns == BIDE_NEVER || s->wait[i].earliest_ns < s->deadline_ns;
        latest_ns = late ? s->wait[i].latest_ns : latest_ns;
        soonest_ns = soon ? s->wait[i].earliest_ns : soonest_ns;
        s->attempts_worst_case += late;
        s->attempts_best_case += soon;
    }
    if (s->unlisted == 0) {
        s->attempts_worst_case += last_wait_adds(p, s->attempts_worst_case, core_sum(latest_ns, s->timeout_ns));
        s->attempts_best_case += last_wait_adds(p, s->attempts_best_case, soonest_ns);
        return;
    }
    const struct explain_wait *last = &s->wait[s->waits - 1];
    s->attempts_worst_case += unlisted_before_deadline(s, last->latest_ns, core_sum(last->window.hi_ns, s->timeout_ns));
    s->attempts_best_case += unlisted_before_deadline(s, last->earliest_ns, last->window.lo_ns);
}

static bool schedule_still_grows(const struct explain_schedule *s, const struct bide_policy *p)
{
    struct bide_step last = {.step = s->waits - 1}, next = {.step = s->waits};
    return s->unlisted > 0 && bide_backoff_envelope(p, next) > bide_backoff_envelope(p, last);
}

void explain_schedule(struct explain_schedule *s, const struct bide_policy *p)
{
    s->attempts = p->layer == BIDE_LAYER_NEVER ? 1 : p->attempts_max;
    uint32_t waits = s->attempts - 1;
    s->waits = waits < EXPLAIN_WAITS_MAX ? waits : EXPLAIN_WAITS_MAX;
    s->unlisted = waits - s->waits;
    s->timeout_ns = p->attempt_timeout_ns;
    s->deadline_ns = p->call_timeout_ns;
    s->waits_max_ns = p->waits_max_ns;
    s->waits_mean_ns = s->waits_worst_ns = 0;
    s->underestimates = schedule_still_grows(s, p);
    if (is_decorrelated(p))
        schedule_decorrelated_waits(s, p);
    else
        schedule_plain_waits(s, p);
    schedule_place_attempts(s);
    schedule_add_unlisted(s);
    schedule_limit_waits(s, p);
    schedule_count_starts(s, p);
    int64_t attempts_ns = core_product(s->timeout_ns, s->attempts);
    s->worst_without_deadline_ns = core_sum(core_min(s->waits_longest_ns, s->waits_max_ns), attempts_ns);
    s->worst_ns = core_min(s->worst_without_deadline_ns, s->deadline_ns);
    bool binds = s->worst_without_deadline_ns > s->deadline_ns || explain_limits_bind(s);
    s->slow_mean_ns = binds ? call_mean(p, s->timeout_ns).total_ns : core_sum(s->waits_mean_ns, attempts_ns);
}

enum explain_binds explain_binds(const struct explain_schedule *s)
{
    if (s->attempts_best_case < s->attempts)
        return EXPLAIN_DEADLINE_BINDS;
    return s->attempts_worst_case < s->attempts ? EXPLAIN_EITHER_BINDS : EXPLAIN_ATTEMPTS_BIND;
}

/* ---- SLO ---- */

struct explain_slo explain_slo(const struct explain_schedule *s, int64_t slo_ns)
{
    struct explain_slo slo = {.third_ns = slo_ns / 3, .attempts_that_fit = 1};
    int64_t repeated_ns = core_product(s->timeout_ns, (int64_t)s->attempts - 1), spent = 0;
    slo.retries_ns = core_min(core_sum(s->waits_worst_ns, repeated_ns), s->deadline_ns);
    slo.fits = slo.retries_ns <= slo.third_ns;
    for (uint32_t i = 0; i < s->waits; i++) {
        spent = core_sum(spent, core_sum(s->wait[i].window.hi_ns, s->timeout_ns));
        if (spent <= slo.third_ns)
            slo.attempts_that_fit = i + 2;
    }
    return slo;
}

/* ---- sample ---- */

uint32_t explain_sample(const struct bide_policy *policy, uint64_t seed, int64_t *wait_ns, uint32_t most)
{
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
    const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    struct bide_call call;
    int64_t now_ns = 0;
    uint32_t count = 0;
    struct bide_verdict v = bide_call_begin(&call, policy, BIDE_NO_TARGET, &request, now_ns);
    while (v.action == BIDE_ACTION_START && count < most) {
        v = bide_call_outcome(&call, v.attempt, &failed, now_ns);
        if (v.action != BIDE_ACTION_WAIT)
            break;
        wait_ns[count++] = v.wake_ns - now_ns;
        now_ns = v.wake_ns;
        v = bide_call_wake(&call, now_ns);
    }
    return count;
}
