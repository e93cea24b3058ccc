/* result.h - what a run came to: counts, peaks, quantiles, a series over time; and every figure of it by name.
 *
 * The words: a call is a first try and what follows it. An attempt is one request sent for it. Arrivals are attempts
 * that reached the service, served are those it answered well; both are of the last service that attempts reach (the
 * leaf), while calls are those of the clients. Wasted is work done for somebody who no longer waited. */
#ifndef SIM_RESULT_H
#define SIM_RESULT_H

#include <bide/verdict.h>

#include "histogram.h"
#include "world.h"

/* The most arrivals (or ...) in one bucket of a width, and when that bucket begins. */
struct sim_peak {
    uint64_t most;
    int64_t at_ns;
};

struct sim_peaks {
    int64_t width_ns;
    struct sim_peak arrivals, retries, served, probes; /* retries: arrivals that are not first attempts */
};

/* One bucket of the series. */
struct sim_point {
    uint64_t calls;       /* begun by clients */
    uint64_t attempts;    /* started by clients */
    uint64_t arrivals;    /* at the leaf */
    uint64_t retries;     /* of those, not first attempts */
    uint64_t served;      /* answered well by the leaf */
    uint64_t succeeded;   /* calls of clients */
    uint64_t gave_up;     /* calls of clients */
    uint32_t queue;       /* waiting at the leaf, at the end of the bucket */
    uint32_t open;        /* breakers of clients not closed, then */
    int64_t budget_milli; /* mean left over the clients' targets, then; -1: there is no budget of tokens or window */
};

struct sim_result {
    uint64_t seed;
    int64_t ended_ns; /* the last event */
    int64_t bin_ns;
    uint64_t events;
    /* of clients */
    uint64_t calls, succeeded, gave_up, unfinished; /* unfinished: still going when the run was stopped */
    uint64_t attempts, retries, hedges;             /* started by clients: attempts = first ones + retries + hedges */
    uint64_t reason[BIDE_REASON_COUNT];             /* give-ups by reason */
    uint64_t users,
        users_succeeded; /* fan-out: users' calls, and those whose calls all succeeded; else as calls, succeeded */
    struct sim_histogram latency; /* of users' calls that succeeded, from begin to end; waits included */
    /* of the leaf */
    uint64_t arrivals, first_arrivals, served, failed, refused, dropped, wasted, lost;
    struct sim_peaks peak[SIM_BIN_WIDTHS];
    /* gates of the clients' targets */
    uint64_t openings, probes, reopenings; /* breakers: opened; attempts let through half open; opened by a probe */
    uint64_t refused_by[BIDE_GATE_COUNT];
    int64_t budget_low_milli, budget_end_milli; /* least and last mean level; -1: no such budget */
    /* leased budgets */
    uint64_t fleet_exchanges, fleet_lost; /* that the bucket took part in; that had no answer */
    uint64_t fleet_peak;                  /* the most of the former in one second */
    int64_t fleet_leased_milli;           /* granted, less what was given back */
    int64_t fleet_earned_milli;           /* reported as earned */
    int64_t fleet_disconnected_ns;        /* that instances went on alone, added up */
    /* recovery: of the calls of 10 s, 90 % as large a share succeeded as in the 10 s before the disturbance */
    bool disturbed; /* there was something to recover from */
    bool recovers;
    int64_t recover_ns;      /* after the disturbance ended; -1: never */
    double goodput;          /* succeeded calls a second over the last quarter of the calls' time (steady state) */
    double attempt_rate;     /* arrivals a second then */
    struct sim_point *point; /* owned */
    size_t points;
};

void sim_result_free(struct sim_result *result); /* accepts an empty one */

/* ---- every figure by name: one table for the terminal, CSV, JSON, --expect and the docs ---- */

struct sim_metric {
    const char *name;  /* "amplification", "peak_served_50ms", "latency_p99_ms", "gave_up_budget_empty" */
    const char *unit;  /* "", "/s", "ms", "s" */
    const char *about; /* one line */
    bool flag;         /* yes or no: "recovers" */
};

/* The i-th metric; NULL past the last. Those of peaks are there for each width (peak_served_50ms and when it was,
 * peak_served_50ms_at_ms), those of give-ups for each reason. */
const struct sim_metric *sim_metric(size_t i);
size_t sim_metric_find(const char *name, size_t length); /* SIZE_MAX: there is none */
const char *sim_metric_suggest(const char *name, size_t length);

/* Its value; NAN if it has none in this result (recover_s of what never recovers, latency when nothing succeeded). */
double sim_metric_value(const struct sim_result *result, size_t metric);

#endif
