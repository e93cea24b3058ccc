/* page.h - a self-contained HTML page with charts: head and style sheet, headings, tables, footer.
 *
 *     chart_page_begin(out, &(struct chart_page){"sim", "A storm", ""});
 *     chart_element(out, "h1", "A storm");
 *     chart_section(out, "Metrics", "A dash means that a metric has no value.");
 *     chart_table_begin(out);
 *     chart_row_begin(out, "amplification");
 *     chart_element(out, "td", "1.02");
 *     chart_row_end(out);
 *     chart_table_end(out);
 *     chart_page_end(out, "sim", "");
 *
 * The page loads no other file. Light or dark follows the reader's setting (prefers-color-scheme). Wide tables and
 * charts scroll sideways in a box of their own; the page itself never does. */
#ifndef CHART_PAGE_H
#define CHART_PAGE_H

#include "chart.h"

/* The first line of every page; identifies the reports of a command. */
#define CHART_PAGE_MARK(command) "<!doctype html><!-- a report of bide " command " -->"

struct chart_page {
    const char *command; /* the subcommand that makes the page: "sim" */
    const char *title;
    const char *style; /* more CSS */
};

/* Writes everything before the content. The style sheet includes chart_style, and has colours as variables: --paper,
 * --ink, --soft, --rule, --band, --c0 and --c1 as in charts. */
void chart_page_begin(FILE *out, const struct chart_page *page);

/* Writes the footer. `made`: a date, or "". */
void chart_page_end(FILE *out, const char *command, const char *made);

/* Writes an element. The text is escaped; the tag may have attributes: "td class=\"text\"". */
void chart_element(FILE *out, const char *tag, const char *text);

void chart_section(FILE *out, const char *title, const char *about); /* a heading and, unless "", a paragraph */

void chart_table_begin(FILE *out);
void chart_table_end(FILE *out);
void chart_row_begin(FILE *out, const char *name); /* with the head of the row */
void chart_row_end(FILE *out);

/* A box for one chart. */
void chart_figure_begin(FILE *out);
void chart_figure_end(FILE *out);

#endif
