/* panels.c - two text panels side by side; each line is cut and padded to the panel's width. */
#include "panels.h"

#include "chart/chart.h"
#include "text/utf8.h"

#include <inttypes.h>
#include <string.h>

#define ROWS      7u /* of the plot */
#define EIGHTHS   8u
#define MARGIN    5u /* tick labels and the axis */
#define GAP       2u /* between the panels */
#define PANEL_MAX 120u

/* Distinguishable for colour-blind readers. */
static const enum cli_colour panel_colours[] = {CLI_YELLOW, CLI_CYAN};

struct plot {
    FILE *out;
    const struct cli_term *term;
    const struct demo_scenario *scenario;
    const struct demo_panel *panel;
    unsigned width;   /* of a panel */
    unsigned columns; /* of its plot */
    size_t intervals; /* in the whole run */
    double most;
};

/* ---- lines ---- */

static void set_colour(const struct plot *p, enum cli_colour colour)
{
    fputs(cli_colour(p->term, colour), p->out);
}

static void line_end(const struct plot *p)
{
    fputs(p->term->live ? CLI_CLEAR_LINE "\n" : "\n", p->out);
}

static void panel_end(const struct plot *p, size_t which)
{
    if (which == 0)
        fprintf(p->out, "%*s", (int)GAP, "");
    else
        line_end(p);
}

static void print_texts(const struct plot *p, const char *const text[2], bool coloured)
{
    for (size_t i = 0; i < 2; i++) {
        size_t length = text_utf8_prefix(text[i], strlen(text[i]), p->width);
        if (coloured)
            set_colour(p, panel_colours[i]);
        fprintf(p->out, "%.*s", (int)length, text[i]);
        if (coloured)
            set_colour(p, CLI_PLAIN);
        if (i == 0 && text[1][0] != '\0')
            fprintf(p->out, "%*s", (int)(p->width - text_utf8_count(text[i], length) + GAP), "");
    }
    line_end(p);
}

/* Prints two texts in two lines each: as much as fits, up to a comma, then the rest. */
static void print_wrapped_texts(const struct plot *p, const char *const text[2])
{
    char first[2][PANEL_MAX * 4 + 1];
    const char *rest[2];
    for (size_t i = 0; i < 2; i++) {
        size_t end = text_utf8_prefix(text[i], strlen(text[i]), p->width < PANEL_MAX ? p->width : PANEL_MAX);
        if (text[i][end] != '\0')
            while (end > 0 && text[i][end - 1] != ',')
                end--;
        snprintf(first[i], sizeof first[i], "%.*s", (int)end, text[i]);
        rest[i] = text[i] + end + strspn(text[i] + end, " ");
    }
    print_texts(p, (const char *const[2]){first[0], first[1]}, false);
    print_texts(p, rest, false);
}

/* ---- plot ---- */

/* The intervals of a column: [from, to). */
struct interval_range {
    size_t from, to;
};

static struct interval_range column_intervals(const struct plot *p, unsigned column)
{
    return (struct interval_range){column * p->intervals / p->columns, (column + 1) * p->intervals / p->columns};
}

static uint32_t column_busiest(const struct plot *p, const struct demo_panel *panel, unsigned column)
{
    struct interval_range interval_range = column_intervals(p, column);
    uint32_t most = 0;
    for (size_t i = interval_range.from; i <= interval_range.from || i < interval_range.to; i++)
        if (i < panel->count && panel->requests[i] > most)
            most = panel->requests[i];
    return most;
}

/* Returns how much of the row the value fills, in eighths. A value above 0 is always visible in the lowest row. */
static unsigned row_fill(const struct plot *p, uint32_t value, unsigned row)
{
    unsigned level = (unsigned)(value / p->most * ROWS * EIGHTHS + 0.5), below = (ROWS - 1 - row) * EIGHTHS;
    level = level == 0 && value > 0 ? 1 : level;
    return level <= below ? 0 : level - below < EIGHTHS ? level - below : EIGHTHS;
}

/* Returns the end of a row: the left panel is padded, the right panel ends after its last visible column. */
static unsigned row_end(const struct plot *p, size_t which, unsigned row)
{
    unsigned last = p->columns;
    while (which == 1 && last > 0 && row_fill(p, column_busiest(p, &p->panel[which], last - 1), row) == 0)
        last--;
    return last;
}

static void print_row(const struct plot *p, unsigned row)
{
    for (size_t i = 0; i < 2; i++) {
        char number[MARGIN + 8] = "", cells[4 * PANEL_MAX + 1];
        double fill[PANEL_MAX];
        unsigned last = row_end(p, i, row);
        if (row == 0)
            snprintf(number, sizeof number, "%4.0f", p->most);
        fprintf(p->out, "%4.4s%s", number, p->term->utf8 ? "│" : "|");
        set_colour(p, panel_colours[i]);
        for (unsigned column = 0; column < last; column++)
            fill[column] = row_fill(p, column_busiest(p, &p->panel[i], column), row);
        fputs(cli_spark(p->term, cells, fill, last, EIGHTHS), p->out);
        set_colour(p, CLI_PLAIN);
        panel_end(p, i);
    }
}

static bool column_is_down(const struct plot *p, unsigned column)
{
    struct interval_range interval_range = column_intervals(p, column);
    int64_t from_ns = (int64_t)interval_range.from * DEMO_INTERVAL_NS,
            to_ns = (int64_t)interval_range.to * DEMO_INTERVAL_NS;
    return from_ns < p->scenario->up_ns && to_ns > p->scenario->down_ns;
}

static void print_axis(const struct plot *p)
{
    for (size_t i = 0; i < 2; i++) {
        fprintf(p->out, "   0%s", p->term->utf8 ? "└" : "+");
        for (unsigned column = 0; column < p->columns; column++)
            if (column_is_down(p, column))
                fputs(p->term->utf8 ? "▒" : "x", p->out);
            else
                fputs(p->term->utf8 ? "─" : "-", p->out);
        panel_end(p, i);
    }
}

/* Prints "outage" below its columns, and the length in seconds at the right end. */
static void print_time_scale(const struct plot *p)
{
    char text[PANEL_MAX + 1], end[16];
    unsigned at = MARGIN;
    for (unsigned column = 0; column < p->columns && !column_is_down(p, column); column++)
        at++;
    memset(text, ' ', p->width);
    text[p->width] = '\0';
    int length = snprintf(end, sizeof end, "%" PRId64 " s", p->scenario->length_ns / BIDE_S);
    memcpy(text + p->width - (unsigned)length, end, (size_t)length);
    if (at + strlen("outage") + (unsigned)length < p->width)
        memcpy(text + at, "outage", strlen("outage"));
    print_texts(p, (const char *const[2]){text, text}, false);
}

/* ---- panels ---- */

/* Returns the top of the scale: a round number, at least twice the normal rate, so that noise does not fill the
 * plot. */
static double scale_top(const struct demo_panel panel[2], const struct demo_scenario *scenario)
{
    double most = scenario->rate / 10.0 * 2;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < panel[i].count; j++)
            most = panel[i].requests[j] > most ? panel[i].requests[j] : most;
    double tick = chart_tick(most, 10);
    double top = tick;
    while (top < most)
        top += tick;
    return top;
}

static unsigned panel_width(const struct cli_term *term)
{
    unsigned width = ((term->width > DEMO_PANELS_WIDTH_MIN ? term->width : DEMO_PANELS_WIDTH_MIN) - GAP) / 2;
    return width < PANEL_MAX ? width : PANEL_MAX;
}

void demo_panels(const struct cli_term *term, const struct demo_scenario *scenario, const struct demo_panel panel[2])
{
    struct plot p = {.out = term->out, .term = term, .scenario = scenario, .panel = panel, .width = panel_width(term)};
    p.columns = p.width - MARGIN;
    p.intervals = (size_t)(scenario->length_ns / DEMO_INTERVAL_NS);
    p.most = scale_top(panel, scenario);
    print_texts(&p, (const char *const[2]){panel[0].name, panel[1].name}, true);
    print_wrapped_texts(&p, (const char *const[2]){panel[0].summary, panel[1].summary});
    print_texts(&p, (const char *const[2]){" requests per 100 ms", " requests per 100 ms"}, false);
    for (unsigned row = 0; row < ROWS; row++)
        print_row(&p, row);
    print_axis(&p);
    print_time_scale(&p);
}

void demo_panels_line(const struct cli_term *term, const char *const text[2])
{
    struct plot p = {.out = term->out, .term = term, .width = panel_width(term)};
    print_texts(&p, text, true);
}
