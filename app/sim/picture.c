/* picture.c - the scenario's picture: arrivals and served over time, a bar for each row, or curves over a swept key.
 *
 * Charts that are compared have the same scale (scale.h). Rows and curves beyond the number that can be distinguished
 * are omitted, and their number is shown. A series with more bins than a chart has pixels is drawn with several bins as
 * a step of their highest value: peaks matter most. */
#include "picture.h"

#include "number.h"
#include "report.h"
#include "report_common.h"
#include "scale.h"
#include "text/unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PANEL_HEIGHT 190u
#define CURVE_HEIGHT 380u
#define STEPS_MAX    734u /* width of a panel's frame in pixels */
#define CURVES_MAX   16u
#define COLOURS      8u
#define WASTE_PART   20u
#define BANDS_MAX    (SIM_OUTAGES_MAX + SIM_GROUPS_MAX)
#define LOG_RATIO    200.0 /* above this ratio of the swept values the x axis is logarithmic */

/* ---- colours ---- */

static const char *const colours[COLOURS] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};
static const char *const dashed[COLOURS] = {"c0 dash", "c1 dash", "c2 dash", "c3 dash",
                                            "c4 dash", "c5 dash", "c6 dash", "c7 dash"};

/* Returns the style of the n-th line: first all colours, then all colours dashed. */
static const char *line_style(size_t n)
{
    return n / COLOURS % 2 == 0 ? colours[n % COLOURS] : dashed[n % COLOURS];
}

/* ---- kind of picture ---- */

static const struct sim_row *batch_row(const struct sim_batch *batch, size_t row)
{
    return sim_scenario_row(batch->scenario, row);
}

enum sim_picture sim_picture_kind(const struct sim_batch *batch)
{
    enum sim_picture kind = sim_scenario_picture(batch->scenario);
    if (kind != SIM_PICTURE_CURVE)
        return kind;
    for (size_t i = 0; i < batch->rows; i++)
        if (batch_row(batch, i)->swept[0] == '\0')
            return SIM_PICTURE_BARS;
    return SIM_PICTURE_CURVE;
}

size_t sim_picture_panels(const struct sim_batch *batch)
{
    if (sim_picture_kind(batch) != SIM_PICTURE_SERIES)
        return 1;
    return batch->rows < SIM_PANELS_MAX ? batch->rows : SIM_PANELS_MAX;
}

/* ---- series over time ---- */

/* A time axis for all rows: its unit and its length. */
struct axis {
    double unit_ns;
    const char *unit;
    int64_t length_ns;
};

static struct axis time_axis(const struct sim_batch *batch)
{
    struct axis axis = {.length_ns = sim_batch_longest_ns(batch)};
    bool is_short = axis.length_ns < 2 * BIDE_S;
    axis.unit_ns = is_short ? (double)BIDE_MS : (double)BIDE_S;
    axis.unit = is_short ? " ms" : " s";
    return axis;
}

/* Returns the number of bins in a step of the chart. */
static size_t bins_in_step(const struct axis *axis, const struct sim_result *r)
{
    size_t buckets = (size_t)(axis->length_ns / r->bin_ns);
    return buckets > STEPS_MAX ? (buckets + STEPS_MAX - 1) / STEPS_MAX : 1;
}

static double point_arrivals(const struct sim_point *p)
{
    return (double)p->arrivals;
}

static double point_served(const struct sim_point *p)
{
    return (double)p->served;
}

static double point_succeeded(const struct sim_point *p)
{
    return (double)p->succeeded;
}

static double point_budget(const struct sim_point *p)
{
    return p->budget_milli >= 0 ? (double)p->budget_milli / 1000 : 0;
}

static double point_open(const struct sim_point *p)
{
    return p->open;
}

static double point_queue(const struct sim_point *p)
{
    return p->queue;
}

/* Fills the highest (or lowest) value of every `step` bins. Returns the number of steps. */
static size_t series_fill(double *value, const struct sim_result *r, size_t step,
                          double (*at)(const struct sim_point *), bool lowest)
{
    size_t count = 0;
    for (size_t i = 0; i < r->points; i += step, count++) {
        value[count] = at(&r->point[i]);
        for (size_t j = i + 1; j < i + step && j < r->points; j++) {
            double other = at(&r->point[j]);
            if (lowest ? other < value[count] : other > value[count])
                value[count] = other;
        }
    }
    return count;
}

static const char *outage_name(enum sim_outage_kind kind)
{
    switch (kind) {
    case SIM_OUTAGE_FAIL:
    case SIM_OUTAGE_THROTTLE:
    case SIM_OUTAGE_SILENCE: return "outage";
    case SIM_OUTAGE_HOLD: return "cut";
    case SIM_OUTAGE_SLOW: return "slow";
    }
    return "outage";
}

static int compare_band_begin(const void *a, const void *b)
{
    const struct chart_band *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Collects the disturbances of a world, to be shown as bands: outages, and the peaks of clients. */
static size_t world_bands(struct chart_band bands[BANDS_MAX], const struct sim_world *w, const struct axis *axis)
{
    size_t count = 0;
    for (uint32_t i = 0; i < w->outages; i++)
        bands[count++] =
            (struct chart_band){(double)w->outage[i].from_ns / axis->unit_ns,
                                (double)w->outage[i].until_ns / axis->unit_ns, outage_name(w->outage[i].kind)};
    for (uint32_t i = 0; i < w->groups; i++)
        if (w->clients[i].arrival == SIM_RAMP || w->clients[i].arrival == SIM_SPIKE)
            bands[count++] = (struct chart_band){(double)w->clients[i].peak_from_ns / axis->unit_ns,
                                                 (double)w->clients[i].peak_until_ns / axis->unit_ns, "peak"};
    qsort(bands, count, sizeof *bands, compare_band_begin);
    return count;
}

/* Returns true if much work is wasted in some row: then successful calls are shown beside served attempts. */
static bool batch_has_waste(const struct sim_batch *batch)
{
    for (size_t i = 0; i < batch->rows; i++)
        if (batch->row[i].result.wasted * WASTE_PART > batch->row[i].result.served)
            return true;
    return false;
}

static void draw_series(FILE *out, const struct sim_batch *batch, size_t row, const struct chart_place *place)
{
    const struct sim_result *r = &batch->row[row].result;
    struct axis axis = time_axis(batch);
    struct sim_scale scale = sim_scale_of_series(batch);
    size_t step = bins_in_step(&axis, r);
    bool waste = batch_has_waste(batch), is_cut = false;
    double arrivals[STEPS_MAX + 1], served[STEPS_MAX + 1], succeeded[STEPS_MAX + 1];
    struct chart_band bands[BANDS_MAX];
    char id[32], y_name[SIM_REPORT_TEXT_MAX], about[256], bin[TEXT_VALUE_SIZE], peak[SIM_NUMBER_SIZE];
    struct chart_series series[] = {
        {.name = "arrivals", .style = "c0", .value = arrivals, .filled = true},
        {.name = "served", .style = "c1", .value = served, .stepped = true},
        {.name = "succeeded", .style = "c2 dash", .value = succeeded, .stepped = true},
    };
    series[0].count = series_fill(arrivals, r, step, point_arrivals, false);
    series[1].count = series_fill(served, r, step, point_served, false);
    series[2].count = series_fill(succeeded, r, step, point_succeeded, false);
    text_duration_format(bin, r->bin_ns);
    snprintf(id, sizeof id, "series-%zu", row);
    for (size_t i = 0; i < series[0].count; i++)
        is_cut = is_cut || arrivals[i] > scale.max || served[i] > scale.max;
    char every[64] = "";
    if (step > 1)
        snprintf(every, sizeof every, ", the highest of every %zu", step);
    snprintf(y_name, sizeof y_name, "%s per %.20s%s%s%s",
             waste ? "arrivals, served, and calls that succeeded," : "arrivals and served", bin, every,
             scale.root ? ", square-root scale" : "", is_cut ? "; higher values are cut: ↑" : "");
    snprintf(about, sizeof about, "Attempts that arrived and that were served, per %.20s over time; %s arrived in all.",
             bin, sim_number(peak, (double)r->arrivals));
    chart_lines(out, &(struct chart_lines){.id = id,
                                           .title = batch_row(batch, row)->label,
                                           .about = about,
                                           .heading = batch_row(batch, row)->label,
                                           .y_name = y_name,
                                           .x_unit = axis.unit,
                                           .width = SIM_PICTURE_WIDTH,
                                           .height = PANEL_HEIGHT,
                                           .place = place,
                                           .x_step = (double)r->bin_ns * (double)step / axis.unit_ns,
                                           .x_most = (double)axis.length_ns / axis.unit_ns,
                                           .y_most = scale.max,
                                           .y_root = scale.root,
                                           .bands = bands,
                                           .band_count = world_bands(bands, &batch_row(batch, row)->world, &axis),
                                           .series = series,
                                           .series_count = waste ? 3 : 2});
}

/* ---- levels ---- */

static const struct {
    const char *id, *title, *y_name;
    double (*at)(const struct sim_point *);
    bool lowest;
} levels[] = {
    [SIM_LEVEL_BUDGET] = {"budget", "Retry budget", "mean level of the retry budgets, at the end of a bin of",
                          point_budget, true},
    [SIM_LEVEL_OPEN] = {"breakers", "Breakers", "breakers not closed, at the end of a bin of", point_open, false},
    [SIM_LEVEL_QUEUE] = {"queue", "Queue", "waiting at the last service, at the end of a bin of", point_queue, false},
};

static bool result_has_level(const struct sim_result *r, enum sim_level level)
{
    for (size_t i = 0; i < r->points; i++)
        if (level == SIM_LEVEL_BUDGET ? r->point[i].budget_milli >= 0 : levels[level].at(&r->point[i]) > 0)
            return true;
    return false;
}

bool sim_picture_has_level(const struct sim_batch *batch, enum sim_level level)
{
    for (size_t i = 0; i < batch->rows; i++)
        if (result_has_level(&batch->row[i].result, level))
            return true;
    return false;
}

bool sim_picture_level(FILE *out, const struct sim_batch *batch, enum sim_level level)
{
    struct axis axis = time_axis(batch);
    struct chart_series series[SIM_PANELS_MAX];
    size_t count = 0, first = 0, step = 1, left_out = 0;
    char y_name[128], bin[TEXT_VALUE_SIZE];
    double *room = calloc((size_t)SIM_PANELS_MAX * (STEPS_MAX + 1), sizeof *room);
    if (room == NULL)
        return false;
    for (size_t i = 0; i < batch->rows; i++) {
        const struct sim_result *r = &batch->row[i].result;
        if (!result_has_level(r, level))
            continue;
        if (count == SIM_PANELS_MAX || (count > 0 && r->bin_ns != batch->row[first].result.bin_ns)) {
            left_out++;
            continue;
        }
        first = count == 0 ? i : first;
        step = bins_in_step(&axis, r);
        double *value = room + count * (STEPS_MAX + 1);
        series[count] =
            (struct chart_series){.name = batch_row(batch, i)->label, .style = line_style(i), .value = value};
        series[count++].count = series_fill(value, r, step, levels[level].at, levels[level].lowest);
    }
    int64_t bin_ns = batch->row[first].result.bin_ns;
    struct chart_band bands[BANDS_MAX];
    int used = snprintf(y_name, sizeof y_name, "%s %.20s", levels[level].y_name, text_duration_format(bin, bin_ns));
    if (left_out > 0)
        snprintf(y_name + used, sizeof y_name - (size_t)used, "; %zu more rows are not drawn", left_out);
    chart_lines(out, &(struct chart_lines){.id = levels[level].id,
                                           .title = levels[level].title,
                                           .about = y_name,
                                           .y_name = y_name,
                                           .x_unit = axis.unit,
                                           .width = SIM_PICTURE_WIDTH,
                                           .height = PANEL_HEIGHT + 40,
                                           .x_step = (double)bin_ns * (double)step / axis.unit_ns,
                                           .x_most = (double)axis.length_ns / axis.unit_ns,
                                           .bands = bands,
                                           .band_count = world_bands(bands, &batch_row(batch, first)->world, &axis),
                                           .series = series,
                                           .series_count = count});
    free(room);
    return true;
}

/* ---- bars ---- */

/* Writes the name of the plotted metric, its help line and its interval. Returns text. */
static const char *plot_axis_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch)
{
    const struct sim_metric *m = sim_metric(sim_batch_plotted_metric(batch));
    int used = snprintf(text, SIM_REPORT_TEXT_MAX, "%s: %s", m->name, m->about);
    if (batch->plan.seeds > 1 && (size_t)used < SIM_REPORT_TEXT_MAX)
        snprintf(text + used, SIM_REPORT_TEXT_MAX - (size_t)used, "; mean and 95 %% interval of %" PRIu32 " seeds",
                 batch->plan.seeds);
    return text;
}

static bool row_has_new_name(const struct sim_batch *batch, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(batch_row(batch, i)->name, batch_row(batch, row)->name) == 0)
            return false;
    return true;
}

/* Returns the index of the row's name among all different names: rows of the same name share a colour. */
static size_t row_name_index(const struct sim_batch *batch, size_t row)
{
    size_t index = 0;
    for (size_t i = 0; strcmp(batch_row(batch, i)->name, batch_row(batch, row)->name) != 0; i++)
        index += row_has_new_name(batch, i);
    return index;
}

/* Metrics printed beside the bars. */
static const char *const side_columns[CHART_MORE_MAX] = {"arrivals", "served"};

struct bar_text {
    char name[SIM_NAME_MAX + SIM_LABEL_MAX + 4];
    char value[2 * SIM_NUMBER_SIZE + 8];
    char more[CHART_MORE_MAX][SIM_NUMBER_SIZE];
};

struct bars {
    struct chart_bar bar[SIM_ROWS_MAX];
    struct bar_text text[SIM_ROWS_MAX];
};

/* Sets the texts of a bar: "fifo", or "fifo, 140/s" with a sweep (its key stands above). */
static void bar_set_texts(struct bar_text *text, const struct sim_batch *batch, size_t row)
{
    size_t metric = sim_batch_plotted_metric(batch);
    unsigned digits = sim_batch_digits(batch, metric);
    const struct sim_figure *f = sim_batch_figure(batch, row, metric);
    const char *name = sim_row_name(batch_row(batch, row));
    char mean[SIM_NUMBER_SIZE], half[SIM_NUMBER_SIZE];
    struct sim_label values = sim_row_swept_values(batch_row(batch, row));
    snprintf(text->name, sizeof text->name, "%s%s%s", name, name[0] != '\0' && values.text[0] != '\0' ? ", " : "",
             values.text);
    sim_number_fixed(mean, f->mean, digits);
    sim_number_fixed(half, f->half, digits);
    if (batch->plan.seeds > 1 && !isnan(f->mean))
        snprintf(text->value, sizeof text->value, "%s ±%s", mean, half);
    else
        snprintf(text->value, sizeof text->value, "%s", isnan(f->mean) ? "none" : mean);
    for (size_t i = 0; i < CHART_MORE_MAX; i++)
        sim_number_fixed(text->more[i], sim_batch_figure(batch, row, sim_metric_by_name(side_columns[i]))->mean, 0);
}

static void bars_set(struct bars *bars, const struct sim_batch *batch)
{
    bool swept = batch->rows > 0 && batch_row(batch, 0)->swept[0] != '\0';
    for (size_t i = 0; i < batch->rows; i++) {
        const struct sim_figure *f = sim_batch_figure(batch, i, sim_batch_plotted_metric(batch));
        struct bar_text *text = &bars->text[i];
        bar_set_texts(text, batch, i);
        bars->bar[i] = (struct chart_bar){.name = text->name,
                                          .style = colours[swept ? row_name_index(batch, i) % COLOURS : 1],
                                          .text = text->value,
                                          .value = f->mean,
                                          .half = f->half,
                                          .more = {text->more[0], text->more[1]}};
    }
}

static bool draw_bars(FILE *out, const struct sim_batch *batch, const struct chart_place *place)
{
    struct bars *bars = malloc(sizeof *bars);
    if (bars == NULL)
        return false;
    char x_name[SIM_REPORT_TEXT_MAX];
    struct sim_label keys = sim_row_swept_keys(batch_row(batch, 0));
    bars_set(bars, batch);
    chart_bars(out, &(struct chart_bars){.id = "bars",
                                         .title = sim_metric(sim_batch_plotted_metric(batch))->name,
                                         .about = sim_metric(sim_batch_plotted_metric(batch))->about,
                                         .x_name = plot_axis_text(x_name, batch),
                                         .names = keys.text[0] != '\0' ? keys.text : NULL,
                                         .more = {side_columns[0], side_columns[1]},
                                         .most = sim_batch_bar_max(batch, sim_batch_plotted_metric(batch)),
                                         .width = SIM_PICTURE_WIDTH,
                                         .place = place,
                                         .bar = bars->bar,
                                         .count = batch->rows});
    free(bars);
    return true;
}

/* ---- curves ---- */

/* The name of a curve: the row's name, and the second swept key. */
struct curve_name {
    char text[SIM_NAME_MAX + SIM_LABEL_MAX + 4];
};

static struct curve_name row_curve_name(const struct sim_row *row)
{
    struct curve_name name;
    const char *rest = strstr(row->swept, ", ");
    if (rest == NULL)
        snprintf(name.text, sizeof name.text, "%s", row->name);
    else
        snprintf(name.text, sizeof name.text, "%s%s%s", row->name, row->name[0] != '\0' ? ", " : "", rest + 2);
    return name;
}

struct curves {
    struct curve_name name[CURVES_MAX];
    struct chart_series series[CURVES_MAX];
    double x[SIM_ROWS_MAX], value[SIM_ROWS_MAX], half[SIM_ROWS_MAX];
    struct sim_label text[SIM_ROWS_MAX]; /* texts of the marks on the x axis */
    struct chart_mark mark[SIM_ROWS_MAX];
    size_t count, marks, used, left_out;
    bool numbers; /* the swept values are distinct numbers */
};

static size_t curves_find_mark(const struct curves *c, const char *value)
{
    for (size_t i = 0; i < c->marks; i++)
        if (strcmp(c->text[i].text, value) == 0)
            return i;
    return SIZE_MAX;
}

/* Sets the marks of the x axis: the values of the first swept key, in order of appearance. */
static void curves_set_marks(struct curves *c, const struct sim_batch *batch)
{
    c->numbers = true;
    for (size_t i = 0; i < batch->rows; i++) {
        struct sim_label value = sim_row_nth_value(batch_row(batch, i), 0);
        if (curves_find_mark(c, value.text) != SIZE_MAX)
            continue;
        double x = batch_row(batch, i)->swept_value;
        for (size_t j = 0; j < c->marks; j++)
            c->numbers = c->numbers && (c->mark[j].x < x || c->mark[j].x > x);
        c->text[c->marks] = value;
        c->mark[c->marks] = (struct chart_mark){x, c->text[c->marks].text};
        c->marks++;
    }
    for (size_t i = 0; !c->numbers && i < c->marks; i++)
        c->mark[i].x = (double)i;
}

static int compare_mark_x(const void *a, const void *b)
{
    const struct chart_mark *x = a, *y = b;
    return (x->x > y->x) - (x->x < y->x);
}

static bool row_begins_curve(const struct sim_batch *batch, size_t row)
{
    struct curve_name name = row_curve_name(batch_row(batch, row));
    for (size_t i = 0; i < row; i++)
        if (strcmp(row_curve_name(batch_row(batch, i)).text, name.text) == 0)
            return false;
    return true;
}

/* Adds a curve of all rows with the same curve name. */
static void curves_add(struct curves *c, const struct sim_batch *batch, size_t first)
{
    size_t metric = sim_batch_plotted_metric(batch), from = c->used;
    c->name[c->count] = row_curve_name(batch_row(batch, first));
    for (size_t i = first; i < batch->rows; i++) {
        const struct sim_figure *f = sim_batch_figure(batch, i, metric);
        if (strcmp(row_curve_name(batch_row(batch, i)).text, c->name[c->count].text) != 0)
            continue;
        c->x[c->used] = c->mark[curves_find_mark(c, sim_row_nth_value(batch_row(batch, i), 0).text)].x;
        c->value[c->used] = f->mean;
        c->half[c->used++] = f->half;
    }
    c->series[c->count] = (struct chart_series){.name = c->name[c->count].text,
                                                .style = line_style(c->count),
                                                .value = c->value + from,
                                                .count = c->used - from,
                                                .x = c->x + from,
                                                .half = c->half + from};
    c->count++;
}

static void curves_set(struct curves *c, const struct sim_batch *batch)
{
    *c = (struct curves){0};
    curves_set_marks(c, batch);
    for (size_t i = 0; i < batch->rows; i++)
        if (!row_begins_curve(batch, i))
            continue;
        else if (c->count < CURVES_MAX)
            curves_add(c, batch, i);
        else
            c->left_out++;
    qsort(c->mark, c->marks, sizeof *c->mark, compare_mark_x);
}

/* Returns true if the highest curve is far above the lowest. */
static bool curves_need_root(const struct curves *c)
{
    double top[CURVES_MAX];
    for (size_t i = 0; i < c->count; i++) {
        top[i] = 0;
        for (size_t j = 0; j < c->series[i].count; j++)
            top[i] = c->series[i].value[j] > top[i] ? c->series[i].value[j] : top[i];
    }
    return sim_scale_needs_root(top, c->count);
}

static bool curves_need_log(const struct curves *c)
{
    return c->numbers && c->marks > 1 && c->mark[0].x > 0 && c->mark[c->marks - 1].x / c->mark[0].x >= LOG_RATIO;
}

static bool draw_curves(FILE *out, const struct sim_batch *batch, const struct chart_place *place)
{
    struct curves *c = malloc(sizeof *c);
    if (c == NULL)
        return false;
    char y_name[SIM_REPORT_TEXT_MAX], about[SIM_REPORT_TEXT_MAX + 64];
    curves_set(c, batch);
    struct sim_label key = sim_row_nth_key(batch_row(batch, 0), 0);
    char x_name[SIM_LABEL_MAX + 24];
    plot_axis_text(y_name, batch);
    if (curves_need_root(c))
        snprintf(y_name + strlen(y_name), sizeof y_name - strlen(y_name), "; square-root scale");
    snprintf(x_name, sizeof x_name, "%s%s", key.text, curves_need_log(c) ? ", logarithmic" : "");
    snprintf(about, sizeof about, "%s, over %s. A gap means that the metric has no value.",
             sim_metric(sim_batch_plotted_metric(batch))->about, key.text);
    chart_lines(out, &(struct chart_lines){.id = "curve",
                                           .title = sim_metric(sim_batch_plotted_metric(batch))->name,
                                           .about = about,
                                           .y_name = y_name,
                                           .y_root = curves_need_root(c),
                                           .x_name = x_name,
                                           .x_unit = "",
                                           .width = SIM_PICTURE_WIDTH,
                                           .height = CURVE_HEIGHT,
                                           .place = place,
                                           .x_log = curves_need_log(c),
                                           .marks = c->mark,
                                           .mark_count = c->marks,
                                           .series = c->series,
                                           .series_count = c->count});
    free(c);
    return true;
}

/* ---- all kinds ---- */

unsigned sim_picture_height(const struct sim_batch *batch)
{
    switch (sim_picture_kind(batch)) {
    case SIM_PICTURE_SERIES: return PANEL_HEIGHT;
    case SIM_PICTURE_CURVE: return CURVE_HEIGHT;
    case SIM_PICTURE_BARS: break;
    }
    return chart_bars_height(&(struct chart_bars){.more = {side_columns[0], side_columns[1]}, .count = batch->rows});
}

size_t sim_picture_omitted(const struct sim_batch *batch)
{
    size_t curves = 0;
    if (sim_picture_kind(batch) == SIM_PICTURE_SERIES)
        return batch->rows - sim_picture_panels(batch);
    if (sim_picture_kind(batch) == SIM_PICTURE_BARS)
        return 0;
    for (size_t i = 0; i < batch->rows; i++)
        curves += row_begins_curve(batch, i);
    return curves > CURVES_MAX ? curves - CURVES_MAX : 0;
}

bool sim_picture_draw(FILE *out, const struct sim_batch *batch, size_t panel, const struct chart_place *place)
{
    switch (sim_picture_kind(batch)) {
    case SIM_PICTURE_SERIES: draw_series(out, batch, panel, place); break;
    case SIM_PICTURE_BARS: return draw_bars(out, batch, place);
    case SIM_PICTURE_CURVE: return draw_curves(out, batch, place);
    }
    return true;
}
