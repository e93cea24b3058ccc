/* policy_file.c - from the sections of a file to policies.
 *
 * The sections are resolved after all of them were read, each after the section that it extends, so their order in the
 * file does not matter. A section with a value that could not be parsed is not checked for contradictions, nor are the
 * sections that extend it: the check would report problems that do not exist. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_internal.h"
#include "suggest.h"
#include "text/slice.h"

enum section_state { SECTION_UNRESOLVED, SECTION_RESOLVING, SECTION_RESOLVED };

struct section {
    const struct conf_ini_entry *extends; /* NULL: not given */
    size_t first, count;                  /* its entries */
    enum section_state section_state;
    bool incomplete; /* a field of the section or of its base could not be parsed */
};

/* A known key, unique in its section. */
struct entry {
    struct conf_key key;
    const struct conf_ini_entry *ini;
};

struct file {
    struct conf *conf; /* policy[i] is the result of section[i] */
    struct conf_diagnostics *diagnostics;
    struct section *section;
    size_t sections;
    struct entry *entry;
    size_t entries;
};

/* ---- diagnostics ---- */

static const char *section_name(const struct file *file, size_t section)
{
    return file->conf->policy[section].name;
}

static void report_value(struct file *file, const struct conf_ini_entry *entry, size_t section, const char *want)
{
    const char *value = entry->value;
    bool quoted = value[0] == '"' || value[0] == '\'';
    if (value[0] == '\0')
        conf_diagnostics_add(file->diagnostics, entry->line, "[%s] %s has no value: must be %s",
                             section_name(file, section), entry->key, want);
    else
        conf_diagnostics_add(file->diagnostics, entry->line, "[%s] %s = %s: must be %s%s", section_name(file, section),
                             entry->key, conf_printable(value, strlen(value)).text, want,
                             quoted ? ", without quotes" : "");
}

static void report_unknown_key(struct file *file, const struct conf_ini_entry *entry)
{
    size_t length = strlen(entry->key);
    const char *suggestion = NULL;
    if (conf_diagnostics_have_room(file->diagnostics)) /* else a file of a million such lines takes a minute */
        suggestion = conf_key_suggest(entry->key, length, "");
    bool counts_retries =
        suggestion != NULL && strcmp(suggestion, "attempts") == 0 && strstr(entry->key, "retr") != NULL;
    conf_diagnostics_add(file->diagnostics, entry->line, "[%s] %s = %s: no such key%s%s%s%s",
                         section_name(file, file->sections - 1), conf_printable(entry->key, length).text,
                         conf_printable(entry->value, strlen(entry->value)).text,
                         suggestion != NULL ? "; did you mean " : "", suggestion != NULL ? suggestion : "",
                         suggestion != NULL ? "?" : "", counts_retries ? " It counts the first attempt, too" : "");
}

static void report_duplicate(struct file *file, const struct conf_ini_entry *entry, const struct conf_ini_entry *first)
{
    conf_diagnostics_add(file->diagnostics, entry->line, "[%s] %s = %s: duplicates line %u",
                         section_name(file, file->sections - 1), entry->key,
                         conf_printable(entry->value, strlen(entry->value)).text, first->line);
}

/* ---- sections and entries ---- */

/* Adds a section and its policy, also if the name is invalid or a duplicate, so that its keys are checked. Returns
 * false if there are too many, or without memory, after reporting that. */
static bool file_add_section(struct file *file, unsigned line, struct bide_text name, bool is_valid)
{
    const struct conf_policy *duplicate = is_valid ? conf_policy_by_name(file->conf, name) : NULL;
    if (duplicate != NULL)
        conf_diagnostics_add(file->diagnostics, line, "[%s] duplicates line %u: section names must be unique",
                             duplicate->name, duplicate->line);
    if (conf_add_policy(file->conf, name, line, file->diagnostics) == NULL)
        return false;
    file->section[file->sections++] = (struct section){.first = file->entries};
    return true;
}

static bool file_begin_section(struct file *file, const struct conf_ini_section *section, const char *heading_name)
{
    struct bide_text name = text_from(heading_name);
    bool is_valid = heading_name != NULL && conf_name_is_valid(name);
    if (heading_name != NULL && !is_valid)
        conf_diagnostics_add(file->diagnostics, section->line, "[%s]: " CONF_NAME_WANT,
                             conf_printable(section->heading, strlen(section->heading)).text);
    return file_add_section(file, section->line, is_valid ? name : (struct bide_text){"?", 1}, is_valid);
}

static const struct entry *section_find_key(const struct file *file, const struct conf_key *key)
{
    const struct section *section = &file->section[file->sections - 1];
    for (size_t i = section->first; i < section->first + section->count; i++)
        if (conf_key_equal(&file->entry[i].key, key))
            return &file->entry[i];
    return NULL;
}

static void section_add_entry(struct file *file, const struct conf_ini_entry *ini)
{
    struct section *section = &file->section[file->sections - 1];
    struct entry entry = {.ini = ini};
    const struct entry *duplicate;
    if (strcmp(ini->key, "extends") == 0 && section->extends != NULL)
        report_duplicate(file, ini, section->extends);
    else if (strcmp(ini->key, "extends") == 0)
        section->extends = ini;
    else if (!conf_key_find(&entry.key, ini->key, strlen(ini->key)))
        report_unknown_key(file, ini);
    else if ((duplicate = section_find_key(file, &entry.key)) != NULL)
        report_duplicate(file, ini, duplicate->ini);
    else {
        file->entry[file->entries++] = entry;
        section->count++;
    }
}

/* ---- resolving ---- */

static void section_apply_entry(struct file *file, size_t i, const struct entry *entry)
{
    struct conf_policy *policy = &file->conf->policy[i];
    const char *want = conf_key_assign(&entry->key, policy, entry->ini->value);
    if (want == NULL)
        return;
    report_value(file, entry->ini, i, want);
    if (entry->key.field != NULL) /* lists do not influence the check of the fields */
        file->section[i].incomplete = true;
}

/* Returns the line that sets a field in this section; 0 if the value is inherited. */
static unsigned section_field_line(const struct file *file, size_t i, const struct conf_field *field)
{
    const struct section *section = &file->section[i];
    for (size_t j = section->first; j < section->first + section->count; j++)
        if (file->entry[j].key.field == field)
            return file->entry[j].ini->line;
    return 0;
}

/* Checks the combination of fields. After each problem the field is reset to its inherited value and the check
 * repeated, so that all problems are found. */
static void section_check(struct file *file, size_t i, const struct conf_pair *before)
{
    struct conf_policy *policy = &file->conf->policy[i];
    struct conf_pair pair = policy->pair;
    struct conf_problem problem;
    while (!conf_pair_check(&pair, &problem)) {
        char text[256];
        unsigned line = problem.field == NULL ? 0 : section_field_line(file, i, problem.field);
        file->section[i].incomplete = true;
        if (problem.field == NULL)
            conf_diagnostics_add(file->diagnostics, policy->line, "[%s]: must be %s", policy->name, problem.want);
        else
            conf_diagnostics_add(file->diagnostics, line > 0 ? line : policy->line, "[%s] %s = %s%s: must be %s",
                                 policy->name, problem.field->key, conf_field_format(text, problem.field, &pair),
                                 line > 0 ? "" : ", inherited", problem.want);
        if (problem.field == NULL || conf_field_equal(problem.field, &pair, before))
            return;
        conf_field_copy(problem.field, &pair, before);
    }
}

static void section_resolve(struct file *file, size_t i);

static void report_unknown_base(struct file *file, size_t i, struct bide_text name)
{
    struct conf_suggestion suggestion = {.word = name.at, .length = name.length};
    for (size_t j = 0; j < file->sections && conf_diagnostics_have_room(file->diagnostics); j++)
        if (j != i)
            conf_suggestion_consider(&suggestion, section_name(file, j), section_name(file, j));
    for (unsigned j = 0; j < BIDE_PRESET_COUNT; j++)
        conf_suggestion_consider(&suggestion, bide_preset_label((enum bide_preset)j),
                                 bide_preset_label((enum bide_preset)j));
    conf_diagnostics_add(file->diagnostics, file->section[i].extends->line,
                         "[%s] extends = %s: no such section or preset%s%s%s", section_name(file, i),
                         conf_printable(name.at, name.length).text, suggestion.found != NULL ? "; did you mean " : "",
                         suggestion.found != NULL ? suggestion.found : "", suggestion.found != NULL ? "?" : "");
}

/* Initialises policy i with the result of section j. */
static void section_extend(struct file *file, size_t i, size_t j)
{
    struct conf_policy *policy = &file->conf->policy[i];
    const struct conf_policy *base = &file->conf->policy[j];
    if (file->section[j].section_state == SECTION_RESOLVING) {
        conf_diagnostics_add(file->diagnostics, file->section[i].extends->line,
                             "[%s] extends = %s: must not be circular", policy->name, base->name);
        file->section[i].incomplete = true;
        return;
    }
    section_resolve(file, j);
    policy->preset = base->preset;
    policy->pair = base->pair;
    policy->status = base->status;
    policy->exits = base->exits;
    policy->grpc = base->grpc;
    file->section[i].incomplete = file->section[j].incomplete;
}

/* Initialises policy i from its base. A section takes precedence over a preset of the same name, but a section that
 * extends its own name means the preset. */
static void section_start(struct file *file, size_t i)
{
    struct section *section = &file->section[i];
    conf_policy_set_preset(&file->conf->policy[i], BIDE_PRESET_SERVICE);
    if (section->extends == NULL)
        return;
    struct bide_text name = text_from(section->extends->value);
    const struct conf_policy *named = conf_policy_by_name(file->conf, name);
    enum bide_preset preset = bide_preset_by_name(name.at, name.length);
    if (named != NULL && named != &file->conf->policy[i])
        section_extend(file, i, (size_t)(named - file->conf->policy));
    else if (preset != BIDE_PRESET_COUNT)
        conf_policy_set_preset(&file->conf->policy[i], preset);
    else {
        section->incomplete = true;
        if (named != NULL)
            conf_diagnostics_add(file->diagnostics, section->extends->line,
                                 "[%s] extends = %s: must be another section or a preset", named->name, named->name);
        else
            report_unknown_base(file, i, name);
    }
}

static void section_resolve(struct file *file, size_t i)
{
    struct section *section = &file->section[i];
    if (section->section_state != SECTION_UNRESOLVED)
        return;
    section->section_state = SECTION_RESOLVING;
    section_start(file, i);
    struct conf_pair before = file->conf->policy[i].pair;
    for (size_t j = section->first; j < section->first + section->count; j++)
        section_apply_entry(file, i, &file->entry[j]);
    if (!section->incomplete)
        section_check(file, i, &before);
    section->section_state = SECTION_RESOLVED;
}

/* ---- reading ---- */

static bool key_is_list(const char *key)
{
    struct conf_key found;
    return conf_key_find(&found, key, strlen(key)) && found.list != NULL;
}

const struct conf_ini_syntax *conf_policy_syntax(const char *heading)
{
    static const struct conf_ini_syntax syntax = {.separators = "=:", .may_continue = key_is_list};
    (void)heading;
    return &syntax;
}

static void file_read_section(struct file *file, const struct conf_ini *ini, const struct conf_ini_section *section)
{
    for (size_t i = section->first; i < section->first + section->count; i++)
        section_add_entry(file, &ini->entry[i]);
}

static void file_read_sections(struct file *file, const struct conf_ini *ini, const char *kind)
{
    for (size_t i = 0; i < ini->sections; i++) {
        const struct conf_ini_section *section = &ini->section[i];
        const char *name = section->heading;
        if (kind != NULL)
            name = name == NULL ? NULL : conf_ini_name_after(name, kind);
        if (kind != NULL && (name == NULL || name[0] == '\0'))
            continue;
        if (!file_begin_section(file, section, name))
            return;
        file_read_section(file, ini, section);
    }
    for (size_t i = 0; i < file->sections; i++)
        section_resolve(file, i);
}

void conf_policies_read(struct conf *conf, const struct conf_ini *ini, const char *kind,
                        struct conf_diagnostics *diagnostics)
{
    struct file file = {.conf = conf,
                        .diagnostics = diagnostics,
                        .section = calloc(ini->sections + 1, sizeof *file.section),
                        .entry = calloc(ini->entries + 1, sizeof *file.entry)};
    assert(conf->count == 0);
    if (file.section == NULL || file.entry == NULL)
        conf_diagnostics_add(diagnostics, 1, "out of memory");
    else
        file_read_sections(&file, ini, kind);
    free(file.section);
    free(file.entry);
}

void conf_policy_file_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *diagnostics)
{
    struct conf_ini ini;
    if (conf_ini_read(&ini, text, conf_policy_syntax, diagnostics))
        conf_policies_read(conf, &ini, NULL, diagnostics);
    conf_ini_free(&ini);
}
