/* chart.c - a line chart as SVG: a frame, a scale for each axis, then what is drawn, from the back to the front. */
#include "chart.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#define LEFT       46.0  /* of the frame: room for numbers */
#define RIGHT      140.0 /* for names */
#define RIGHT_NONE 12.0
#define TOP        26.0 /* for the axis' name */
#define BOTTOM     24.0
#define LABEL_GAP  15.0
#define LABELS_MAX 8u
#define Y_PARTS    5u
#define X_PARTS    10u
#define HEADROOM   1.06
#define HUGE_VALUE 1e15 /* as far as numbers are told */

/* ---- numbers and texts ---- */

static double tame(double value)
{
    if (!(value > -HUGE_VALUE && value < HUGE_VALUE)) /* NaN too */
        return 0;
    return value;
}

void demo_number(FILE *out, double value)
{
    value = tame(value);
    int64_t hundredths = (int64_t)(value * 100 + (value < 0 ? -0.5 : 0.5));
    uint64_t size = hundredths < 0 ? (uint64_t)-hundredths : (uint64_t)hundredths;
    fprintf(out, "%s%" PRIu64, hundredths < 0 ? "-" : "", size / 100);
    if (size % 100 == 0)
        return;
    fprintf(out, size % 10 == 0 ? ".%" PRIu64 : ".%02" PRIu64, size % 10 == 0 ? size % 100 / 10 : size % 100);
}

/* The length of the UTF-8 sequence at text; 0: it is none. */
static size_t sequence(const unsigned char *text)
{
    size_t length = text[0] < 0x80                      ? 1
                    : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                    : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                    : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                        : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool beyond = (text[0] == 0xed && text[1] >= 0xa0) || (text[0] == 0xf4 && text[1] >= 0x90);
    bool noncharacter = text[0] == 0xef && text[1] == 0xbf && text[2] >= 0xbe; /* XML 1.0, 2.2 */
    return overlong || beyond || noncharacter ? 0 : length;
}

static const char *entity(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void demo_escape(FILE *out, const char *text)
{
    while (*text != '\0') {
        const unsigned char *at = (const unsigned char *)text;
        const char *named = entity(*text);
        size_t length = sequence(at);
        bool control = (at[0] < 0x20 && at[0] != '\n' && at[0] != '\t') || at[0] == 0x7f;
        if (named != NULL)
            fputs(named, out);
        else if (control || length == 0)
            fputc('?', out);
        else
            fwrite(text, 1, length, out);
        text += length > 0 ? length : 1;
    }
}

double demo_tick(double most, unsigned parts)
{
    static const double mantissa[] = {1, 2, 5};
    double scale = 1;
    if (!(most > 0 && most < HUGE_VALUE) || parts == 0)
        return 1;
    while (scale > 1e-12 && most / scale <= parts)
        scale /= 10;
    for (;; scale *= 10)
        for (size_t i = 0; i < sizeof mantissa / sizeof *mantissa; i++)
            if (most / (scale * mantissa[i]) <= parts)
                return scale * mantissa[i];
}

/* ---- the frame ---- */

struct frame {
    FILE *out;
    const struct demo_chart *chart;
    double left, right, top, bottom; /* of what is drawn in */
    double x_most, y_most;
};

static double x_of(const struct frame *f, double x)
{
    return f->left + tame(x) / f->x_most * (f->right - f->left);
}

static double y_of(const struct frame *f, double y)
{
    double at = f->bottom - tame(y) / f->y_most * (f->bottom - f->top);
    return at < f->top ? f->top : at > f->bottom ? f->bottom : at;
}

/* The largest value there is, or what the owner wants it to be. */
static double highest(const struct demo_chart *c)
{
    double most = c->level_name != NULL ? tame(c->level) : 0;
    for (size_t i = 0; i < c->series_count; i++)
        for (size_t j = 0; j < c->series[i].count; j++)
            if (tame(c->series[i].value[j]) > most)
                most = tame(c->series[i].value[j]);
    most = c->y_most > 0 ? tame(c->y_most) : most;
    return most > 0 ? most : 1;
}

static struct frame frame_of(FILE *out, const struct demo_chart *c)
{
    struct frame f = {.out = out, .chart = c, .left = LEFT, .top = TOP, .y_most = highest(c) * HEADROOM};
    bool named = c->level_name != NULL;
    size_t most = 0;
    for (size_t i = 0; i < c->series_count; i++) {
        most = c->series[i].count > most ? c->series[i].count : most;
        named = named || c->series[i].name != NULL;
    }
    f.right = c->width - (named ? RIGHT : RIGHT_NONE);
    f.bottom = c->height - BOTTOM;
    f.x_most = (double)(most > 0 ? most : 1) * (tame(c->x_step) > 0 ? c->x_step : 1);
    return f;
}

/* An attribute: name="number". */
static void attribute(const struct frame *f, const char *name, double value)
{
    fprintf(f->out, " %s=\"", name);
    demo_number(f->out, value);
    fputc('"', f->out);
}

struct point {
    double x, y;
};

static void point(const struct frame *f, char letter, struct point at)
{
    fputc(letter, f->out);
    demo_number(f->out, at.x);
    fputc(' ', f->out);
    demo_number(f->out, at.y);
}

static void line(const struct frame *f, const char *style, struct point from, struct point to)
{
    fprintf(f->out, "<line class=\"%s\"", style);
    attribute(f, "x1", from.x);
    attribute(f, "y1", from.y);
    attribute(f, "x2", to.x);
    attribute(f, "y2", to.y);
    fputs("/>\n", f->out);
}

/* The text itself is to follow, then </text>. */
static void begin_text(const struct frame *f, const char *style, const char *anchor, struct point at)
{
    fprintf(f->out, "<text class=\"%s\" text-anchor=\"%s\"", style, anchor);
    attribute(f, "x", at.x);
    attribute(f, "y", at.y);
    fputc('>', f->out);
}

static void words(const struct frame *f, const char *style, const char *anchor, struct point at, const char *text)
{
    begin_text(f, style, anchor, at);
    demo_escape(f->out, text);
    fputs("</text>\n", f->out);
}

/* ---- axes ---- */

static void draw_y_axis(const struct frame *f)
{
    double step = demo_tick(f->y_most, Y_PARTS);
    for (unsigned i = 0; i * step <= f->y_most && i <= Y_PARTS; i++) {
        double y = y_of(f, i * step);
        line(f, i == 0 ? "axis" : "grid", (struct point){f->left, y}, (struct point){f->right, y});
        begin_text(f, "tick", "end", (struct point){f->left - 7, y + 4});
        demo_number(f->out, i * step);
        fputs("</text>\n", f->out);
    }
    words(f, "tick", "start", (struct point){0, 12}, f->chart->y_name);
}

static void draw_x_axis(const struct frame *f)
{
    double step = demo_tick(f->x_most, X_PARTS);
    for (unsigned i = 0; i * step <= f->x_most && i <= X_PARTS; i++) {
        double x = x_of(f, i * step);
        line(f, "axis", (struct point){x, f->bottom}, (struct point){x, f->bottom + 4});
        begin_text(f, "tick", "middle", (struct point){x, f->bottom + 18});
        demo_number(f->out, i * step);
        demo_escape(f->out, f->chart->x_unit);
        fputs("</text>\n", f->out);
    }
}

static void draw_band(const struct frame *f)
{
    const struct demo_chart *c = f->chart;
    if (c->band_name == NULL)
        return;
    double from = x_of(f, c->band_from), to = x_of(f, c->band_to);
    fputs("<rect class=\"band\"", f->out);
    attribute(f, "x", from);
    attribute(f, "y", f->top);
    attribute(f, "width", to > from ? to - from : 0);
    attribute(f, "height", f->bottom - f->top);
    fputs("/>\n", f->out);
    words(f, "tick", "middle", (struct point){(from + to) / 2, f->top - 6}, c->band_name);
}

/* ---- values ---- */

static void draw_area(const struct frame *f, const struct demo_series *s)
{
    double step = f->x_most > 0 ? (f->right - f->left) / f->x_most * f->chart->x_step : 0;
    fprintf(f->out, "<path class=\"area %s\" d=\"", s->style);
    point(f, 'M', (struct point){f->left, f->bottom});
    for (size_t i = 0; i < s->count; i++) {
        double y = y_of(f, s->value[i]);
        point(f, 'L', (struct point){f->left + (double)i * step, y});
        point(f, 'L', (struct point){f->left + (double)(i + 1) * step, y});
    }
    point(f, 'L', (struct point){f->left + (double)s->count * step, f->bottom});
    fputs("Z\"/>\n", f->out);
}

static void draw_line(const struct frame *f, const struct demo_series *s)
{
    fprintf(f->out, "<path class=\"line %s\" d=\"", s->style);
    for (size_t i = 0; i < s->count; i++)
        point(f, i == 0 ? 'M' : 'L',
              (struct point){x_of(f, ((double)i + 0.5) * f->chart->x_step), y_of(f, s->value[i])});
    fputs("\"/>\n", f->out);
}

/* ---- names beside the lines ---- */

struct label {
    const char *text;
    const char *style;
    double y;
};

/* From the top down, each at its place or as far below it as the one above asks; then, if the last is too low, back
 * up. */
static void spread(struct label *label, size_t count, double lowest)
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

/* Beside the mean of a line's last few values: a single one may be far off. */
static double end_of(const struct frame *f, const struct demo_series *s)
{
    size_t few = s->count < 5 ? s->count : 5;
    double sum = 0;
    for (size_t i = s->count - few; i < s->count; i++)
        sum += tame(s->value[i]);
    return y_of(f, few > 0 ? sum / (double)few : 0);
}

static void draw_labels(const struct frame *f)
{
    const struct demo_chart *c = f->chart;
    struct label label[LABELS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < c->series_count && count < LABELS_MAX; i++)
        if (c->series[i].name != NULL)
            label[count++] = (struct label){c->series[i].name, c->series[i].style, end_of(f, &c->series[i])};
    if (c->level_name != NULL && count < LABELS_MAX)
        label[count++] = (struct label){c->level_name, "level", y_of(f, c->level)};
    spread(label, count, f->bottom);
    for (size_t i = 0; i < count; i++) {
        fprintf(f->out, "<text class=\"name %s\"", label[i].style);
        attribute(f, "x", f->right + 8);
        attribute(f, "y", label[i].y + 4);
        fputc('>', f->out);
        demo_escape(f->out, label[i].text);
        fputs("</text>\n", f->out);
    }
}

/* ---- all of it ---- */

static void draw_head(const struct frame *f)
{
    const struct demo_chart *c = f->chart;
    fprintf(f->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" role=\"img\" "
            "aria-labelledby=\"%s-title %s-about\">\n<title id=\"%s-title\">",
            c->width, c->height, c->id, c->id, c->id);
    demo_escape(f->out, c->title);
    fprintf(f->out, "</title>\n<desc id=\"%s-about\">", c->id);
    demo_escape(f->out, c->about);
    fputs("</desc>\n", f->out);
}

void demo_chart(FILE *out, const struct demo_chart *chart)
{
    struct frame f = frame_of(out, chart);
    draw_head(&f);
    draw_band(&f);
    for (size_t i = 0; i < chart->series_count; i++)
        if (chart->series[i].filled)
            draw_area(&f, &chart->series[i]);
    draw_y_axis(&f);
    draw_x_axis(&f);
    if (chart->level_name != NULL)
        line(&f, "level", (struct point){f.left, y_of(&f, chart->level)},
             (struct point){f.right, y_of(&f, chart->level)});
    for (size_t i = 0; i < chart->series_count; i++)
        if (!chart->series[i].filled && chart->series[i].count > 0)
            draw_line(&f, &chart->series[i]);
    draw_labels(&f);
    fputs("</svg>\n", out);
}
