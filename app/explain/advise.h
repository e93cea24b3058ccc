/* advise.h - advice from a decision tree: from the number of clients to a kind of jitter and the gates.
 *
 *     may the failure go away by itself?            no: do not retry           (decided by the engine for each failure)
 *     is the request safe to repeat?                no: a key, or no retry     (likewise)
 *     how many clients may retry at one moment?     under 10 / to 1000 / more
 *     is a minimum wait required?                   yes: equal jitter, which waits at least half of its envelope
 *     is it a long-running background job?          yes: decorrelated jitter; no: full jitter, 3 to 5 attempts
 *
 * Where bide deviates from the tree, a remark says so. The result is a policy with as few changes as possible to the
 * given policy; the changes are listed. */
#ifndef EXPLAIN_ADVISE_H
#define EXPLAIN_ADVISE_H

#include "subject.h"

#define EXPLAIN_STEPS_MAX   8u
#define EXPLAIN_REMARKS_MAX 4u

struct explain_branch {
    const char *question;
    char answer[128]; /* "1000: full jitter" */
};

struct explain_remark {
    char text[224];
};

struct explain_advice {
    struct explain_branch branch[EXPLAIN_STEPS_MAX];
    size_t branches;
    struct explain_remark remark[EXPLAIN_REMARKS_MAX];
    size_t remarks;
    struct conf_pair pair;  /* the recommended policy */
    double herd_per_second; /* thundering herd: arrivals in the first window if all clients fail at once; 0: unknown */
};

void explain_advise(struct explain_advice *advice, const struct explain_subject *subject);

#endif
