/* report.h - what a batch came to, for five kinds of reader. Same batch, same bytes: no date, no path, no duration. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdio.h>

#include "batch.h"

/* For a terminal: title, question, loop kind, seed, bucket width; a line per row with the scenario's columns and a
 * small bar of the metric that it plots; then give-ups by reason. `colour` and `utf8` as the terminal has them. */
struct sim_table_style {
    unsigned columns;
    bool colour, utf8;
};
void sim_report_table(FILE *out, const struct sim_batch *batch, const struct sim_table_style *style);

/* One line per row, all metrics; with several seeds also NAME_half for each. A value that is not there is empty. */
void sim_report_csv(FILE *out, const struct sim_batch *batch);

/* The series instead: row, time, and what happened in each bucket. */
void sim_report_csv_series(FILE *out, const struct sim_batch *batch);

/* {"scenario":…,"title":…,"seed":…,"seeds":…,"bucket_s":…,"settings":{…},
 *  "rows":[{"name":…,"label":…,"swept":…,"bucket_s":…,"metric":…,…,"half":{"metric":…,…},"series":{"calls":[…],…}}]}
 * All metrics are in every row, null where there is no value. A flag is true, false or null, with several seeds true if
 * it is so in each, and "recovers_share" is the share of seeds in which it is. With several seeds the others are means,
 * and "half" has half of each interval; with one seed there is no "half". The series is that of the first seed. */
void sim_report_json(FILE *out, const struct sim_batch *batch);

/* The scenario's picture; false: no memory. Both read well in light and dark by themselves. */
bool sim_report_svg(FILE *out, const struct sim_batch *batch);
bool sim_report_html(FILE *out, const struct sim_batch *batch);

#endif
