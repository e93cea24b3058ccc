/* outcome.h - what the engine would do with one outcome, and why: by asking it.
 *
 * A case is a call that has come to its n-th attempt, a fresh target, and the outcome of that attempt. The engine is
 * brought there (by failures that any request survives) and told the outcome; nothing here decides. Three questions are
 * put that way:
 *   - the answer itself;
 *   - each gate alone: everything else is loosened, and what the engine then says is that gate's word;
 *   - what would change the answer: one thing is changed, then two, until the engine says otherwise. */
#ifndef EXPLAIN_DRY_RUN_H
#define EXPLAIN_DRY_RUN_H

#include <bide/backoff.h>
#include <bide/call.h>

#include "conf/field.h"

struct explain_case {
    struct conf_pair pair;
    struct bide_request request; /* its deadline is left 0: the policy's counts */
    struct bide_outcome outcome;
    uint32_t attempt;   /* that ended so, from 1 */
    int64_t elapsed_ns; /* since begin */
};

struct explain_prediction {
    struct bide_verdict verdict;
    struct bide_range wait; /* WAIT: what is drawn from, over all seeds */
    int64_t wait_ns;        /* WAIT: what this seed draws */
    int64_t elapsed_ns;     /* as asked for, or more: the waits before took that long */
    bool reached;           /* false: the call was over before that attempt, and the verdict is of then */
};

void explain_dry_run(struct explain_prediction *prediction, const struct explain_case *situation);

/* ---- gates ---- */

enum explain_gate_result {
    EXPLAIN_PASSES,
    EXPLAIN_REFUSES,          /* and so decides */
    EXPLAIN_WOULD_REFUSE_TOO, /* would refuse as well, but was not asked any more */
    EXPLAIN_ONLY_OBSERVES,    /* would refuse, if it did not only observe */
};

struct explain_gate {
    const char *name;     /* "repeat" */
    const char *question; /* "may it be repeated?" */
    enum explain_gate_result result;
    enum bide_reason reason; /* of a refusal */
};
#define EXPLAIN_GATES 12u

/* In the order in which the engine asks. */
void explain_gates(struct explain_gate gates[EXPLAIN_GATES], const struct explain_case *situation);

/* ---- what would change it ---- */

#define EXPLAIN_CHANGES_MAX 4u

struct explain_change {
    char text[160]; /* "with an idempotency key: it would be retried" */
};

/* Returns how many; each alone (or, where nothing alone helps, as a pair) turns the answer round. */
size_t explain_changes(struct explain_change changes[EXPLAIN_CHANGES_MAX], const struct explain_case *situation);

/* ---- classes of failure ---- */

#define EXPLAIN_CLASSES 8u
#define EXPLAIN_COLUMNS 9u

struct explain_class {
    const char *name;     /* "throttled" */
    const char *examples; /* "429" */
    struct explain_prediction cell[EXPLAIN_COLUMNS];
};

struct explain_column {
    enum bide_safety safety;
    enum bide_evidence evidence;
};
extern const struct explain_column explain_columns[EXPLAIN_COLUMNS];

/* What a first attempt that fails so would come to: class by safety and reach. */
void explain_classes(struct explain_class classes[EXPLAIN_CLASSES], const struct conf_pair *pair, uint64_t seed);

#endif
