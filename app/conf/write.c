/* write.c - writes a policy as a section of bide.conf, or as JSON with the same keys.
 *
 * A section names the preset that it extends and contains only the differences from it, as a person would write it. The
 * JSON has every key, each value in the form of a file. */
#include "write.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_internal.h"
#include "rules.h"

#define COLUMNS 100 /* column at which a list is continued in the next line */

void conf_report_losses(struct conf_diagnostics *losses, const struct conf_pair *original,
                        const struct conf_pair *exported)
{
    const struct conf_field *field;
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        char before[256], after[256];
        if (conf_field_equal(field, original, exported) || !conf_field_has_effect(field, original) ||
            !conf_field_has_effect(field, exported))
            continue;
        conf_diagnostics_add(losses, 0, "%s = %s becomes %s", field->key, conf_field_format(before, field, original),
                             conf_field_format(after, field, exported));
    }
}

const char *conf_format_seconds(char text[CONF_VALUE_SIZE], int64_t ns)
{
    size_t length = strlen(conf_decimal_format(text, ns, BIDE_S));
    snprintf(text + length, CONF_VALUE_SIZE - length, "s");
    return text;
}

/* ---- INI ---- */

/* Prints a list, with line breaks after commas. */
static void ini_print_list(FILE *out, const char *key, const char *list)
{
    int column = fprintf(out, "%s = ", key);
    for (;;) {
        size_t length = strcspn(list, " ");
        if (column + (int)length > COLUMNS)
            column = fprintf(out, "\n    ") - 1;
        column += fprintf(out, "%.*s%s", (int)length, list, list[length] != '\0' ? " " : "");
        if (list[length] == '\0')
            break;
        list += length + 1;
    }
    fprintf(out, "\n");
}

static void ini_print_rules(FILE *out, const struct conf_policy *policy, const struct conf_list *list)
{
    const struct conf_rules *rules = (const void *)((const char *)policy + list->offset);
    char text[CONF_LIST_SIZE];
    if (conf_rules_has_list(rules, false))
        ini_print_list(out, list->retry, conf_rules_format(text, list, rules, false));
    if (conf_rules_has_list(rules, true))
        ini_print_list(out, list->permanent, conf_rules_format(text, list, rules, true));
}

static void ini_print_section(FILE *out, const struct conf_policy *policy)
{
    const struct conf_field *field;
    struct conf_pair preset;
    conf_pair_init(&preset, policy->preset);
    bool named = conf_name_is_valid((struct bide_text){policy->name, strlen(policy->name)});
    fprintf(out, "[%s]\nextends = %s\n", named ? policy->name : "policy", bide_preset_label(policy->preset));
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        char text[256];
        if (!conf_field_equal(field, &policy->pair, &preset))
            fprintf(out, "%s = %s\n", field->key, conf_field_format(text, field, &policy->pair));
    }
    for (size_t i = 0; i < CONF_LISTS; i++)
        ini_print_rules(out, policy, &conf_lists[i]);
}

static char *write_ini(const struct conf_policy *policy)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    ini_print_section(out, policy);
    if (ferror(out) | fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- JSON ---- */

static int json_add_rules(json_t *keys, const struct conf_policy *policy, const struct conf_list *list)
{
    const struct conf_rules *rules = (const void *)((const char *)policy + list->offset);
    char text[CONF_LIST_SIZE];
    int failed = 0;
    if (conf_rules_has_list(rules, false))
        failed |= json_object_set_new(keys, list->retry, json_string(conf_rules_format(text, list, rules, false)));
    if (conf_rules_has_list(rules, true))
        failed |= json_object_set_new(keys, list->permanent, json_string(conf_rules_format(text, list, rules, true)));
    return failed;
}

static char *write_json(const struct conf_policy *policy)
{
    const struct conf_field *field;
    json_t *keys = json_object();
    int failed = 0;
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        char text[256];
        failed |= json_object_set_new(keys, field->key, json_string(conf_field_format(text, field, &policy->pair)));
    }
    for (size_t i = 0; i < CONF_LISTS; i++)
        failed |= json_add_rules(keys, policy, &conf_lists[i]);
    json_t *json = json_pack("{s:s, s:s, s:o}", "name", policy->name, "extends", bide_preset_label(policy->preset),
                             "keys", keys); /* takes the reference to keys, even if it fails */
    char *text = failed != 0 || json == NULL ? NULL : json_dumps(json, JSON_INDENT(2));
    json_decref(json);
    return text;
}

/* ---- entry point ---- */

static char *ensure_line_end(char *text)
{
    size_t length = text == NULL ? 0 : strlen(text);
    if (length == 0 || text[length - 1] == '\n')
        return text;
    char *longer = realloc(text, length + 2);
    if (longer == NULL) {
        free(text);
        return NULL;
    }
    snprintf(longer + length, 2, "\n");
    return longer;
}

char *conf_write(const struct conf_policy *policy, enum conf_format format, char losses[CONF_ERROR_MAX])
{
    static const char *const names[] = {
        [CONF_INI] = "ini", [CONF_JSON] = "json", [CONF_GRPC] = "grpc", [CONF_ENVOY] = "envoy"};
    struct conf_diagnostics diagnostics;
    char *text = NULL;
    conf_diagnostics_begin(&diagnostics, losses, names[format]);
    switch (format) {
    case CONF_INI: text = write_ini(policy); break;
    case CONF_JSON: text = write_json(policy); break;
    case CONF_GRPC: text = conf_write_grpc(policy, &diagnostics); break;
    case CONF_ENVOY: text = conf_write_envoy(policy, &diagnostics); break;
    }
    conf_diagnostics_finish(&diagnostics);
    return ensure_line_end(text);
}
