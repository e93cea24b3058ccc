/* stats.c - counters of a run: totals, the fullest bins of four widths, a series over time, recovery.
 *
 * Peaks need no memory: time only moves forward, so a current bin for each width suffices. A bin of a width is filled
 * from the bins of the next smaller width, of which it is a multiple. */
#include <stdlib.h>
#include <string.h>

#include "os/memory.h"

#include "state.h"

#define TARGET_SAMPLES_MAX 1024u             /* targets sampled for a point of the series */
#define POINTS_MAX         ((size_t)1 << 20) /* a duration never has more points; a long drain may */
#define RECOVERED_S        10u               /* a window of so many seconds ... */
#define RECOVERED_PCT      90u               /* ... with this share of the success before has recovered */

static const int64_t bin_widths_ns[SIM_BIN_WIDTHS] = {BIDE_MS, 10 * BIDE_MS, 50 * BIDE_MS, BIDE_S};

/* ---- the series ---- */

/* Makes room for one more element. Returns false without memory. */
static bool stats_reserve(void **array, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return true;
    size_t more = *room == 0 ? 256 : *room * 2;
    void *grown = os_memory_refused() ? NULL : realloc(*array, more * size);
    if (grown == NULL)
        return false;
    *array = grown;
    *room = more;
    return true;
}

/* Returns the sum of two adjacent points. */
static struct sim_point points_merged(const struct sim_point *a, const struct sim_point *b)
{
    struct sim_point both = *b; /* levels are those at the end of the second */
    both.calls += a->calls;
    both.attempts += a->attempts;
    both.arrivals += a->arrivals;
    both.retries += a->retries;
    both.served += a->served;
    both.succeeded += a->succeeded;
    both.gave_up += a->gave_up;
    return both;
}

/* Halves the number of points: doubles the bin width of the whole series. */
static void series_widen(struct sim_result *result)
{
    result->points /= 2;
    result->bin_ns *= 2;
    for (size_t i = 0; i < result->points; i++)
        result->point[i] = points_merged(&result->point[2 * i], &result->point[2 * i + 1]);
}

static bool series_add_point(struct sim_state *state)
{
    struct sim_result *result = state->result;
    void *points = result->point;
    if (result->points == POINTS_MAX)
        series_widen(result);
    if (!stats_reserve(&points, &state->stats.point_room, result->points, sizeof *result->point)) {
        state->no_memory = true;
        return false;
    }
    result->point = points;
    result->point[result->points] = (struct sim_point){.budget_milli = -1};
    state->stats.point = &result->point[result->points++];
    state->stats.point_end_ns += result->bin_ns;
    return true;
}

/* Records budget level, open breakers and queue length at the end of a bin: means over the clients' targets, or over an
 * evenly spaced sample of them. */
static void point_sample_state(struct sim_state *state, struct sim_point *point, int64_t at_ns)
{
    int64_t left_milli = 0, limited = 0;
    for (uint32_t g = 0; g < state->world->groups; g++) {
        const struct sim_caller *caller = &state->caller[g];
        uint32_t step = (caller->targets + TARGET_SAMPLES_MAX - 1) / TARGET_SAMPLES_MAX;
        uint64_t sampled = 0, open = 0;
        for (uint32_t i = 0; i < caller->targets; i += step) {
            struct bide_target_view view = bide_target_get(&caller->target[i], at_ns);
            int64_t milli = view.budget_left_milli;
            left_milli += milli == INT64_MAX ? 0 : milli;
            limited += milli != INT64_MAX;
            open += view.breaker.state == BIDE_BREAKER_OPEN || view.breaker.state == BIDE_BREAKER_HALF_OPEN;
            sampled++;
        }
        point->open += sampled > 0 ? (uint32_t)(open * caller->targets / sampled) : 0;
    }
    point->budget_milli = limited > 0 ? left_milli / limited : -1;
    for (uint32_t s = 0; s < state->world->services; s++)
        point->queue += state->world->service[s].calls < 0 ? state->service[s].queue.length : 0;
    struct sim_result *result = state->result;
    if (limited > 0 && (result->budget_low_milli < 0 || point->budget_milli < result->budget_low_milli))
        result->budget_low_milli = point->budget_milli;
    result->budget_end_milli = point->budget_milli;
}

static bool stats_add_second(struct sim_stats *stats)
{
    void *seconds = stats->second;
    if (!stats_reserve(&seconds, &stats->second_room, stats->seconds, sizeof *stats->second))
        return false;
    stats->second = seconds;
    stats->second[stats->seconds++] = (struct sim_second){0};
    return true;
}

static void series_advance(struct sim_state *state)
{
    struct sim_stats *stats = &state->stats;
    while (stats->point_end_ns <= state->now_ns && !state->no_memory) {
        point_sample_state(state, stats->point, stats->point_end_ns);
        series_add_point(state);
    }
    while ((int64_t)stats->seconds * BIDE_S <= state->now_ns && !state->no_memory)
        state->no_memory = !stats_add_second(stats);
}

/* ---- peaks ---- */

static void peak_update(struct sim_peak *peak, uint64_t count, int64_t at_ns)
{
    if (count > peak->max)
        *peak = (struct sim_peak){count, at_ns};
}

static void bin_close(struct sim_state *state, size_t w)
{
    struct sim_peak_bin *bin = &state->stats.bin[w];
    struct sim_peaks *peak = &state->result->peak[w];
    int64_t from_ns = bin->end_ns - bin_widths_ns[w];
    peak_update(&peak->arrivals, bin->count.arrivals, from_ns);
    peak_update(&peak->retries, bin->count.retries, from_ns);
    peak_update(&peak->served, bin->count.served, from_ns);
    peak_update(&peak->probes, bin->count.probes, from_ns);
    if (w + 1 < SIM_BIN_WIDTHS) {
        struct sim_peak_bin *above = &state->stats.bin[w + 1];
        above->count.arrivals += bin->count.arrivals;
        above->count.retries += bin->count.retries;
        above->count.served += bin->count.served;
        above->count.probes += bin->count.probes;
    }
    memset(&bin->count, 0, sizeof bin->count);
    bin->end_ns = (state->now_ns / bin_widths_ns[w] + 1) * bin_widths_ns[w];
}

void sim_stats_advance(struct sim_state *state)
{
    struct sim_stats *stats = &state->stats;
    for (size_t w = 0; w < SIM_BIN_WIDTHS && stats->bin[w].end_ns <= state->now_ns; w++)
        bin_close(state, w);
    series_advance(state);
    stats->bin_end_ns = stats->bin[0].end_ns < stats->point_end_ns ? stats->bin[0].end_ns : stats->point_end_ns;
}

/* ---- counting ---- */

void sim_stats_count_arrival(struct sim_state *state, uint32_t attempt)
{
    bool retry = attempt > 1;
    state->result->arrivals++;
    state->result->first_arrivals += !retry;
    state->stats.bin[0].count.arrivals++;
    state->stats.bin[0].count.retries += retry;
    state->stats.point->arrivals++;
    state->stats.point->retries += retry;
    state->stats.second[state->stats.seconds - 1].arrivals++;
}

void sim_stats_count_served(struct sim_state *state)
{
    state->result->served++;
    state->stats.bin[0].count.served++;
    state->stats.point->served++;
}

void sim_stats_count_call(struct sim_state *state)
{
    state->result->calls++;
    state->stats.last_call_ns = state->now_ns;
    state->stats.point->calls++;
    state->stats.second[state->stats.seconds - 1].calls++;
}

void sim_stats_count_attempt(struct sim_state *state, const struct bide_verdict *verdict)
{
    state->result->attempts++;
    state->result->hedges += verdict->reason == BIDE_REASON_HEDGE;
    state->result->retries += verdict->attempt > 1 && verdict->reason != BIDE_REASON_HEDGE;
    state->stats.point->attempts++;
}

void sim_stats_count_probe(struct sim_state *state)
{
    state->result->probes++;
    state->stats.bin[0].count.probes++;
}

void sim_stats_count_call_end(struct sim_state *state, const struct bide_verdict *verdict)
{
    bool succeeded = verdict->action == BIDE_ACTION_DONE;
    state->result->succeeded += succeeded;
    state->result->gave_up += !succeeded;
    state->stats.point->succeeded += succeeded;
    state->stats.point->gave_up += !succeeded;
    state->stats.second[state->stats.seconds - 1].succeeded += succeeded;
    if (!succeeded)
        state->result->reason[verdict->reason]++;
}

void sim_stats_count_user(struct sim_state *state, int64_t began_ns, bool succeeded)
{
    if (!succeeded)
        return;
    state->result->users_succeeded++;
    sim_histogram_add(&state->result->latency, state->now_ns - began_ns);
}

/* ---- results at the end of a run ---- */

/* Returns when the last disturbance ends, from which the world has to recover; BIDE_NEVER: there is none. */
static int64_t disturbance_end_ns(const struct sim_world *world)
{
    if (world->recover_from_ns != BIDE_NEVER)
        return world->recover_from_ns;
    int64_t until_ns = -1;
    for (uint32_t i = 0; i < world->outages; i++)
        until_ns = world->outage[i].until_ns > until_ns ? world->outage[i].until_ns : until_ns;
    for (uint32_t g = 0; g < world->groups; g++) {
        const struct sim_clients *clients = &world->clients[g];
        if ((clients->arrival == SIM_SPIKE || clients->arrival == SIM_RAMP) && clients->peak_until_ns > until_ns)
            until_ns = clients->peak_until_ns;
    }
    return until_ns < 0 ? BIDE_NEVER : until_ns;
}

/* Returns when the first disturbance begins; the duration if there is none. */
static int64_t disturbance_begin_ns(const struct sim_world *world)
{
    int64_t until_ns = world->duration_ns;
    for (uint32_t i = 0; i < world->outages; i++)
        until_ns = world->outage[i].from_ns < until_ns ? world->outage[i].from_ns : until_ns;
    for (uint32_t g = 0; g < world->groups; g++) {
        const struct sim_clients *clients = &world->clients[g];
        if ((clients->arrival == SIM_SPIKE || clients->arrival == SIM_RAMP) && clients->peak_from_ns < until_ns)
            until_ns = clients->peak_from_ns;
    }
    return until_ns;
}

/* Returns the counters of RECOVERED_S seconds from this second on. */
static struct sim_second sum_window(const struct sim_stats *stats, size_t from)
{
    struct sim_second sum = {0};
    for (size_t i = from; i < from + RECOVERED_S && i < stats->seconds; i++) {
        sum.calls += stats->second[i].calls;
        sum.succeeded += stats->second[i].succeeded;
    }
    return sum;
}

/* Returns the share of calls that succeeded in the window before the disturbance: a service that always fails some
 * calls can only come back to that. 1 if there is no such window. */
static double success_before(const struct sim_state *state)
{
    size_t calm = (size_t)(disturbance_begin_ns(state->world) / BIDE_S);
    if (calm < RECOVERED_S)
        return 1;
    struct sim_second before = sum_window(&state->stats, calm - RECOVERED_S);
    return before.calls == 0 || before.succeeded > before.calls ? 1 : (double)before.succeeded / (double)before.calls;
}

/* Finds the first window after the disturbance in which nearly as large a share of calls succeeded as before it. */
static void find_steady_recovery(struct sim_state *state, int64_t from_ns, size_t last)
{
    struct sim_result *result = state->result;
    double enough = success_before(state) * RECOVERED_PCT / 100;
    for (size_t s = (size_t)(from_ns / BIDE_S); s + RECOVERED_S <= last; s++) {
        struct sim_second sum = sum_window(&state->stats, s);
        if (sum.calls > 0 && (double)sum.succeeded >= enough * (double)sum.calls) {
            int64_t at_ns = (int64_t)s * BIDE_S;
            result->recovers = true;
            result->recover_ns = at_ns > from_ns ? at_ns - from_ns : 0;
            return;
        }
    }
}

/* Finds when nearly all calls of a herd had succeeded, to a bin of the series. */
static void find_herd_recovery(struct sim_state *state, int64_t from_ns)
{
    struct sim_result *result = state->result;
    uint64_t succeeded = 0;
    for (size_t i = 0; i < result->points; i++) {
        succeeded += result->point[i].succeeded;
        if (succeeded * 100 < result->calls * RECOVERED_PCT)
            continue;
        int64_t at_ns = (int64_t)(i + 1) * result->bin_ns;
        result->recovers = true;
        result->recover_ns = at_ns > from_ns ? at_ns - from_ns : 0;
        return;
    }
}

/* Recovery is undefined if calls continue after the disturbance for less than a window. */
static void find_recovery(struct sim_state *state, int64_t last_ns)
{
    struct sim_result *result = state->result;
    int64_t from_ns = disturbance_end_ns(state->world);
    bool herd = last_ns <= from_ns, long_enough = last_ns / BIDE_S >= from_ns / BIDE_S + RECOVERED_S;
    result->recover_ns = -1;
    result->disturbed = from_ns != BIDE_NEVER && result->calls > 0 && (herd || long_enough);
    if (result->disturbed && herd)
        find_herd_recovery(state, from_ns);
    else if (result->disturbed)
        find_steady_recovery(state, from_ns, (size_t)(last_ns / BIDE_S));
}

/* Computes the rates of the steady state: over the last quarter of the time in which calls begin, or over the whole run
 * if that is shorter than a second (a herd). */
static void find_steady_state(struct sim_state *state, int64_t last_ns)
{
    struct sim_result *result = state->result;
    size_t end = (size_t)(last_ns / BIDE_S), from = end - end / 4;
    uint64_t succeeded = 0, arrivals = 0;
    for (size_t s = from; s < end; s++) {
        succeeded += state->stats.second[s].succeeded;
        arrivals += state->stats.second[s].arrivals;
    }
    double seconds = (double)(end - from);
    if (end == from) {
        succeeded = result->succeeded;
        arrivals = result->arrivals;
        seconds = (double)state->now_ns / 1e9;
    }
    result->goodput = seconds > 0 ? (double)succeeded / seconds : 0;
    result->attempt_rate = seconds > 0 ? (double)arrivals / seconds : 0;
}

static void count_gates(struct sim_state *state)
{
    for (uint32_t g = 0; g < state->world->groups; g++)
        for (uint32_t i = 0; i < state->caller[g].targets; i++) {
            struct bide_target_view view = bide_target_get(&state->caller[g].target[i], state->now_ns);
            state->result->openings += view.breaker.openings_total;
            for (unsigned gate = 0; gate < BIDE_GATE_COUNT; gate++)
                state->result->refused_by[gate] += view.refused[gate];
        }
}

void sim_stats_finish(struct sim_state *state)
{
    struct sim_result *result = state->result;
    for (size_t w = 0; w < SIM_BIN_WIDTHS; w++)
        bin_close(state, w);
    point_sample_state(state, state->stats.point, state->now_ns);
    count_gates(state);
    sim_fleet_finish(state);
    result->ended_ns = state->now_ns;
    result->unfinished = result->calls - result->succeeded - result->gave_up;
    find_recovery(state, state->stats.last_call_ns);
    find_steady_state(state, state->stats.last_call_ns);
}

bool sim_stats_open(struct sim_state *state)
{
    struct sim_stats *stats = &state->stats;
    state->result->bin_ns = state->world->bin_ns;
    state->result->budget_low_milli = state->result->budget_end_milli = -1;
    for (size_t w = 0; w < SIM_BIN_WIDTHS; w++) {
        stats->bin[w].end_ns = bin_widths_ns[w];
        state->result->peak[w].width_ns = bin_widths_ns[w];
    }
    return series_add_point(state) && stats_add_second(stats);
}

void sim_stats_close(struct sim_state *state)
{
    free(state->stats.second);
}
