/* shown.c - which figures a report shows, and the words for what was run. */
#include "shown.h"

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

bool sim_shown_gave_up(size_t metric)
{
    static const char prefix[] = "gave_up_";
    return strncmp(sim_metric(metric)->name, prefix, sizeof prefix - 1) == 0;
}

size_t sim_shown_plot(const struct sim_batch *batch)
{
    const char *name = sim_scenario_plot(batch->scenario);
    size_t metric = name != NULL ? sim_shown_metric(name) : SIZE_MAX;
    return metric != SIZE_MAX ? metric : sim_shown_metric("amplification");
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
    for (size_t i = 0; i < batch->rows; i++) {
        sim_shown_loop(i == 0 ? first : text, &sim_scenario_row(batch->scenario, i)->world);
        if (i > 0 && strcmp(first, text) != 0)
            return false;
    }
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
    conf_duration_text(least, least_ns);
    conf_duration_text(most, most_ns);
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
