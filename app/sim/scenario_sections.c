/* scenario_sections.c - from what a scenario file and the command line say to settings, cases and sweeps.
 *
 * Sections are declared first, so that names can be used in any order. Then every key = value becomes a setting whose
 * value is checked at once, whether it will be used or not. What could not be understood is told and left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/suggest.h"

#include "scenario_internal.h"

static const char *const sections[] = {"scenario", "policy", "clients", "network", "fleet",
                                       "service",  "outage", "case",    "sweep",   NULL};

/* Without blanks around it. */
static struct bide_text trimmed(const char *at, size_t length)
{
    while (length > 0 && (*at == ' ' || *at == '\t')) {
        at++;
        length--;
    }
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    return (struct bide_text){at, length};
}

/* ---- sections ---- */

/* Names stand between points in --set, or behind : in --expect. */
static bool is_good_name(const char *name, bool of_case)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t length = strlen(name);
    if (length >= SIM_NAME_MAX)
        return false;
    if (!of_case)
        return strspn(name, plain) == length;
    for (size_t i = 0; i < length; i++)
        if (name[i] < ' ' || name[i] > '~' || strchr(":[]\"=", name[i]) != NULL)
            return false;
    return length > 0;
}

static void tell_section(struct sim_builder *b, const struct sim_section *s, const char *what)
{
    conf_diagnostics_add(b->told, s->line, "[%s]: %s", conf_printable(s->head, strlen(s->head)).text, what);
}

static void unknown_section(struct sim_builder *b, const struct sim_section *s)
{
    char what[160];
    const char *near = conf_diagnostics_have_room(b->told) ? conf_suggest(s->kind, strlen(s->kind), sections) : NULL;
    if (near != NULL)
        snprintf(what, sizeof what, "no such section; did you mean %s?", near);
    else
        snprintf(what, sizeof what,
                 "no such section of a scenario: want scenario, clients, network, fleet, service, "
                 "outage, case, sweep or policy NAME");
    tell_section(b, s, what);
}

static void said_before(struct sim_builder *b, const struct sim_section *s, unsigned line)
{
    char what[64];
    snprintf(what, sizeof what, "is there already, in line %u", line);
    tell_section(b, s, what);
}

/* One more element of a part; false: told why not. */
static bool declare_element(struct sim_builder *b, const struct sim_section *s, enum sim_part part, uint32_t most)
{
    uint32_t *count = part == SIM_PART_CLIENTS   ? &b->base.groups
                      : part == SIM_PART_SERVICE ? &b->base.services
                                                 : &b->base.outages;
    char *name = part == SIM_PART_CLIENTS   ? b->base.clients[*count % most].name
                 : part == SIM_PART_SERVICE ? b->base.service[*count % most].name
                                            : b->base.outage[*count % most].name;
    if (!is_good_name(s->name, false)) {
        tell_section(b, s, "want a name of 1 to 63 letters, digits, _ and -");
        return false;
    }
    for (uint32_t i = 0; i < *count; i++)
        if (strcmp(sim_part_name(&b->base, part, i), s->name) == 0) {
            said_before(b, s, b->line[part][i]);
            return false;
        }
    if (*count == most) {
        char what[64];
        snprintf(what, sizeof what, "want %u of them at most", most);
        tell_section(b, s, what);
        return false;
    }
    snprintf(name, SIM_NAME_MAX, "%s", s->name);
    b->line[part][(*count)++] = s->line;
    return true;
}

/* Where there are several, --set must be able to name each. */
static void check_names(struct sim_builder *b, enum sim_part part, const char *kind)
{
    uint32_t count = sim_part_count(&b->base, part);
    for (uint32_t i = 0; i < count && count > 1; i++)
        if (sim_part_name(&b->base, part, i)[0] == '\0')
            conf_diagnostics_add(b->told, b->line[part][i], "[%s]: want a name, [%s NAME], where there are several",
                                 kind, kind);
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

static void drop_last(struct sim_builder *b)
{
    free(b->setting[--b->settings].value);
}

static struct sim_scene scene_of(struct sim_builder *b)
{
    return (struct sim_scene){&b->base, &b->scenario->head, &b->scenario->policies, b->told};
}

static const struct sim_setting *said_already(const struct sim_builder *b, struct sim_span span,
                                              const struct sim_setting *new)
{
    for (size_t i = span.first; i < span.end; i++)
        if (sim_setting_covers(new, &b->setting[i]))
            return &b->setting[i];
    return NULL;
}

/* Keeps it, if it is well, and was not said in this section already. */
static bool keep_checked(struct sim_builder *b, size_t first, const struct sim_setting *setting)
{
    struct sim_scene scene = scene_of(b);
    const struct sim_setting *twin = said_already(b, (struct sim_span){first, b->settings - 1}, setting);
    if (twin != NULL)
        sim_setting_tell(setting, b->told, "said already, in line %u", twin->origin.line);
    else if (sim_setting_check(setting, &scene))
        return true;
    return false;
}

/* What one section of the world says. */
static void read_section(struct sim_builder *b, const struct sim_section *s, uint32_t element)
{
    struct sim_scene scene = scene_of(b);
    size_t first = b->settings;
    for (size_t i = s->first; i < s->first + s->count && !b->no_memory; i++) {
        const struct sim_said *said = &b->file.said[i];
        struct sim_setting *setting = add_setting(b, (struct sim_origin){said->line, s->head, said->key},
                                                  (struct bide_text){said->value, strlen(said->value)});
        if (setting == NULL)
            return;
        if (!sim_setting_in(setting, &scene, s->kind, element) || !keep_checked(b, first, setting))
            drop_last(b);
    }
}

/* ---- cases and sweeps ---- */

static void read_case(struct sim_builder *b, const struct sim_section *s)
{
    struct sim_scene scene = scene_of(b);
    struct sim_variation *variation = &b->variation[b->variations++];
    snprintf(variation->name, sizeof variation->name, "%s", s->name);
    variation->span = (struct sim_span){b->settings, b->settings};
    for (size_t i = s->first; i < s->first + s->count && !b->no_memory; i++) {
        const struct sim_said *said = &b->file.said[i];
        struct sim_setting *setting = add_setting(b, (struct sim_origin){said->line, s->head, said->key},
                                                  (struct bide_text){said->value, strlen(said->value)});
        if (setting == NULL)
            return;
        if (!sim_setting_by_path(setting, &scene) || !keep_checked(b, variation->span.first, setting))
            drop_last(b);
    }
    variation->span.end = b->settings;
}

static void declare_case(struct sim_builder *b, const struct sim_section *s)
{
    if (!is_good_name(s->name, true)) {
        tell_section(b, s, "want a name of 1 to 63 characters without any of : [ ] = and quotes");
        return;
    }
    for (size_t i = 0; i < b->variations; i++)
        if (strcmp(b->variation[i].name, s->name) == 0) {
            tell_section(b, s, "there is a case of that name already");
            return;
        }
    if (b->variations == SIM_CASES_MAX)
        tell_section(b, s, "want 32 cases at most");
    else
        read_case(b, s);
}

/* One key and all its values, with commas between them. */
static void read_values(struct sim_builder *b, const struct sim_said *said)
{
    struct sim_scene scene = scene_of(b);
    size_t first = b->settings;
    for (const char *at = said->value;;) {
        size_t end = strcspn(at, ",");
        struct sim_setting *setting =
            add_setting(b, (struct sim_origin){said->line, "sweep", said->key}, trimmed(at, end));
        if (setting == NULL)
            return;
        if (b->settings - first > SIM_ROWS_MAX) {
            sim_setting_tell(setting, b->told, "want %u values at most", SIM_ROWS_MAX);
            return;
        }
        if (!sim_setting_by_path(setting, &scene) || !sim_setting_check(setting, &scene))
            return;
        if (at[end] == '\0')
            break;
        at += end + 1;
    }
    b->sweep[b->sweeps++] = (struct sim_span){first, b->settings};
}

static void check_values_differ(struct sim_builder *b, struct sim_span span)
{
    for (size_t i = span.first; i < span.end; i++)
        for (size_t j = span.first; j < i; j++)
            if (strcmp(b->setting[i].value, b->setting[j].value) == 0) {
                sim_setting_tell(&b->setting[i], b->told, "the same value twice");
                return;
            }
}

static void read_sweep(struct sim_builder *b, const struct sim_section *s)
{
    b->sweep_line = s->line;
    if (s->count == 0)
        tell_section(b, s, "want a key and its values, such as clients.rate = 100/s, 200/s");
    for (size_t i = s->first; i < s->first + s->count && !b->no_memory; i++) {
        if (b->sweeps == SIM_SWEEPS_MAX) {
            conf_diagnostics_add(b->told, b->file.said[i].line, "[sweep] %s: want two keys at most",
                                 conf_printable(b->file.said[i].key, strlen(b->file.said[i].key)).text);
            return;
        }
        size_t before = b->sweeps;
        read_values(b, &b->file.said[i]);
        if (b->sweeps == before)
            continue;
        check_values_differ(b, b->sweep[before]);
        if (before == 1 && sim_setting_covers(&b->setting[b->sweep[1].first], &b->setting[b->sweep[0].first]))
            sim_setting_tell(&b->setting[b->sweep[1].first], b->told, "it is swept already");
    }
}

/* ---- the file ---- */

static bool is(const struct sim_section *s, const char *kind)
{
    return strcmp(s->kind, kind) == 0;
}

/* Sections of which there is one, and which have no name. */
static bool declare_single(struct sim_builder *b, const struct sim_section *s, unsigned *line)
{
    if (s->name[0] != '\0')
        tell_section(b, s, "want no name");
    else if (*line != 0)
        said_before(b, s, *line);
    else {
        *line = s->line;
        return true;
    }
    return false;
}

/* Makes room for every section of the world; the others have their turn when all names are known. A section that was
 * told is emptied: nothing of it is read. */
static void declare(struct sim_builder *b)
{
    unsigned sweep_line = 0;
    b->base.groups = b->base.services = b->base.outages = 0;
    for (size_t i = 0; i < b->file.sections; i++) {
        struct sim_section *s = &b->file.section[i];
        bool well = is(s, "case");
        if (is(s, "scenario"))
            well = declare_single(b, s, &b->line[SIM_PART_WORLD][0]);
        else if (is(s, "network"))
            well = declare_single(b, s, &b->line[SIM_PART_NETWORK][0]);
        else if (is(s, "fleet"))
            well = declare_single(b, s, &b->line[SIM_PART_FLEET][0]);
        else if (is(s, "sweep"))
            well = declare_single(b, s, &sweep_line);
        else if (is(s, "clients"))
            well = declare_element(b, s, SIM_PART_CLIENTS, SIM_GROUPS_MAX);
        else if (is(s, "service"))
            well = declare_element(b, s, SIM_PART_SERVICE, SIM_SERVICES_MAX);
        else if (is(s, "outage"))
            well = declare_element(b, s, SIM_PART_OUTAGE, SIM_OUTAGES_MAX);
        else if (!well)
            unknown_section(b, s);
        if (!well)
            s->kind[0] = '\0';
    }
    check_names(b, SIM_PART_CLIENTS, "clients");
    check_names(b, SIM_PART_SERVICE, "service");
    check_names(b, SIM_PART_OUTAGE, "outage");
    if (b->base.groups == 0 && b->told->count == 0)
        conf_diagnostics_add(b->told, 0, "want a [clients] section");
    if (b->base.services == 0 && b->told->count == 0)
        conf_diagnostics_add(b->told, 0, "want a [service] section");
}

static uint32_t element_of(const struct sim_builder *b, const struct sim_section *s)
{
    enum sim_part part = is(s, "clients")   ? SIM_PART_CLIENTS
                         : is(s, "service") ? SIM_PART_SERVICE
                         : is(s, "outage")  ? SIM_PART_OUTAGE
                                            : SIM_PART_WORLD;
    uint32_t i = 0;
    while (part != SIM_PART_WORLD && strcmp(sim_part_name(&b->base, part, i), s->name) != 0)
        i++;
    return i;
}

static void read_world(struct sim_builder *b)
{
    for (size_t i = 0; i < b->file.sections && !b->no_memory; i++) {
        const struct sim_section *s = &b->file.section[i];
        if (s->kind[0] == '\0' || is(s, "case") || is(s, "sweep"))
            continue;
        read_section(b, s, element_of(b, s));
    }
    b->base_span = (struct sim_span){0, b->settings};
    for (size_t i = 0; i < b->settings; i++)
        sim_setting_apply(&b->setting[i], &b->base, &b->scenario->head);
}

static void read_variations(struct sim_builder *b)
{
    for (size_t i = 0; i < b->file.sections && !b->no_memory; i++) {
        if (is(&b->file.section[i], "sweep"))
            read_sweep(b, &b->file.section[i]);
        if (is(&b->file.section[i], "case"))
            declare_case(b, &b->file.section[i]);
    }
}

void sim_build_sections(struct sim_builder *b)
{
    declare(b);
    read_world(b);
    read_variations(b);
    b->set_span = (struct sim_span){b->settings, b->settings};
}

/* ---- the command line ---- */

static void read_set(struct sim_builder *b, const char *word)
{
    struct sim_scene scene = scene_of(b);
    const char *mark = strchr(word, '=');
    char key[SIM_KEY_MAX];
    struct bide_text name = trimmed(word, mark == NULL ? 0 : (size_t)(mark - word));
    struct bide_text value = mark == NULL ? (struct bide_text){"", 0} : trimmed(mark + 1, strlen(mark + 1));
    bool fits = name.length < sizeof key;
    snprintf(key, sizeof key, "%.*s", fits ? (int)name.length : 0, name.at);
    /* Its key is looked at now only: later messages show the word. */
    struct sim_setting *setting = add_setting(b, (struct sim_origin){0, word, key}, value);
    if (setting == NULL)
        return;
    if (mark == NULL || !fits)
        sim_setting_tell(setting, b->told, "want KEY=VALUE, such as clients.rate=300/s");
    else if (sim_setting_by_path(setting, &scene) && sim_setting_check(setting, &scene)) {
        setting->origin.key = setting->field != NULL ? setting->field->key.key : conf_key_name(&setting->policy_key);
        if (b->choice->policy != NULL && setting->field != NULL && setting->field->form == SIM_FORM_POLICY)
            sim_setting_tell(setting, b->told, "--policy says it already");
        return;
    }
    drop_last(b);
}

/* The policies of the command line become what is compared, in place of the cases. */
static const struct conf_policy *find_policy(struct sim_builder *b, const char *word)
{
    char errors[CONF_ERROR_MAX] = "";
    const struct conf_policy *policy = NULL;
    if (b->variations == SIM_CASES_MAX)
        conf_diagnostics_add(b->told, 0, "want %u at most", SIM_CASES_MAX);
    else if (strlen(word) >= SIM_POLICY_MAX)
        conf_diagnostics_add(b->told, 0, "%s: want %u bytes at most", conf_printable(word, strlen(word)).text,
                             SIM_POLICY_MAX - 1);
    else
        policy = sim_policy_find(&b->scenario->policies, word, SIM_ASKED_BY_USER, errors);
    for (const char *line = errors; policy == NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        conf_diagnostics_add(b->told, 0, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    return policy;
}

static void read_policies(struct sim_builder *b)
{
    const char *file = b->told->file;
    b->variations = 0;
    b->told->file = "--policy";
    for (const char *const *word = b->choice->policy; *word != NULL; word++) {
        const struct conf_policy *policy = find_policy(b, *word);
        if (policy == NULL)
            break;
        b->variation[b->variations++] = (struct sim_variation){.policy_name = *word, .policy = policy};
    }
    b->told->file = file;
}

/* A policy's own name; all that was written, cut in front, where two have the same. */
static void name_policies(struct sim_builder *b)
{
    for (size_t i = 0; i < b->variations; i++) {
        struct sim_variation *one = &b->variation[i];
        const char *name = one->policy->name;
        for (size_t j = 0; j < b->variations; j++)
            if (j != i && strcmp(b->variation[j].policy->name, one->policy->name) == 0)
                name = one->policy_name;
        size_t length = strlen(name), most = sizeof one->name - 1;
        snprintf(one->name, sizeof one->name, "%s", name + (length > most ? length - most : 0));
    }
}

void sim_build_choice(struct sim_builder *b)
{
    for (const char *const *word = b->choice->set; word != NULL && *word != NULL; word++)
        read_set(b, *word);
    b->set_span.end = b->settings;
    for (size_t i = b->set_span.first; i < b->settings; i++)
        if (b->setting[i].field != NULL)
            sim_setting_apply(&b->setting[i], &b->base, &b->scenario->head);
    if (b->choice->policy != NULL) {
        read_policies(b);
        name_policies(b);
    }
}
