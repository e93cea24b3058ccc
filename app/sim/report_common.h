/* report_common.h - which metrics a report shows, and texts that all formats share. */
#ifndef SIM_REPORT_COMMON_H
#define SIM_REPORT_COMMON_H

#include "batch.h"

#define SIM_METRIC_LIST_MAX 32u /* metrics of one list */
#define SIM_REPORT_TEXT_MAX 256u

struct sim_metric_list {
    size_t metric[SIM_METRIC_LIST_MAX];
    size_t count;
};

/* Lists the scenario's columns, then arrivals and served, which every report shows. */
void sim_metric_list_primary(struct sim_metric_list *list, const struct sim_batch *batch);

/* Lists further metrics that have values in this batch and are not in `first`: amplification, goodput, recovery,
 * latency, gates. */
void sim_metric_list_secondary(struct sim_metric_list *list, const struct sim_batch *batch,
                               const struct sim_metric_list *first);

/* Lists those of the names (NULL-terminated) that are above 0, or have a value at all, in some row. */
void sim_metric_list_named(struct sim_metric_list *list, const struct sim_batch *batch, const char *const *names,
                           bool above_zero);

/* Lists the give-up reasons that occurred, and unfinished calls; empty if every call succeeded. */
#define SIM_GAVE_UP_PREFIX "gave_up_"
void sim_metric_list_give_ups(struct sim_metric_list *list, const struct sim_batch *batch);

void sim_metric_list_append(struct sim_metric_list *list, const struct sim_metric_list *more); /* without duplicates */

const struct sim_figure *sim_batch_figure(const struct sim_batch *batch, size_t row, size_t metric);
size_t sim_metric_by_name(const char *name);                               /* the name must exist */
bool sim_batch_has_value(const struct sim_batch *batch, size_t metric);    /* in some row */
bool sim_batch_has_positive(const struct sim_batch *batch, size_t metric); /* a value above 0, in some row */
size_t sim_batch_plotted_metric(const struct sim_batch *batch);            /* `plot`; else amplification */

/* Returns the number of decimals for a column of this metric. */
unsigned sim_batch_digits(const struct sim_batch *batch, size_t metric);

/* Returns the end of the scale of bars: the largest mean, 1 for shares; above 0. */
double sim_batch_bar_max(const struct sim_batch *batch, size_t metric);

/* Writes a flag: "yes", or with several seeds "19 of 20". */
void sim_flag_text(char *text, size_t size, const struct sim_batch *batch, const struct sim_figure *figure);

/* The name of a row (without a sweep, its label), the swept values "140/s, lifo" and their keys, and the n-th of these
 * keys and values. Missing texts are empty. */
struct sim_label {
    char text[SIM_LABEL_MAX];
};
const char *sim_row_name(const struct sim_row *row);
struct sim_label sim_row_swept_values(const struct sim_row *row);
struct sim_label sim_row_swept_keys(const struct sim_row *row);
struct sim_label sim_row_nth_key(const struct sim_row *row, unsigned n);
struct sim_label sim_row_nth_value(const struct sim_row *row, unsigned n);

/* Writes "open loop", "closed loop" or "herd: open loop, users: closed loop". Returns text. */
const char *sim_loop_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_world *world);
bool sim_batch_has_one_loop(const struct sim_batch *batch); /* the text is the same for all rows */
const char *sim_batch_loop_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch); /* that of all rows */

int64_t sim_batch_longest_ns(const struct sim_batch *batch); /* length of the longest series; above 0 */

/* Writes the bin width: "1s", or "1s to 10s" if rows differ. Returns text. */
const char *sim_bin_width_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch);

/* Writes "seed 7" or "seeds 7 to 26". Returns text. */
const char *sim_seeds_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch);

#endif
