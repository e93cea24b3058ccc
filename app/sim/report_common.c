/* report_common.c - which metrics a report shows, and texts that all formats share. */
#include "report_common.h"

#include "text/unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- figures ---- */

const struct sim_figure *sim_batch_figure(const struct sim_batch *batch, size_t row, size_t metric)
{
    return &batch->row[row].figure[metric];
}

size_t sim_metric_by_name(const char *name)
{
    return sim_metric_find(name, strlen(name));
}

bool sim_batch_has_value(const struct sim_batch *batch, size_t metric)
{
    for (size_t i = 0; i < batch->rows; i++)
        if (!isnan(sim_batch_figure(batch, i, metric)->mean))
            return true;
    return false;
}

bool sim_batch_has_positive(const struct sim_batch *batch, size_t metric)
{
    for (size_t i = 0; i < batch->rows; i++)
        if (sim_batch_figure(batch, i, metric)->mean > 0)
            return true;
    return false;
}

size_t sim_batch_plotted_metric(const struct sim_batch *batch)
{
    const char *name = sim_scenario_plot(batch->scenario);
    size_t metric = name != NULL ? sim_metric_by_name(name) : SIZE_MAX;
    return metric != SIZE_MAX ? metric : sim_metric_by_name("amplification");
}

/* The largest value has four significant digits and the smallest two, with at most four decimals; counts have none. */
unsigned sim_batch_digits(const struct sim_batch *batch, size_t metric)
{
    double max = 0, min = HUGE_VAL;
    bool all_integers = true;
    for (size_t i = 0; i < batch->rows; i++) {
        const struct sim_figure *f = sim_batch_figure(batch, i, metric);
        double size = fabs(f->mean);
        if (isnan(size))
            continue;
        max = size > max ? size : max;
        min = size > 0 && size < min ? size : min;
        all_integers = all_integers && (double)(uint64_t)size >= size && (double)(uint64_t)f->half >= f->half;
    }
    unsigned digits = max < 10 ? 3 : max < 100 ? 2 : max < 1000 ? 1 : 0;
    unsigned needed = min < 0.01 ? 4 : min < 0.1 ? 3 : min < 1 ? 2 : min < 10 ? 1 : 0;
    return all_integers ? 0 : digits > needed ? digits : needed;
}

static bool metric_ends_at_one(const char *name)
{
    static const char *const shares[] = {"success", "error", "users_success", "recovers"};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (strcmp(name, shares[i]) == 0)
            return true;
    return false;
}

double sim_batch_bar_max(const struct sim_batch *batch, size_t metric)
{
    double max = 0;
    for (size_t i = 0; i < batch->rows; i++) {
        double mean = sim_batch_figure(batch, i, metric)->mean;
        max = mean > max ? mean : max;
    }
    return max <= 0 || metric_ends_at_one(sim_metric(metric)->name) ? 1 : max;
}

void sim_flag_text(char *text, size_t size, const struct sim_batch *batch, const struct sim_figure *figure)
{
    if (batch->plan.seeds <= 1)
        snprintf(text, size, "%s", figure->mean > 0 ? "yes" : "no");
    else
        snprintf(text, size, "%" PRIu32 " of %" PRIu32, (uint32_t)(figure->mean * figure->count + 0.5), figure->count);
}

/* ---- lists of metrics ---- */

static bool list_has(const struct sim_metric_list *list, size_t metric)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->metric[i] == metric)
            return true;
    return false;
}

static void list_add(struct sim_metric_list *list, size_t metric)
{
    if (metric != SIZE_MAX && list->count < SIM_METRIC_LIST_MAX && !list_has(list, metric))
        list->metric[list->count++] = metric;
}

void sim_metric_list_append(struct sim_metric_list *list, const struct sim_metric_list *more)
{
    for (size_t i = 0; i < more->count; i++)
        list_add(list, more->metric[i]);
}

void sim_metric_list_primary(struct sim_metric_list *list, const struct sim_batch *batch)
{
    size_t count = 0;
    const char *const *columns = sim_scenario_columns(batch->scenario, &count);
    *list = (struct sim_metric_list){0};
    for (size_t i = 0; i < count; i++)
        list_add(list, sim_metric_by_name(columns[i]));
    list_add(list, sim_metric_by_name("arrivals"));
    list_add(list, sim_metric_by_name("served"));
}

void sim_metric_list_named(struct sim_metric_list *list, const struct sim_batch *batch, const char *const *names,
                           bool above_zero)
{
    *list = (struct sim_metric_list){0};
    for (; *names != NULL; names++) {
        size_t metric = sim_metric_by_name(*names);
        if (above_zero ? sim_batch_has_positive(batch, metric) : sim_batch_has_value(batch, metric))
            list_add(list, metric);
    }
}

void sim_metric_list_secondary(struct sim_metric_list *list, const struct sim_batch *batch,
                               const struct sim_metric_list *first)
{
    static const char *const always[] = {"amplification",  "success",        "goodput",    "recovers", "recover_s",
                                         "latency_p50_ms", "latency_p99_ms", "budget_low", NULL};
    static const char *const if_any[] = {"wasted", "openings", "reopenings", NULL};
    struct sim_metric_list part[2];
    sim_metric_list_named(&part[0], batch, always, false);
    sim_metric_list_named(&part[1], batch, if_any, true);
    *list = (struct sim_metric_list){0};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < part[i].count; j++)
            if (!list_has(first, part[i].metric[j]))
                list_add(list, part[i].metric[j]);
}

void sim_metric_list_give_ups(struct sim_metric_list *list, const struct sim_batch *batch)
{
    size_t unfinished = sim_metric_by_name("unfinished");
    *list = (struct sim_metric_list){0};
    for (size_t i = 0; sim_metric(i) != NULL; i++)
        if (strncmp(sim_metric(i)->name, SIM_GAVE_UP_PREFIX, strlen(SIM_GAVE_UP_PREFIX)) == 0 &&
            sim_batch_has_positive(batch, i))
            list_add(list, i);
    if (sim_batch_has_positive(batch, unfinished))
        list_add(list, unfinished);
}

/* ---- rows ---- */

const char *sim_row_name(const struct sim_row *row)
{
    return row->swept[0] != '\0' ? row->name : row->label;
}

/* Returns the n-th "key=value" of the sweep. */
static const char *row_nth_swept(const struct sim_row *row, unsigned n)
{
    const char *at = row->swept;
    for (; n > 0; n--) {
        at += strcspn(at, ",");
        at += strspn(at, ", ");
    }
    return at;
}

struct sim_label sim_row_nth_key(const struct sim_row *row, unsigned n)
{
    const char *at = row_nth_swept(row, n);
    struct sim_label key;
    snprintf(key.text, sizeof key.text, "%.*s", (int)strcspn(at, "=,"), at);
    return key;
}

struct sim_label sim_row_nth_value(const struct sim_row *row, unsigned n)
{
    const char *at = row_nth_swept(row, n);
    struct sim_label value;
    at += strcspn(at, "=,");
    at += *at == '=';
    snprintf(value.text, sizeof value.text, "%.*s", (int)strcspn(at, ","), at);
    return value;
}

static struct sim_label row_join(const struct sim_row *row, struct sim_label (*part)(const struct sim_row *, unsigned))
{
    struct sim_label all = {.text = ""};
    size_t used = 0;
    for (unsigned n = 0; n < SIM_SWEEPS_MAX && row_nth_swept(row, n)[0] != '\0' && used < sizeof all.text; n++)
        used += (size_t)snprintf(all.text + used, sizeof all.text - used, "%s%s", n > 0 ? ", " : "", part(row, n).text);
    return all;
}

struct sim_label sim_row_swept_values(const struct sim_row *row)
{
    return row_join(row, sim_row_nth_value);
}

struct sim_label sim_row_swept_keys(const struct sim_row *row)
{
    return row_join(row, sim_row_nth_key);
}

/* ---- texts ---- */

const char *sim_loop_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_world *world)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < world->groups; i++) {
        const struct sim_clients *c = &world->clients[i];
        bool named = world->groups > 1 && c->name[0] != '\0';
        int length = snprintf(text + used, SIM_REPORT_TEXT_MAX - used, "%s%.40s%s%s loop", i > 0 ? ", " : "",
                              named ? c->name : "", named ? ": " : "", c->arrival == SIM_CLOSED ? "closed" : "open");
        used += (size_t)length;
    }
    return text;
}

bool sim_batch_has_one_loop(const struct sim_batch *batch)
{
    char first[SIM_REPORT_TEXT_MAX], text[SIM_REPORT_TEXT_MAX];
    sim_loop_text(first, &sim_scenario_row(batch->scenario, 0)->world);
    for (size_t i = 1; i < batch->rows; i++)
        if (strcmp(first, sim_loop_text(text, &sim_scenario_row(batch->scenario, i)->world)) != 0)
            return false;
    return true;
}

const char *sim_batch_loop_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch)
{
    if (sim_batch_has_one_loop(batch))
        return sim_loop_text(text, &sim_scenario_row(batch->scenario, 0)->world);
    snprintf(text, SIM_REPORT_TEXT_MAX, "open and closed loops");
    return text;
}

int64_t sim_batch_longest_ns(const struct sim_batch *batch)
{
    int64_t max_ns = 1;
    for (size_t i = 0; i < batch->rows; i++) {
        const struct sim_result *r = &batch->row[i].result;
        int64_t ns = (int64_t)r->points * r->bin_ns;
        max_ns = ns > max_ns ? ns : max_ns;
    }
    return max_ns;
}

const char *sim_bin_width_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch)
{
    int64_t min_ns = INT64_MAX, max_ns = 0;
    char min[TEXT_VALUE_SIZE], max[TEXT_VALUE_SIZE];
    for (size_t i = 0; i < batch->rows; i++) {
        int64_t ns = batch->row[i].result.bin_ns;
        min_ns = ns < min_ns ? ns : min_ns;
        max_ns = ns > max_ns ? ns : max_ns;
    }
    text_duration_format(min, min_ns);
    text_duration_format(max, max_ns);
    if (min_ns >= max_ns)
        snprintf(text, SIM_REPORT_TEXT_MAX, "%s", max);
    else
        snprintf(text, SIM_REPORT_TEXT_MAX, "%s to %s", min, max);
    return text;
}

const char *sim_seeds_text(char text[SIM_REPORT_TEXT_MAX], const struct sim_batch *batch)
{
    uint64_t seed = batch->plan.seed;
    if (batch->plan.seeds <= 1)
        snprintf(text, SIM_REPORT_TEXT_MAX, "seed %" PRIu64, seed);
    else
        snprintf(text, SIM_REPORT_TEXT_MAX, "seeds %" PRIu64 " to %" PRIu64, seed, seed + batch->plan.seeds - 1);
    return text;
}
