/* table.c - the table of targets; see table.h. */
#include "table.h"

#include "core/saturate.h"

#include <inttypes.h>

#define BAR_CELLS  10u
#define GAP        2u
#define NAME_MIN   12u /* a column is left out before names become shorter than this */
#define NAME_LEAST 4u

static const struct column {
    const char *head;
    unsigned width; /* where there is room, so that columns do not move when a state changes */
} columns[BUDGET_COLUMNS] = {
    [BUDGET_COLUMN_NAME] = {"target", 0},        [BUDGET_COLUMN_BAR] = {"", BAR_CELLS},
    [BUDGET_COLUMN_BUDGET] = {"budget", 22},     [BUDGET_COLUMN_BREAKER] = {"breaker", 18},
    [BUDGET_COLUMN_HOLD_OFF] = {"hold-off", 12}, [BUDGET_COLUMN_REFUSED] = {"refused", 7},
};

/* ---- cells ---- */

/* Returns the text of a column other than name and bar. */
static const char *cell_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot, unsigned column)
{
    if (column == BUDGET_COLUMN_BUDGET)
        return budget_funding_text(text, snapshot);
    if (column == BUDGET_COLUMN_BREAKER)
        return budget_breaker_text(text, snapshot);
    if (column == BUDGET_COLUMN_HOLD_OFF)
        return budget_hold_off_text(text, snapshot);
    snprintf(text, BUDGET_TEXT_SIZE, "%" PRIu64, snapshot->refused_all);
    return text;
}

static unsigned cell_width(const struct budget_entry *entry, unsigned column)
{
    char text[BUDGET_TEXT_SIZE];
    if (column == BUDGET_COLUMN_NAME)
        return (unsigned)cli_text_columns(entry->name);
    if (column == BUDGET_COLUMN_BAR || !entry->is_open)
        return 0;
    return (unsigned)cli_text_columns(cell_text(text, &entry->snapshot, column));
}

/* ---- widths ---- */

/* Returns the width of the longest cell and the heading. */
static unsigned column_needs(const struct budget_list *list, unsigned column)
{
    unsigned most = column == BUDGET_COLUMN_BAR ? BAR_CELLS : (unsigned)cli_text_columns(columns[column].head);
    for (size_t i = 0; i < list->count; i++)
        most = (unsigned)core_max(most, cell_width(&list->entry[i], column));
    return most;
}

/* Returns the width of the columns after the name, each with its gap. */
static unsigned width_beside_name(const struct budget_table *table)
{
    unsigned sum = 0;
    for (unsigned c = BUDGET_COLUMN_NAME + 1; c < BUDGET_COLUMNS; c++)
        sum += table->width[c] > 0 ? GAP + table->width[c] : 0;
    return sum;
}

/* Makes the table at most `room` columns wide, if the breaker, the refusals and a short name fit into them. */
static void table_shrink(struct budget_table *table, const unsigned needs[BUDGET_COLUMNS], unsigned room)
{
    static const unsigned dispensable[] = {BUDGET_COLUMN_BAR, BUDGET_COLUMN_HOLD_OFF, BUDGET_COLUMN_BUDGET};
    unsigned name = needs[BUDGET_COLUMN_NAME] < NAME_MIN ? needs[BUDGET_COLUMN_NAME] : NAME_MIN;
    for (unsigned c = BUDGET_COLUMN_NAME + 1; c < BUDGET_COLUMNS; c++)
        if (table->width[c] > 0)
            table->width[c] = needs[c];
    for (size_t i = 0; i < sizeof dispensable / sizeof *dispensable && name + width_beside_name(table) > room; i++)
        table->width[dispensable[i]] = 0;
    unsigned beside = width_beside_name(table), left = room > beside ? room - beside : 0;
    table->width[BUDGET_COLUMN_NAME] = (unsigned)core_min(needs[BUDGET_COLUMN_NAME], core_max(left, NAME_LEAST));
}

void budget_table_fit(struct budget_table *table, const struct cli_term *term, const struct budget_list *list,
                      bool bars)
{
    unsigned needs[BUDGET_COLUMNS], room = term->width - 1; /* some terminals wrap after the last column */
    table->term = term;
    for (unsigned c = 0; c < BUDGET_COLUMNS; c++) {
        needs[c] = column_needs(list, c);
        table->width[c] = (unsigned)core_max(needs[c], columns[c].width);
    }
    if (!bars)
        table->width[BUDGET_COLUMN_BAR] = 0;
    if (term->is_terminal && table->width[BUDGET_COLUMN_NAME] + width_beside_name(table) > room)
        table_shrink(table, needs, room);
}

/* ---- output ---- */

static void put_blanks(FILE *out, unsigned count)
{
    fprintf(out, "%*s", (int)count, "");
}

/* The refusals are numbers, aligned to the right; the last column has no blanks after it. */
static void table_put_cell(const struct budget_table *table, unsigned column, const char *text)
{
    int width = (int)table->width[column];
    if (width > 0)
        fprintf(table->term->out, "%*s%*s", (int)GAP, "", column == BUDGET_COLUMN_REFUSED ? width : -width, text);
}

void budget_table_put_head(const struct budget_table *table)
{
    FILE *out = table->term->out;
    fprintf(out, "%s%-*s", cli_colour(table->term, CLI_DIM), (int)table->width[BUDGET_COLUMN_NAME],
            table->width[BUDGET_COLUMN_NAME] < sizeof "target" - 1 ? "" : "target");
    for (unsigned c = BUDGET_COLUMN_NAME + 1; c < BUDGET_COLUMNS; c++)
        table_put_cell(table, c, columns[c].head);
    fputs(cli_colour(table->term, CLI_PLAIN), out);
}

static enum cli_colour snapshot_colour(const struct budget_snapshot *snapshot)
{
    enum bide_breaker_state state = snapshot->breaker.state;
    if (state == BIDE_BREAKER_OPEN || state == BIDE_BREAKER_HELD_OPEN)
        return CLI_RED;
    if (state == BIDE_BREAKER_HALF_OPEN || snapshot->hold_off_for_ns > 0 || budget_share(snapshot) < 0.1)
        return CLI_YELLOW;
    return CLI_GREEN;
}

static void table_put_bar(const struct budget_table *table, const struct budget_snapshot *snapshot)
{
    char bar[4 * BAR_CELLS + 1];
    if (table->width[BUDGET_COLUMN_BAR] == 0)
        return;
    cli_bar(table->term, bar, BAR_CELLS, budget_share(snapshot), 1);
    put_blanks(table->term->out, GAP);
    fprintf(table->term->out, "%s%s%s", cli_colour(table->term, snapshot_colour(snapshot)), bar,
            cli_colour(table->term, CLI_PLAIN));
    put_blanks(table->term->out, BAR_CELLS - (unsigned)cli_text_columns(bar));
}

void budget_table_put_row(const struct budget_table *table, const struct budget_entry *entry)
{
    FILE *out = table->term->out;
    char text[BUDGET_TEXT_SIZE];
    unsigned name = table->width[BUDGET_COLUMN_NAME];
    put_blanks(out, name - cli_print_shortened(table->term, entry->name, name));
    if (!entry->is_open) {
        put_blanks(out, GAP);
        cli_print_sanitized(out, bide_shared_reason_text((enum bide_shared_reason)entry->problem.reason));
        return;
    }
    table_put_bar(table, &entry->snapshot);
    for (unsigned c = BUDGET_COLUMN_BUDGET; c < BUDGET_COLUMNS; c++)
        table_put_cell(table, c, cell_text(text, &entry->snapshot, c));
}
