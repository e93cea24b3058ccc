/* bar_chart.c - bar charts: horizontal bars with names on the left, a common scale from 0, values next to the bars, and
 * optional further columns at the right. */
#include "svg.h"

#define ROW       24.0
#define THICK     14.0
#define TOP       22.0 /* for the name of the measured quantity */
#define HEADS     18.0 /* for the heads of names and further columns, if any */
#define GAP       8.0
#define NAME_MOST 0.42 /* of the width */

/* Computed layout: ends of the bars, and how many letters of a name fit. */
struct bars_layout {
    double top, left, right, most;
    double more[CHART_MORE_MAX]; /* right ends of the further columns */
    size_t letters;
};

static double bars_top(const struct chart_bars *c)
{
    bool heads = c->names != NULL || c->more[0] != NULL;
    return (c->heading != NULL ? CHART_HEADING_ROOM : 0) + TOP + (heads ? HEADS : 0);
}

/* Places the further columns from the right, each as wide as its texts. Returns the left end of the first. */
static double bars_place_more(struct bars_layout *layout, const struct chart_bars *c)
{
    double at = c->width;
    for (size_t i = CHART_MORE_MAX; i-- > 0;) {
        size_t letters = c->more[i] != NULL ? chart_length(c->more[i]) : 0;
        layout->more[i] = at;
        for (size_t j = 0; c->more[i] != NULL && j < c->count; j++) {
            size_t length = chart_length(c->bar[j].more[i]);
            letters = length > letters ? length : letters;
        }
        at -= letters > 0 ? (double)letters * CHART_LETTER + 2 * GAP : 0;
    }
    return at;
}

static struct bars_layout bars_layout_init(const struct chart_bars *c)
{
    size_t name = 0, text = 0;
    double most = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct chart_bar *b = &c->bar[i];
        size_t name_length = chart_length(b->name), text_length = chart_length(b->text);
        double extent = chart_finite_or_zero(b->value) + chart_finite_or_zero(b->half);
        name = name_length > name ? name_length : name;
        text = text_length > text ? text_length : text;
        most = extent > most ? extent : most;
    }
    most = chart_finite_or_zero(c->most) > most ? c->most : most;
    name = c->names != NULL && chart_length(c->names) > name ? chart_length(c->names) : name;
    struct bars_layout layout = {.top = bars_top(c), .most = most > 0 ? most : 1};
    double room = (double)name * CHART_LETTER, widest = c->width * NAME_MOST;
    layout.left = GAP + (room < widest ? room : widest);
    layout.letters = (size_t)((layout.left - GAP) / CHART_LETTER + 0.5);
    layout.right = bars_place_more(&layout, c) - GAP - (double)text * CHART_LETTER;
    return layout;
}

static double bars_x(const struct bars_layout *layout, double value)
{
    double x = layout->left + chart_finite_or_zero(value) / layout->most * (layout->right - layout->left);
    return x < layout->left ? layout->left : x > layout->right ? layout->right : x;
}

static void bars_draw_bar(FILE *out, const struct bars_layout *layout, const struct chart_bar *bar, double top)
{
    char style[64];
    double end = bars_x(layout, bar->value), middle = top + ROW / 2;
    bool is_drawn = bar->value - bar->value == 0; /* is finite */
    chart_begin_text(out, "name plain", "end", (struct chart_point){layout->left - GAP, middle + 4});
    chart_escape_cut(out, bar->name, layout->letters);
    fputs("</text>\n", out);
    snprintf(style, sizeof style, "bar %.50s", bar->style);
    if (is_drawn)
        chart_rect(out, style, (struct chart_box){layout->left, middle - THICK / 2, end - layout->left, THICK});
    if (is_drawn && bar->half > 0) {
        double from = bars_x(layout, bar->value - bar->half);
        end = bars_x(layout, bar->value + bar->half);
        chart_line(out, "half", (struct chart_point){from, middle}, (struct chart_point){end, middle});
    }
    chart_text(out, "tick", "start", (struct chart_point){(is_drawn ? end : layout->left) + GAP, middle + 4},
               bar->text);
}

static void bars_draw_more(FILE *out, const struct bars_layout *layout, const char *const more[CHART_MORE_MAX],
                           double y)
{
    for (size_t i = 0; i < CHART_MORE_MAX; i++)
        if (more[i] != NULL)
            chart_text(out, "tick", "end", (struct chart_point){layout->more[i], y}, more[i]);
}

unsigned chart_bars_height(const struct chart_bars *chart)
{
    return (unsigned)(bars_top(chart) + (double)chart->count * ROW + GAP);
}

void chart_bars(FILE *out, const struct chart_bars *chart)
{
    struct bars_layout layout = bars_layout_init(chart);
    unsigned height = chart_bars_height(chart);
    chart_begin(out, &(struct chart_head){chart->id, chart->title, chart->about, chart->heading, chart->place,
                                          chart->width, height});
    chart_begin_text(out, "tick", "start",
                     (struct chart_point){0, (chart->heading != NULL ? CHART_HEADING_ROOM : 0) + 12});
    chart_escape_cut(out, chart->x_name, (size_t)(chart->width / CHART_LETTER));
    fputs("</text>\n", out);
    bars_draw_more(out, &layout, chart->more, layout.top - 8);
    if (chart->names != NULL) {
        chart_begin_text(out, "tick", "end", (struct chart_point){layout.left - GAP, layout.top - 8});
        chart_escape_cut(out, chart->names, layout.letters);
        fputs("</text>\n", out);
    }
    for (size_t i = 0; i < chart->count; i++) {
        bars_draw_bar(out, &layout, &chart->bar[i], layout.top + (double)i * ROW);
        bars_draw_more(out, &layout, chart->bar[i].more, layout.top + (double)i * ROW + ROW / 2 + 4);
    }
    chart_line(out, "axis", (struct chart_point){layout.left, layout.top},
               (struct chart_point){layout.left, layout.top + (double)chart->count * ROW});
    fputs("</svg>\n", out);
}
