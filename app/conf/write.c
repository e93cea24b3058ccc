/* write.c - writes a policy as a section of bide.conf, or as JSON with the same keys.
 *
 * A section names the preset that it extends and contains only the differences from it, as a person would write it. The
 * JSON has every key, each value in the form of a file. */
#include "write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_internal.h"
#include "rules.h"
#include "text/json_write.h"

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

const char *conf_format_seconds(char text[TEXT_VALUE_SIZE], int64_t ns)
{
    size_t length = strlen(text_decimal_format(text, ns, BIDE_S));
    snprintf(text + length, TEXT_VALUE_SIZE - length, "s");
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

/* ---- JSON ---- */

static void json_add_rules(struct text_json *json, const struct conf_policy *policy, const struct conf_list *list)
{
    const struct conf_rules *rules = (const void *)((const char *)policy + list->offset);
    char text[CONF_LIST_SIZE];
    if (conf_rules_has_list(rules, false))
        text_json_string(json, list->retry, conf_rules_format(text, list, rules, false));
    if (conf_rules_has_list(rules, true))
        text_json_string(json, list->permanent, conf_rules_format(text, list, rules, true));
}

static void json_print_policy(FILE *out, const struct conf_policy *policy)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    const struct conf_field *field;
    text_json_object(&json, NULL);
    text_json_string(&json, "name", policy->name);
    text_json_string(&json, "extends", bide_preset_label(policy->preset));
    text_json_object(&json, "keys");
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        char text[256];
        text_json_string(&json, field->key, conf_field_format(text, field, &policy->pair));
    }
    for (size_t i = 0; i < CONF_LISTS; i++)
        json_add_rules(&json, policy, &conf_lists[i]);
    text_json_end(&json);
    text_json_end(&json);
    text_json_finish(&json);
}

/* ---- entry point ---- */

/* Returns the text; NULL if out of memory, which shows when the stream is closed at the latest. */
static char *print_to_memory(const struct conf_policy *policy, enum conf_format format, struct conf_diagnostics *losses)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    switch (format) {
    case CONF_INI: ini_print_section(out, policy); break;
    case CONF_JSON: json_print_policy(out, policy); break;
    case CONF_GRPC: conf_print_grpc(out, policy); break;
    case CONF_ENVOY: conf_print_envoy(out, policy, losses); break;
    }
    if (ferror(out) | fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

char *conf_write(const struct conf_policy *policy, enum conf_format format, char losses[CONF_ERROR_MAX])
{
    static const char *const names[] = {
        [CONF_INI] = "ini", [CONF_JSON] = "json", [CONF_GRPC] = "grpc", [CONF_ENVOY] = "envoy"};
    struct conf_diagnostics diagnostics;
    conf_diagnostics_begin(&diagnostics, losses, names[format]);
    char *text = print_to_memory(policy, format, &diagnostics);
    if (text != NULL && format == CONF_GRPC)
        conf_grpc_report_losses(&diagnostics, policy, text);
    if (policy->wait_for_ready && format != CONF_GRPC)
        conf_diagnostics_add(&diagnostics, 0, "waitForReady = true of the service config cannot be expressed");
    conf_diagnostics_finish(&diagnostics);
    return text;
}
