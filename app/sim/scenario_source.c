/* scenario_source.c - finds the text of a scenario: the catalogue in the program, a file, or stdin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conf/conf_internal.h"
#include "conf/diagnostics.h"
#include "conf/suggest.h"

#include "scenario.h"

static struct sim_scenario *scenario_read_file(const char *path, const struct sim_overrides *overrides,
                                               char errors[CONF_ERROR_MAX])
{
    char name[CONF_PATH_MAX];
    size_t length = 0;
    char *bytes = conf_read_bytes(path, name, &length, errors);
    struct sim_scenario *scenario = NULL;
    if (bytes != NULL)
        scenario = sim_scenario_read_text(name, (struct bide_text){bytes, length}, overrides, errors);
    free(bytes);
    return scenario;
}

/* ---- the catalogue ---- */

static void report_unknown_scenario(const char *name, char errors[CONF_ERROR_MAX])
{
    struct conf_suggestion suggestion = {.word = name, .length = strlen(name)};
    struct stat file;
    struct conf_printable printable = conf_printable(name, strlen(name));
    const struct sim_entry *entry;
    for (size_t i = 0; (entry = sim_catalogue(i)) != NULL; i++)
        conf_suggestion_consider(&suggestion, entry->name, entry->name);
    if (stat(name, &file) == 0)
        snprintf(errors, CONF_ERROR_MAX, "no scenario named %s; for the file write ./%s", printable.text,
                 printable.text);
    else if (suggestion.found != NULL)
        snprintf(errors, CONF_ERROR_MAX, "no scenario named %s; did you mean %s?", printable.text, suggestion.found);
    else
        snprintf(errors, CONF_ERROR_MAX,
                 "no scenario named %s: must be one of `bide sim list`, or a file name with a / or a . in it",
                 printable.text);
}

struct sim_scenario *sim_scenario_read(const char *name, const struct sim_overrides *overrides,
                                       char errors[CONF_ERROR_MAX])
{
    const struct sim_entry *entry;
    errors[0] = '\0';
    if (strcmp(name, "-") == 0 || strpbrk(name, "/.") != NULL)
        return scenario_read_file(name, overrides, errors);
    for (size_t i = 0; (entry = sim_catalogue(i)) != NULL; i++) {
        char file[SIM_NAME_MAX + 8];
        if (strcmp(entry->name, name) != 0)
            continue;
        snprintf(file, sizeof file, "%s.ini", entry->name);
        return sim_scenario_read_text(file, (struct bide_text){entry->text, entry->length}, overrides, errors);
    }
    report_unknown_scenario(name, errors);
    return NULL;
}
