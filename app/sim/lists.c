/* lists.c - see lists.h. A failed allocation is NULL all the way up: the "_new" setters of jansson pass it on. */
#include "lists.h"

#include <jansson.h>
#include <string.h>

#include "result.h"

/* Reads a scenario of the catalogue. Tests read all of them, so errors are not reported here. */
static struct sim_scenario *entry_read(size_t i)
{
    const struct sim_overrides no_overrides = {0};
    char errors[CONF_ERROR_MAX];
    return sim_scenario_read(sim_catalogue(i)->name, &no_overrides, errors);
}

const char *sim_catalogue_title(size_t i, char title[SIM_TITLE_MAX])
{
    struct sim_scenario *scenario = entry_read(i);
    snprintf(title, SIM_TITLE_MAX, "%s", scenario != NULL ? sim_scenario_title(scenario) : "");
    sim_scenario_free(scenario);
    return title;
}

/* Prints a tree and releases it. */
static bool print_json(FILE *out, json_t *tree)
{
    bool written = tree != NULL && json_dumpf(tree, out, JSON_INDENT(2)) == 0;
    json_decref(tree);
    fputc('\n', out);
    return written;
}

static json_t *entry_json(size_t i)
{
    struct sim_scenario *scenario = entry_read(i);
    if (scenario == NULL)
        return NULL;
    json_t *entry =
        json_pack("{s:s, s:s, s:s, s:I}", "name", sim_catalogue(i)->name, "title", sim_scenario_title(scenario),
                  "question", sim_scenario_question(scenario), "rows", (json_int_t)sim_scenario_rows(scenario));
    sim_scenario_free(scenario);
    return entry;
}

bool sim_catalogue_json(FILE *out)
{
    json_t *all = json_array();
    bool ok = true;
    for (size_t i = 0; sim_catalogue(i) != NULL; i++)
        ok = json_array_append_new(all, entry_json(i)) == 0 && ok;
    return print_json(out, all) && ok;
}

bool sim_keys_json(FILE *out)
{
    json_t *all = json_array();
    const struct sim_key *key;
    bool ok = true;
    for (size_t i = 0; (key = sim_key(i)) != NULL; i++)
        ok = json_array_append_new(all,
                                   json_pack("{s:s, s:s, s:s?, s:s, s:s}", "section", key->section, "key", key->key,
                                             "default", key->standard, "want", key->want, "about", key->about)) == 0 &&
             ok;
    return print_json(out, all) && ok;
}

bool sim_metrics_json(FILE *out)
{
    json_t *all = json_array();
    const struct sim_metric *metric;
    bool ok = true;
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++)
        ok = json_array_append_new(all, json_pack("{s:s, s:s, s:b, s:s}", "name", metric->name, "unit", metric->unit,
                                                  "flag", (int)metric->flag, "about", metric->about)) == 0 &&
             ok;
    return print_json(out, all) && ok;
}
