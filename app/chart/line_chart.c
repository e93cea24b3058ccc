/* line_chart.c - line charts and curves: a frame, a scale for each axis, then the elements, from back to front. */
#include "svg.h"

#include <math.h>

#define LEFT       46.0  /* of the frame: room for tick labels */
#define RIGHT      140.0 /* for series names */
#define RIGHT_MOST 280.0
#define RIGHT_NONE 12.0
#define TOP        26.0 /* for the axis name */
#define BOTTOM     24.0
#define LABEL_GAP  15.0
#define LABELS_MAX 24u
#define Y_PARTS    5u
#define X_PARTS    10u
#define HEADROOM   1.06
#define CUT_ROOM   70.0 /* width reserved for the label of a clipped value */
#define SIDE_ROOM  0.03 /* of a curve's x range, on each side */
#define LOG_BITS   24u
#define TICK_ROOM  20.0 /* between y tick labels at unequal distances */

/* ---- the frame ---- */

struct frame {
    FILE *out;
    const struct chart_lines *chart;
    double left, right, top, bottom; /* of the plot area */
    double y_name;                   /* y position of the axis name */
    double x_least, x_most, y_most;  /* x: logarithms, if x_log */
    bool x_log;
};

static bool is_finite(double value)
{
    return value - value == 0;
}

/* Computes the binary logarithm of a value above 0, by squaring, so that the result is the same on all platforms. */
static double log2_of(double value)
{
    double log = 0, bit = 0.5;
    while (value >= 2) {
        value /= 2;
        log++;
    }
    while (value < 1) {
        value *= 2;
        log--;
    }
    for (unsigned i = 0; i < LOG_BITS; i++, bit /= 2) {
        value *= value;
        if (value >= 2) {
            value /= 2;
            log += bit;
        }
    }
    return log;
}

static double frame_x(const struct frame *f, double x)
{
    x = chart_finite_or_zero(x);
    if (f->x_log)
        x = x > 0 ? log2_of(x) : f->x_least;
    double at = f->left + (x - f->x_least) / (f->x_most - f->x_least) * (f->right - f->left);
    return at < f->left ? f->left : at > f->right ? f->right : at;
}

static double frame_y(const struct frame *f, double y)
{
    double part = chart_finite_or_zero(y) / f->y_most;
    if (f->chart->y_root)
        part = part > 0 ? sqrt(part) : 0;
    double at = f->bottom - part * (f->bottom - f->top);
    return at < f->top ? f->top : at > f->bottom ? f->bottom : at;
}

/* Returns the largest value, or the y_most that the caller set. */
static double lines_highest_value(const struct chart_lines *c)
{
    double most = c->level_name != NULL ? chart_finite_or_zero(c->level) : 0;
    for (size_t i = 0; i < c->series_count; i++)
        for (size_t j = 0; j < c->series[i].count; j++) {
            const struct chart_series *s = &c->series[i];
            double extent =
                chart_finite_or_zero(s->value[j]) + (s->half != NULL ? chart_finite_or_zero(s->half[j]) : 0);
            most = extent > most ? extent : most;
        }
    most = c->y_most > 0 ? chart_finite_or_zero(c->y_most) : most;
    return most > 0 ? most : 1;
}

/* Sets the x range: from 0 to the end of the last step; for curves slightly wider than the values. */
static void frame_scale_x(struct frame *f)
{
    const struct chart_lines *c = f->chart;
    size_t most = 0;
    bool curve = false;
    for (size_t i = 0; i < c->series_count; i++) {
        const struct chart_series *s = &c->series[i];
        most = s->count > most ? s->count : most;
        for (size_t j = 0; s->x != NULL && j < s->count; j++) {
            double x = chart_finite_or_zero(s->x[j]);
            f->x_least = !curve || x < f->x_least ? x : f->x_least;
            f->x_most = !curve || x > f->x_most ? x : f->x_most;
            curve = true;
        }
    }
    if (!curve) {
        f->x_most = (double)(most > 0 ? most : 1) * (chart_finite_or_zero(c->x_step) > 0 ? c->x_step : 1);
        f->x_most = chart_finite_or_zero(c->x_most) > 0 ? c->x_most : f->x_most;
        return;
    }
    f->x_log = c->x_log && f->x_least > 0;
    if (f->x_log) {
        f->x_least = log2_of(f->x_least);
        f->x_most = log2_of(f->x_most);
    }
    double room = f->x_most > f->x_least ? (f->x_most - f->x_least) * SIDE_ROOM : 1;
    f->x_least -= room;
    f->x_most += room;
}

/* Returns the margin for the longest name, within limits. */
static double lines_right_margin(const struct chart_lines *c)
{
    size_t letters = c->level_name != NULL ? chart_length(c->level_name) : 0;
    bool named = c->level_name != NULL;
    for (size_t i = 0; i < c->series_count; i++)
        if (c->series[i].name != NULL) {
            size_t length = chart_length(c->series[i].name);
            letters = length > letters ? length : letters;
            named = true;
        }
    double room = (double)letters * CHART_BOLD + 12;
    if (!named)
        return RIGHT_NONE;
    return room < RIGHT ? RIGHT : room > RIGHT_MOST ? RIGHT_MOST : room;
}

static double band_middle(const struct frame *f, const struct chart_band *b, double half)
{
    double middle = (frame_x(f, b->from) + frame_x(f, b->to)) / 2;
    middle = middle > f->right - half ? f->right - half : middle;
    return middle < f->left + half ? f->left + half : middle;
}

static double text_half_width(const char *text)
{
    return (double)chart_length(text) * CHART_LETTER / 2;
}

/* Returns true if a band's name would overlap the name of the y axis. */
static bool band_name_hits_axis_name(const struct frame *f)
{
    double taken = 2 * text_half_width(f->chart->y_name);
    for (size_t i = 0; i < f->chart->band_count; i++) {
        const struct chart_band *b = &f->chart->bands[i];
        if (b->name != NULL && band_middle(f, b, text_half_width(b->name)) - text_half_width(b->name) < taken)
            return true;
    }
    return false;
}

static struct frame frame_init(FILE *out, const struct chart_lines *c)
{
    struct frame f = {.out = out, .chart = c, .left = LEFT, .top = TOP, .y_most = lines_highest_value(c) * HEADROOM};
    f.top += c->heading != NULL ? CHART_HEADING_ROOM : 0;
    f.right = c->width - lines_right_margin(c);
    f.bottom = c->height - BOTTOM - (c->x_name != NULL ? LABEL_GAP : 0);
    frame_scale_x(&f);
    f.y_name = f.top - 14;
    f.top += band_name_hits_axis_name(&f) ? LABEL_GAP : 0;
    return f;
}

/* ---- axes ---- */

static void draw_y_tick(const struct frame *f, double value)
{
    double y = frame_y(f, value);
    chart_line(f->out, value > 0 ? "grid" : "axis", (struct chart_point){f->left, y},
               (struct chart_point){f->right, y});
    chart_begin_text(f->out, "tick", "end", (struct chart_point){f->left - 7, y + 4});
    chart_number_short(f->out, value);
    fputs("</text>\n", f->out);
}

/* Draws 1, 2 and 5 times the powers of ten from the top down, as long as there is room above 0. */
static void draw_root_ticks(const struct frame *f)
{
    double taken = f->top - TICK_ROOM;
    for (double value = chart_tick(f->y_most, 1); f->bottom - frame_y(f, value) >= TICK_ROOM;
         value = chart_tick(value * 0.39, 1)) /* 10, 5, 2, 1 */
        if (value <= f->y_most && frame_y(f, value) - taken >= TICK_ROOM) {
            draw_y_tick(f, value);
            taken = frame_y(f, value);
        }
    draw_y_tick(f, 0);
}

static void draw_y_axis(const struct frame *f)
{
    double step = chart_tick(f->y_most, Y_PARTS);
    if (f->chart->y_root)
        draw_root_ticks(f);
    for (unsigned i = 0; !f->chart->y_root && i * step <= f->y_most && i <= Y_PARTS; i++)
        draw_y_tick(f, i * step);
    chart_text(f->out, "tick", "start", (struct chart_point){0, f->y_name}, f->chart->y_name);
}

static void draw_round_ticks(const struct frame *f)
{
    double step = chart_tick(f->x_most, X_PARTS);
    for (unsigned i = 0; i * step <= f->x_most && i <= X_PARTS; i++) {
        double x = frame_x(f, i * step);
        chart_line(f->out, "axis", (struct chart_point){x, f->bottom}, (struct chart_point){x, f->bottom + 4});
        chart_begin_text(f->out, "tick", "middle", (struct chart_point){x, f->bottom + 18});
        chart_number_short(f->out, i * step);
        chart_escape(f->out, f->chart->x_unit);
        fputs("</text>\n", f->out);
    }
}

/* Draws a tick for each mark. Of overlapping labels the first is kept, but the last label of all is always drawn. */
static void draw_marks(const struct frame *f)
{
    const struct chart_mark *last = &f->chart->marks[f->chart->mark_count - 1];
    double taken = -1e9, end = frame_x(f, last->x) - text_half_width(last->text);
    for (size_t i = 0; i < f->chart->mark_count; i++) {
        const struct chart_mark *mark = &f->chart->marks[i];
        double x = frame_x(f, mark->x), half = text_half_width(mark->text);
        chart_line(f->out, "axis", (struct chart_point){x, f->bottom}, (struct chart_point){x, f->bottom + 4});
        if (x - half < taken + CHART_LETTER || (i > 0 && mark != last && x + half + CHART_LETTER > end))
            continue;
        chart_text(f->out, "tick", "middle", (struct chart_point){x, f->bottom + 18}, mark->text);
        taken = x + half;
    }
}

static void draw_x_axis(const struct frame *f)
{
    if (f->chart->mark_count > 0)
        draw_marks(f);
    else
        draw_round_ticks(f);
    if (f->chart->x_name != NULL)
        chart_text(f->out, "tick", "end", (struct chart_point){f->right, f->bottom + 18 + LABEL_GAP}, f->chart->x_name);
}

/* Draws bands. A name stays inside the frame, and is left out if it would overlap the previous one. */
static void draw_bands(const struct frame *f)
{
    double taken = f->left;
    for (size_t i = 0; i < f->chart->band_count; i++) {
        const struct chart_band *b = &f->chart->bands[i];
        double from = frame_x(f, b->from), to = frame_x(f, b->to);
        chart_rect(f->out, "band", (struct chart_box){from, f->top, to - from > 1 ? to - from : 1, f->bottom - f->top});
        if (b->name == NULL)
            continue;
        double half = text_half_width(b->name), middle = band_middle(f, b, half);
        if (middle - half < taken - 1) /* at the left end it starts exactly there */
            continue;
        chart_text(f->out, "tick", "middle", (struct chart_point){middle, f->top - 6}, b->name);
        taken = middle + half + CHART_LETTER;
    }
}

/* ---- values ---- */

static void draw_area(const struct frame *f, const struct chart_series *s)
{
    double step = f->x_most > 0 ? (f->right - f->left) / f->x_most * chart_finite_or_zero(f->chart->x_step) : 0;
    fprintf(f->out, "<path class=\"area %s\" d=\"", s->style);
    chart_point(f->out, 'M', (struct chart_point){f->left, f->bottom});
    for (size_t i = 0; i < s->count; i++) {
        double y = frame_y(f, s->value[i]);
        chart_point(f->out, 'L', (struct chart_point){f->left + (double)i * step, y});
        chart_point(f->out, 'L', (struct chart_point){f->left + (double)(i + 1) * step, y});
    }
    chart_point(f->out, 'L', (struct chart_point){f->left + (double)s->count * step, f->bottom});
    fputs("Z\"/>\n", f->out);
}

static void draw_line(const struct frame *f, const struct chart_series *s)
{
    fprintf(f->out, "<path class=\"line %s\" d=\"", s->style);
    for (size_t i = 0; i < s->count; i++) {
        double y = frame_y(f, s->value[i]), from = (double)i + (s->stepped ? 0 : 0.5);
        chart_point(f->out, i == 0 ? 'M' : 'L', (struct chart_point){frame_x(f, from * f->chart->x_step), y});
        if (s->stepped)
            chart_point(f->out, 'L', (struct chart_point){frame_x(f, (from + 1) * f->chart->x_step), y});
    }
    fputs("\"/>\n", f->out);
}

/* Returns the highest value at this step, of all series without x. */
static double lines_highest_at(const struct chart_lines *c, size_t step)
{
    double most = 0;
    for (size_t i = 0; i < c->series_count; i++)
        if (c->series[i].x == NULL && step < c->series[i].count)
            most = chart_finite_or_zero(c->series[i].value[step]) > most ? c->series[i].value[step] : most;
    return most;
}

static void draw_cut(const struct frame *f, double x, double value)
{
    bool left = x > f->right - CUT_ROOM;
    chart_begin_text(f->out, "cut", left ? "end" : "start", (struct chart_point){left ? x - 5 : x + 5, f->top + 10});
    fputs("↑ ", f->out);
    chart_number(f->out, value);
    fputs("</text>\n", f->out);
}

/* Labels values above the scale with their height: once for a group of adjacent steps, and not where it would overlap
 * the previous label. */
static void draw_cuts(const struct frame *f)
{
    double most = chart_finite_or_zero(f->chart->y_most), taken = 0, value = 0, next;
    size_t last = 0, steps = 0;
    for (size_t i = 0; i < f->chart->series_count; i++)
        steps = f->chart->series[i].count > steps ? f->chart->series[i].count : steps;
    for (size_t i = 0; most > 0 && i <= steps; i++) {
        next = lines_highest_at(f->chart, i);
        if (next > most) {
            value = next > value ? next : value;
            last = i;
            continue;
        }
        double x = frame_x(f, (double)(last + 1) * f->chart->x_step);
        if (value > most && x >= taken) {
            draw_cut(f, x, value);
            taken = x + CUT_ROOM;
        }
        value = 0;
    }
}

/* The first four series have different shapes: not every reader can distinguish lines by colour. */
static void draw_shape(const struct frame *f, const struct chart_series *s, struct chart_point at)
{
    static const struct chart_point corners[][4] = {
        {{-3, -3}, {3, -3}, {3, 3}, {-3, 3}},
        {{0, -4}, {4, 3}, {-4, 3}, {0, -4}},
        {{0, -4.5}, {4.5, 0}, {0, 4.5}, {-4.5, 0}},
    };
    size_t shape = (size_t)(s - f->chart->series) % (sizeof corners / sizeof *corners + 1);
    if (shape == 0) {
        fprintf(f->out, "<circle class=\"dot %s\" r=\"3\"", s->style);
        chart_attribute(f->out, "cx", at.x);
        chart_attribute(f->out, "cy", at.y);
        fputs("/>\n", f->out);
        return;
    }
    fprintf(f->out, "<path class=\"dot %s\" d=\"", s->style);
    for (size_t i = 0; i < 4; i++)
        chart_point(f->out, i == 0 ? 'M' : 'L',
                    (struct chart_point){at.x + corners[shape - 1][i].x, at.y + corners[shape - 1][i].y});
    fputs("Z\"/>\n", f->out);
}

static void draw_dot(const struct frame *f, const struct chart_series *s, size_t i)
{
    double x = frame_x(f, s->x[i]);
    if (s->half != NULL && s->half[i] > 0) {
        double low = frame_y(f, s->value[i] - s->half[i]), high = frame_y(f, s->value[i] + s->half[i]);
        chart_line(f->out, "half", (struct chart_point){x, low}, (struct chart_point){x, high});
    }
    draw_shape(f, s, (struct chart_point){x, frame_y(f, s->value[i])});
}

static void draw_curve(const struct frame *f, const struct chart_series *s)
{
    bool was_drawn = false;
    fprintf(f->out, "<path class=\"line %s\" d=\"", s->style);
    for (size_t i = 0; i < s->count; i++) {
        bool is_drawn = is_finite(s->value[i]);
        if (is_drawn)
            chart_point(f->out, was_drawn ? 'L' : 'M',
                        (struct chart_point){frame_x(f, s->x[i]), frame_y(f, s->value[i])});
        was_drawn = is_drawn;
    }
    fputs("\"/>\n", f->out);
    for (size_t i = 0; i < s->count; i++)
        if (is_finite(s->value[i]))
            draw_dot(f, s, i);
}

/* ---- series names ---- */

struct label {
    const char *text;
    const char *style;
    double y;
};

/* Sorts the labels and moves them down until they do not overlap; then, if the last one is too low, back up. */
static void labels_spread(struct label *label, size_t count, double lowest)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && label[j].y < label[j - 1].y; j--) {
            struct label other = label[j];
            label[j] = label[j - 1];
            label[j - 1] = other;
        }
    for (size_t i = 1; i < count; i++)
        if (label[i].y < label[i - 1].y + LABEL_GAP)
            label[i].y = label[i - 1].y + LABEL_GAP;
    for (size_t i = count; i > 0; i--) {
        double most = i == count ? lowest : label[i].y - LABEL_GAP;
        label[i - 1].y = label[i - 1].y > most ? most : label[i - 1].y;
    }
}

/* Returns the y of a series' name: the mean of a line's last few values, because one may be far off, or the last value
 * of a curve. */
static double series_end_y(const struct frame *f, const struct chart_series *s)
{
    size_t last = s->count, few = s->count < 5 ? s->count : 5;
    double sum = 0;
    while (s->x != NULL && last > 0 && !is_finite(s->value[last - 1]))
        last--;
    if (s->x != NULL)
        return frame_y(f, last > 0 ? s->value[last - 1] : 0);
    for (size_t i = s->count - few; i < s->count; i++)
        sum += chart_finite_or_zero(s->value[i]);
    return frame_y(f, few > 0 ? sum / (double)few : 0);
}

static void draw_labels(const struct frame *f)
{
    const struct chart_lines *c = f->chart;
    struct label label[LABELS_MAX];
    size_t count = 0, letters = (size_t)((c->width - f->right - 8) / CHART_BOLD);
    for (size_t i = 0; i < c->series_count && count < LABELS_MAX; i++)
        if (c->series[i].name != NULL)
            label[count++] = (struct label){c->series[i].name, c->series[i].style, series_end_y(f, &c->series[i])};
    if (c->level_name != NULL && count < LABELS_MAX)
        label[count++] = (struct label){c->level_name, "level", frame_y(f, c->level)};
    labels_spread(label, count, f->bottom);
    for (size_t i = 0; i < count; i++) {
        fprintf(f->out, "<text class=\"name %s\"", label[i].style);
        chart_attribute(f->out, "x", f->right + 8);
        chart_attribute(f->out, "y", label[i].y + 4);
        fputc('>', f->out);
        chart_escape_cut(f->out, label[i].text, letters);
        fputs("</text>\n", f->out);
    }
}

/* ---- the chart ---- */

static void draw_series(const struct frame *f, const struct chart_series *s)
{
    if (s->filled || s->count == 0)
        return;
    if (s->x != NULL)
        draw_curve(f, s);
    else
        draw_line(f, s);
}

void chart_lines(FILE *out, const struct chart_lines *chart)
{
    struct frame f = frame_init(out, chart);
    chart_begin(out, &(struct chart_head){chart->id, chart->title, chart->about, chart->heading, chart->place,
                                          chart->width, chart->height});
    draw_bands(&f);
    for (size_t i = 0; i < chart->series_count; i++)
        if (chart->series[i].filled)
            draw_area(&f, &chart->series[i]);
    draw_y_axis(&f);
    draw_x_axis(&f);
    if (chart->level_name != NULL)
        chart_line(out, "level", (struct chart_point){f.left, frame_y(&f, chart->level)},
                   (struct chart_point){f.right, frame_y(&f, chart->level)});
    for (size_t i = 0; i < chart->series_count; i++)
        draw_series(&f, &chart->series[i]);
    draw_cuts(&f);
    draw_labels(&f);
    fputs("</svg>\n", out);
}
