/* setting.c - resolves and checks a key = value of a scenario. */
#include "setting.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conf/suggest.h"
#include "text/slice.h"

#include "result.h"

/* ---- reporting ---- */

void sim_setting_report(const struct sim_setting *setting, struct conf_diagnostics *diagnostics, const char *format,
                        ...)
{
    const struct sim_origin *origin = &setting->origin;
    char what[512];
    const char *file = diagnostics->file;
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof what, format, values);
    va_end(values);
    struct conf_printable head = conf_printable(origin->head, strlen(origin->head));
    struct conf_printable key = conf_printable(origin->key, strlen(origin->key));
    struct conf_printable value = conf_printable(setting->value, strlen(setting->value));
    if (origin->line == 0) {
        char word[128];
        snprintf(word, sizeof word, "--set %s", head.text);
        diagnostics->file = word;
        conf_diagnostics_add(diagnostics, 0, "%s", what);
        diagnostics->file = file;
    } else if (setting->value[0] == '\0')
        conf_diagnostics_add(diagnostics, origin->line, "[%s] %s has no value: %s", head.text, key.text, what);
    else
        conf_diagnostics_add(diagnostics, origin->line, "[%s] %s = %s: %s", head.text, key.text, value.text, what);
}

static bool report_unknown_key(const struct sim_setting *setting, struct conf_diagnostics *diagnostics,
                               const char *suggestion)
{
    sim_setting_report(setting, diagnostics, "no such key%s%s%s",
                       suggestion != NULL ? "; did you mean " : " (bide sim keys lists them)",
                       suggestion != NULL ? suggestion : "", suggestion != NULL ? "?" : "");
    return false;
}

/* ---- finding the key ---- */

bool sim_setting_find_in_section(struct sim_setting *setting, const struct sim_setting_context *context,
                                 const char *section, uint32_t element)
{
    const char *key = setting->origin.key;
    setting->field = sim_field_find(section, key, strlen(key));
    setting->first = element;
    setting->end = element + 1;
    if (setting->field != NULL)
        return true;
    const char *suggestion =
        conf_diagnostics_have_room(context->diagnostics) ? sim_field_suggest(section, key, strlen(key)) : NULL;
    return report_unknown_key(setting, context->diagnostics, suggestion);
}

static bool find_policy_key(struct sim_setting *setting, const struct sim_setting_context *context, const char *key)
{
    if (conf_key_find(&setting->policy_key, key, strlen(key)))
        return true;
    if (strcmp(key, "extends") != 0)
        return report_unknown_key(
            setting, context->diagnostics,
            conf_diagnostics_have_room(context->diagnostics) ? conf_key_suggest(key, strlen(key), "policy.") : NULL);
    sim_setting_report(setting, context->diagnostics, "extends is only valid in the policy's own section");
    return false;
}

/* Returns the index of the element with that name; the number of elements if there is none. */
static uint32_t find_element(const struct sim_world *world, enum sim_part part, const char *name, size_t length)
{
    uint32_t count = sim_part_count(world, part), i = 0;
    while (i < count && (strlen(sim_part_name(world, part, i)) != length ||
                         memcmp(sim_part_name(world, part, i), name, length) != 0))
        i++;
    return i;
}

/* Returns the path of the nearest key, without an element's name: "clients.rate" for rate, clients.rat or
 * client.rate. */
static const char *nearest_path(char text[SIM_KEY_MAX], const char *path)
{
    struct conf_suggestion suggestion = {.word = path, .length = strlen(path)};
    const struct sim_field *best = NULL, *field;
    unsigned distance = 0;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; (field = sim_field(i)) != NULL; i++) {
            char path_text[SIM_KEY_MAX];
            conf_suggestion_consider(&suggestion, pass == 0 ? sim_key_path(path_text, field, "") : field->key.key,
                                     field->key.key);
            if (suggestion.found != NULL && (best == NULL || suggestion.distance < distance)) {
                best = field;
                distance = suggestion.distance;
            }
        }
    return best == NULL ? NULL : sim_key_path(text, best, "");
}

static bool report_unknown_path(const struct sim_setting *setting, const struct sim_setting_context *context)
{
    const char *path = setting->origin.key;
    struct conf_key key;
    char text[SIM_KEY_MAX];
    if (conf_key_find(&key, path, strlen(path))) {
        sim_setting_report(setting, context->diagnostics, "no such key of the world; for all policies write policy.%s",
                           path);
        return false;
    }
    return report_unknown_key(setting, context->diagnostics,
                              conf_diagnostics_have_room(context->diagnostics) ? nearest_path(text, path) : NULL);
}

static bool report_unknown_element(const struct sim_setting *setting, const struct sim_setting_context *context,
                                   enum sim_part part, const char *name, size_t length)
{
    struct conf_suggestion suggestion = {.word = name, .length = length};
    const char *section = setting->field->key.section;
    for (uint32_t i = 0; i < sim_part_count(context->world, part); i++)
        conf_suggestion_consider(&suggestion, sim_part_name(context->world, part, i),
                                 sim_part_name(context->world, part, i));
    sim_setting_report(setting, context->diagnostics, "there is no [%s %s]%s%s%s", section,
                       conf_printable(name, length).text, suggestion.found != NULL ? "; did you mean " : "",
                       suggestion.found != NULL ? suggestion.found : "", suggestion.found != NULL ? "?" : "");
    return false;
}

/* Resolves section.key or section.name.key. */
static bool find_path(struct sim_setting *setting, const struct sim_setting_context *context)
{
    const char *path = setting->origin.key, *rest = strchr(path, '.'), *last = strrchr(path, '.');
    char section[16];
    if (rest == NULL || (size_t)(rest - path) >= sizeof section)
        return report_unknown_path(setting, context);
    snprintf(section, sizeof section, "%.*s", (int)(rest - path), path);
    setting->field = sim_field_find(section, last + 1, strlen(last + 1));
    if (setting->field == NULL)
        return report_unknown_path(setting, context);
    enum sim_part part = setting->field->part;
    setting->first = 0;
    setting->end = sim_part_count(context->world, part);
    if (last == rest && setting->end == 0) {
        sim_setting_report(setting, context->diagnostics, "there is no [%s]", section);
        return false;
    }
    if (last == rest)
        return true;
    setting->first = find_element(context->world, part, rest + 1, (size_t)(last - rest - 1));
    if (setting->first == setting->end)
        return report_unknown_element(setting, context, part, rest + 1, (size_t)(last - rest - 1));
    setting->end = setting->first + 1;
    return true;
}

bool sim_setting_find_by_path(struct sim_setting *setting, const struct sim_setting_context *context)
{
    const char *path = setting->origin.key;
    if (strncmp(path, "policy.", 7) == 0)
        return find_policy_key(setting, context, path + 7);
    if (!find_path(setting, context))
        return false;
    if (setting->field->part != SIM_PART_HEAD || setting->origin.line == 0)
        return true;
    sim_setting_report(setting, context->diagnostics, "must be in [scenario]: it is the same for all rows");
    return false;
}

/* ---- the value ---- */

/* Reports the first name in the list that is not a metric. */
static void report_unknown_metric(const struct sim_setting *setting, struct conf_diagnostics *diagnostics)
{
    /* A value that is a single metric has no separator: a NUL is not found in it. */
    char separator = setting->field->form == SIM_FORM_METRICS ? ',' : '\0';
    for (struct bide_text rest = text_from(setting->value); rest.at != NULL;) {
        struct bide_text name = text_take_item(&rest, separator, TEXT_OWS);
        if (sim_metric_find(name.at, name.length) != SIZE_MAX)
            continue;
        const char *suggestion = sim_metric_suggest(name.at, name.length);
        sim_setting_report(setting, diagnostics, "no metric named \"%s\"%s%s%s",
                           conf_printable(name.at, name.length).text, suggestion != NULL ? "; did you mean " : "",
                           suggestion != NULL ? suggestion : "", suggestion != NULL ? "?" : "");
        return;
    }
    sim_setting_report(setting, diagnostics, "must be %s", setting->field->key.want);
}

static void report_unknown_service(const struct sim_setting *setting, const struct sim_setting_context *context)
{
    struct conf_suggestion suggestion = {.word = setting->value, .length = strlen(setting->value)};
    for (uint32_t i = 0; i < context->world->services; i++)
        conf_suggestion_consider(&suggestion, context->world->service[i].name, context->world->service[i].name);
    sim_setting_report(setting, context->diagnostics, "there is no [service %s]%s%s%s",
                       conf_printable(setting->value, strlen(setting->value)).text,
                       suggestion.found != NULL ? "; did you mean " : "",
                       suggestion.found != NULL ? suggestion.found : "", suggestion.found != NULL ? "?" : "");
}

static bool check_policy_exists(const struct sim_setting *setting, const struct sim_setting_context *context)
{
    char errors[CONF_ERROR_MAX];
    if (context->policies->incomplete) /* their mistakes were reported */
        return true;
    if (sim_policy_find(context->policies, setting->value, SIM_LOOKUP_BY_FILE, errors) != NULL)
        return true;
    for (const char *line = errors; *line != '\0';) { /* a policy file may have several mistakes */
        size_t length = strcspn(line, "\n");
        sim_setting_report(setting, context->diagnostics, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    return false;
}

static bool check_policy_value(const struct sim_setting *setting, const struct sim_setting_context *context)
{
    struct conf_policy any;
    conf_policy_init(&any, BIDE_PRESET_SERVICE);
    const char *want = conf_key_assign(&setting->policy_key, &any, setting->value);
    if (want != NULL)
        sim_setting_report(setting, context->diagnostics, "must be %s", want);
    return want == NULL;
}

bool sim_setting_check(const struct sim_setting *setting, const struct sim_setting_context *context)
{
    union {
        struct sim_head head;
        struct sim_world world;
        struct sim_clients clients;
        struct sim_service service;
        struct sim_outage outage;
    } scratch;
    const struct sim_field *field = setting->field;
    if (field == NULL)
        return check_policy_value(setting, context);
    const char *want = sim_field_read(field, &scratch, context->world, setting->value);
    if (want == NULL)
        return field->form != SIM_FORM_POLICY || check_policy_exists(setting, context);
    bool empty = setting->value[0] == '\0';
    if ((field->form == SIM_FORM_METRIC || field->form == SIM_FORM_METRICS) && !empty)
        report_unknown_metric(setting, context->diagnostics);
    else if ((field->form == SIM_FORM_SERVICE || field->form == SIM_FORM_CALLS) && !empty)
        report_unknown_service(setting, context);
    else
        sim_setting_report(setting, context->diagnostics, "must be %s", want);
    return false;
}

void sim_setting_apply(const struct sim_setting *setting, struct sim_world *world, struct sim_head *head)
{
    const struct sim_field *field = setting->field;
    for (uint32_t i = setting->first; i < setting->end; i++) {
        void *element = field->part == SIM_PART_HEAD ? (void *)head : sim_part_at(world, field->part, i);
        sim_field_read(field, element, world, setting->value);
    }
}

bool sim_setting_covers(const struct sim_setting *one, const struct sim_setting *other)
{
    if (one->field == NULL || other->field == NULL)
        return one->field == other->field && conf_key_equal(&one->policy_key, &other->policy_key);
    return one->field == other->field && one->first <= other->first && one->end >= other->end;
}
