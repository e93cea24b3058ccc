/* dry_run.h - predicts the engine's verdict for an outcome, and its reason, by executing the engine.
 *
 * A case is a call at its n-th attempt, a fresh target, and the outcome of that attempt. The engine is led there by
 * failures that any request may retry, and gets the outcome; nothing here decides. The engine is executed for three
 * purposes:
 *   - the verdict itself;
 *   - each gate alone: all other gates are loosened, so the verdict is that of the remaining gate;
 *   - changes: a setting is changed, then two settings, until the verdict is a retry. */
#ifndef EXPLAIN_DRY_RUN_H
#define EXPLAIN_DRY_RUN_H

#include <bide/backoff.h>
#include <bide/call.h>

#include "conf/conf.h"

struct explain_case {
    struct conf_pair pair;
    struct bide_request request; /* its deadline is 0: that of the policy applies */
    struct bide_outcome outcome;
    uint32_t attempt;   /* the attempt that ended with the outcome, from 1 */
    int64_t elapsed_ns; /* since the call began */
};

struct explain_prediction {
    struct bide_verdict verdict;
    struct bide_range wait; /* for WAIT: the window over all seeds */
    int64_t wait_ns;        /* for WAIT: the wait drawn by this seed */
    int64_t elapsed_ns;     /* as given, or more if the earlier waits took longer */
    bool reached;           /* false: the call ended before that attempt, with this verdict */
};

void explain_dry_run(struct explain_prediction *prediction, const struct explain_case *situation);

/* ---- gates ---- */

enum explain_gate_result {
    EXPLAIN_PASSES,
    EXPLAIN_REFUSES,          /* and decides */
    EXPLAIN_WOULD_REFUSE_TOO, /* would refuse, but an earlier gate decided */
    EXPLAIN_ONLY_OBSERVES,    /* would refuse, but is in observe mode */
};

struct explain_gate {
    const char *name;     /* "repeat" */
    const char *question; /* "is the request safe to repeat?" */
    enum explain_gate_result result;
    enum bide_reason reason; /* of a refusal */
};
#define EXPLAIN_GATES 13u

/* Fills the gates in the order in which the engine applies them. */
void explain_gates(struct explain_gate gates[EXPLAIN_GATES], const struct explain_case *situation);

/* ---- changes that lead to a retry ---- */

#define EXPLAIN_CHANGES_MAX 4u

struct explain_change {
    char text[160]; /* "with an idempotency key it would be retried" */
};

/* Returns how many changes were found. Each of them leads to a retry, alone or, if none does alone, as a pair. For a
 * case that is retried anyway, the change is a condition that would prevent it. */
size_t explain_changes(struct explain_change changes[EXPLAIN_CHANGES_MAX], const struct explain_case *situation);

/* ---- classes of failure ---- */

#define EXPLAIN_CLASSES   8u  /* without a list of statuses */
#define EXPLAIN_STATUSES  12u /* with a list */
#define EXPLAIN_EXITS_MAX 16u /* more, with a list of exit statuses */
#define EXPLAIN_ROWS_MAX  (EXPLAIN_STATUSES + EXPLAIN_EXITS_MAX)
#define EXPLAIN_COLUMNS   9u

struct explain_class {
    char name[24];        /* "throttled" */
    const char *examples; /* "429" */
    struct explain_prediction cell[EXPLAIN_COLUMNS];
};

struct explain_column {
    enum bide_safety safety;
    enum bide_evidence evidence;
};
extern const struct explain_column explain_columns[EXPLAIN_COLUMNS];

/* Predicts the verdict for a first attempt of each class of failure, by safety and evidence. A policy with a list of
 * statuses assigns statuses to classes by itself: its rows are common statuses instead. A list of exit statuses adds
 * rows for common exit statuses and for the numbers of the list, as far as there is room. Returns how many rows. */
size_t explain_classes(struct explain_class classes[EXPLAIN_ROWS_MAX], const struct conf_policy *policy, uint64_t seed);

#endif
