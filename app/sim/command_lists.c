/* command_lists.c - see command_lists.h. */
#include "command_lists.h"

#include "common/commands.h"
#include "common/term.h"

#include "lists.h"
#include "result.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH_MAX  120u
#define KEY_COLUMN 26u
#define TEXT_MAX   512u

static int list_flush(void)
{
    return cli_flush(&cli_sim) ? EXIT_SUCCESS : CLI_EXIT_BIDE_FAILED;
}

static int list_print_json(bool (*list_json)(FILE *out))
{
    return list_json(stdout) || ferror(stdout) ? list_flush() : cli_fail(&cli_sim, "no memory");
}

/* Prints a name and its description in two columns. */
static void list_print_row(const char *name, const char *text)
{
    unsigned width = cli_term_detect(stdout).width;
    int used = printf("  %s", name);
    cli_print_column(stdout, text, used > 0 ? (unsigned)used : 0,
                     (struct cli_margins){KEY_COLUMN, width < WIDTH_MAX ? width : WIDTH_MAX});
}

int cli_sim_list(bool json)
{
    char title[SIM_TITLE_MAX];
    if (json)
        return list_print_json(sim_catalogue_json);
    for (size_t i = 0; sim_catalogue(i) != NULL; i++) {
        if (sim_catalogue_title(i, title) == NULL)
            return cli_fail(&cli_sim, "no memory");
        list_print_row(sim_catalogue(i)->name, title);
    }
    return list_flush();
}

static void key_description(char text[TEXT_MAX], const struct sim_key *key)
{
    bool has_default = key->standard != NULL && key->standard[0] != '\0';
    snprintf(text, TEXT_MAX, "%s: %s%s%s", key->about, key->want, has_default ? "; default " : "",
             has_default ? key->standard : "");
}

int cli_sim_keys(bool json)
{
    const struct sim_key *key;
    const char *section = "";
    char text[TEXT_MAX];
    if (json)
        return list_print_json(sim_keys_json);
    for (size_t i = 0; (key = sim_key(i)) != NULL; i++) {
        if (strcmp(section, key->section) != 0)
            printf("%s[%s]\n", i > 0 ? "\n" : "", section = key->section);
        key_description(text, key);
        list_print_row(key->key, text);
    }
    printf("\n[policy NAME]\n");
    list_print_row("...", "the keys of bide.conf: see bide help policy-file");
    return list_flush();
}

int cli_sim_metrics(bool json)
{
    const struct sim_metric *metric;
    char text[TEXT_MAX];
    if (json)
        return list_print_json(sim_metrics_json);
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++) {
        bool has_unit = metric->unit[0] != '\0';
        snprintf(text, sizeof text, "%s%s%s%s", metric->about, has_unit ? " [" : "", metric->unit, has_unit ? "]" : "");
        list_print_row(metric->name, text);
    }
    return list_flush();
}
