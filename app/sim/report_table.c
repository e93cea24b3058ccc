/* report_table.c - a batch on a terminal: the run, a line per row with metrics and a small picture, give-ups by reason.
 *
 * The scenario's columns come first, with arrivals and served: they answer its question. Further metrics follow; those
 * with the same value in every row are printed in one sentence instead.
 *
 * A row begins with its name and its swept values (their keys stand above them). Numbers are never truncated: columns
 * that do not fit beside each other go to a further block below, which repeats names and values. Long names are
 * truncated visibly. The picture, at the right of the first block, is a bar of the plotted metric or, for a series, the
 * arrivals over time. */
#include "report.h"

#include "number.h"
#include "report_common.h"
#include "scale.h"
#include "text/unit.h"

#include <math.h>
#include <string.h>

#define COLUMNS_MIN 40u
#define COLUMNS_MAX 160u
#define NAME_SHARE  3u /* names and swept values take at most a third of the width each */
#define NAME_MIN    4u
#define GAP         2u
#define PICTURE_MIN 10u
#define PICTURE_MAX 32u
#define HEAD_LINES  5u
#define CELL_SIZE   (2 * SIM_NUMBER_SIZE + 8)
#define WORD_SIZE   32u

struct column {
    size_t metric;
    unsigned digits; /* decimals */
    unsigned width;
    char head[HEAD_LINES][WORD_SIZE]; /* lines of the heading, from the bottom up */
};

struct table {
    FILE *out;
    const struct sim_batch *batch;
    const struct cli_term *term;
    unsigned columns; /* to use */
    unsigned name;    /* width of names */
    unsigned value;   /* width of swept values; 0: no sweep */
    unsigned picture; /* width of the picture; 0: none in this block */
    struct column column[SIM_METRIC_LIST_MAX];
    size_t count;
    const char *omitted_prefix; /* prefix of metric names left out in headings */
    struct sim_scale scale;     /* of the picture */
};

/* ---- texts ---- */

static void table_set_colour(const struct table *t, enum cli_colour colour)
{
    fputs(cli_colour(t->term, colour), t->out);
}

/* Prints a text in exactly `width` columns: padded, or visibly truncated. */
static void table_put_label(const struct table *t, const char *text, unsigned width)
{
    unsigned length = (unsigned)cli_text_columns(text), used = 0;
    const char *dots = t->term->utf8 ? "…" : "...";
    unsigned kept = length > width ? width - (unsigned)cli_text_columns(dots) : length;
    for (; used < kept && *text != '\0'; used++)
        text += cli_print_character(t->out, text, strlen(text), t->term->utf8);
    if (length > width) {
        fputs(dots, t->out);
        used = width;
    }
    fprintf(t->out, "%*s", (int)(used < width ? width - used : 0), "");
}

/* Prints a paragraph, wrapped and indented from the second line on. `at`: the column in which it begins. */
static void table_put_paragraph(const struct table *t, const char *text, unsigned at, unsigned indent)
{
    const struct cli_paragraph paragraph = {
        .out = t->out, .utf8 = t->term->utf8, .at = at, .left = indent, .right = t->columns, .breaks_words = true};
    cli_print_paragraph(&paragraph, text, strlen(text));
}

/* ---- cells ---- */

static bool table_has_seeds(const struct table *t)
{
    return t->batch->plan.seeds > 1;
}

/* "yes", "19 of 20", "2.013", "2.013 ±0.021", "-". Returns text. */
static const char *table_cell_text(char text[CELL_SIZE], const struct table *t, const struct column *c, size_t row)
{
    const struct sim_figure *f = sim_batch_figure(t->batch, row, c->metric);
    char mean[SIM_NUMBER_SIZE], half[SIM_NUMBER_SIZE];
    sim_number_fixed(mean, f->mean, c->digits);
    if (isnan(f->mean))
        snprintf(text, CELL_SIZE, "-");
    else if (sim_metric(c->metric)->flag)
        sim_flag_text(text, CELL_SIZE, t->batch, f);
    else if (table_has_seeds(t))
        snprintf(text, CELL_SIZE, "%s %s%s", mean, t->term->utf8 ? "±" : "+-",
                 sim_number_fixed(half, f->half, c->digits));
    else
        snprintf(text, CELL_SIZE, "%s", mean);
    return text;
}

/* ---- columns ---- */

/* Splits a metric's name into words, from the last to the first: "latency_p99_ms" has three, "goodput" and its unit
 * two. */
static size_t heading_words(char words[HEAD_LINES][WORD_SIZE], const struct table *t, const struct sim_metric *metric)
{
    size_t skip =
        strncmp(metric->name, t->omitted_prefix, strlen(t->omitted_prefix)) == 0 ? strlen(t->omitted_prefix) : 0;
    const char *name = metric->name + skip;
    size_t count = 0, end = strlen(name);
    if (metric->unit[0] == '/')
        snprintf(words[count++], WORD_SIZE, "%s", metric->unit);
    while (end > 0 && count < HEAD_LINES) {
        size_t begin = end;
        while (begin > 0 && (name[begin - 1] != '_' || count + 1 == HEAD_LINES))
            begin--;
        snprintf(words[count++], WORD_SIZE, "%.*s", (int)(end - begin), name + begin);
        end = begin > 0 ? begin - 1 : 0;
    }
    return count;
}

/* Sets the heading: the words in as few lines as the width of the column allows, from the bottom up. */
static void column_set_heading(const struct table *t, struct column *c)
{
    char words[HEAD_LINES][WORD_SIZE];
    size_t count = heading_words(words, t, sim_metric(c->metric)), line = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned length = (unsigned)strlen(words[i]);
        c->width = length > c->width ? length : c->width;
    }
    for (size_t i = 0; i < count; i++) {
        char joined[2 * WORD_SIZE + 2];
        snprintf(joined, sizeof joined, "%.31s%s%.31s", words[i], c->head[line][0] != '\0' ? " " : "", c->head[line]);
        bool fits = strlen(joined) <= c->width && strlen(joined) < WORD_SIZE;
        line += !fits;
        snprintf(c->head[line], WORD_SIZE, "%.*s", (int)WORD_SIZE - 1, fits ? joined : words[i]);
    }
}

static void table_set_columns(struct table *t, const struct sim_metric_list *list)
{
    t->count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        struct column *c = &t->column[i];
        char text[CELL_SIZE];
        *c = (struct column){.metric = list->metric[i], .digits = sim_batch_digits(t->batch, list->metric[i])};
        for (size_t j = 0; j < t->batch->rows; j++) {
            unsigned length = (unsigned)cli_text_columns(table_cell_text(text, t, c, j));
            c->width = length > c->width ? length : c->width;
        }
        column_set_heading(t, c);
    }
}

static unsigned table_label_width(const struct table *t)
{
    return t->name + (t->name > 0 && t->value > 0 ? GAP : 0) + t->value;
}

/* Returns how many columns fit from `from` on, at least 1, if `free` columns of the terminal stay empty after them. */
static size_t table_columns_that_fit(const struct table *t, size_t from, unsigned free, unsigned *used)
{
    size_t to = from;
    *used = table_label_width(t);
    while (to < t->count && (to == from || *used + GAP + t->column[to].width + free <= t->columns))
        *used += GAP + t->column[to++].width;
    return to - from;
}

/* ---- labels ---- */

static unsigned table_swept_keys(const struct table *t)
{
    unsigned keys = 0;
    while (keys < SIM_SWEEPS_MAX && sim_row_nth_key(sim_scenario_row(t->batch->scenario, 0), keys).text[0] != '\0')
        keys++;
    return keys;
}

/* Sets the widths of names and swept values, so that the widest column still fits untruncated. */
static void table_set_label_widths(struct table *t)
{
    unsigned widest = 0, third = t->columns / NAME_SHARE;
    for (size_t i = 0; i < t->count; i++)
        widest = t->column[i].width > widest ? t->column[i].width : widest;
    for (size_t i = 0; i < t->batch->rows; i++) {
        const struct sim_row *row = sim_scenario_row(t->batch->scenario, i);
        unsigned name = (unsigned)cli_text_columns(sim_row_name(row)),
                 value = (unsigned)cli_text_columns(sim_row_swept_values(row).text);
        for (unsigned n = 0; n < SIM_SWEEPS_MAX; n++) {
            unsigned key = (unsigned)cli_text_columns(sim_row_nth_key(row, n).text);
            value = key > value ? key : value;
        }
        t->name = name > t->name ? name : t->name;
        t->value = value > t->value ? value : t->value;
    }
    t->value = t->value < third ? t->value : third;
    t->name = t->name < third ? t->name : third;
    unsigned room = t->columns > t->value + widest + 2 * GAP ? t->columns - t->value - widest - 2 * GAP : 0;
    room = room > NAME_MIN ? room : NAME_MIN;
    t->name = t->name < room ? t->name : room;
}

/* Prints the name and the swept values; in the heading, the swept keys. */
static void table_put_row_label(const struct table *t, const char *name, const char *value)
{
    table_put_label(t, name, t->name);
    if (t->value > 0) {
        fprintf(t->out, "%*s", t->name > 0 ? (int)GAP : 0, "");
        table_put_label(t, value, t->value);
    }
}

/* ---- the picture ---- */

static bool table_has_series(const struct table *t)
{
    return sim_scenario_picture(t->batch->scenario) == SIM_PICTURE_SERIES;
}

static void table_draw_bar(const struct table *t, size_t row)
{
    char bar[4 * PICTURE_MAX + 1];
    double mean = sim_batch_figure(t->batch, row, sim_batch_plotted_metric(t->batch))->mean;
    fputs(cli_bar(t->term, bar, t->picture, sim_scale_fraction(&t->scale, mean), 1), t->out);
}

/* Draws arrivals over time; a column shows the largest of its bins. Ends with the last column that is not empty. */
static void table_draw_series(const struct table *t, size_t row)
{
    const struct sim_result *r = &t->batch->row[row].result;
    int64_t all_ns = sim_batch_longest_ns(t->batch);
    double height[PICTURE_MAX];
    char text[4 * PICTURE_MAX + 1];
    unsigned last = 0;
    for (unsigned i = 0; i < t->picture; i++) {
        size_t from = (size_t)(all_ns / r->bin_ns * i / t->picture),
               to = (size_t)(all_ns / r->bin_ns * (i + 1) / t->picture);
        uint64_t max = 0;
        for (size_t j = from; j < r->points && (j == from || j < to); j++)
            max = r->point[j].arrivals > max ? r->point[j].arrivals : max;
        height[i] = sim_scale_fraction(&t->scale, (double)max);
        last = max > 0 ? i + 1 : last;
    }
    fputs(cli_spark(t->term, text, height, last, 1), t->out);
}

static void table_draw_picture(const struct table *t, size_t row)
{
    fprintf(t->out, "%*s", (int)GAP, "");
    table_set_colour(t, CLI_CYAN);
    if (table_has_series(t))
        table_draw_series(t, row);
    else
        table_draw_bar(t, row);
    table_set_colour(t, CLI_PLAIN);
}

/* ---- blocks ---- */

static unsigned table_heading_lines(const struct table *t, size_t from, size_t count)
{
    unsigned lines = table_swept_keys(t) > 1 ? table_swept_keys(t) : 1;
    for (size_t i = from; i < from + count; i++)
        for (unsigned line = 0; line < HEAD_LINES; line++)
            lines = t->column[i].head[line][0] != '\0' && line + 1 > lines ? line + 1 : lines;
    return lines;
}

static void table_put_headings(const struct table *t, size_t from, size_t count)
{
    const struct sim_row *first = sim_scenario_row(t->batch->scenario, 0);
    unsigned keys = table_swept_keys(t);
    table_set_colour(t, CLI_DIM);
    for (unsigned line = table_heading_lines(t, from, count); line-- > 0;) {
        size_t last = from + count;
        while (last > from && t->column[last - 1].head[line][0] == '\0')
            last--;
        table_put_row_label(t, "", line < keys ? sim_row_nth_key(first, keys - 1 - line).text : "");
        for (size_t i = from; i < last; i++)
            fprintf(t->out, "%*s%*s", (int)GAP, "", (int)t->column[i].width, t->column[i].head[line]);
        fputc('\n', t->out);
    }
    table_set_colour(t, CLI_PLAIN);
}

/* In the table of give-ups, only rows with give-ups are printed. */
static bool table_prints_row(const struct table *t, size_t row)
{
    bool any = t->omitted_prefix[0] == '\0';
    for (size_t i = 0; !any && i < t->count; i++)
        any = sim_batch_figure(t->batch, row, t->column[i].metric)->mean > 0;
    return any;
}

static void table_put_block(const struct table *t, size_t from, size_t count)
{
    table_put_headings(t, from, count);
    for (size_t row = 0; row < t->batch->rows; row++) {
        if (!table_prints_row(t, row))
            continue;
        const struct sim_row *r = sim_scenario_row(t->batch->scenario, row);
        table_put_row_label(t, sim_row_name(r), sim_row_swept_values(r).text);
        for (size_t i = from; i < from + count; i++) {
            char text[CELL_SIZE];
            table_cell_text(text, t, &t->column[i], row);
            fprintf(t->out, "%*s%s", (int)(GAP + t->column[i].width - (unsigned)cli_text_columns(text)), "", text);
        }
        if (t->picture > 0)
            table_draw_picture(t, row);
        fputc('\n', t->out);
    }
}

static void table_put_picture_caption(const struct table *t)
{
    char text[SIM_REPORT_TEXT_MAX], max[SIM_NUMBER_SIZE], time[TEXT_VALUE_SIZE], bucket[SIM_REPORT_TEXT_MAX],
        cut[96] = "";
    size_t plot = sim_batch_plotted_metric(t->batch);
    if (t->scale.highest > t->scale.max)
        snprintf(cut, sizeof cut, ", drawn no higher than %s", sim_number(max, t->scale.max));
    if (table_has_series(t))
        snprintf(text, sizeof text, "Right: arrivals over time, 0 to %s; the highest are %s per %.60s%s%s.",
                 text_duration_format(time, sim_batch_longest_ns(t->batch)), sim_number(max, t->scale.highest),
                 sim_bin_width_text(bucket, t->batch), cut, t->scale.root ? " (square-root scale)" : "");
    else
        snprintf(text, sizeof text, "Right: %s, 0 to %s.", sim_metric(plot)->name,
                 sim_number_fixed(max, t->scale.max, sim_batch_digits(t->batch, plot)));
    table_put_paragraph(t, text, 0, 0);
}

/* Prints the metrics in as many blocks as needed; the first may have the picture and its caption. */
static void table_put_figures(struct table *t, const struct sim_metric_list *list, bool pictured)
{
    unsigned used;
    table_set_columns(t, list);
    table_set_label_widths(t);
    for (size_t from = 0, count; from < t->count; from += count) {
        bool first = pictured && from == 0;
        count = table_columns_that_fit(t, from, first ? GAP + PICTURE_MIN : 0, &used);
        unsigned left = t->columns > used + GAP ? t->columns - used - GAP : 0;
        t->picture = !first || left < PICTURE_MIN ? 0 : left < PICTURE_MAX ? left : PICTURE_MAX;
        if (t->picture > 0)
            table_put_picture_caption(t);
        fputc('\n', t->out);
        table_put_block(t, from, count);
    }
}

/* ---- introduction and loops ---- */

static void table_put_introduction(const struct table *t)
{
    char text[4 * SIM_REPORT_TEXT_MAX], loop[SIM_REPORT_TEXT_MAX], seeds[SIM_REPORT_TEXT_MAX],
        bucket[SIM_REPORT_TEXT_MAX];
    const char *name = sim_scenario_name(t->batch->scenario), *title = sim_scenario_title(t->batch->scenario);
    bool titled = strcmp(name, title) != 0; /* without a title, it is the name */
    snprintf(text, sizeof text, "%s%s%s", name, titled ? ": " : "", titled ? title : "");
    table_set_colour(t, CLI_BOLD);
    table_put_paragraph(t, text, 0, 0);
    table_set_colour(t, CLI_PLAIN);
    if (sim_scenario_question(t->batch->scenario)[0] != '\0')
        table_put_paragraph(t, sim_scenario_question(t->batch->scenario), 0, 0);
    fputc('\n', t->out);
    snprintf(text, sizeof text, "Simulated: %s; %s%s; bins of %s.", sim_batch_loop_text(loop, t->batch),
             sim_seeds_text(seeds, t->batch),
             !table_has_seeds(t) ? ""
             : t->term->utf8     ? " (mean ± half of the 95 % interval)"
                                 : " (mean +- half of the 95 % interval)",
             sim_bin_width_text(bucket, t->batch));
    table_put_paragraph(t, text, 0, 0);
}

/* Prints the loop kind of each row if rows differ; rows with the same name and loop are printed once. */
static void table_put_loops(const struct table *t)
{
    char text[SIM_REPORT_TEXT_MAX + SIM_LABEL_MAX + 8], before[sizeof text] = "";
    if (sim_batch_has_one_loop(t->batch))
        return;
    fputs("\nLoops:\n", t->out);
    for (size_t i = 0; i < t->batch->rows; i++) {
        const struct sim_row *row = sim_scenario_row(t->batch->scenario, i);
        char loop[SIM_REPORT_TEXT_MAX];
        const char *name = row->name[0] != '\0' ? row->name : row->label;
        snprintf(text, sizeof text, "%s: %s", name, sim_loop_text(loop, &row->world));
        if (strcmp(text, before) == 0)
            continue;
        fputs("  ", t->out);
        table_put_paragraph(t, text, 2, 4);
        memcpy(before, text, sizeof before);
    }
}

/* ---- all metrics ---- */

static bool metric_is_same_in_all(const struct table *t, size_t metric)
{
    const struct sim_figure *first = sim_batch_figure(t->batch, 0, metric);
    for (size_t i = 1; i < t->batch->rows; i++) {
        const struct sim_figure *f = sim_batch_figure(t->batch, i, metric);
        if (!(f->mean <= first->mean && f->mean >= first->mean && f->half <= first->half && f->half >= first->half))
            return false;
    }
    return t->batch->rows > 1;
}

/* Prints "In all rows: success 1, goodput 500/s." */
static void table_put_same(const struct table *t, const struct sim_metric_list *same)
{
    char text[4 * SIM_REPORT_TEXT_MAX] = "In all rows:";
    for (size_t i = 0; i < same->count; i++) {
        const struct sim_metric *metric = sim_metric(same->metric[i]);
        struct column c = {.metric = same->metric[i], .digits = sim_batch_digits(t->batch, same->metric[i])};
        char value[CELL_SIZE];
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s %s %s%s", i > 0 ? "," : "", metric->name,
                 table_cell_text(value, t, &c, 0), metric->unit[0] == '/' ? metric->unit : "");
    }
    fputc('\n', t->out);
    table_put_paragraph(t, text, 0, 4);
}

static void table_put_all_figures(struct table *t)
{
    struct sim_metric_list list, more, differ = {0}, same = {0};
    sim_metric_list_primary(&list, t->batch);
    sim_metric_list_secondary(&more, t->batch, &list);
    for (size_t i = 0; i < more.count; i++) {
        struct sim_metric_list *to = metric_is_same_in_all(t, more.metric[i]) ? &same : &differ;
        to->metric[to->count++] = more.metric[i];
    }
    sim_metric_list_append(&list, &differ);
    table_put_figures(t, &list, true);
    if (same.count > 0)
        table_put_same(t, &same);
}

static void table_put_give_ups(struct table *t)
{
    struct sim_metric_list reasons;
    sim_metric_list_give_ups(&reasons, t->batch);
    if (reasons.count == 0) {
        fputs("\nNo call gave up.\n", t->out);
        return;
    }
    fputs("\nGave up, by reason:\n", t->out);
    t->omitted_prefix = SIM_GAVE_UP_PREFIX;
    table_put_figures(t, &reasons, false);
}

static struct sim_scale table_scale(const struct table *t)
{
    if (table_has_series(t))
        return sim_scale_of_arrivals(t->batch);
    return (struct sim_scale){.max = sim_batch_bar_max(t->batch, sim_batch_plotted_metric(t->batch))};
}

void sim_report_table(const struct cli_term *term, const struct sim_batch *batch)
{
    struct table t = {.out = term->out, .batch = batch, .term = term, .columns = term->width, .omitted_prefix = ""};
    t.columns = t.columns < COLUMNS_MIN ? COLUMNS_MIN : t.columns > COLUMNS_MAX ? COLUMNS_MAX : t.columns;
    t.scale = table_scale(&t);
    table_put_introduction(&t);
    table_put_all_figures(&t);
    table_put_loops(&t);
    table_put_give_ups(&t);
}
