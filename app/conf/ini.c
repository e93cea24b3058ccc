/* ini.c - reads bide.conf.
 *
 * inih splits lines into keys and values, but it truncates long lines and names silently, does not report empty
 * sections and does not tell its position. Therefore on_read_line sees every line before inih does: it counts lines,
 * strips comments and blanks, handles section headings itself, and reports whatever inih would only skip. A list may
 * continue in the next line if that line is indented and is not a key.
 *
 * Afterwards the sections are resolved, each after the section that it extends, so their order in the file does not
 * matter. A section with a value that could not be parsed is not checked for contradictions, nor are the sections that
 * extend it: the check would report problems that do not exist. */
#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_internal.h"
#include "suggest.h"

enum section_state { SECTION_UNRESOLVED, SECTION_RESOLVING, SECTION_RESOLVED };

struct section {
    char *extends; /* NULL: not given */
    unsigned extends_line;
    size_t first, count; /* its entries */
    enum section_state section_state;
    bool incomplete; /* a field of the section or of its base could not be parsed */
};

/* A known key, unique in its section. */
struct entry {
    struct conf_key key;
    unsigned line;
    char *value;
};

struct file {
    struct conf *conf; /* policy[i] is the result of section[i] */
    struct conf_diagnostics *diagnostics;
    struct section *section;
    size_t sections;
    struct entry *entry;
    size_t entries, entry_room;
    struct bide_text rest; /* text not read yet */
    unsigned line;
    bool continues; /* the current line continues the last entry */
    bool may_continue;
    bool failed; /* out of memory or too many sections: stop reading */
};

/* ---- diagnostics ---- */

static const char *section_name(const struct file *file, size_t section)
{
    return file->conf->policy[section].name;
}

static void report_value(struct file *file, unsigned line, size_t section, const char *key, const char *value,
                         const char *want)
{
    bool quoted = value[0] == '"' || value[0] == '\'';
    if (value[0] == '\0')
        conf_diagnostics_add(file->diagnostics, line, "[%s] %s has no value: must be %s", section_name(file, section),
                             key, want);
    else
        conf_diagnostics_add(file->diagnostics, line, "[%s] %s = %s: must be %s%s", section_name(file, section), key,
                             conf_printable(value, strlen(value)).text, want, quoted ? ", without quotes" : "");
}

static void report_unknown_key(struct file *file, const char *key, const char *value)
{
    size_t length = strlen(key);
    const char *suggestion = NULL;
    if (conf_diagnostics_have_room(file->diagnostics)) /* else a file of a million such lines takes a minute */
        suggestion = conf_key_suggest(key, length);
    bool counts_retries = suggestion != NULL && strcmp(suggestion, "attempts") == 0 && strstr(key, "retr") != NULL;
    conf_diagnostics_add(file->diagnostics, file->line, "[%s] %s = %s: no such key%s%s%s%s",
                         section_name(file, file->sections - 1), conf_printable(key, length).text,
                         conf_printable(value, strlen(value)).text, suggestion != NULL ? "; did you mean " : "",
                         suggestion != NULL ? suggestion : "", suggestion != NULL ? "?" : "",
                         counts_retries ? " It counts the first attempt, too" : "");
}

static void file_out_of_memory(struct file *file)
{
    if (!file->failed)
        conf_diagnostics_add(file->diagnostics, file->line, "out of memory");
    file->failed = true;
}

/* ---- sections and entries ---- */

/* A duplicate section is stored as well, so that its keys are checked. */
static void file_begin_section(struct file *file, struct bide_text name)
{
    const struct conf_policy *duplicate = conf_name_is_valid(name) ? conf_policy_by_name(file->conf, name) : NULL;
    struct section *grown = realloc(file->section, (file->sections + 1) * sizeof *grown);
    if (grown == NULL) {
        file_out_of_memory(file);
        return;
    }
    file->section = grown;
    if (duplicate != NULL)
        conf_diagnostics_add(file->diagnostics, file->line, "[%s] duplicates line %u: section names must be unique",
                             duplicate->name, duplicate->line);
    if (conf_add_policy(file->conf, name, file->line, file->diagnostics) == NULL) {
        file->failed = true;
        return;
    }
    file->section[file->sections++] = (struct section){.first = file->entries};
}

static void section_set_extends(struct file *file, const char *value)
{
    struct section *section = &file->section[file->sections - 1];
    if (section->extends != NULL) {
        conf_diagnostics_add(file->diagnostics, file->line, "[%s] extends = %s: duplicates line %u",
                             section_name(file, file->sections - 1), conf_printable(value, strlen(value)).text,
                             section->extends_line);
        return;
    }
    section->extends_line = file->line;
    section->extends = strdup(value);
    if (section->extends == NULL)
        file_out_of_memory(file);
}

static const struct entry *section_find_key(const struct file *file, const struct entry *entry)
{
    const struct section *section = &file->section[file->sections - 1];
    for (size_t i = section->first; i < section->first + section->count; i++)
        if (conf_key_equal(&file->entry[i].key, &entry->key))
            return &file->entry[i];
    return NULL;
}

static void section_add_entry(struct file *file, struct entry entry, const char *value)
{
    if (file->entry == NULL || file->entries == file->entry_room) {
        size_t room = file->entry_room == 0 ? 32 : 2 * file->entry_room;
        struct entry *grown = realloc(file->entry, room * sizeof *grown);
        if (grown == NULL) {
            file_out_of_memory(file);
            return;
        }
        file->entry = grown;
        file->entry_room = room;
    }
    entry.line = file->line;
    entry.value = strdup(value);
    if (entry.value == NULL) {
        file_out_of_memory(file);
        return;
    }
    file->entry[file->entries++] = entry;
    file->section[file->sections - 1].count++;
    file->may_continue = entry.key.list != NULL;
}

static void entry_continue(struct file *file, const char *value)
{
    struct entry *last = &file->entry[file->entries - 1];
    size_t before = strlen(last->value), size = before + strlen(value) + 2;
    char *longer = realloc(last->value, size);
    if (longer == NULL) {
        file_out_of_memory(file);
        return;
    }
    last->value = longer;
    snprintf(longer + before, size - before, " %s", value);
}

/* The callback of inih for a key. The section is known from on_read_line, which also handles continued lines. */
static int on_key_value(void *context, const char *section, const char *key, const char *value)
{
    struct file *file = context;
    struct entry entry = {.line = 0};
    const struct entry *duplicate;
    (void)section;
    if (file->continues) {
        entry_continue(file, value);
        return 1;
    }
    file->may_continue = false;
    if (file->sections == 0)
        conf_diagnostics_add(file->diagnostics, file->line, "%s = %s: must follow a [section]",
                             conf_printable(key, strlen(key)).text, conf_printable(value, strlen(value)).text);
    else if (strcmp(key, "extends") == 0)
        section_set_extends(file, value);
    else if (!conf_key_find(&entry.key, key, strlen(key)))
        report_unknown_key(file, key, value);
    else if ((duplicate = section_find_key(file, &entry)) != NULL)
        conf_diagnostics_add(file->diagnostics, file->line, "[%s] %s = %s: duplicates line %u",
                             section_name(file, file->sections - 1), key, conf_printable(value, strlen(value)).text,
                             duplicate->line);
    else
        section_add_entry(file, entry, value);
    return 1;
}

/* ---- lines ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct bide_text file_next_line(struct file *file)
{
    const char *end = memchr(file->rest.at, '\n', file->rest.length);
    size_t length = end == NULL ? file->rest.length : (size_t)(end - file->rest.at);
    struct bide_text line = {file->rest.at, length};
    size_t taken = end == NULL ? length : length + 1;
    file->rest = (struct bide_text){file->rest.at + taken, file->rest.length - taken};
    file->line++;
    return line;
}

/* Strips comment and surrounding blanks. A # or ; begins a comment at the start of the line or after a blank. */
static struct bide_text line_content(struct bide_text line)
{
    size_t end = 0;
    while (end < line.length &&
           !((line.at[end] == '#' || line.at[end] == ';') && (end == 0 || is_blank(line.at[end - 1]))))
        end++;
    line.length = end;
    while (line.length > 0 && is_blank(line.at[line.length - 1]))
        line.length--;
    while (line.length > 0 && is_blank(line.at[0]))
        line = (struct bide_text){line.at + 1, line.length - 1};
    return line;
}

static void file_parse_heading(struct file *file, struct bide_text text)
{
    struct bide_text name = line_content((struct bide_text){text.at + 1, text.length - 1});
    file->may_continue = false;
    if (name.length == 0 || name.at[name.length - 1] != ']')
        conf_diagnostics_add(file->diagnostics, file->line, "%s: must be [name] and nothing after it",
                             conf_printable(text.at, text.length).text);
    else {
        name.length--;
        name = line_content(name);
        if (!conf_name_is_valid(name))
            conf_diagnostics_add(file->diagnostics, file->line, "%s: " CONF_NAME_WANT,
                                 conf_printable(text.at, text.length).text);
        else {
            file_begin_section(file, name);
            return;
        }
    }
    file_begin_section(file, (struct bide_text){"?", 1});
}

/* Returns true if inih should parse the line. Lines that inih would misread are reported here. */
static bool line_prepare_for_inih(struct file *file, struct bide_text line, struct bide_text text, size_t room)
{
    bool key = memchr(text.at, '=', text.length) != NULL || memchr(text.at, ':', text.length) != NULL;
    file->continues = false;
    if (text.length == 0)
        return false;
    if (memchr(line.at, '\0', line.length) != NULL)
        return conf_diagnostics_add(file->diagnostics, file->line, "contains a NUL byte: must be text");
    if (text.at[0] == '[') {
        file_parse_heading(file, text);
        return false;
    }
    file->continues = !key && text.at > line.at && file->may_continue;
    if (!key && !file->continues)
        return conf_diagnostics_add(file->diagnostics, file->line, "%s: must be key = value",
                                    conf_printable(text.at, text.length).text);
    if (text.length + 3 > room)
        return conf_diagnostics_add(file->diagnostics, file->line,
                                    "%s: longer than %zu bytes (a list may continue in an indented line)",
                                    conf_printable(text.at, text.length).text, room - 3);
    return true;
}

/* The ini_reader of inih: passes the next line, or an empty line if inih should not see it. */
static char *on_read_line(char *buffer, int room, void *context)
{
    struct file *file = context;
    if (file->rest.length == 0 || file->failed)
        return NULL;
    struct bide_text line = file_next_line(file), text = line_content(line);
    if (line_prepare_for_inih(file, line, text, (size_t)room))
        snprintf(buffer, (size_t)room, "%s%.*s\n", file->continues ? " " : "", (int)text.length, text.at);
    else
        snprintf(buffer, (size_t)room, "\n");
    return buffer;
}

/* ---- resolving ---- */

static void section_apply_entry(struct file *file, size_t i, const struct entry *entry)
{
    struct conf_policy *policy = &file->conf->policy[i];
    const char *want = conf_key_assign(&entry->key, policy, entry->value);
    if (want == NULL)
        return;
    report_value(file, entry->line, i, conf_key_name(&entry->key), entry->value, want);
    if (entry->key.field != NULL) /* lists do not influence the check of the fields */
        file->section[i].incomplete = true;
}

/* Returns the line that sets a field in this section; 0 if the value is inherited. */
static unsigned section_field_line(const struct file *file, size_t i, const struct conf_field *field)
{
    const struct section *section = &file->section[i];
    for (size_t j = section->first; j < section->first + section->count; j++)
        if (file->entry[j].key.field == field)
            return file->entry[j].line;
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
    struct conf_suggestion suggestion = {name.at, name.length, NULL, 0};
    for (size_t j = 0; j < file->sections && conf_diagnostics_have_room(file->diagnostics); j++)
        if (j != i)
            conf_suggestion_consider(&suggestion, section_name(file, j), section_name(file, j));
    for (unsigned j = 0; j < BIDE_PRESET_COUNT; j++)
        conf_suggestion_consider(&suggestion, bide_preset_label((enum bide_preset)j),
                                 bide_preset_label((enum bide_preset)j));
    conf_diagnostics_add(file->diagnostics, file->section[i].extends_line,
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
        conf_diagnostics_add(file->diagnostics, file->section[i].extends_line,
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
    struct bide_text name = {section->extends, strlen(section->extends)};
    const struct conf_policy *named = conf_policy_by_name(file->conf, name);
    enum bide_preset preset = bide_preset_by_name(name.at, name.length);
    if (named != NULL && named != &file->conf->policy[i])
        section_extend(file, i, (size_t)(named - file->conf->policy));
    else if (preset != BIDE_PRESET_COUNT)
        conf_policy_set_preset(&file->conf->policy[i], preset);
    else {
        section->incomplete = true;
        if (named != NULL)
            conf_diagnostics_add(file->diagnostics, section->extends_line,
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

static void file_free(struct file *file)
{
    for (size_t i = 0; i < file->sections; i++)
        free(file->section[i].extends);
    for (size_t i = 0; i < file->entries; i++)
        free(file->entry[i].value);
    free(file->section);
    free(file->entry);
}

void conf_ini_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *diagnostics)
{
    struct file file = {.conf = conf, .diagnostics = diagnostics, .rest = text};
    int status = ini_parse_stream(on_read_line, &file, on_key_value, &file);
    if (status != 0 && diagnostics->count == 0) /* inih is out of memory, or parses a line differently */
        conf_diagnostics_add(diagnostics, status > 0 ? (unsigned)status : 0, "cannot be parsed");
    for (size_t i = 0; i < file.sections && !file.failed; i++)
        section_resolve(&file, i);
    file_free(&file);
}
