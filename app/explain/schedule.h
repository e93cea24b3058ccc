/* schedule.h - when the attempts of a call happen if every one of them fails: windows, means, sums, and what binds.
 *
 *     attempt 1 ──fails── wait ── attempt 2 ──fails── wait ── attempt 3 ...
 *
 * Two extremes are told apart. At the soonest every attempt fails at once and every wait is its shortest; at the latest
 * every attempt runs into its timeout and every wait is its longest. Hints, hedges and gates are left out: they are
 * other questions. Sums are exact and saturate at BIDE_NEVER, which also stands for "no limit". */
#ifndef EXPLAIN_SCHEDULE_H
#define EXPLAIN_SCHEDULE_H

#include <bide/backoff.h>
#include <bide/policy.h>

#define EXPLAIN_WAITS_MAX 1000u /* told one by one; a policy may allow more */

struct explain_wait {
    uint32_t attempt;         /* the one that follows it, from 2 */
    struct bide_range window; /* of decorrelated jitter: over all waits that can have been before */
    int64_t mean_ns;
    int64_t earliest_ns; /* that attempt starts then at the soonest, after begin */
    int64_t latest_ns;   /* at the latest; BIDE_NEVER: an attempt before it may run for ever */
};

struct explain_schedule {
    struct explain_wait wait[EXPLAIN_WAITS_MAX];
    uint32_t waits;      /* in wait[] */
    uint32_t unlisted;   /* waits beyond those, taken to be as the last one */
    bool underestimates; /* ... though they may still grow: sums are then too small */
    uint32_t attempts;   /* of the policy; 1 if its layer never retries */
    int64_t timeout_ns, deadline_ns;
    int64_t waits_mean_ns, waits_worst_ns; /* waits only, all of them */
    int64_t worst_without_deadline_ns;     /* longest waits and every attempt to its timeout, without the deadline */
    int64_t worst_ns;                      /* the same, cut at the deadline */
    int64_t slow_mean_ns;                  /* mean waits and every attempt to its timeout, cut at the deadline */
    uint32_t attempts_worst_case;          /* attempts that start before the deadline even at the latest */
    uint32_t attempts_best_case;           /* ... at the soonest: more can never start */
};

void explain_schedule(struct explain_schedule *schedule, const struct bide_policy *policy);

enum explain_binds {
    EXPLAIN_ATTEMPTS_BIND, /* all attempts start before the deadline, whatever happens */
    EXPLAIN_EITHER_BINDS,  /* attempts if they fail quickly, the deadline if they are slow */
    EXPLAIN_DEADLINE_BINDS /* never can all attempts be made */
};
enum explain_binds explain_binds(const struct explain_schedule *schedule);

/* The rule of a third: waits and repeated attempts together may take a third of what the user waits in all, so that
 * the first attempt and everybody else on the way have the rest. */
struct explain_slo {
    int64_t third_ns;
    int64_t retries_ns;         /* at the worst, cut at the deadline; BIDE_NEVER: no limit */
    bool fits;                  /* retries_ns <= third_ns */
    uint32_t attempts_that_fit; /* as many attempts as would fit, all else equal; at least 1 */
};
struct explain_slo explain_slo(const struct explain_schedule *schedule, int64_t slo_ns);

/* The waits that one seed draws when every attempt fails at once, asked of the engine itself; the deadline may end
 * them. Returns how many, at most `most`. */
uint32_t explain_sample(const struct bide_policy *policy, uint64_t seed, int64_t *wait_ns, uint32_t most);

#endif
