/* view.c - panels of text, side by side, each line cut and filled to its panel's width. */
#include "panels.h"

#include "chart/chart.h"

#include <inttypes.h>
#include <string.h>

#define ROWS      7u /* of the picture */
#define EIGHTHS   8u
#define MARGIN    5u /* numbers and the axis */
#define GAP       2u /* between the panels */
#define PANEL_MAX 120u

static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const plain[] = {" ", ".", ".", ".", ":", ":", ":", ":", "#"};
static const char *const colours[] = {"\033[33m", "\033[36m"}; /* yellow and cyan: apart for everybody */

struct picture {
    FILE *out;
    const struct demo_look *look;
    const struct demo_scenario *scenario;
    const struct demo_panel *panel;
    unsigned width;   /* of a panel */
    unsigned columns; /* of its picture */
    size_t buckets;   /* in the whole run */
    double most;
};

/* ---- lines ---- */

static void colour(const struct picture *p, size_t which, bool on)
{
    if (p->look->colour)
        fputs(on ? colours[which] : "\033[0m", p->out);
}

/* How many bytes of the text fit into so many columns, and how many they take. Bytes that are one character take one
 * column. */
static size_t fitting(const char *text, unsigned columns, unsigned *used)
{
    size_t end = 0;
    for (*used = 0; text[end] != '\0'; end++) {
        bool begins = ((unsigned char)text[end] & 0xc0u) != 0x80u;
        if (begins && *used == columns)
            break;
        *used += begins;
    }
    return end;
}

static void end_line(const struct picture *p)
{
    fputs(p->look->wipe ? "\033[K\n" : "\n", p->out);
}

static void end_panel(const struct picture *p, size_t which)
{
    if (which == 0)
        fprintf(p->out, "%*s", (int)GAP, "");
    else
        end_line(p);
}

static void text_line(const struct picture *p, const char *const text[2], bool coloured)
{
    for (size_t i = 0; i < 2; i++) {
        unsigned used;
        size_t length = fitting(text[i], p->width, &used);
        if (coloured)
            colour(p, i, true);
        fprintf(p->out, "%.*s", (int)length, text[i]);
        if (coloured)
            colour(p, i, false);
        if (i == 0 && text[1][0] != '\0')
            fprintf(p->out, "%*s", (int)(p->width - used + GAP), "");
    }
    end_line(p);
}

/* What fits of two texts, up to a comma, and then the rest of them. */
static void two_lines(const struct picture *p, const char *const text[2])
{
    char first[2][PANEL_MAX * 4 + 1];
    const char *rest[2];
    for (size_t i = 0; i < 2; i++) {
        unsigned used;
        size_t end = fitting(text[i], p->width < PANEL_MAX ? p->width : PANEL_MAX, &used);
        if (text[i][end] != '\0')
            while (end > 0 && text[i][end - 1] != ',')
                end--;
        snprintf(first[i], sizeof first[i], "%.*s", (int)end, text[i]);
        rest[i] = text[i] + end + strspn(text[i] + end, " ");
    }
    text_line(p, (const char *const[2]){first[0], first[1]}, false);
    text_line(p, rest, false);
}

/* ---- the picture ---- */

/* The buckets that a column stands for: [from, to). */
struct range {
    size_t from, to;
};

static struct range range_of(const struct picture *p, unsigned column)
{
    return (struct range){column * p->buckets / p->columns, (column + 1) * p->buckets / p->columns};
}

static uint32_t busiest(const struct picture *p, const struct demo_panel *panel, unsigned column)
{
    struct range range = range_of(p, column);
    uint32_t most = 0;
    for (size_t i = range.from; i <= range.from || i < range.to; i++)
        if (i < panel->count && panel->requests[i] > most)
            most = panel->requests[i];
    return most;
}

/* How much of this row the value fills, in eighths. What is not nothing shows in the lowest row. */
static unsigned filled(const struct picture *p, uint32_t value, unsigned row)
{
    unsigned level = (unsigned)(value / p->most * ROWS * EIGHTHS + 0.5), below = (ROWS - 1 - row) * EIGHTHS;
    level = level == 0 && value > 0 ? 1 : level;
    return level <= below ? 0 : level - below < EIGHTHS ? level - below : EIGHTHS;
}

/* Up to where there is something to be drawn: the left panel is filled, the right one ends there. */
static unsigned last_column(const struct picture *p, size_t which, unsigned row)
{
    unsigned last = p->columns;
    while (which == 1 && last > 0 && filled(p, busiest(p, &p->panel[which], last - 1), row) == 0)
        last--;
    return last;
}

static void picture_row(const struct picture *p, unsigned row)
{
    for (size_t i = 0; i < 2; i++) {
        char number[MARGIN + 8] = "";
        if (row == 0)
            snprintf(number, sizeof number, "%4.0f", p->most);
        fprintf(p->out, "%4.4s%s", number, p->look->utf8 ? "│" : "|");
        colour(p, i, true);
        for (unsigned column = 0, last = last_column(p, i, row); column < last; column++) {
            unsigned level = filled(p, busiest(p, &p->panel[i], column), row);
            fputs(p->look->utf8 ? blocks[level] : plain[level], p->out);
        }
        colour(p, i, false);
        end_panel(p, i);
    }
}

static bool is_down(const struct picture *p, unsigned column)
{
    struct range range = range_of(p, column);
    int64_t from_ns = (int64_t)range.from * DEMO_BUCKET_NS, to_ns = (int64_t)range.to * DEMO_BUCKET_NS;
    return from_ns < p->scenario->up_ns && to_ns > p->scenario->down_ns;
}

static void axis_row(const struct picture *p)
{
    for (size_t i = 0; i < 2; i++) {
        fprintf(p->out, "   0%s", p->look->utf8 ? "└" : "+");
        for (unsigned column = 0; column < p->columns; column++)
            if (is_down(p, column))
                fputs(p->look->utf8 ? "▒" : "x", p->out);
            else
                fputs(p->look->utf8 ? "─" : "-", p->out);
        end_panel(p, i);
    }
}

/* "outage" below its columns, and the seconds at the end. */
static void scale_row(const struct picture *p)
{
    char text[PANEL_MAX + 1], end[16];
    unsigned at = MARGIN;
    for (unsigned column = 0; column < p->columns && !is_down(p, column); column++)
        at++;
    memset(text, ' ', p->width);
    text[p->width] = '\0';
    int length = snprintf(end, sizeof end, "%" PRId64 " s", p->scenario->length_ns / BIDE_S);
    memcpy(text + p->width - (unsigned)length, end, (size_t)length);
    if (at + strlen("outage") + (unsigned)length < p->width)
        memcpy(text + at, "outage", strlen("outage"));
    text_line(p, (const char *const[2]){text, text}, false);
}

/* ---- all of it ---- */

/* The top of the scale: a round number, and never a picture of noise. */
static double scale(const struct demo_panel panel[2], const struct demo_scenario *scenario)
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

static unsigned panel_width(const struct demo_look *look)
{
    unsigned width = ((look->width > DEMO_VIEW_WIDTH_MIN ? look->width : DEMO_VIEW_WIDTH_MIN) - GAP) / 2;
    return width < PANEL_MAX ? width : PANEL_MAX;
}

void demo_view(FILE *out, const struct demo_look *look, const struct demo_scenario *scenario,
               const struct demo_panel panel[2])
{
    struct picture p = {.out = out, .look = look, .scenario = scenario, .panel = panel, .width = panel_width(look)};
    p.columns = p.width - MARGIN;
    p.buckets = (size_t)(scenario->length_ns / DEMO_BUCKET_NS);
    p.most = scale(panel, scenario);
    text_line(&p, (const char *const[2]){panel[0].name, panel[1].name}, true);
    two_lines(&p, (const char *const[2]){panel[0].words, panel[1].words});
    text_line(&p, (const char *const[2]){" requests per 100 ms", " requests per 100 ms"}, false);
    for (unsigned row = 0; row < ROWS; row++)
        picture_row(&p, row);
    axis_row(&p);
    scale_row(&p);
}

void demo_view_line(FILE *out, const struct demo_look *look, const char *const text[2])
{
    struct picture p = {.out = out, .look = look, .width = panel_width(look)};
    text_line(&p, text, true);
}
