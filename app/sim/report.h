/* report.h - reports of a batch, in five formats. The same batch gives the same bytes: no date, no path, no duration.
 *
 *     report_table.c    a table for the terminal          uses scale, number
 *     report_csv.c      CSV: rows, or the series          uses number
 *     report_json.c     one JSON object                   uses number
 *     report_svg.c      the picture as a file             uses picture
 *     report_html.c     a page: picture, tables, settings uses picture, number
 *     report_common.c   which metrics a report shows, and texts common to all formats
 *     picture.c         the picture: series, bars or curves, drawn by app/chart         uses scale, number
 *     scale.c           the height of charts and bars over time
 *     number.c          numbers as text
 *     metric.c          the table of all metrics: name, unit, help, value (result.h)
 *     lists.c           catalogue, keys and metrics as JSON, for `bide sim list|keys|metrics --json` */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdio.h>

#include "batch.h"
#include "common/term.h"

/* Prints a table for a terminal: title, question, loop kind, seed, bin width; a line per row with the scenario's
 * columns and a small bar or series; then give-ups by reason. */
void sim_report_table(const struct cli_term *term, const struct sim_batch *batch);

/* Prints one line per row with all metrics; with several seeds also NAME_half for each. An undefined value is empty. */
void sim_report_csv(FILE *out, const struct sim_batch *batch);

/* Prints the series: row, time and the counts of each bin. */
void sim_report_csv_series(FILE *out, const struct sim_batch *batch);

/* {"scenario":…,"title":…,"seed":…,"seeds":…,"bin_s":…,"settings":{…},
 *  "rows":[{"name":…,"label":…,"swept":…,"bin_s":…,"metric":…,…,"half":{"metric":…,…},"series":{"calls":[…],…}}]}
 * Every row has all metrics, null where undefined. A flag is true, false or null; with several seeds it is true if true
 * for each seed, and "recovers_share" is the share of seeds for which it is. With several seeds the other metrics are
 * means and "half" has the half-widths of their intervals; with one seed there is no "half". The series is that of the
 * first seed. */
void sim_report_json(FILE *out, const struct sim_batch *batch);

/* Draw the scenario's picture. Return false without memory. Both adapt to light and dark mode by themselves. */
bool sim_report_svg(FILE *out, const struct sim_batch *batch);
bool sim_report_html(FILE *out, const struct sim_batch *batch);

#endif
