/* schedule.h - when the attempts of a call take place if every attempt fails: windows, means, sums, and the binding
 * limit.
 *
 *     attempt 1 ──fails── wait ── attempt 2 ──fails── wait ── attempt 3 ...
 *
 * Two extremes are computed. At the earliest, every attempt fails at once and every wait is the shortest; at the
 * latest, every attempt times out and every wait is the longest. Hints, hedges and gates are not considered. Sums are
 * exact and saturate at BIDE_NEVER, which also means "no limit". All attempts of the policy are listed, but a wait that
 * would exceed waits_max or the deadline ends the call (or is the last wait): where a limit may bind, the means are
 * those of many seeds, by executing the engine. */
#ifndef EXPLAIN_SCHEDULE_H
#define EXPLAIN_SCHEDULE_H

#include <bide/backoff.h>
#include <bide/policy.h>

#define EXPLAIN_WAITS_MAX 1000u /* listed individually; a policy may allow more */

struct explain_wait {
    uint32_t attempt;         /* the attempt after the wait, from 2 */
    struct bide_range window; /* for decorrelated jitter: over all possible previous waits */
    int64_t mean_ns;
    int64_t earliest_ns; /* earliest start of that attempt, from the beginning of the call */
    int64_t latest_ns;   /* latest start; BIDE_NEVER: an earlier attempt may run for ever */
};

struct explain_schedule {
    struct explain_wait wait[EXPLAIN_WAITS_MAX];
    uint32_t waits;      /* in wait[] */
    uint32_t unlisted;   /* further waits, taken to equal the last listed wait */
    bool underestimates; /* unlisted waits may still grow: the sums are too small */
    uint32_t attempts;   /* of the policy; 1 if its layer rule is never */
    int64_t timeout_ns, deadline_ns, waits_max_ns;
    int64_t waits_mean_ns, waits_worst_ns; /* of all waits, without attempts; limited by waits_max and the deadline */
    int64_t waits_longest_ns;              /* as waits_worst_ns, without the limits */
    int64_t worst_without_deadline_ns;     /* longest waits, every attempt times out, no deadline */
    int64_t worst_ns;                      /* the same, limited by the deadline */
    int64_t slow_mean_ns;                  /* mean waits, every attempt times out, limited by the deadline */
    uint32_t attempts_worst_case;          /* attempts that start before the deadline at the latest */
    uint32_t attempts_best_case;           /* ... at the earliest: more can never start */
};

/* Returns the window of a step; for decorrelated jitter, its union over all possible previous waits. */
struct bide_range explain_window(const struct bide_policy *policy, struct bide_step step);

void explain_schedule(struct explain_schedule *schedule, const struct bide_policy *policy);

/* Returns true if attempts that fail at once may not all take place: the deadline or waits_max may bind. */
bool explain_limits_bind(const struct explain_schedule *schedule);

/* Executes a call whose attempts all fail at once, and returns how many it makes. Seeds 1 to explain_seeds give a
 * mean. */
uint32_t explain_attempts_made(const struct bide_policy *policy, uint64_t seed);
uint32_t explain_seeds(const struct bide_policy *policy);

enum explain_binds {
    EXPLAIN_ATTEMPTS_BIND, /* all attempts start before the deadline in any case */
    EXPLAIN_EITHER_BINDS,  /* attempts if they fail quickly, the deadline if they are slow */
    EXPLAIN_DEADLINE_BINDS /* not all attempts can start before the deadline */
};
enum explain_binds explain_binds(const struct explain_schedule *schedule);

/* The rule of a third: waits and repeated attempts may take a third of the time that the user waits in total; the rest
 * is for the first attempt and the other services on the path. */
struct explain_slo {
    int64_t third_ns;
    int64_t retries_ns;         /* in the worst case, limited by the deadline; BIDE_NEVER: no limit */
    bool fits;                  /* retries_ns <= third_ns */
    uint32_t attempts_that_fit; /* number of attempts that would fit, with all else equal; at least 1 */
};
struct explain_slo explain_slo(const struct explain_schedule *schedule, int64_t slo_ns);

/* Computes the waits that a seed draws if every attempt fails at once, by executing the engine; the deadline may end
 * them. Returns how many, at most `most`. */
uint32_t explain_sample(const struct bide_policy *policy, uint64_t seed, int64_t *wait_ns, uint32_t most);

#endif
