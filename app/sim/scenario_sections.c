/* scenario_sections.c - from the sections of a scenario file and the command line to settings, cases and sweeps.
 *
 * Sections are declared first, so that names can be used before their section. Then every key = value becomes a
 * setting, and its value is checked immediately, whether it will be used or not. A setting with a mistake is reported
 * and dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/suggest.h"
#include "text/slice.h"

#include "scenario_internal.h"

static const char *const sections[] = {"scenario", "policy", "clients", "network", "fleet",
                                       "service",  "outage", "case",    "sweep",   NULL};

/* ---- sections ---- */

/* Names of sections appear between points in --set, names of cases before : in --expect. */
static bool section_name_is_valid(const char *name, bool is_case)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t length = strlen(name);
    if (length >= SIM_NAME_MAX)
        return false;
    if (!is_case)
        return strspn(name, plain) == length;
    for (size_t i = 0; i < length; i++)
        if (name[i] < ' ' || name[i] > '~' || strchr(":[]\"=", name[i]) != NULL)
            return false;
    return length > 0;
}

static void section_report(struct sim_builder *b, const struct sim_section *s, const char *problem)
{
    conf_diagnostics_add(b->diagnostics, s->ini->line, "[%s]: %s",
                         conf_printable(s->ini->heading, strlen(s->ini->heading)).text, problem);
}

static void section_report_unknown(struct sim_builder *b, const struct sim_section *s)
{
    char problem[160];
    const char *suggestion =
        conf_diagnostics_have_room(b->diagnostics) ? conf_suggest(s->ini->heading, s->kind_length, sections) : NULL;
    if (suggestion != NULL)
        snprintf(problem, sizeof problem, "no such section; did you mean %s?", suggestion);
    else
        snprintf(problem, sizeof problem,
                 "no such section: must be scenario, clients, network, fleet, service, "
                 "outage, case, sweep or policy NAME");
    section_report(b, s, problem);
}

static void section_report_duplicate(struct sim_builder *b, const struct sim_section *s, unsigned line)
{
    char problem[64];
    snprintf(problem, sizeof problem, "duplicate section, first in line %u", line);
    section_report(b, s, problem);
}

/* Adds an element of a part. Returns false after reporting a mistake. */
static bool section_declare_element(struct sim_builder *b, const struct sim_section *s, enum sim_part part,
                                    uint32_t max)
{
    uint32_t *count = part == SIM_PART_CLIENTS   ? &b->base.groups
                      : part == SIM_PART_SERVICE ? &b->base.services
                                                 : &b->base.outages;
    char *name = part == SIM_PART_CLIENTS   ? b->base.clients[*count % max].name
                 : part == SIM_PART_SERVICE ? b->base.service[*count % max].name
                                            : b->base.outage[*count % max].name;
    if (!section_name_is_valid(s->name, false)) {
        section_report(b, s, "the name must have 1 to 63 letters, digits, _ and -");
        return false;
    }
    for (uint32_t i = 0; i < *count; i++)
        if (strcmp(sim_part_name(&b->base, part, i), s->name) == 0) {
            section_report_duplicate(b, s, b->line[part][i]);
            return false;
        }
    if (*count == max) {
        char problem[64];
        snprintf(problem, sizeof problem, "at most %u such sections are allowed", max);
        section_report(b, s, problem);
        return false;
    }
    snprintf(name, SIM_NAME_MAX, "%s", s->name);
    b->line[part][(*count)++] = s->ini->line;
    return true;
}

/* If there are several elements, each needs a name for --set. */
static void part_check_names(struct sim_builder *b, enum sim_part part, const char *kind)
{
    uint32_t count = sim_part_count(&b->base, part);
    for (uint32_t i = 0; i < count && count > 1; i++)
        if (sim_part_name(&b->base, part, i)[0] == '\0')
            conf_diagnostics_add(b->diagnostics, b->line[part][i],
                                 "[%s]: needs a name, as in [%s NAME], where there are several", kind, kind);
}

/* ---- settings ---- */

static struct sim_setting *add_setting(struct sim_builder *b, struct sim_origin origin, struct bide_text value)
{
    if (b->settings == b->setting_room) {
        size_t room = b->setting_room == 0 ? 64 : 2 * b->setting_room;
        struct sim_setting *more = realloc(b->setting, room * sizeof *more);
        if (more == NULL) {
            b->no_memory = true;
            return NULL;
        }
        b->setting = more;
        b->setting_room = room;
    }
    struct sim_setting *setting = &b->setting[b->settings];
    *setting = (struct sim_setting){.origin = origin, .value = malloc(value.length + 1)};
    if (setting->value == NULL) {
        b->no_memory = true;
        return NULL;
    }
    memcpy(setting->value, value.at, value.length);
    setting->value[value.length] = '\0';
    b->settings++;
    return setting;
}

static void drop_last_setting(struct sim_builder *b)
{
    free(b->setting[--b->settings].value);
}

static struct sim_setting_context setting_context(struct sim_builder *b)
{
    return (struct sim_setting_context){&b->base, &b->scenario->head, &b->scenario->policies, b->diagnostics};
}

static const struct sim_setting *find_duplicate_setting(const struct sim_builder *b, struct sim_span span,
                                                        const struct sim_setting *new)
{
    for (size_t i = span.first; i < span.end; i++)
        if (sim_setting_covers(new, &b->setting[i]))
            return &b->setting[i];
    return NULL;
}

/* Returns true if the last setting is valid and not a duplicate in this section; else reports the mistake. */
static bool setting_check(struct sim_builder *b, size_t first, const struct sim_setting *setting)
{
    struct sim_setting_context context = setting_context(b);
    const struct sim_setting *duplicate = find_duplicate_setting(b, (struct sim_span){first, b->settings - 1}, setting);
    if (duplicate != NULL)
        sim_setting_report(setting, b->diagnostics, "duplicate key, first in line %u", duplicate->origin.line);
    else if (sim_setting_check(setting, &context))
        return true;
    return false;
}

/* Reads the settings of a section of the world. */
static void section_read(struct sim_builder *b, const struct sim_section *s, uint32_t element)
{
    struct sim_setting_context context = setting_context(b);
    size_t first = b->settings;
    for (size_t i = s->ini->first; i < s->ini->first + s->ini->count && !b->no_memory; i++) {
        const struct conf_ini_entry *entry = &b->file.ini.entry[i];
        struct sim_setting *setting =
            add_setting(b, (struct sim_origin){entry->line, s->ini->heading, entry->key}, text_from(entry->value));
        if (setting == NULL)
            return;
        if (!sim_setting_find_in_section(setting, &context, s->kind, element) || !setting_check(b, first, setting))
            drop_last_setting(b);
    }
}

/* ---- cases and sweeps ---- */

static void case_read(struct sim_builder *b, const struct sim_section *s)
{
    struct sim_setting_context context = setting_context(b);
    struct sim_variation *variation = &b->variation[b->variations++];
    snprintf(variation->name, sizeof variation->name, "%s", s->name);
    variation->span = (struct sim_span){b->settings, b->settings};
    for (size_t i = s->ini->first; i < s->ini->first + s->ini->count && !b->no_memory; i++) {
        const struct conf_ini_entry *entry = &b->file.ini.entry[i];
        struct sim_setting *setting =
            add_setting(b, (struct sim_origin){entry->line, s->ini->heading, entry->key}, text_from(entry->value));
        if (setting == NULL)
            return;
        if (!sim_setting_find_by_path(setting, &context) || !setting_check(b, variation->span.first, setting))
            drop_last_setting(b);
    }
    variation->span.end = b->settings;
}

static void case_declare(struct sim_builder *b, const struct sim_section *s)
{
    if (!section_name_is_valid(s->name, true)) {
        section_report(b, s, "the name must have 1 to 63 characters without : [ ] = and quotes");
        return;
    }
    for (size_t i = 0; i < b->variations; i++)
        if (strcmp(b->variation[i].name, s->name) == 0) {
            section_report(b, s, "duplicate case");
            return;
        }
    if (b->variations == SIM_CASES_MAX)
        section_report(b, s, "at most 32 cases are allowed");
    else
        case_read(b, s);
}

/* Reads a swept key and its values, separated by commas. */
static void sweep_read_values(struct sim_builder *b, const struct conf_ini_entry *entry)
{
    struct sim_setting_context context = setting_context(b);
    size_t first = b->settings;
    for (struct bide_text rest = text_from(entry->value); rest.at != NULL;) {
        struct sim_setting *setting =
            add_setting(b, (struct sim_origin){entry->line, "sweep", entry->key}, text_take_item(&rest, ',', TEXT_OWS));
        if (setting == NULL)
            return;
        if (b->settings - first > SIM_ROWS_MAX) {
            sim_setting_report(setting, b->diagnostics, "at most %u values are allowed", SIM_ROWS_MAX);
            return;
        }
        if (!sim_setting_find_by_path(setting, &context) || !sim_setting_check(setting, &context))
            return;
    }
    b->sweep[b->sweeps++] = (struct sim_span){first, b->settings};
}

static void sweep_check_values_differ(struct sim_builder *b, struct sim_span span)
{
    for (size_t i = span.first; i < span.end; i++)
        for (size_t j = span.first; j < i; j++)
            if (strcmp(b->setting[i].value, b->setting[j].value) == 0) {
                sim_setting_report(&b->setting[i], b->diagnostics, "duplicate value");
                return;
            }
}

static void sweep_read(struct sim_builder *b, const struct sim_section *s)
{
    b->sweep_line = s->ini->line;
    if (s->ini->count == 0)
        section_report(b, s, "needs a key with values, such as clients.rate = 100/s, 200/s");
    for (size_t i = s->ini->first; i < s->ini->first + s->ini->count && !b->no_memory; i++) {
        if (b->sweeps == SIM_SWEEPS_MAX) {
            conf_diagnostics_add(b->diagnostics, b->file.ini.entry[i].line, "[sweep] %s: at most two keys are allowed",
                                 conf_printable(b->file.ini.entry[i].key, strlen(b->file.ini.entry[i].key)).text);
            return;
        }
        size_t before = b->sweeps;
        sweep_read_values(b, &b->file.ini.entry[i]);
        if (b->sweeps == before)
            continue;
        sweep_check_values_differ(b, b->sweep[before]);
        if (before == 1 && sim_setting_covers(&b->setting[b->sweep[1].first], &b->setting[b->sweep[0].first]))
            sim_setting_report(&b->setting[b->sweep[1].first], b->diagnostics, "the key is already swept");
    }
}

/* ---- file ---- */

static bool section_is(const struct sim_section *s, const char *kind)
{
    return strcmp(s->kind, kind) == 0;
}

/* Declares a section that exists once and has no name. Returns false after reporting a mistake. */
static bool section_declare_single(struct sim_builder *b, const struct sim_section *s, unsigned *line)
{
    if (s->name[0] != '\0')
        section_report(b, s, "must have no name");
    else if (*line != 0)
        section_report_duplicate(b, s, *line);
    else {
        *line = s->ini->line;
        return true;
    }
    return false;
}

/* Declares every section of the world; cases and sweeps are read once all names are known. A section with a mistake is
 * marked by an empty kind and skipped. */
static void sections_declare(struct sim_builder *b)
{
    unsigned sweep_line = 0;
    b->base.groups = b->base.services = b->base.outages = 0;
    for (size_t i = 0; i < b->file.sections; i++) {
        struct sim_section *s = &b->file.section[i];
        bool declared = section_is(s, "case");
        if (section_is(s, "scenario"))
            declared = section_declare_single(b, s, &b->line[SIM_PART_WORLD][0]);
        else if (section_is(s, "network"))
            declared = section_declare_single(b, s, &b->line[SIM_PART_NETWORK][0]);
        else if (section_is(s, "fleet"))
            declared = section_declare_single(b, s, &b->line[SIM_PART_FLEET][0]);
        else if (section_is(s, "sweep"))
            declared = section_declare_single(b, s, &sweep_line);
        else if (section_is(s, "clients"))
            declared = section_declare_element(b, s, SIM_PART_CLIENTS, SIM_GROUPS_MAX);
        else if (section_is(s, "service"))
            declared = section_declare_element(b, s, SIM_PART_SERVICE, SIM_SERVICES_MAX);
        else if (section_is(s, "outage"))
            declared = section_declare_element(b, s, SIM_PART_OUTAGE, SIM_OUTAGES_MAX);
        else if (!declared)
            section_report_unknown(b, s);
        if (!declared)
            s->kind[0] = '\0';
    }
    part_check_names(b, SIM_PART_CLIENTS, "clients");
    part_check_names(b, SIM_PART_SERVICE, "service");
    part_check_names(b, SIM_PART_OUTAGE, "outage");
    if (b->base.groups == 0 && b->diagnostics->count == 0)
        conf_diagnostics_add(b->diagnostics, 0, "needs a [clients] section");
    if (b->base.services == 0 && b->diagnostics->count == 0)
        conf_diagnostics_add(b->diagnostics, 0, "needs a [service] section");
}

static uint32_t section_element(const struct sim_builder *b, const struct sim_section *s)
{
    enum sim_part part = section_is(s, "clients")   ? SIM_PART_CLIENTS
                         : section_is(s, "service") ? SIM_PART_SERVICE
                         : section_is(s, "outage")  ? SIM_PART_OUTAGE
                                                    : SIM_PART_WORLD;
    uint32_t i = 0;
    while (part != SIM_PART_WORLD && strcmp(sim_part_name(&b->base, part, i), s->name) != 0)
        i++;
    return i;
}

static void sections_read_world(struct sim_builder *b)
{
    for (size_t i = 0; i < b->file.sections && !b->no_memory; i++) {
        const struct sim_section *s = &b->file.section[i];
        if (s->kind[0] == '\0' || section_is(s, "case") || section_is(s, "sweep"))
            continue;
        section_read(b, s, section_element(b, s));
    }
    b->base_span = (struct sim_span){0, b->settings};
    for (size_t i = 0; i < b->settings; i++)
        sim_setting_apply(&b->setting[i], &b->base, &b->scenario->head);
}

static void sections_read_variations(struct sim_builder *b)
{
    for (size_t i = 0; i < b->file.sections && !b->no_memory; i++) {
        if (section_is(&b->file.section[i], "sweep"))
            sweep_read(b, &b->file.section[i]);
        if (section_is(&b->file.section[i], "case"))
            case_declare(b, &b->file.section[i]);
    }
}

void sim_build_sections(struct sim_builder *b)
{
    sections_declare(b);
    sections_read_world(b);
    sections_read_variations(b);
    b->set_span = (struct sim_span){b->settings, b->settings};
}

/* ---- command line ---- */

static void override_read_set(struct sim_builder *b, const char *word)
{
    struct sim_setting_context context = setting_context(b);
    const char *mark = strchr(word, '=');
    char key[SIM_KEY_MAX];
    struct bide_text name = text_trim((struct bide_text){word, mark == NULL ? 0 : (size_t)(mark - word)}, TEXT_OWS);
    struct bide_text value = text_trim(text_from(mark == NULL ? NULL : mark + 1), TEXT_OWS);
    bool fits = name.length < sizeof key;
    snprintf(key, sizeof key, "%.*s", fits ? (int)name.length : 0, name.at);
    /* The key is only used during this call: later messages show the whole argument. */
    struct sim_setting *setting = add_setting(b, (struct sim_origin){0, word, key}, value);
    if (setting == NULL)
        return;
    if (mark == NULL || !fits)
        sim_setting_report(setting, b->diagnostics, "must be KEY=VALUE, such as clients.rate=300/s");
    else if (sim_setting_find_by_path(setting, &context) && sim_setting_check(setting, &context)) {
        setting->origin.key = setting->field != NULL ? setting->field->key.key : conf_key_name(&setting->policy_key);
        if (b->overrides->policy != NULL && setting->field != NULL && setting->field->form == SIM_FORM_POLICY)
            sim_setting_report(setting, b->diagnostics, "already set by --policy");
        return;
    }
    drop_last_setting(b);
}

/* Finds a policy of the command line. These replace the cases. */
static const struct conf_policy *override_find_policy(struct sim_builder *b, const char *word)
{
    char errors[CONF_ERROR_MAX] = "";
    const struct conf_policy *policy = NULL;
    if (b->variations == SIM_CASES_MAX)
        conf_diagnostics_add(b->diagnostics, 0, "at most %u are allowed", SIM_CASES_MAX);
    else if (strlen(word) >= SIM_POLICY_MAX)
        conf_diagnostics_add(b->diagnostics, 0, "%s: must be %u bytes at most", conf_printable(word, strlen(word)).text,
                             SIM_POLICY_MAX - 1);
    else
        policy = sim_policy_find(&b->scenario->policies, word, SIM_LOOKUP_BY_USER, errors);
    for (const char *line = errors; policy == NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        conf_diagnostics_add(b->diagnostics, 0, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    return policy;
}

static void override_read_policies(struct sim_builder *b)
{
    const char *file = b->diagnostics->file;
    b->variations = 0;
    b->diagnostics->file = "--policy";
    for (const char *const *word = b->overrides->policy; *word != NULL; word++) {
        const struct conf_policy *policy = override_find_policy(b, *word);
        if (policy == NULL)
            break;
        b->variation[b->variations++] = (struct sim_variation){.policy_name = *word, .policy = policy};
    }
    b->diagnostics->file = file;
}

/* Names each variation by its policy; by the whole argument, truncated at the front, if two policies have the same
 * name. */
static void override_name_policies(struct sim_builder *b)
{
    for (size_t i = 0; i < b->variations; i++) {
        struct sim_variation *one = &b->variation[i];
        const char *name = one->policy->name;
        for (size_t j = 0; j < b->variations; j++)
            if (j != i && strcmp(b->variation[j].policy->name, one->policy->name) == 0)
                name = one->policy_name;
        size_t length = strlen(name), max = sizeof one->name - 1;
        snprintf(one->name, sizeof one->name, "%s", name + (length > max ? length - max : 0));
    }
}

void sim_build_overrides(struct sim_builder *b)
{
    for (const char *const *word = b->overrides->set; word != NULL && *word != NULL; word++)
        override_read_set(b, *word);
    b->set_span.end = b->settings;
    for (size_t i = b->set_span.first; i < b->settings; i++)
        if (b->setting[i].field != NULL)
            sim_setting_apply(&b->setting[i], &b->base, &b->scenario->head);
    if (b->overrides->policy != NULL) {
        override_read_policies(b);
        override_name_policies(b);
    }
}
