/* figures.h - the rows of the table: name, and how each side's value is told. Page and terminal have the same. */
#ifndef DEMO_SUMMARY_H
#define DEMO_SUMMARY_H

#include "report.h"

#define DEMO_METRIC_SIZE 64u

struct demo_metric {
    const char *name;
    const char *means; /* a sentence, for the page */
    const char *(*format)(char text[DEMO_METRIC_SIZE], const struct demo_result *result,
                          const struct demo_counters *counters);
};

const struct demo_metric *demo_metric(size_t i); /* NULL past the last */

/* What the second side's policy has cost its own callers in this run: two lines with this between them. Returns text;
 * NULL: nothing to tell. */
#define DEMO_NOTE_SIZE 320u
const char *demo_cost_note(char text[DEMO_NOTE_SIZE], const struct demo_result *result, const char *between);

/* "1.03": always so many digits after the point, the same in every locale. Returns text. */
const char *demo_fixed(char text[DEMO_METRIC_SIZE], double value, unsigned digits);

#endif
