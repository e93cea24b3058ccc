/* table.c - the table of targets; see table.h. */
#include "table.h"

#include <inttypes.h>

#define BAR_CELLS 10u

enum { COLUMN_NAME, COLUMN_BAR, COLUMN_BUDGET, COLUMN_BREAKER, COLUMN_HOLD_OFF, COLUMN_REFUSED, COLUMNS };

static const struct cli_column columns[COLUMNS] = {
    [COLUMN_NAME] = {.head = "target"},
    [COLUMN_BAR] = {.head = "", .leaves = 1},
    [COLUMN_BUDGET] = {.head = "budget", .width = 22, .leaves = 3},
    [COLUMN_BREAKER] = {.head = "breaker", .width = 18},
    [COLUMN_HOLD_OFF] = {.head = "hold-off", .width = 12, .leaves = 2},
    [COLUMN_REFUSED] = {.head = "refused", .width = 7, .is_number = true},
};

/* ---- cells ---- */

/* Returns the text of a column other than name and bar. */
static const char *cell_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot, unsigned column)
{
    if (column == COLUMN_BUDGET)
        return budget_funding_text(text, snapshot);
    if (column == COLUMN_BREAKER)
        return budget_breaker_text(text, snapshot);
    if (column == COLUMN_HOLD_OFF)
        return budget_hold_off_text(text, snapshot);
    snprintf(text, BUDGET_TEXT_SIZE, "%" PRIu64, snapshot->refused_all);
    return text;
}

static void row_measure(struct cli_table *table, const struct budget_entry *entry)
{
    char text[BUDGET_TEXT_SIZE];
    cli_table_measure(table, COLUMN_NAME, entry->name);
    for (unsigned c = COLUMN_BUDGET; c < COLUMNS && entry->is_open; c++)
        cli_table_measure(table, c, cell_text(text, &entry->snapshot, c));
}

void budget_table_fit(struct cli_table *table, const struct cli_term *term, const struct budget_list *list, bool bars)
{
    cli_table_begin(table, term, columns, COLUMNS);
    cli_table_reserve(table, COLUMN_BAR, bars ? BAR_CELLS : 0);
    for (size_t i = 0; i < list->count; i++)
        row_measure(table, &list->entry[i]);
    cli_table_fit(table);
}

/* ---- output ---- */

static enum cli_colour snapshot_colour(const struct budget_snapshot *snapshot)
{
    enum bide_breaker_state state = snapshot->breaker.state;
    if (state == BIDE_BREAKER_OPEN || state == BIDE_BREAKER_HELD_OPEN)
        return CLI_RED;
    if (state == BIDE_BREAKER_HALF_OPEN || snapshot->hold_off_for_ns > 0 || budget_share(snapshot) < 0.1)
        return CLI_YELLOW;
    return CLI_GREEN;
}

void budget_table_put_row(const struct cli_table *table, const struct budget_entry *entry)
{
    char text[BUDGET_TEXT_SIZE], bar[4 * BAR_CELLS + 1];
    cli_table_put_name(table, entry->name);
    if (!entry->is_open) {
        cli_table_put_gap(table);
        cli_print_sanitized(table->term->out, bide_shared_reason_text((enum bide_shared_reason)entry->problem.reason));
        return;
    }
    cli_bar(table->term, bar, BAR_CELLS, budget_share(&entry->snapshot), 1);
    cli_table_put_cell(table, COLUMN_BAR, bar, snapshot_colour(&entry->snapshot));
    for (unsigned c = COLUMN_BUDGET; c < COLUMNS; c++)
        cli_table_put_cell(table, c, cell_text(text, &entry->snapshot, c), CLI_PLAIN);
}
