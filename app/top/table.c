/* table.c - the table of `bide top`. In a narrow window the columns leave in this order: attempts, the median, rescued
 * calls, the budget, the reason, the breaker. */
#include "common/table.h"

#include "rows.h"
#include "text/unit.h"

#include <inttypes.h>

#define TEXT_SIZE               BUDGET_TEXT_SIZE
#define AMPLIFICATION_RED_MILLI 1200 /* as the alert in docs/alerts.yml */
#define AMPLIFICATION_YELLOW    1100 /* what the budget of the preset service allows for long */
#define FAILED_RED_PERMILLE     10

enum {
    COLUMN_NAME,
    COLUMN_CALLS,
    COLUMN_ATTEMPTS,
    COLUMN_AMPLIFICATION,
    COLUMN_RESCUED,
    COLUMN_FAILED,
    COLUMN_P50,
    COLUMN_P99,
    COLUMN_BUDGET,
    COLUMN_BREAKER,
    COLUMN_REASON,
    COLUMNS
};

static const struct cli_column columns[COLUMNS] = {
    [COLUMN_NAME] = {.head = "target"},
    [COLUMN_CALLS] = {.head = "calls/s", .width = 7, .is_number = true},
    [COLUMN_ATTEMPTS] = {.head = "attempts/s", .width = 10, .leaves = 1, .is_number = true},
    [COLUMN_AMPLIFICATION] = {.head = "ampl.", .width = 5, .is_number = true},
    [COLUMN_RESCUED] = {.head = "rescued", .width = 7, .leaves = 3, .is_number = true},
    [COLUMN_FAILED] = {.head = "failed", .width = 6, .is_number = true},
    [COLUMN_P50] = {.head = "p50", .width = 6, .leaves = 2, .is_number = true},
    [COLUMN_P99] = {.head = "p99", .width = 6, .is_number = true},
    [COLUMN_BUDGET] = {.head = "budget", .width = 9, .leaves = 4},
    [COLUMN_BREAKER] = {.head = "breaker", .width = 9, .leaves = 6},
    [COLUMN_REASON] = {.head = "reason", .width = 14, .leaves = 5},
};

/* ---- cells ---- */

/* Formats a number of parts, `digits` of them behind the point; "-" if it is negative: unknown. From 1000 on it has no
 * decimals. */
static void number_text(char text[TEXT_SIZE], int64_t parts, int digits, const char *unit)
{
    int64_t scale = digits == 2 ? 100 : 10;
    if (parts < 0)
        snprintf(text, TEXT_SIZE, "-");
    else if (parts / scale >= 1000)
        snprintf(text, TEXT_SIZE, "%" PRId64 "%s", parts / scale, unit);
    else
        snprintf(text, TEXT_SIZE, "%" PRId64 ".%0*" PRId64 "%s", parts / scale, digits, parts % scale, unit);
}

static int64_t hundredths(int64_t milli)
{
    return milli >= 0 ? (milli + 5) / 10 : -1;
}

static void quantile_text(char text[TEXT_SIZE], int64_t ns)
{
    char digits[TEXT_VALUE_SIZE];
    if (ns == BIDE_NEVER)
        snprintf(text, TEXT_SIZE, ">%s", text_duration_format_short(digits, bide_meter_bound_ns(BIDE_METER_BINS - 2)));
    else
        snprintf(text, TEXT_SIZE, "%s", ns > 0 ? text_duration_format_short(digits, ns) : "-");
}

/* Writes the text of a column other than the name. Returns it. */
static const char *cell_text(char text[TEXT_SIZE], const struct top_row *row, unsigned column)
{
    const struct top_rates *r = &row->rates;
    if (column == COLUMN_CALLS)
        number_text(text, top_rates_per_second_tenths(r, top_rates_calls(r)), 1, "");
    else if (column == COLUMN_ATTEMPTS)
        number_text(text, top_rates_per_second_tenths(r, r->attempts), 1, "");
    else if (column == COLUMN_AMPLIFICATION)
        number_text(text, hundredths(top_rates_amplification_milli(r)), 2, "");
    else if (column == COLUMN_RESCUED)
        number_text(text, top_rates_rescued_permille(r), 1, "%");
    else if (column == COLUMN_FAILED)
        number_text(text, top_rates_failed_permille(r), 1, "%");
    else if (column == COLUMN_P50 || column == COLUMN_P99)
        quantile_text(text, column == COLUMN_P50 ? r->p50_ns : r->p99_ns);
    else if (column == COLUMN_BUDGET)
        budget_level_text(text, &row->entry->snapshot);
    else if (column == COLUMN_BREAKER)
        budget_breaker_text(text, &row->entry->snapshot);
    else
        snprintf(text, TEXT_SIZE, "%s", r->reason != BIDE_REASON_NOTHING ? bide_reason_label(r->reason) : "-");
    return text;
}

static enum cli_colour cell_colour(const struct top_row *row, unsigned column)
{
    enum bide_breaker_state state = row->entry->snapshot.breaker.state;
    int64_t amplification = top_rates_amplification_milli(&row->rates);
    if (column == COLUMN_AMPLIFICATION && amplification > AMPLIFICATION_YELLOW)
        return amplification > AMPLIFICATION_RED_MILLI ? CLI_RED : CLI_YELLOW;
    if (column == COLUMN_FAILED && top_rates_failed_permille(&row->rates) > FAILED_RED_PERMILLE)
        return CLI_RED;
    if (column == COLUMN_BUDGET && budget_share(&row->entry->snapshot) < 0.1)
        return CLI_YELLOW;
    if (column == COLUMN_BREAKER && state != BIDE_BREAKER_CLOSED)
        return state == BIDE_BREAKER_OPEN || state == BIDE_BREAKER_HELD_OPEN ? CLI_RED : CLI_YELLOW;
    return CLI_PLAIN;
}

/* ---- rows ---- */

static void row_measure(struct cli_table *table, const struct top_row *row)
{
    char text[TEXT_SIZE];
    cli_table_measure(table, COLUMN_NAME, row->entry->name);
    for (unsigned c = COLUMN_NAME + 1; c < COLUMNS && row->entry->is_open; c++)
        cli_table_measure(table, c, cell_text(text, row, c));
}

static void row_print(const struct cli_table *table, const struct top_row *row)
{
    char text[TEXT_SIZE];
    cli_table_put_name(table, row->entry->name);
    for (unsigned c = COLUMN_NAME + 1; c < COLUMNS && row->entry->is_open; c++)
        cli_table_put_cell(table, c, cell_text(text, row, c), cell_colour(row, c));
    if (row->entry->is_open)
        return;
    cli_table_put_gap(table);
    cli_print_sanitized(table->term->out, budget_entry_text(text, row->entry));
}

void top_rows_print(const struct top_rows *rows, const struct cli_term *term, size_t shown,
                    void (*end_line)(const struct cli_term *term))
{
    struct cli_table table;
    cli_table_begin(&table, term, columns, COLUMNS);
    for (size_t i = 0; i < rows->list.count; i++)
        row_measure(&table, &rows->row[i]);
    cli_table_fit(&table);
    cli_table_put_head(&table);
    end_line(term);
    for (size_t i = 0; i < shown; i++) {
        row_print(&table, &rows->row[i]);
        end_line(term);
    }
}
