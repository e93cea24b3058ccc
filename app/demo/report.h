/* report.h - the results of a demo, and their three forms: table and JSON object (summary.c), HTML page with charts
 * (report.c). */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <stdio.h>

#include "chart/page.h"
#include "counters.h"

#define DEMO_REPORT_MARK CHART_PAGE_MARK("demo") /* first line of the page */

struct demo_side_result {
    const struct demo_client *client;
    struct demo_counters counters;
    int64_t late_ns; /* see demo_side_late_ns */
};

struct demo_result {
    const struct demo_scenario *scenario;
    const char *policy;  /* name of the second side's policy */
    const char *options; /* options of a command that repeats it: "--policy payments --set attempts=2"; NULL: unknown */
    int64_t made_s;      /* wall clock; 0: unknown */
    struct demo_side_result side[2];
};

/* Writes a table of 80 columns. */
void demo_table(FILE *out, const struct demo_result *result);

/* Writes a JSON object, on a single line. */
void demo_json(FILE *out, const struct demo_result *result);

/* Writes a self-contained HTML page. Returns false, with an incomplete page, if there is no memory. */
bool demo_report(FILE *out, const struct demo_result *result);

#endif
