/* expect.h - what must be true of a result, for CI: 'recovers', '!recovers', 'amplification<1.2', 'calls>=1000'.
 *
 *     [ROW:] METRIC                 a flag that must be yes; with ! before it, no
 *     [ROW:] METRIC OP NUMBER       OP is < <= > >= = !=; the number may have the metric's unit behind it
 *
 * It is asked of every row, or of those whose name or label is ROW, or if there is none, of those whose label begins
 * so. With several seeds it is asked of the worst: the least value for > and >=, the most for < and <=, both for =, and
 * for != the number must lie outside of both. A value that is not there fails every question.
 *
 * A time may be written with any unit ('latency_p99_ms<1.5s'), a share as '95%', thousands as '300k' or '2M', a flag
 * also as 'recovers=yes'. */
#ifndef SIM_EXPECT_H
#define SIM_EXPECT_H

#include "batch.h"

enum sim_operator {
    SIM_OP_IS_YES,
    SIM_OP_IS_NO,
    SIM_OP_LESS,
    SIM_OP_LESS_EQUAL,
    SIM_OP_MORE,
    SIM_OP_MORE_EQUAL,
    SIM_OP_EQUAL,
    SIM_OP_UNEQUAL,
};

struct sim_expect {
    char row[SIM_LABEL_MAX]; /* empty: every row */
    size_t metric;
    enum sim_operator op;
    double number;
};

/* NULL, or what would be right, in memory that the next call uses again. */
const char *sim_expect_read(struct sim_expect *expect, const char *text);

/* How many rows it is asked of; 0: it names none that there is. */
size_t sim_expect_rows(const struct sim_expect *expect, const struct sim_scenario *scenario);

/* True if it holds. `said` names the row, the metric, its value and what was expected:
 * "fifo: amplification is 2.01; expected < 1.2", of the first row where it does not hold and how many others there are;
 * or, if it holds, of the row that comes nearest to the limit. No row of that name is a failure too. */
bool sim_expect_holds(const struct sim_expect *expect, const struct sim_batch *batch, char text[256]);

#endif
