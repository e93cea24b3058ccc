/* table.h - the table of `bide budget list` and `watch`: a row per target.
 *
 *     target          budget     breaker            hold-off  refused
 *     paymen…gateway  1 of 5     open, 5.17s to go  -               1
 *
 * On a terminal the table fits the width: first the columns shrink to their longest cell, then names are shortened in
 * the middle, then columns are left out: the bar, the hold-off, the budget. The breaker and the refusals always stay.
 * If the output is not a terminal nothing is shortened. */
#ifndef BUDGET_TABLE_H
#define BUDGET_TABLE_H

#include "common/term.h"

#include "list.h"

enum budget_column {
    BUDGET_COLUMN_NAME,
    BUDGET_COLUMN_BAR,
    BUDGET_COLUMN_BUDGET,
    BUDGET_COLUMN_BREAKER,
    BUDGET_COLUMN_HOLD_OFF,
    BUDGET_COLUMN_REFUSED,
    BUDGET_COLUMNS
};

struct budget_table {
    const struct cli_term *term;    /* borrowed */
    unsigned width[BUDGET_COLUMNS]; /* 0: the column is left out */
};

/* Chooses the columns and their widths for these targets, with or without bars. */
void budget_table_fit(struct budget_table *table, const struct cli_term *term, const struct budget_list *list,
                      bool bars);

/* Prints a line without its end. */
void budget_table_put_head(const struct budget_table *table);
void budget_table_put_row(const struct budget_table *table, const struct budget_entry *entry);

#endif
