/* rows.h - the targets of one update with their rates, sorted; and the views of the update before, from which the rates
 * come. */
#ifndef TOP_ROWS_H
#define TOP_ROWS_H

#include "budget/list.h"
#include "common/term.h"

#include "rates.h"

struct top_row {
    const struct budget_entry *entry; /* in `list` */
    struct top_rates rates;
};

/* Starts zeroed. */
struct top_rows {
    struct budget_list list;   /* of the last update */
    struct budget_list before; /* of the update before it */
    struct top_row *row;       /* owned; one for each entry of `list` */
    bool no_memory;
};

/* Reads the targets (NULL-terminated names; none: all) again, and calculates the rates since the last time. Returns
 * false after setting *problem. */
bool top_rows_update(struct top_rows *rows, char **names, const char *directory, struct bide_problem *problem);

void top_rows_free(struct top_rows *rows);

/* ---- output ---- */

/* Prints the heading and the first `shown` rows on `term`, each line followed by what `end_line` prints. */
void top_rows_print(const struct top_rows *rows, const struct cli_term *term, size_t shown,
                    void (*end_line)(const struct cli_term *term));

/* Appends one object for each target to the open array. */
void top_rows_json(struct text_json *json, const struct top_rows *rows);

#endif
