/* table.c - see table.h. */
#include "table.h"

#include "core/saturate.h"

#include <assert.h>
#include <string.h>

#define GAP        2u
#define NAME       0u
#define NAME_MIN   12u /* a column is left out before names become shorter than this */
#define NAME_LEAST 4u

/* ---- widths ---- */

void cli_table_reserve(struct cli_table *table, unsigned column, unsigned needs)
{
    table->needs[column] = (unsigned)core_max(table->needs[column], needs);
}

void cli_table_measure(struct cli_table *table, unsigned column, const char *text)
{
    cli_table_reserve(table, column, (unsigned)cli_text_columns(text));
}

void cli_table_begin(struct cli_table *table, const struct cli_term *term, const struct cli_column *column,
                     unsigned count)
{
    assert(count <= CLI_TABLE_COLUMNS);
    *table = (struct cli_table){.term = term, .column = column, .count = count};
    for (unsigned c = 0; c < count; c++)
        cli_table_measure(table, c, column[c].head);
}

/* Returns the width of the columns after the name, each with its gap. */
static unsigned width_beside_name(const struct cli_table *table)
{
    unsigned sum = 0;
    for (unsigned c = NAME + 1; c < table->count; c++)
        sum += table->width[c] > 0 ? GAP + table->width[c] : 0;
    return sum;
}

/* Leaves out the columns of that place in the order. Returns false if there are none. */
static bool table_leave_out(struct cli_table *table, unsigned place)
{
    bool found = false;
    for (unsigned c = NAME + 1; c < table->count; c++)
        if (table->column[c].leaves == place) {
            table->width[c] = 0;
            found = true;
        }
    return found;
}

/* Makes the table at most `room` columns wide, if the columns that stay and a short name fit into them. */
static void table_shrink(struct cli_table *table, unsigned room)
{
    unsigned name = table->needs[NAME] < NAME_MIN ? table->needs[NAME] : NAME_MIN;
    memcpy(table->width, table->needs, sizeof table->width);
    for (unsigned place = 1; name + width_beside_name(table) > room && table_leave_out(table, place);)
        place++;
    unsigned beside = width_beside_name(table), left = room > beside ? room - beside : 0;
    table->width[NAME] = (unsigned)core_min(table->needs[NAME], core_max(left, NAME_LEAST));
}

void cli_table_fit(struct cli_table *table)
{
    unsigned room = table->term->width - 1; /* some terminals wrap after the last column */
    for (unsigned c = 0; c < table->count; c++)
        table->width[c] = table->needs[c] > 0 ? (unsigned)core_max(table->needs[c], table->column[c].width) : 0;
    if (table->term->is_terminal && table->width[NAME] + width_beside_name(table) > room)
        table_shrink(table, room);
}

/* ---- output ---- */

static void put_blanks(FILE *out, unsigned count)
{
    fprintf(out, "%*s", (int)count, "");
}

void cli_table_put_gap(const struct cli_table *table)
{
    put_blanks(table->term->out, GAP);
}

void cli_table_put_cell(const struct cli_table *table, unsigned column, const char *text, enum cli_colour colour)
{
    FILE *out = table->term->out;
    unsigned width = table->width[column], used = (unsigned)cli_text_columns(text);
    unsigned blanks = width > used ? width - used : 0;
    if (width == 0)
        return;
    put_blanks(out, GAP + (table->column[column].is_number ? blanks : 0));
    fprintf(out, "%s%s%s", colour != CLI_PLAIN ? cli_colour(table->term, colour) : "", text,
            colour != CLI_PLAIN ? cli_colour(table->term, CLI_PLAIN) : "");
    put_blanks(out, table->column[column].is_number || column + 1 == table->count ? 0 : blanks);
}

void cli_table_put_head(const struct cli_table *table)
{
    FILE *out = table->term->out;
    const char *name = table->column[NAME].head;
    fprintf(out, "%s%-*s", cli_colour(table->term, CLI_DIM), (int)table->width[NAME],
            table->width[NAME] < strlen(name) ? "" : name);
    for (unsigned c = NAME + 1; c < table->count; c++)
        cli_table_put_cell(table, c, table->column[c].head, CLI_PLAIN);
    fputs(cli_colour(table->term, CLI_PLAIN), out);
}

void cli_table_put_name(const struct cli_table *table, const char *name)
{
    unsigned width = table->width[NAME];
    put_blanks(table->term->out, width - cli_print_shortened(table->term, name, width));
}
