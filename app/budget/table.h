/* table.h - the table of `bide budget list` and `watch`: a row per target.
 *
 * In a narrow window the bar, the hold-off and the budget are left out, in this order. The breaker and the refusals
 * always stay. */
#ifndef BUDGET_TABLE_H
#define BUDGET_TABLE_H

#include "common/table.h"

#include "list.h"

/* Chooses the columns and their widths for these targets, with or without bars. */
void budget_table_fit(struct cli_table *table, const struct cli_term *term, const struct budget_list *list, bool bars);

void budget_table_put_row(const struct cli_table *table, const struct budget_entry *entry);

#endif
