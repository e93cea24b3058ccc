/* summary.h - the metrics that table and page show for each side: name, meaning and formatted value. */
#ifndef DEMO_SUMMARY_H
#define DEMO_SUMMARY_H

#include "report.h"

#define DEMO_METRIC_SIZE 64u

struct demo_metric {
    const char *name;
    const char *means; /* a sentence, for the page */
};

const struct demo_metric *demo_metric(size_t i); /* NULL after the last */

/* Formats the i-th metric of a side. Returns text. */
const char *demo_metric_text(char text[DEMO_METRIC_SIZE], size_t i, const struct demo_result *result, size_t side);

/* Describes the cost of the second side's policy for its own callers in this run, in two lines with `between` between
 * them. Returns text; NULL if there is nothing to report. */
#define DEMO_NOTE_SIZE 320u
const char *demo_cost_note(char text[DEMO_NOTE_SIZE], const struct demo_result *result, const char *between);

#endif
