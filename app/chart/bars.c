/* bars.c - bars below each other: names on the left, one scale from 0, values behind the bars, further figures at the
 * right. */
#include "svg.h"

#define ROW       24.0
#define THICK     14.0
#define TOP       22.0 /* for what is measured */
#define HEADS     18.0 /* for what stands above names and further figures, if anything does */
#define GAP       8.0
#define NAME_MOST 0.42 /* of the width */

/* Where bars begin and end, and how many letters of a name there is room for. */
struct plan {
    double top, left, right, most;
    double more[CHART_MORE_MAX]; /* where columns of further figures end */
    size_t letters;
};

static double top_of(const struct chart_bars *c)
{
    bool heads = c->names != NULL || c->more[0] != NULL;
    return (c->heading != NULL ? CHART_HEADING_ROOM : 0) + TOP + (heads ? HEADS : 0);
}

/* From the right: columns as wide as what stands in them. Returns where the first of them begins. */
static double place_more(struct plan *plan, const struct chart_bars *c)
{
    double at = c->width;
    for (size_t i = CHART_MORE_MAX; i-- > 0;) {
        size_t letters = c->more[i] != NULL ? chart_length(c->more[i]) : 0;
        plan->more[i] = at;
        for (size_t j = 0; c->more[i] != NULL && j < c->count; j++) {
            size_t length = chart_length(c->bar[j].more[i]);
            letters = length > letters ? length : letters;
        }
        at -= letters > 0 ? (double)letters * CHART_LETTER + 2 * GAP : 0;
    }
    return at;
}

static struct plan plan_of(const struct chart_bars *c)
{
    size_t name = 0, text = 0;
    double most = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct chart_bar *b = &c->bar[i];
        size_t name_length = chart_length(b->name), text_length = chart_length(b->text);
        double evidence = chart_tame(b->value) + chart_tame(b->half);
        name = name_length > name ? name_length : name;
        text = text_length > text ? text_length : text;
        most = evidence > most ? evidence : most;
    }
    most = chart_tame(c->most) > most ? c->most : most;
    name = c->names != NULL && chart_length(c->names) > name ? chart_length(c->names) : name;
    struct plan plan = {.top = top_of(c), .most = most > 0 ? most : 1};
    double room = (double)name * CHART_LETTER, widest = c->width * NAME_MOST;
    plan.left = GAP + (room < widest ? room : widest);
    plan.letters = (size_t)((plan.left - GAP) / CHART_LETTER + 0.5);
    plan.right = place_more(&plan, c) - GAP - (double)text * CHART_LETTER;
    return plan;
}

static double x_of(const struct plan *plan, double value)
{
    double x = plan->left + chart_tame(value) / plan->most * (plan->right - plan->left);
    return x < plan->left ? plan->left : x > plan->right ? plan->right : x;
}

static void draw_bar(FILE *out, const struct plan *plan, const struct chart_bar *bar, double top)
{
    char style[64];
    double end = x_of(plan, bar->value), middle = top + ROW / 2;
    bool there = bar->value - bar->value == 0; /* finite */
    chart_begin_text(out, "name plain", "end", (struct chart_point){plan->left - GAP, middle + 4});
    chart_escape_cut(out, bar->name, plan->letters);
    fputs("</text>\n", out);
    snprintf(style, sizeof style, "bar %.50s", bar->style);
    if (there)
        chart_rect(out, style, (struct chart_box){plan->left, middle - THICK / 2, end - plan->left, THICK});
    if (there && bar->half > 0) {
        double from = x_of(plan, bar->value - bar->half);
        end = x_of(plan, bar->value + bar->half);
        chart_line(out, "half", (struct chart_point){from, middle}, (struct chart_point){end, middle});
    }
    chart_words(out, "tick", "start", (struct chart_point){(there ? end : plan->left) + GAP, middle + 4}, bar->text);
}

static void draw_more(FILE *out, const struct plan *plan, const char *const more[CHART_MORE_MAX], double y)
{
    for (size_t i = 0; i < CHART_MORE_MAX; i++)
        if (more[i] != NULL)
            chart_words(out, "tick", "end", (struct chart_point){plan->more[i], y}, more[i]);
}

unsigned chart_bars_height(const struct chart_bars *chart)
{
    return (unsigned)(top_of(chart) + (double)chart->count * ROW + GAP);
}

void chart_bars(FILE *out, const struct chart_bars *chart)
{
    struct plan plan = plan_of(chart);
    unsigned height = chart_bars_height(chart);
    chart_begin(out, &(struct chart_head){chart->id, chart->title, chart->about, chart->heading, chart->place,
                                          chart->width, height});
    chart_begin_text(out, "tick", "start",
                     (struct chart_point){0, (chart->heading != NULL ? CHART_HEADING_ROOM : 0) + 12});
    chart_escape_cut(out, chart->x_name, (size_t)(chart->width / CHART_LETTER));
    fputs("</text>\n", out);
    draw_more(out, &plan, chart->more, plan.top - 8);
    if (chart->names != NULL) {
        chart_begin_text(out, "tick", "end", (struct chart_point){plan.left - GAP, plan.top - 8});
        chart_escape_cut(out, chart->names, plan.letters);
        fputs("</text>\n", out);
    }
    for (size_t i = 0; i < chart->count; i++) {
        draw_bar(out, &plan, &chart->bar[i], plan.top + (double)i * ROW);
        draw_more(out, &plan, chart->bar[i].more, plan.top + (double)i * ROW + ROW / 2 + 4);
    }
    chart_line(out, "axis", (struct chart_point){plan.left, plan.top},
               (struct chart_point){plan.left, plan.top + (double)chart->count * ROW});
    fputs("</svg>\n", out);
}
