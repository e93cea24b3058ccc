/* expect.h - expectations of a result, for CI: 'recovers', '!recovers', 'amplification<1.2', 'calls>=1000'.
 *
 *     [ROW:] METRIC                 a flag that must be yes; with ! before it, no
 *     [ROW:] METRIC OP NUMBER       OP is < <= > >= = !=; the number may carry the metric's unit
 *
 * An expectation applies to every row; or to rows with the name or label ROW; or, if there are none, to rows with a
 * label that begins with ROW. With several seeds the worst seed counts: the lowest value for > and >=, the highest for
 * < and <=, both for =; for != the number must lie outside of the range. A metric without a value fails every
 * expectation.
 *
 * A time may have any unit ('latency_p99_ms<1.5s'), a share may be written '95%', thousands '300k' or '2M', a flag
 * 'recovers=yes'. */
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

/* Returns NULL, or a description of the valid form, in memory that the next call overwrites. */
const char *sim_expect_read(struct sim_expect *expect, const char *text);

/* Returns the number of rows it applies to; 0: no row has that name. */
size_t sim_expect_rows(const struct sim_expect *expect, const struct sim_scenario *scenario);

/* Returns true if the expectation holds. Writes a line with row, metric, value and expectation to `text`: "fifo:
 * amplification is 2.01; expected < 1.2". If it fails, of the first row that fails, and how many others do; if it
 * holds, of the row nearest to the limit. Without a row of that name it fails. */
bool sim_expect_holds(const struct sim_expect *expect, const struct sim_batch *batch, char text[256]);

#endif
