/* result.h - the result of a run: counts, peaks, quantiles, a series over time; and every metric of it by name.
 *
 * Words: a call is a logical operation of a client with its retries; an attempt is a request sent for it. Arrivals are
 * attempts that reached the last service of the chain (the leaf), served are those it answered successfully. Wasted is
 * work done for a caller that no longer waited. */
#ifndef SIM_RESULT_H
#define SIM_RESULT_H

#include <bide/verdict.h>

#include "histogram.h"
#include "world.h"

/* The largest count in a bin of a width, and when that bin begins. */
struct sim_peak {
    uint64_t max;
    int64_t at_ns;
};

struct sim_peaks {
    int64_t width_ns;
    struct sim_peak arrivals, retries, served, probes; /* retries: arrivals that are not first attempts */
};

/* One bin of the series. */
struct sim_point {
    uint64_t calls;       /* begun by clients */
    uint64_t attempts;    /* started by clients */
    uint64_t arrivals;    /* at the leaf */
    uint64_t retries;     /* arrivals that are not first attempts */
    uint64_t served;      /* answered successfully by the leaf */
    uint64_t succeeded;   /* calls of clients */
    uint64_t gave_up;     /* calls of clients */
    uint32_t queue;       /* waiting at the leaf, at the end of the bin */
    uint32_t open;        /* client breakers not closed, at the end of the bin */
    int64_t budget_milli; /* mean over the clients' targets, at the end of the bin; -1: no token or window budget */
};

struct sim_result {
    uint64_t seed;
    int64_t ended_ns; /* time of the last event */
    int64_t bin_ns;
    uint64_t events;
    /* of clients */
    uint64_t calls, succeeded, gave_up, unfinished; /* unfinished: still in progress when the run stopped */
    uint64_t attempts, retries, hedges;             /* started by clients: attempts = first attempts + retries +
                                                     * hedges */
    uint64_t reason[BIDE_REASON_COUNT];             /* give-ups by reason */
    uint64_t users,
        users_succeeded; /* fan-out: users, and users with success in all calls; else the same as calls, succeeded */
    struct sim_histogram latency; /* of users that succeeded, from begin to end, waits included */
    /* of the leaf */
    uint64_t arrivals, first_arrivals, served, failed, refused, dropped, wasted, lost;
    struct sim_peaks peak[SIM_BIN_WIDTHS];
    /* gates of the clients' targets */
    uint64_t openings, probes, reopenings; /* breakers: openings; attempts let through half open; openings by a failed
                                            * probe */
    uint64_t refused_by[BIDE_GATE_COUNT];
    int64_t budget_low_milli, budget_end_milli; /* lowest and last mean level; -1: no token or window budget */
    /* leased budgets */
    uint64_t fleet_exchanges, fleet_lost; /* exchanges with the bucket; exchanges without a reply in time */
    uint64_t fleet_peak;                  /* most exchanges in a second */
    uint64_t fleet_joins;                 /* members that began a lease */
    int64_t fleet_leased_milli;           /* granted minus returned */
    int64_t fleet_earned_milli;           /* reported by members as earned */
    int64_t fleet_disconnected_ns;        /* time without a lease, summed over members */
    /* recovery: in a window of 10 s, the share of successful calls is at least 90 % of that in the 10 s before the
     * disturbance */
    bool disturbed; /* there was a disturbance */
    bool recovers;
    int64_t recover_ns;      /* from the end of the disturbance; -1: never */
    double goodput;          /* successful calls a second over the last quarter of the calls' time (steady state) */
    double attempt_rate;     /* arrivals a second in the same time */
    struct sim_point *point; /* owned */
    size_t points;
};

void sim_result_free(struct sim_result *result); /* accepts an empty result */

/* ---- metrics by name: one table for the terminal, CSV, JSON, --expect and the documentation ---- */

struct sim_metric {
    const char *name;  /* "amplification", "peak_served_50ms", "latency_p99_ms", "gave_up_budget_empty" */
    const char *unit;  /* "", "/s", "ms", "s" */
    const char *about; /* one line of help */
    bool flag;         /* a boolean metric: "recovers" */
};

/* Returns the i-th metric; NULL past the last. There is a peak metric for each bin width (peak_served_50ms, and its
 * time peak_served_50ms_at_ms) and a give-up metric for each reason. */
const struct sim_metric *sim_metric(size_t i);
size_t sim_metric_find(const char *name, size_t length); /* SIZE_MAX: not found */
const char *sim_metric_suggest(const char *name, size_t length);

/* Returns the value of a metric; NAN if it is undefined in this result (recover_s of a world that never recovers,
 * latency when no call succeeded). */
double sim_metric_value(const struct sim_result *result, size_t metric);

#endif
