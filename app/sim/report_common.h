/* report_common.h - what all reports have in common: which figures are shown, and how what was run is told. */
#ifndef SIM_REPORT_COMMON_H
#define SIM_REPORT_COMMON_H

#include "batch.h"

#define SIM_METRIC_LIST_MAX 32u /* metrics of one choice */
#define SIM_REPORT_TEXT_MAX 256u

struct sim_metric_list {
    size_t metric[SIM_METRIC_LIST_MAX];
    size_t count;
};

/* The scenario's own columns, then arrivals and served: a report shows both, always. */
void sim_metric_list_primary(struct sim_metric_list *list, const struct sim_batch *batch);

/* Further figures that are of use in this batch and not among those: amplification, goodput, recovery, latency, gates.
 * */
void sim_metric_list_secondary(struct sim_metric_list *list, const struct sim_batch *batch,
                               const struct sim_metric_list *first);

/* Those of the names (NULL-terminated) that are above 0 in some row, or have a value at all. */
void sim_metric_list_named(struct sim_metric_list *list, const struct sim_batch *batch, const char *const *names,
                           bool above_zero);

/* Reasons for which calls gave up, and those that did not come to an end; none: all went well. */
#define SIM_GAVE_UP_PREFIX "gave_up_"
void sim_metric_list_give_ups(struct sim_metric_list *list, const struct sim_batch *batch);

void sim_metric_list_append(struct sim_metric_list *list,
                            const struct sim_metric_list *more); /* those that are not in it yet */

const struct sim_figure *sim_batch_figure(const struct sim_batch *batch, size_t row, size_t metric);
size_t sim_metric_by_name(const char *name);                               /* which must be there */
bool sim_batch_has_value(const struct sim_batch *batch, size_t metric);    /* some row has a value */
bool sim_batch_has_positive(const struct sim_batch *batch, size_t metric); /* and one that is not 0 */
size_t sim_batch_plotted_metric(const struct sim_batch *batch);            /* what the picture shows; amplification */

/* Digits behind the point that a column of these figures is told with. */
unsigned sim_batch_digits(const struct sim_batch *batch, size_t metric);

/* Where bars of it end: at the largest mean, of shares at 1; above 0. */
double sim_batch_bar_max(const struct sim_batch *batch, size_t metric);

/* A yes or no as text: "yes", and with several seeds "19 of 20". */
void sim_flag_text(char *text, size_t size, const struct sim_batch *batch, const struct sim_figure *figure);

/* A row as its name (the label, if nothing is swept) and the values of what is swept, "140/s, lifo", and their keys;
 * and the n-th key and value of that. Texts are empty where there is nothing. */
struct sim_label {
    char text[SIM_LABEL_MAX];
};
const char *sim_row_name(const struct sim_row *row);
struct sim_label sim_row_swept_values(const struct sim_row *row);
struct sim_label sim_row_swept_keys(const struct sim_row *row);
struct sim_label sim_row_nth_key(const struct sim_row *row, unsigned n);
struct sim_label sim_row_nth_value(const struct sim_row *row, unsigned n);

/* "open loop", "closed loop", "herd: open loop, users: closed loop". Returns text. */
const char *sim_loop_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_world *world);
bool sim_batch_has_one_loop(const struct sim_batch *batch); /* the same in all rows */

/* "1s", or "1s to 10s" if rows differ. Returns text. */
const char *sim_bin_width_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch);

/* "seed 7", or "seeds 7 to 26". Returns text. */
const char *sim_seeds_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch);

#endif
