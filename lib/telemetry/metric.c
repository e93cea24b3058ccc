/* metric.c - the table of metrics, and the samples of each: see metric.h. */
#include "metric.h"

#include <assert.h>

#define US_PER_S        1000000u
#define MILLI           1000u
#define BUDGET_NO_LIMIT INT64_MAX

/* A walk over all samples: the sample is filled step by step, and passed to the visitor when its value is known. */
struct walk {
    const struct telemetry_numbers *numbers;
    void (*visit)(void *context, const struct telemetry_sample *sample);
    void *context;
    struct telemetry_sample sample;
};

/* A row of the table: exactly one function makes its samples. */
struct row {
    struct telemetry_metric metric;
    void (*of_target)(struct walk *walk, const struct telemetry_target *target);
    void (*of_process)(struct walk *walk, const struct telemetry_process *process);
};

static void walk_labels(struct walk *walk, const char *first, const char *second, uint64_t value)
{
    walk->sample.labels[0] = first;
    walk->sample.labels[1] = second;
    walk->sample.value = value;
    walk->visit(walk->context, &walk->sample);
}

static void walk_value(struct walk *walk, uint64_t value)
{
    walk_labels(walk, NULL, NULL, value);
}

static void walk_histogram(struct walk *walk, const char *result, const struct bide_histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i < BIDE_METER_BINS; i++)
        count += histogram->count[i];
    walk->sample.histogram = histogram;
    walk_labels(walk, result, NULL, count);
    walk->sample.histogram = NULL;
}

/* The same for results that are left out as long as there are none. */
static void walk_histogram_if_any(struct walk *walk, const char *result, const struct bide_histogram *histogram)
{
    for (size_t i = 0; i < BIDE_METER_BINS; i++)
        if (histogram->count[i] > 0) {
            walk_histogram(walk, result, histogram);
            return;
        }
}

/* ---- attempts and calls ---- */

static void walk_attempts(struct walk *walk, const struct telemetry_target *target)
{
    for (unsigned i = 0; i < BIDE_METER_ATTEMPT_COUNT; i++)
        walk_labels(walk, bide_meter_attempt_label((enum bide_meter_attempt)i), NULL, target->meter.attempts[i]);
}

/* Kinds in which an error ratio at the dependency is expressed. */
static bool kind_always_exists(unsigned kind)
{
    return kind != BIDE_KIND_CONFLICT && kind != BIDE_KIND_CANCELLED;
}

static void walk_outcomes(struct walk *walk, const struct telemetry_target *target)
{
    for (unsigned i = 0; i < BIDE_METER_ATTEMPT_COUNT; i++)
        for (unsigned kind = 0; kind <= BIDE_KIND_OK; kind++)
            if (target->meter.outcomes[i][kind] > 0 || kind_always_exists(kind))
                walk_labels(walk, bide_meter_attempt_label((enum bide_meter_attempt)i),
                            bide_kind_label((enum bide_kind)kind), target->meter.outcomes[i][kind]);
}

static void walk_calls(struct walk *walk, const struct telemetry_target *target)
{
    for (unsigned i = 0; i < BIDE_METER_RESULT_COUNT; i++)
        walk_labels(walk, bide_meter_result_label((enum bide_meter_result)i), NULL, target->meter.calls[i]);
}

/* Reasons below ATTEMPTS_SPENT, and LAST_WAIT, are those of starts and waits. */
static bool reason_gives_up(unsigned reason)
{
    return reason >= BIDE_REASON_ATTEMPTS_SPENT && reason != BIDE_REASON_LAST_WAIT;
}

static void walk_give_ups(struct walk *walk, const struct telemetry_target *target)
{
    for (unsigned i = 0; i < BIDE_REASON_COUNT; i++)
        if (target->meter.give_ups[i] > 0 || reason_gives_up(i))
            walk_labels(walk, bide_reason_label((enum bide_reason)i), NULL, target->meter.give_ups[i]);
}

static void walk_refusals(struct walk *walk, const struct telemetry_target *target)
{
    for (unsigned i = 0; i < BIDE_GATE_COUNT; i++) {
        const char *gate = bide_gate_label((enum bide_gate)(1u << i));
        walk_labels(walk, gate, "enforce", target->meter.refusals[i][BIDE_METER_ENFORCE]);
        walk_labels(walk, gate, "observe", target->meter.refusals[i][BIDE_METER_OBSERVE]);
    }
}

static bool wait_always_exists(unsigned reason)
{
    return reason == BIDE_REASON_BACKOFF || reason == BIDE_REASON_SERVER_HINT || reason == BIDE_REASON_HOLD_OFF;
}

static void walk_waits(struct walk *walk, const struct telemetry_target *target)
{
    for (unsigned i = 0; i < BIDE_REASON_COUNT; i++)
        if (target->meter.waits[i] > 0 || wait_always_exists(i))
            walk_labels(walk, bide_reason_label((enum bide_reason)i), NULL, target->meter.waits[i]);
}

static void walk_wait_seconds(struct walk *walk, const struct telemetry_target *target)
{
    walk_value(walk, target->meter.wait_us);
}

static void walk_call_durations(struct walk *walk, const struct telemetry_target *target)
{
    walk_histogram(walk, "ok", &target->meter.call_ok);
    walk_histogram_if_any(walk, "failed", &target->meter.call_failed);
}

static void walk_attempt_durations(struct walk *walk, const struct telemetry_target *target)
{
    walk_histogram(walk, "ok", &target->meter.attempt_ok);
    walk_histogram_if_any(walk, "failed", &target->meter.attempt_failed);
    walk_histogram_if_any(walk, "cancelled", &target->meter.attempt_cancelled);
}

/* ---- what is in flight ---- */

static void walk_waiting(struct walk *walk, const struct telemetry_target *target)
{
    uint64_t begun = 0;
    for (size_t i = 0; i < BIDE_METER_REASONS; i++)
        begun += target->meter.waits[i];
    assert(target->is_shared || begun >= target->meter.waits_ended);
    if (!target->is_shared)
        walk_value(walk, begun - target->meter.waits_ended);
}

static void walk_in_flight(struct walk *walk, const struct telemetry_target *target)
{
    uint64_t started = 0, ended = 0;
    for (size_t i = 0; i < BIDE_METER_ATTEMPT_COUNT; i++) {
        started += target->meter.attempts[i];
        for (size_t kind = 0; kind < BIDE_METER_KINDS; kind++)
            ended += target->meter.outcomes[i][kind];
    }
    assert(target->is_shared || started >= ended);
    if (!target->is_shared)
        walk_value(walk, started - ended);
}

/* ---- state of the gates ---- */

static void walk_tokens(struct walk *walk, const struct telemetry_target *target)
{
    if (target->has_state && target->state.budget_left_milli != BUDGET_NO_LIMIT)
        walk_value(walk, (uint64_t)target->state.budget_left_milli);
}

static void walk_capacity(struct walk *walk, const struct telemetry_target *target)
{
    if (target->has_state && target->capacity_milli > 0)
        walk_value(walk, (uint64_t)target->capacity_milli);
}

static void walk_lease(struct walk *walk, const struct telemetry_target *target)
{
    if (target->has_state)
        walk_value(walk, target->has_lease);
}

static void walk_breaker_state(struct walk *walk, const struct telemetry_target *target)
{
    for (unsigned i = 0; i <= BIDE_BREAKER_HELD_OPEN && target->has_state; i++)
        walk_labels(walk, bide_breaker_state_label((enum bide_breaker_state)i), NULL,
                    target->state.breaker.state == (enum bide_breaker_state)i);
}

static void walk_openings(struct walk *walk, const struct telemetry_target *target)
{
    walk_value(walk, target->has_state ? target->openings : 0);
}

/* Rounded up: a hold-off that has not ended is not 0. */
static void walk_hold_off(struct walk *walk, const struct telemetry_target *target)
{
    int64_t left_ns = target->state.hold_off_until_ns - target->now_ns;
    if (target->has_state)
        walk_value(walk, left_ns > 0 ? ((uint64_t)left_ns + 999) / 1000 : 0);
}

/* ---- the process ---- */

static void walk_inbound(struct walk *walk, const struct telemetry_process *process)
{
    for (size_t i = 0; i < process->inbound_count; i++) {
        walk->sample.target = process->inbound[i].name;
        walk_labels(walk, "1", NULL, process->inbound[i].first);
        walk_labels(walk, "2_or_more", NULL, process->inbound[i].retry);
    }
}

static void walk_dropped(struct walk *walk, const struct telemetry_process *process)
{
    for (unsigned i = 0; i < TELEMETRY_SIGNAL_COUNT; i++)
        for (unsigned cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
            walk_labels(walk, telemetry_signal_label((enum telemetry_signal)i),
                        telemetry_cause_label((enum telemetry_cause)cause), process->dropped[i][cause]);
}

static void walk_build(struct walk *walk, const struct telemetry_process *process)
{
    (void)process;
    walk_labels(walk, bide_version(), NULL, 1);
}

/* ---- the table ---- */

static const struct row rows[] = {
    {.metric = {"bide_attempts_total",
                "bide.attempts",
                TELEMETRY_COUNTER,
                "{attempt}",
                1,
                true,
                {"attempt"},
                "Attempts started",
                "Counted at the start, so that a dependency that hangs shows. Redirects and challenges that "
                "libcurl answers belong to one attempt. An attempt of which no byte was sent (connection refused, "
                "unknown name) is counted; one that a gate refused is not. All series exist from the first call."},
     .of_target = walk_attempts},
    {.metric = {"bide_outcomes_total",
                "bide.outcomes",
                TELEMETRY_COUNTER,
                "{attempt}",
                1,
                true,
                {"attempt", "kind"},
                "Attempts ended, by what their outcome was classified as",
                "What the dependency did, whether or not a retry hid it from the caller. `cancelled`: a hedge "
                "that lost, or another attempt that still ran when its call ended. Attempts in flight are in "
                "`bide_attempts_total` only. The series of `conflict` and `cancelled` exist once they are not 0."},
     .of_target = walk_outcomes},
    {.metric = {"bide_calls_total",
                "bide.calls",
                TELEMETRY_COUNTER,
                "{call}",
                1,
                true,
                {"result"},
                "Calls ended, once each, by result",
                "What the callers got. `first`: success by the first attempt; `rescued`: by a retry or a hedge; "
                "`failed`: gave up after an attempt; `refused`: gave up before the first one; `cancelled`: by the "
                "caller. Calls that still run are not in it. All series exist from the first call."},
     .of_target = walk_calls},
    {.metric = {"bide_give_ups_total",
                "bide.give_ups",
                TELEMETRY_COUNTER,
                "{call}",
                1,
                true,
                {"reason"},
                "Calls that gave up, by the reason that decided",
                "The sum is that of the results `failed`, `refused` and `cancelled`. A gate that only observes is "
                "never a reason. All series exist from the first call."},
     .of_target = walk_give_ups},
    {.metric = {"bide_refusals_total",
                "bide.refusals",
                TELEMETRY_COUNTER,
                "{refusal}",
                1,
                true,
                {"gate", "mode"},
                "Refusals of each gate",
                "First attempts, retries and hedges that the gate refused (`enforce`), or would have refused "
                "(`observe`). A refused hedge ends no call, so this is not a part of the give-ups. A refusal "
                "after which the call waits for the gate (`when_refused`) is counted, too. All series exist from "
                "the first call."},
     .of_target = walk_refusals},
    {.metric = {"bide_waits_total",
                "bide.waits",
                TELEMETRY_COUNTER,
                "{wait}",
                1,
                true,
                {"reason"},
                "Waits begun, by reason",
                "A wait that is extended while it runs is counted again. Waiting for a response is no wait. "
                "Reasons other than `backoff`, `server_hint` and `hold_off` exist once they are not 0."},
     .of_target = walk_waits},
    {.metric = {"bide_wait_seconds_total",
                "bide.wait",
                TELEMETRY_COUNTER,
                "s",
                US_PER_S,
                true,
                {NULL},
                "Time that calls waited between attempts",
                "As it was, not as it was planned; added when the wait ends."},
     .of_target = walk_wait_seconds},
    {.metric = {"bide_call_duration_seconds",
                "bide.call.duration",
                TELEMETRY_HISTOGRAM,
                "s",
                US_PER_S,
                true,
                {"result"},
                "Duration of calls, waits included",
                "What callers felt, from begin to end. Refused and cancelled calls are not in it: an open breaker "
                "answers in microseconds and would make the quantiles look good. A call that hangs appears when "
                "it ends; see `bide_attempts_in_flight` until then. `failed` exists from the first failure on."},
     .of_target = walk_call_durations},
    {.metric = {"bide_attempt_duration_seconds",
                "bide.attempt.duration",
                TELEMETRY_HISTOGRAM,
                "s",
                US_PER_S,
                true,
                {"result"},
                "Duration of single attempts",
                "What the dependency took, by the outcome `ok`, `cancelled`, or any other (`failed`). `failed` "
                "and `cancelled` exist once there was one."},
     .of_target = walk_attempt_durations},
    {.metric = {"bide_calls_waiting",
                "bide.calls_waiting",
                TELEMETRY_GAUGE,
                "{call}",
                1,
                true,
                {NULL},
                "Calls that wait now, before their first attempt or between two",
                "The herd that will return. Not of shared targets: a process that was killed would be counted for "
                "ever."},
     .of_target = walk_waiting},
    {.metric = {"bide_attempts_in_flight",
                "bide.attempts_in_flight",
                TELEMETRY_GAUGE,
                "{attempt}",
                1,
                true,
                {NULL},
                "Attempts that run now",
                "Started and not ended: the first number that shows a dependency that hangs. Not of shared targets."},
     .of_target = walk_in_flight},
    {.metric = {"bide_budget_tokens",
                "bide.budget.tokens",
                TELEMETRY_GAUGE,
                "{token}",
                MILLI,
                true,
                {NULL},
                "Retries that the budget would allow now",
                "Tokens in the bucket; of the kinds `window` and `concurrency` the retries left. Left out while "
                "there is no limit, and, like all state of a target, while the target is in no table."},
     .of_target = walk_tokens},
    {.metric = {"bide_budget_capacity_tokens",
                "bide.budget.capacity_tokens",
                TELEMETRY_GAUGE,
                "{token}",
                MILLI,
                true,
                {NULL},
                "Tokens in a full bucket of the budget",
                "Left out if the budget is no token bucket."},
     .of_target = walk_capacity},
    {.metric = {"bide_fleet_lease_active",
                "bide.fleet.lease_active",
                TELEMETRY_GAUGE,
                "{lease}",
                1,
                true,
                {NULL},
                "1 while a fleet funds the budget, else 0",
                "0 too for a target of no fleet. A fleet that does not answer becomes 0 when the lease ends."},
     .of_target = walk_lease},
    {.metric = {"bide_breaker_state",
                "bide.breaker.state",
                TELEMETRY_GAUGE,
                "{target}",
                1,
                true,
                {"state"},
                "1 for the state in which the circuit breaker is, 0 for the others",
                "Summed over all targets: how many are in each state."},
     .of_target = walk_breaker_state},
    {.metric = {"bide_breaker_openings_total",
                "bide.breaker.openings",
                TELEMETRY_COUNTER,
                "{opening}",
                1,
                true,
                {NULL},
                "Openings of the circuit breaker",
                "Reopenings after a failed probe included; holding it open by hand is not. Exists from the first "
                "call."},
     .of_target = walk_openings},
    {.metric = {"bide_hold_off_remaining_seconds",
                "bide.hold_off.remaining",
                TELEMETRY_GAUGE,
                "s",
                US_PER_S,
                true,
                {NULL},
                "Time until the hold-off that the server asked for ends",
                "0: none. Each call adds its jitter to it."},
     .of_target = walk_hold_off},
    {.metric = {"bide_inbound_requests_total",
                "bide.inbound.requests",
                TELEMETRY_COUNTER,
                "{request}",
                1,
                true,
                {"attempt"},
                "Requests that this server received, by their attempt header",
                "Of each ratio registered with `bide_telemetry_inbound`; `target` is the name given there. A "
                "client that sends no attempt header counts as a first attempt."},
     .of_process = walk_inbound},
    {.metric = {"bide_telemetry_dropped_total",
                "bide.telemetry.dropped",
                TELEMETRY_COUNTER,
                "{item}",
                1,
                false,
                {"signal", "cause"},
                "Spans, log lines and exports of metrics that were lost",
                "Of this process, since it started. Counters above never pass through what can overflow: a lost "
                "export of metrics is made good by the next. All series exist from the start."},
     .of_process = walk_dropped},
    {.metric = {"bide_build_info",
                "bide.build_info",
                TELEMETRY_GAUGE,
                "{process}",
                1,
                false,
                {"version"},
                "1, with the version of the library",
                "Of the library that the process runs with."},
     .of_process = walk_build},
};

#define ROWS (sizeof rows / sizeof *rows)

size_t telemetry_metric_count(void)
{
    return ROWS;
}

const struct telemetry_metric *telemetry_metric_at(size_t number)
{
    assert(number < ROWS);
    return &rows[number].metric;
}

const char *telemetry_type_label(enum telemetry_type type)
{
    static const char *const labels[] = {"counter", "gauge", "histogram"};
    return labels[type];
}

static void walk_row(struct walk *walk, const struct row *row)
{
    const struct telemetry_numbers *all = walk->numbers;
    walk->sample = (struct telemetry_sample){.metric = &row->metric};
    for (size_t i = 0; i < all->count && row->of_target != NULL; i++) {
        walk->sample.target = all->targets[i].name;
        row->of_target(walk, &all->targets[i]);
    }
    if (row->of_process != NULL && all->process != NULL)
        row->of_process(walk, all->process);
}

void telemetry_visit(const struct telemetry_numbers *numbers,
                     void (*visit)(void *context, const struct telemetry_sample *sample), void *context)
{
    struct walk walk = {.numbers = numbers, .visit = visit, .context = context};
    for (size_t i = 0; i < ROWS; i++)
        walk_row(&walk, &rows[i]);
}
