/* table.h - a table for people: a name, then short cells.
 *
 *     target          budget     breaker            hold-off  refused
 *     paymen…gateway  1 of 5     open, 5.17s to go  -               1
 *
 * On a terminal the table fits the width: first the columns shrink to their longest cell, then columns are left out in
 * the order that they state, and names are shortened in the middle. If the output is not a terminal nothing is
 * shortened. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "term.h"

#define CLI_TABLE_COLUMNS 12u

struct cli_column {
    const char *head;
    unsigned width;  /* where there is room, so that columns do not move when a cell changes */
    unsigned leaves; /* place in the order in which columns are left out, from 1; 0: stays */
    bool is_number;  /* aligned to the right */
};

struct cli_table {
    const struct cli_term *term;     /* borrowed */
    const struct cli_column *column; /* borrowed; the first is the name */
    unsigned count;
    unsigned needs[CLI_TABLE_COLUMNS]; /* columns of the longest cell */
    unsigned width[CLI_TABLE_COLUMNS]; /* 0: the column is left out */
};

/* Begins with the widths of the headings. A column without heading and cells is left out. */
void cli_table_begin(struct cli_table *table, const struct cli_term *term, const struct cli_column *column,
                     unsigned count);

/* Makes room for a cell, or for a number of columns. */
void cli_table_measure(struct cli_table *table, unsigned column, const char *text);
void cli_table_reserve(struct cli_table *table, unsigned column, unsigned needs);

/* Chooses the columns and their widths, after all cells were measured. */
void cli_table_fit(struct cli_table *table);

/* Print a part of a line, without its end. A cell begins with the gap before it; with a colour it is printed in that.
 * */
void cli_table_put_head(const struct cli_table *table);
void cli_table_put_name(const struct cli_table *table, const char *name);
void cli_table_put_cell(const struct cli_table *table, unsigned column, const char *text, enum cli_colour colour);
void cli_table_put_gap(const struct cli_table *table);

#endif
