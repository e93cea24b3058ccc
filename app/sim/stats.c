/* stats.c - counts what happens: totals, the fullest buckets of four widths, a series over time, recovery.
 *
 * Peaks need no memory: time only goes forward, so the present bucket of the least width is enough, and a width is
 * filled from the one below it, of which it is a multiple. */
#include <stdlib.h>
#include <string.h>

#include "os/memory.h"

#include "state.h"

#define SAMPLES_MAX   1024u             /* targets looked at for a point of the series */
#define POINTS_MAX    ((size_t)1 << 20) /* as many as a duration may have: only a long drain brings more */
#define RECOVERED_S   10u               /* so long a time ... */
#define RECOVERED_PCT 90u               /* ... with this share of its calls */

static const int64_t widths_ns[SIM_WIDTHS] = {BIDE_MS, 10 * BIDE_MS, 50 * BIDE_MS, BIDE_S};

/* ---- the series ---- */

/* Room for one more element. */
static bool room_for(void **array, size_t *room, size_t count, size_t size)
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

/* Two buckets become one. */
static struct sim_point merged(const struct sim_point *a, const struct sim_point *b)
{
    struct sim_point both = *b; /* with its state at the end */
    both.calls += a->calls;
    both.attempts += a->attempts;
    both.arrivals += a->arrivals;
    both.retries += a->retries;
    both.served += a->served;
    both.succeeded += a->succeeded;
    both.gave_up += a->gave_up;
    return both;
}

/* A series that gets too long goes on in buckets twice as wide, from its beginning. */
static void widen(struct sim_result *result)
{
    result->points /= 2;
    result->bucket_ns *= 2;
    for (size_t i = 0; i < result->points; i++)
        result->point[i] = merged(&result->point[2 * i], &result->point[2 * i + 1]);
}

static bool add_point(struct sim_play *play)
{
    struct sim_result *result = play->result;
    void *points = result->point;
    if (result->points == POINTS_MAX)
        widen(result);
    if (!room_for(&points, &play->gauge.room, result->points, sizeof *result->point)) {
        play->no_memory = true;
        return false;
    }
    result->point = points;
    result->point[result->points] = (struct sim_point){.budget_milli = -1};
    play->gauge.point = &result->point[result->points++];
    play->gauge.point_end_ns += result->bucket_ns;
    return true;
}

/* At the end of a bucket: the mean over the clients' targets, or over an even choice of them if there are many. */
static void sample(struct sim_play *play, struct sim_point *point, int64_t at_ns)
{
    int64_t left_milli = 0, limited = 0;
    for (uint32_t g = 0; g < play->world->groups; g++) {
        const struct sim_caller *caller = &play->caller[g];
        uint32_t step = (caller->targets + SAMPLES_MAX - 1) / SAMPLES_MAX;
        uint64_t looked_at = 0, open = 0;
        for (uint32_t i = 0; i < caller->targets; i += step) {
            int64_t milli = bide_budget_left_milli(&caller->target[i], at_ns);
            enum bide_breaker_state state = bide_breaker_get(&caller->target[i]).state;
            left_milli += milli == INT64_MAX ? 0 : milli;
            limited += milli != INT64_MAX;
            open += state == BIDE_BREAKER_OPEN || state == BIDE_BREAKER_HALF_OPEN;
            looked_at++;
        }
        point->open += looked_at > 0 ? (uint32_t)(open * caller->targets / looked_at) : 0;
    }
    point->budget_milli = limited > 0 ? left_milli / limited : -1;
    for (uint32_t s = 0; s < play->world->services; s++)
        point->queue += play->world->service[s].calls < 0 ? play->place[s].line.length : 0;
    struct sim_result *result = play->result;
    if (limited > 0 && (result->budget_low_milli < 0 || point->budget_milli < result->budget_low_milli))
        result->budget_low_milli = point->budget_milli;
    result->budget_end_milli = point->budget_milli;
}

static bool add_second(struct sim_gauge *gauge)
{
    void *seconds = gauge->second;
    if (!room_for(&seconds, &gauge->second_room, gauge->seconds, sizeof *gauge->second))
        return false;
    gauge->second = seconds;
    gauge->second[gauge->seconds++] = (struct sim_second){0};
    return true;
}

static void roll_series(struct sim_play *play)
{
    struct sim_gauge *gauge = &play->gauge;
    while (gauge->point_end_ns <= play->now_ns && !play->no_memory) {
        sample(play, gauge->point, gauge->point_end_ns);
        add_point(play);
    }
    while ((int64_t)gauge->seconds * BIDE_S <= play->now_ns && !play->no_memory)
        play->no_memory = !add_second(gauge);
}

/* ---- peaks ---- */

static void compare(struct sim_peak *peak, uint64_t count, int64_t at_ns)
{
    if (count > peak->most)
        *peak = (struct sim_peak){count, at_ns};
}

static void close_width(struct sim_play *play, size_t w)
{
    struct sim_width *width = &play->gauge.width[w];
    struct sim_peaks *peak = &play->result->peak[w];
    int64_t from_ns = width->end_ns - widths_ns[w];
    compare(&peak->arrivals, width->now.arrivals, from_ns);
    compare(&peak->retries, width->now.retries, from_ns);
    compare(&peak->served, width->now.served, from_ns);
    compare(&peak->probes, width->now.probes, from_ns);
    if (w + 1 < SIM_WIDTHS) {
        struct sim_width *above = &play->gauge.width[w + 1];
        above->now.arrivals += width->now.arrivals;
        above->now.retries += width->now.retries;
        above->now.served += width->now.served;
        above->now.probes += width->now.probes;
    }
    memset(&width->now, 0, sizeof width->now);
    width->end_ns = (play->now_ns / widths_ns[w] + 1) * widths_ns[w];
}

void sim_gauge_roll(struct sim_play *play)
{
    struct sim_gauge *gauge = &play->gauge;
    for (size_t w = 0; w < SIM_WIDTHS && gauge->width[w].end_ns <= play->now_ns; w++)
        close_width(play, w);
    roll_series(play);
    gauge->edge_ns = gauge->width[0].end_ns < gauge->point_end_ns ? gauge->width[0].end_ns : gauge->point_end_ns;
}

/* ---- what happens ---- */

void sim_gauge_arrival(struct sim_play *play, uint32_t attempt)
{
    bool retry = attempt > 1;
    play->result->arrivals++;
    play->result->first_arrivals += !retry;
    play->gauge.width[0].now.arrivals++;
    play->gauge.width[0].now.retries += retry;
    play->gauge.point->arrivals++;
    play->gauge.point->retries += retry;
    play->gauge.second[play->gauge.seconds - 1].arrivals++;
}

void sim_gauge_served(struct sim_play *play)
{
    play->result->served++;
    play->gauge.width[0].now.served++;
    play->gauge.point->served++;
}

void sim_gauge_call(struct sim_play *play)
{
    play->result->calls++;
    play->gauge.last_call_ns = play->now_ns;
    play->gauge.point->calls++;
    play->gauge.second[play->gauge.seconds - 1].calls++;
}

void sim_gauge_attempt(struct sim_play *play, const struct bide_verdict *verdict)
{
    play->result->attempts++;
    play->result->hedges += verdict->reason == BIDE_REASON_HEDGE;
    play->result->retries += verdict->attempt > 1 && verdict->reason != BIDE_REASON_HEDGE;
    play->gauge.point->attempts++;
}

void sim_gauge_probe(struct sim_play *play)
{
    play->result->probes++;
    play->gauge.width[0].now.probes++;
}

void sim_gauge_ended(struct sim_play *play, const struct bide_verdict *verdict)
{
    bool well = verdict->action == BIDE_DONE;
    play->result->succeeded += well;
    play->result->gave_up += !well;
    play->gauge.point->succeeded += well;
    play->gauge.point->gave_up += !well;
    play->gauge.second[play->gauge.seconds - 1].succeeded += well;
    if (!well)
        play->result->reason[verdict->reason]++;
}

void sim_gauge_user(struct sim_play *play, int64_t began_ns, bool well)
{
    if (!well)
        return;
    play->result->users_well++;
    sim_histogram_add(&play->result->latency, play->now_ns - began_ns);
}

/* ---- at the end ---- */

/* When the disturbance ends from which the world has to recover; BIDE_NEVER: there was none. */
static int64_t disturbed_until(const struct sim_world *world)
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

/* When the first disturbance begins. */
static int64_t calm_until(const struct sim_world *world)
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

/* Ten seconds, from this one on. */
static struct sim_second ten_seconds(const struct sim_gauge *gauge, size_t from)
{
    struct sim_second sum = {0};
    for (size_t i = from; i < from + RECOVERED_S && i < gauge->seconds; i++) {
        sum.calls += gauge->second[i].calls;
        sum.succeeded += gauge->second[i].succeeded;
    }
    return sum;
}

/* The share of calls that succeeded before: what a service that always fails some can come back to. */
static double usual_share(const struct sim_play *play)
{
    size_t calm = (size_t)(calm_until(play->world) / BIDE_S);
    if (calm < RECOVERED_S)
        return 1;
    struct sim_second before = ten_seconds(&play->gauge, calm - RECOVERED_S);
    return before.calls == 0 || before.succeeded > before.calls ? 1 : (double)before.succeeded / (double)before.calls;
}

/* The first ten seconds in which, taken together, nearly as large a share of calls succeeded as before. */
static void find_steady_recovery(struct sim_play *play, int64_t from_ns, size_t last)
{
    struct sim_result *result = play->result;
    double enough = usual_share(play) * RECOVERED_PCT / 100;
    for (size_t s = (size_t)(from_ns / BIDE_S); s + RECOVERED_S <= last; s++) {
        struct sim_second sum = ten_seconds(&play->gauge, s);
        if (sum.calls > 0 && (double)sum.succeeded >= enough * (double)sum.calls) {
            int64_t at_ns = (int64_t)s * BIDE_S;
            result->recovers = true;
            result->recover_ns = at_ns > from_ns ? at_ns - from_ns : 0;
            return;
        }
    }
}

/* A herd has recovered when as good as all of it was answered well; the series says when. */
static void find_herd_recovery(struct sim_play *play, int64_t from_ns)
{
    struct sim_result *result = play->result;
    uint64_t succeeded = 0;
    for (size_t i = 0; i < result->points; i++) {
        succeeded += result->point[i].succeeded;
        if (succeeded * 100 < result->calls * RECOVERED_PCT)
            continue;
        int64_t at_ns = (int64_t)(i + 1) * result->bucket_ns;
        result->recovers = true;
        result->recover_ns = at_ns > from_ns ? at_ns - from_ns : 0;
        return;
    }
}

/* It cannot be told if calls go on after the disturbance, but not for long enough. */
static void find_recovery(struct sim_play *play, int64_t last_ns)
{
    struct sim_result *result = play->result;
    int64_t from_ns = disturbed_until(play->world);
    bool herd = last_ns <= from_ns, long_enough = last_ns / BIDE_S >= from_ns / BIDE_S + RECOVERED_S;
    result->recover_ns = -1;
    result->disturbed = from_ns != BIDE_NEVER && result->calls > 0 && (herd || long_enough);
    if (result->disturbed && herd)
        find_herd_recovery(play, from_ns);
    else if (result->disturbed)
        find_steady_recovery(play, from_ns, (size_t)(last_ns / BIDE_S));
}

/* What it has come to: the last quarter of the time in which calls begin, or all of it if that is none (a herd). */
static void find_steady_state(struct sim_play *play, int64_t last_ns)
{
    struct sim_result *result = play->result;
    size_t end = (size_t)(last_ns / BIDE_S), from = end - end / 4;
    uint64_t succeeded = 0, arrivals = 0;
    for (size_t s = from; s < end; s++) {
        succeeded += play->gauge.second[s].succeeded;
        arrivals += play->gauge.second[s].arrivals;
    }
    double seconds = (double)(end - from);
    if (end == from) {
        succeeded = result->succeeded;
        arrivals = result->arrivals;
        seconds = (double)play->now_ns / 1e9;
    }
    result->goodput = seconds > 0 ? (double)succeeded / seconds : 0;
    result->attempt_rate = seconds > 0 ? (double)arrivals / seconds : 0;
}

static void ask_targets(struct sim_play *play)
{
    for (uint32_t g = 0; g < play->world->groups; g++)
        for (uint32_t i = 0; i < play->caller[g].targets; i++) {
            const struct bide_target *target = &play->caller[g].target[i];
            play->result->openings += bide_breaker_get(target).openings_total;
            for (unsigned gate = 0; gate < BIDE_GATE_COUNT; gate++)
                play->result->refused_by[gate] += bide_target_refused(target, (enum bide_gate)(1u << gate));
        }
}

void sim_gauge_finish(struct sim_play *play)
{
    struct sim_result *result = play->result;
    for (size_t w = 0; w < SIM_WIDTHS; w++)
        close_width(play, w);
    sample(play, play->gauge.point, play->now_ns);
    ask_targets(play);
    sim_fleet_finish(play);
    result->ended_ns = play->now_ns;
    result->unfinished = result->calls - result->succeeded - result->gave_up;
    find_recovery(play, play->gauge.last_call_ns);
    find_steady_state(play, play->gauge.last_call_ns);
}

bool sim_gauge_open(struct sim_play *play)
{
    struct sim_gauge *gauge = &play->gauge;
    play->result->bucket_ns = play->world->bucket_ns;
    play->result->budget_low_milli = play->result->budget_end_milli = -1;
    for (size_t w = 0; w < SIM_WIDTHS; w++) {
        gauge->width[w].end_ns = widths_ns[w];
        play->result->peak[w].width_ns = widths_ns[w];
    }
    return add_point(play) && add_second(gauge);
}

void sim_gauge_close(struct sim_play *play)
{
    free(play->gauge.second);
}
