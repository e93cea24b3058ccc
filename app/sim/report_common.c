/* report_common.c - which figures a report shows, and the words for what was run. */
#include "report_common.h"

#include "conf/unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- figures ---- */

const struct sim_figure *sim_shown_figure(const struct sim_batch *batch, size_t row, size_t metric)
{
    return &batch->row[row].figure[metric];
}

size_t sim_shown_metric(const char *name)
{
    return sim_metric_find(name, strlen(name));
}

bool sim_shown_any(const struct sim_batch *batch, size_t metric)
{
    for (size_t i = 0; i < batch->rows; i++)
        if (!isnan(sim_shown_figure(batch, i, metric)->mean))
            return true;
    return false;
}

bool sim_shown_above_zero(const struct sim_batch *batch, size_t metric)
{
    for (size_t i = 0; i < batch->rows; i++)
        if (sim_shown_figure(batch, i, metric)->mean > 0)
            return true;
    return false;
}

size_t sim_shown_plot(const struct sim_batch *batch)
{
    const char *name = sim_scenario_plot(batch->scenario);
    size_t metric = name != NULL ? sim_shown_metric(name) : SIZE_MAX;
    return metric != SIZE_MAX ? metric : sim_shown_metric("amplification");
}

/* The largest keeps four digits and the smallest two, as far as four after the point go; counts have none there. */
unsigned sim_shown_digits(const struct sim_batch *batch, size_t metric)
{
    double most = 0, least = HUGE_VAL;
    bool whole = true;
    for (size_t i = 0; i < batch->rows; i++) {
        const struct sim_figure *f = sim_shown_figure(batch, i, metric);
        double size = fabs(f->mean);
        if (isnan(size))
            continue;
        most = size > most ? size : most;
        least = size > 0 && size < least ? size : least;
        whole = whole && (double)(uint64_t)size >= size && (double)(uint64_t)f->half >= f->half;
    }
    unsigned digits = most < 10 ? 3 : most < 100 ? 2 : most < 1000 ? 1 : 0;
    unsigned needed = least < 0.01 ? 4 : least < 0.1 ? 3 : least < 1 ? 2 : least < 10 ? 1 : 0;
    return whole ? 0 : digits > needed ? digits : needed;
}

static bool is_share(const char *name)
{
    static const char *const shares[] = {"success", "error", "users_success", "recovers"};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (strcmp(name, shares[i]) == 0)
            return true;
    return false;
}

double sim_shown_most(const struct sim_batch *batch, size_t metric)
{
    double most = 0;
    for (size_t i = 0; i < batch->rows; i++) {
        double mean = sim_shown_figure(batch, i, metric)->mean;
        most = mean > most ? mean : most;
    }
    return most <= 0 || is_share(sim_metric(metric)->name) ? 1 : most;
}

void sim_shown_flag(char *text, size_t size, const struct sim_batch *batch, const struct sim_figure *figure)
{
    if (batch->plan.seeds <= 1)
        snprintf(text, size, "%s", figure->mean > 0 ? "yes" : "no");
    else
        snprintf(text, size, "%" PRIu32 " of %" PRIu32, (uint32_t)(figure->mean * figure->count + 0.5), figure->count);
}

/* ---- choices ---- */

static bool is_in(const struct sim_shown *shown, size_t metric)
{
    for (size_t i = 0; i < shown->count; i++)
        if (shown->metric[i] == metric)
            return true;
    return false;
}

static void show(struct sim_shown *shown, size_t metric)
{
    if (metric != SIZE_MAX && shown->count < SIM_SHOWN_MAX && !is_in(shown, metric))
        shown->metric[shown->count++] = metric;
}

void sim_shown_append(struct sim_shown *shown, const struct sim_shown *more)
{
    for (size_t i = 0; i < more->count; i++)
        show(shown, more->metric[i]);
}

void sim_shown_first(struct sim_shown *shown, const struct sim_batch *batch)
{
    size_t count = 0;
    const char *const *columns = sim_scenario_columns(batch->scenario, &count);
    *shown = (struct sim_shown){0};
    for (size_t i = 0; i < count; i++)
        show(shown, sim_shown_metric(columns[i]));
    show(shown, sim_shown_metric("arrivals"));
    show(shown, sim_shown_metric("served"));
}

void sim_shown_named(struct sim_shown *shown, const struct sim_batch *batch, const char *const *names, bool above_zero)
{
    *shown = (struct sim_shown){0};
    for (; *names != NULL; names++) {
        size_t metric = sim_shown_metric(*names);
        if (above_zero ? sim_shown_above_zero(batch, metric) : sim_shown_any(batch, metric))
            show(shown, metric);
    }
}

void sim_shown_more(struct sim_shown *shown, const struct sim_batch *batch, const struct sim_shown *first)
{
    static const char *const always[] = {"amplification",  "success",        "goodput",    "recovers", "recover_s",
                                         "latency_p50_ms", "latency_p99_ms", "budget_low", NULL};
    static const char *const if_any[] = {"wasted", "openings", "reopenings", NULL};
    struct sim_shown part[2];
    sim_shown_named(&part[0], batch, always, false);
    sim_shown_named(&part[1], batch, if_any, true);
    *shown = (struct sim_shown){0};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < part[i].count; j++)
            if (!is_in(first, part[i].metric[j]))
                show(shown, part[i].metric[j]);
}

void sim_shown_give_ups(struct sim_shown *shown, const struct sim_batch *batch)
{
    size_t unfinished = sim_shown_metric("unfinished");
    *shown = (struct sim_shown){0};
    for (size_t i = 0; sim_metric(i) != NULL; i++)
        if (strncmp(sim_metric(i)->name, SIM_GAVE_UP, strlen(SIM_GAVE_UP)) == 0 && sim_shown_above_zero(batch, i))
            show(shown, i);
    if (sim_shown_above_zero(batch, unfinished))
        show(shown, unfinished);
}

/* ---- rows ---- */

const char *sim_shown_name(const struct sim_row *row)
{
    return row->swept[0] != '\0' ? row->name : row->label;
}

/* The n-th "key=value" of what is swept. */
static const char *swept_at(const struct sim_row *row, unsigned n)
{
    const char *at = row->swept;
    for (; n > 0; n--) {
        at += strcspn(at, ",");
        at += strspn(at, ", ");
    }
    return at;
}

struct sim_label sim_shown_key(const struct sim_row *row, unsigned n)
{
    const char *at = swept_at(row, n);
    struct sim_label key;
    snprintf(key.text, sizeof key.text, "%.*s", (int)strcspn(at, "=,"), at);
    return key;
}

struct sim_label sim_shown_value(const struct sim_row *row, unsigned n)
{
    const char *at = swept_at(row, n);
    struct sim_label value;
    at += strcspn(at, "=,");
    at += *at == '=';
    snprintf(value.text, sizeof value.text, "%.*s", (int)strcspn(at, ","), at);
    return value;
}

static struct sim_label joined(const struct sim_row *row, struct sim_label (*part)(const struct sim_row *, unsigned))
{
    struct sim_label all = {.text = ""};
    size_t used = 0;
    for (unsigned n = 0; n < SIM_SWEEPS_MAX && swept_at(row, n)[0] != '\0' && used < sizeof all.text; n++)
        used += (size_t)snprintf(all.text + used, sizeof all.text - used, "%s%s", n > 0 ? ", " : "", part(row, n).text);
    return all;
}

struct sim_label sim_shown_values(const struct sim_row *row)
{
    return joined(row, sim_shown_value);
}

struct sim_label sim_shown_keys(const struct sim_row *row)
{
    return joined(row, sim_shown_key);
}

/* ---- words ---- */

const char *sim_shown_loop(char text[SIM_SHOWN_TEXT], const struct sim_world *world)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < world->groups; i++) {
        const struct sim_clients *c = &world->clients[i];
        bool named = world->groups > 1 && c->name[0] != '\0';
        int length = snprintf(text + used, SIM_SHOWN_TEXT - used, "%s%.40s%s%s loop", i > 0 ? ", " : "",
                              named ? c->name : "", named ? ": " : "", c->arrival == SIM_CLOSED ? "closed" : "open");
        used += (size_t)length;
    }
    return text;
}

bool sim_shown_one_loop(const struct sim_batch *batch)
{
    char first[SIM_SHOWN_TEXT], text[SIM_SHOWN_TEXT];
    sim_shown_loop(first, &sim_scenario_row(batch->scenario, 0)->world);
    for (size_t i = 1; i < batch->rows; i++)
        if (strcmp(first, sim_shown_loop(text, &sim_scenario_row(batch->scenario, i)->world)) != 0)
            return false;
    return true;
}

const char *sim_shown_bucket(char text[SIM_SHOWN_TEXT], const struct sim_batch *batch)
{
    int64_t least_ns = INT64_MAX, most_ns = 0;
    char least[CONF_VALUE_SIZE], most[CONF_VALUE_SIZE];
    for (size_t i = 0; i < batch->rows; i++) {
        int64_t ns = batch->row[i].result.bucket_ns;
        least_ns = ns < least_ns ? ns : least_ns;
        most_ns = ns > most_ns ? ns : most_ns;
    }
    conf_duration_format(least, least_ns);
    conf_duration_format(most, most_ns);
    if (least_ns >= most_ns)
        snprintf(text, SIM_SHOWN_TEXT, "%s", most);
    else
        snprintf(text, SIM_SHOWN_TEXT, "%s to %s", least, most);
    return text;
}

const char *sim_shown_seeds(char text[SIM_SHOWN_TEXT], const struct sim_batch *batch)
{
    uint64_t seed = batch->plan.seed;
    if (batch->plan.seeds <= 1)
        snprintf(text, SIM_SHOWN_TEXT, "seed %" PRIu64, seed);
    else
        snprintf(text, SIM_SHOWN_TEXT, "seeds %" PRIu64 " to %" PRIu64, seed, seed + batch->plan.seeds - 1);
    return text;
}
