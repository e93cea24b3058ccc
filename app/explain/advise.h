/* advise.h - from the number of clients to a kind of jitter: the decision tree, walked.
 *
 *     may the failure go away by itself?            no: do not retry           (the engine asks it of each failure)
 *     is the request safe to repeat?                no: a key, or no retry     (likewise)
 *     how many clients may retry at one moment?     under 10 / to 1000 / more
 *     must there be a least wait?                   yes: equal jitter, which waits half of its envelope at least
 *     is it a long-running job in the background?   yes: decorrelated jitter; no: full jitter, 3 to 5 attempts
 *
 * Where the tree is silent or no longer holds, the step says what bide does instead. What comes out is a policy, made
 * from the one at hand by as few changes as will do, and the changes are named. */
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
    struct conf_pair pair;  /* what is recommended */
    double herd_per_second; /* retries that arrive while the first window lasts, if all clients fail at once; 0: none */
};

void explain_advise(struct explain_advice *advice, const struct explain_subject *subject);

#endif
