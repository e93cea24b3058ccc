/* lists.c - see lists.h. */
#include "lists.h"

#include <string.h>

#include "result.h"
#include "text/json_write.h"

/* Reads a scenario of the catalogue. Tests read all of them, so it fails only without memory. */
static struct sim_scenario *entry_read(size_t i)
{
    const struct sim_overrides no_overrides = {0};
    char errors[CONF_ERROR_MAX];
    return sim_scenario_read(sim_catalogue(i)->name, &no_overrides, errors);
}

const char *sim_catalogue_title(size_t i, char title[SIM_TITLE_MAX])
{
    struct sim_scenario *scenario = entry_read(i);
    if (scenario == NULL)
        return NULL;
    snprintf(title, SIM_TITLE_MAX, "%s", sim_scenario_title(scenario));
    sim_scenario_free(scenario);
    return title;
}

static bool json_entry(struct text_json *json, size_t i)
{
    struct sim_scenario *scenario = entry_read(i);
    if (scenario == NULL)
        return false;
    text_json_object(json, NULL);
    text_json_string(json, "name", sim_catalogue(i)->name);
    text_json_string(json, "title", sim_scenario_title(scenario));
    text_json_string(json, "question", sim_scenario_question(scenario));
    text_json_unsigned(json, "rows", sim_scenario_rows(scenario));
    text_json_end(json);
    sim_scenario_free(scenario);
    return true;
}

bool sim_catalogue_json(FILE *out)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    text_json_array(&json, NULL);
    for (size_t i = 0; sim_catalogue(i) != NULL; i++)
        if (!json_entry(&json, i))
            return false;
    text_json_end(&json);
    return text_json_finish(&json) > 0;
}

bool sim_keys_json(FILE *out)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    const struct sim_key *key;
    text_json_array(&json, NULL);
    for (size_t i = 0; (key = sim_key(i)) != NULL; i++) {
        text_json_object(&json, NULL);
        text_json_string(&json, "section", key->section);
        text_json_string(&json, "key", key->key);
        text_json_string(&json, "default", key->standard);
        text_json_string(&json, "want", key->want);
        text_json_string(&json, "about", key->about);
        text_json_end(&json);
    }
    text_json_end(&json);
    return text_json_finish(&json) > 0;
}

bool sim_metrics_json(FILE *out)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    const struct sim_metric *metric;
    text_json_array(&json, NULL);
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++) {
        text_json_object(&json, NULL);
        text_json_string(&json, "name", metric->name);
        text_json_string(&json, "unit", metric->unit);
        text_json_bool(&json, "flag", metric->flag);
        text_json_string(&json, "about", metric->about);
        text_json_end(&json);
    }
    text_json_end(&json);
    return text_json_finish(&json) > 0;
}
