/* ini.c - reads bide.conf.
 *
 * inih cuts lines into keys and values, but it cuts long lines and long names silently, says nothing of an empty
 * section and does not say where it is. So our own reader sees each line before inih does: it counts, takes off
 * comments and blanks, keeps the section heads to itself, and tells what inih could only skip. A list may go on in the
 * next line if that one is indented and is no key of its own.
 *
 * Then the sections are resolved, each from what it extends: the order in the file does not matter. A section whose
 * values could not all be read is not checked as a whole, and neither is what extends it: it would only say things that
 * are not so. */
#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_internal.h"
#include "suggest.h"

enum state { NEW, BUSY, READY };

struct section {
    char *extends; /* NULL: nothing said */
    unsigned extends_line;
    size_t first, count; /* its entries */
    enum state state;
    bool unsure; /* a field of it, or of what it extends, could not be read */
};

/* A key that is known, and is there once in its section. */
struct entry {
    struct conf_key key;
    unsigned line;
    char *value;
};

struct file {
    struct conf *conf; /* policy[i] is what section[i] comes to */
    struct conf_diagnostics *told;
    struct section *section;
    size_t sections;
    struct entry *entry;
    size_t entries, entry_room;
    struct bide_text rest; /* what is still to be read */
    unsigned line;
    bool goes_on; /* this line goes on with the last entry */
    bool may_go_on;
    bool failed; /* no memory, or too many sections: nothing more is read */
};

/* ---- telling ---- */

static const char *name_of(const struct file *file, size_t section)
{
    return file->conf->policy[section].name;
}

static void tell_value(struct file *file, unsigned line, size_t section, const char *key, const char *value,
                       const char *want)
{
    bool quoted = value[0] == '"' || value[0] == '\'';
    if (value[0] == '\0')
        conf_diagnostics_add(file->told, line, "[%s] %s has no value: want %s", name_of(file, section), key, want);
    else
        conf_diagnostics_add(file->told, line, "[%s] %s = %s: want %s%s", name_of(file, section), key,
                             conf_printable(value, strlen(value)).text, want, quoted ? ", without quotes" : "");
}

static void tell_key(struct file *file, const char *key, const char *value)
{
    size_t length = strlen(key);
    const char *near = NULL;
    if (conf_diagnostics_have_room(
            file->told)) /* else nobody will read it, and a million such lines would take a minute */
        near = conf_key_suggest(key, length);
    bool one_less = near != NULL && strcmp(near, "attempts") == 0 && strstr(key, "retr") != NULL;
    conf_diagnostics_add(file->told, file->line, "[%s] %s = %s: no such key%s%s%s%s", name_of(file, file->sections - 1),
                         conf_printable(key, length).text, conf_printable(value, strlen(value)).text,
                         near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "",
                         one_less ? " It counts the first try too" : "");
}

static void no_memory(struct file *file)
{
    if (!file->failed)
        conf_diagnostics_add(file->told, file->line, "no memory");
    file->failed = true;
}

/* ---- sections and entries ---- */

/* A section that is there twice is kept twice: its keys are looked at all the same. */
static void begin_section(struct file *file, struct bide_text name)
{
    const struct conf_policy *twin = conf_name_is_valid(name) ? conf_policy_by_name(file->conf, name) : NULL;
    struct section *more = realloc(file->section, (file->sections + 1) * sizeof *more);
    if (more == NULL) {
        no_memory(file);
        return;
    }
    file->section = more;
    if (twin != NULL)
        conf_diagnostics_add(file->told, file->line, "[%s] is there already, in line %u: want one section of each name",
                             twin->name, twin->line);
    if (conf_add_policy(file->conf, name, file->line, file->told) == NULL) {
        file->failed = true;
        return;
    }
    file->section[file->sections++] = (struct section){.first = file->entries};
}

static void set_extends(struct file *file, const char *value)
{
    struct section *section = &file->section[file->sections - 1];
    if (section->extends != NULL) {
        conf_diagnostics_add(file->told, file->line, "[%s] extends = %s: said already, in line %u",
                             name_of(file, file->sections - 1), conf_printable(value, strlen(value)).text,
                             section->extends_line);
        return;
    }
    section->extends_line = file->line;
    section->extends = strdup(value);
    if (section->extends == NULL)
        no_memory(file);
}

static const struct entry *same_key(const struct file *file, const struct entry *entry)
{
    const struct section *section = &file->section[file->sections - 1];
    for (size_t i = section->first; i < section->first + section->count; i++)
        if (conf_key_equal(&file->entry[i].key, &entry->key))
            return &file->entry[i];
    return NULL;
}

static void keep(struct file *file, struct entry entry, const char *value)
{
    if (file->entry == NULL || file->entries == file->entry_room) {
        size_t room = file->entry_room == 0 ? 32 : 2 * file->entry_room;
        struct entry *more = realloc(file->entry, room * sizeof *more);
        if (more == NULL) {
            no_memory(file);
            return;
        }
        file->entry = more;
        file->entry_room = room;
    }
    entry.line = file->line;
    entry.value = strdup(value);
    if (entry.value == NULL) {
        no_memory(file);
        return;
    }
    file->entry[file->entries++] = entry;
    file->section[file->sections - 1].count++;
    file->may_go_on = entry.key.list != NULL;
}

static void go_on(struct file *file, const char *value)
{
    struct entry *last = &file->entry[file->entries - 1];
    size_t before = strlen(last->value), size = before + strlen(value) + 2;
    char *longer = realloc(last->value, size);
    if (longer == NULL) {
        no_memory(file);
        return;
    }
    last->value = longer;
    snprintf(longer + before, size - before, " %s", value);
}

/* What inih found in a line. Our reader knows more of the section than it does. */
static int key_and_value(void *context, const char *section, const char *key, const char *value)
{
    struct file *file = context;
    struct entry entry = {.line = 0};
    const struct entry *twin;
    (void)section;
    if (file->goes_on) {
        go_on(file, value);
        return 1;
    }
    file->may_go_on = false;
    if (file->sections == 0)
        conf_diagnostics_add(file->told, file->line, "%s = %s: want a [section] above it",
                             conf_printable(key, strlen(key)).text, conf_printable(value, strlen(value)).text);
    else if (strcmp(key, "extends") == 0)
        set_extends(file, value);
    else if (!conf_key_find(&entry.key, key, strlen(key)))
        tell_key(file, key, value);
    else if ((twin = same_key(file, &entry)) != NULL)
        conf_diagnostics_add(file->told, file->line, "[%s] %s = %s: said already, in line %u",
                             name_of(file, file->sections - 1), key, conf_printable(value, strlen(value)).text,
                             twin->line);
    else
        keep(file, entry, value);
    return 1;
}

/* ---- lines ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct bide_text next_line(struct file *file)
{
    const char *end = memchr(file->rest.at, '\n', file->rest.length);
    size_t length = end == NULL ? file->rest.length : (size_t)(end - file->rest.at);
    struct bide_text line = {file->rest.at, length};
    size_t taken = end == NULL ? length : length + 1;
    file->rest = (struct bide_text){file->rest.at + taken, file->rest.length - taken};
    file->line++;
    return line;
}

/* Without comment and blanks. A # or ; begins a comment where a word could begin. */
static struct bide_text content(struct bide_text line)
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

static void head(struct file *file, struct bide_text text)
{
    struct bide_text name = content((struct bide_text){text.at + 1, text.length - 1});
    file->may_go_on = false;
    if (name.length == 0 || name.at[name.length - 1] != ']')
        conf_diagnostics_add(file->told, file->line, "%s: want [name] and nothing behind it",
                             conf_printable(text.at, text.length).text);
    else {
        name.length--;
        name = content(name);
        if (!conf_name_is_valid(name))
            conf_diagnostics_add(file->told, file->line, "%s: " CONF_NAME_WANT,
                                 conf_printable(text.at, text.length).text);
        else {
            begin_section(file, name);
            return;
        }
    }
    begin_section(file, (struct bide_text){"?", 1});
}

/* Does inih get to see the line? What it would misread is told here instead. */
static bool for_inih(struct file *file, struct bide_text line, struct bide_text text, size_t room)
{
    bool key = memchr(text.at, '=', text.length) != NULL || memchr(text.at, ':', text.length) != NULL;
    file->goes_on = false;
    if (text.length == 0)
        return false;
    if (memchr(line.at, '\0', line.length) != NULL)
        return conf_diagnostics_add(file->told, file->line, "a NUL byte: want text");
    if (text.at[0] == '[') {
        head(file, text);
        return false;
    }
    file->goes_on = !key && text.at > line.at && file->may_go_on;
    if (!key && !file->goes_on)
        return conf_diagnostics_add(file->told, file->line, "%s: want key = value",
                                    conf_printable(text.at, text.length).text);
    if (text.length + 3 > room)
        return conf_diagnostics_add(file->told, file->line,
                                    "%s: longer than %zu bytes; a list may go on in an indented line",
                                    conf_printable(text.at, text.length).text, room - 3);
    return true;
}

/* An ini_reader. What inih is not to see becomes an empty line. */
static char *read_line(char *buffer, int room, void *context)
{
    struct file *file = context;
    if (file->rest.length == 0 || file->failed)
        return NULL;
    struct bide_text line = next_line(file), text = content(line);
    if (for_inih(file, line, text, (size_t)room))
        snprintf(buffer, (size_t)room, "%s%.*s\n", file->goes_on ? " " : "", (int)text.length, text.at);
    else
        snprintf(buffer, (size_t)room, "\n");
    return buffer;
}

/* ---- resolving ---- */

static void apply(struct file *file, size_t i, const struct entry *entry)
{
    struct conf_policy *policy = &file->conf->policy[i];
    const char *want = conf_key_assign(&entry->key, policy, entry->value);
    if (want == NULL)
        return;
    tell_value(file, entry->line, i, conf_key_name(&entry->key), entry->value, want);
    if (entry->key.field != NULL) /* a list has no bearing on the fields */
        file->section[i].unsure = true;
}

/* The line that sets a field in this section; 0: it has it from elsewhere. */
static unsigned line_of(const struct file *file, size_t i, const struct conf_field *field)
{
    const struct section *section = &file->section[i];
    for (size_t j = section->first; j < section->first + section->count; j++)
        if (file->entry[j].key.field == field)
            return file->entry[j].line;
    return 0;
}

/* The section as a whole. After each problem the field goes back to what it was before, and the rest is looked at. */
static void check(struct file *file, size_t i, const struct conf_pair *before)
{
    struct conf_policy *policy = &file->conf->policy[i];
    struct conf_pair pair = policy->pair;
    struct conf_problem wrong;
    while (!conf_pair_check(&pair, &wrong)) {
        char text[256];
        unsigned line = wrong.field == NULL ? 0 : line_of(file, i, wrong.field);
        file->section[i].unsure = true;
        if (wrong.field == NULL)
            conf_diagnostics_add(file->told, policy->line, "[%s]: want %s", policy->name, wrong.want);
        else
            conf_diagnostics_add(file->told, line > 0 ? line : policy->line, "[%s] %s = %s%s: want %s", policy->name,
                                 wrong.field->key, conf_field_format(text, wrong.field, &pair),
                                 line > 0 ? "" : ", inherited", wrong.want);
        if (wrong.field == NULL || conf_field_equal(wrong.field, &pair, before))
            return;
        conf_field_copy(wrong.field, &pair, before);
    }
}

static void resolve(struct file *file, size_t i);

static void unknown_base(struct file *file, size_t i, struct bide_text name)
{
    struct conf_suggestion near = {name.at, name.length, NULL, 0};
    for (size_t j = 0; j < file->sections && conf_diagnostics_have_room(file->told); j++)
        if (j != i)
            conf_suggestion_consider(&near, name_of(file, j), name_of(file, j));
    for (unsigned j = 0; j < BIDE_PRESET_COUNT; j++)
        conf_suggestion_consider(&near, bide_preset_label((enum bide_preset)j), bide_preset_label((enum bide_preset)j));
    conf_diagnostics_add(file->told, file->section[i].extends_line,
                         "[%s] extends = %s: no such section or preset%s%s%s", name_of(file, i),
                         conf_printable(name.at, name.length).text, near.found != NULL ? "; did you mean " : "",
                         near.found != NULL ? near.found : "", near.found != NULL ? "?" : "");
}

/* Starts policy i from section j. */
static void extend(struct file *file, size_t i, size_t j)
{
    struct conf_policy *policy = &file->conf->policy[i];
    const struct conf_policy *base = &file->conf->policy[j];
    if (file->section[j].state == BUSY) {
        conf_diagnostics_add(file->told, file->section[i].extends_line, "[%s] extends = %s: goes round in a circle",
                             policy->name, base->name);
        file->section[i].unsure = true;
        return;
    }
    resolve(file, j);
    policy->preset = base->preset;
    policy->pair = base->pair;
    policy->status = base->status;
    policy->exits = base->exits;
    policy->grpc = base->grpc;
    file->section[i].unsure = file->section[j].unsure;
}

/* A section of that name comes before a preset; the section itself does not count. */
static void start(struct file *file, size_t i)
{
    struct section *section = &file->section[i];
    conf_policy_set_preset(&file->conf->policy[i], BIDE_PRESET_SERVICE);
    if (section->extends == NULL)
        return;
    struct bide_text name = {section->extends, strlen(section->extends)};
    const struct conf_policy *named = conf_policy_by_name(file->conf, name);
    enum bide_preset preset = bide_preset_by_name(name.at, name.length);
    if (named != NULL && named != &file->conf->policy[i])
        extend(file, i, (size_t)(named - file->conf->policy));
    else if (preset != BIDE_PRESET_COUNT)
        conf_policy_set_preset(&file->conf->policy[i], preset);
    else {
        section->unsure = true;
        if (named != NULL)
            conf_diagnostics_add(file->told, section->extends_line,
                                 "[%s] extends = %s: want another section, or a preset", named->name, named->name);
        else
            unknown_base(file, i, name);
    }
}

static void resolve(struct file *file, size_t i)
{
    struct section *section = &file->section[i];
    if (section->state != NEW)
        return;
    section->state = BUSY;
    start(file, i);
    struct conf_pair before = file->conf->policy[i].pair;
    for (size_t j = section->first; j < section->first + section->count; j++)
        apply(file, i, &file->entry[j]);
    if (!section->unsure)
        check(file, i, &before);
    section->state = READY;
}

static void free_file(struct file *file)
{
    for (size_t i = 0; i < file->sections; i++)
        free(file->section[i].extends);
    for (size_t i = 0; i < file->entries; i++)
        free(file->entry[i].value);
    free(file->section);
    free(file->entry);
}

void conf_ini_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *told)
{
    struct file file = {.conf = conf, .told = told, .rest = text};
    int status = ini_parse_stream(read_line, &file, key_and_value, &file);
    if (status != 0 && told->count == 0) /* inih's own: no memory, or a line that it reads otherwise than we do */
        conf_diagnostics_add(told, status > 0 ? (unsigned)status : 0, "cannot be parsed");
    for (size_t i = 0; i < file.sections && !file.failed; i++)
        resolve(&file, i);
    free_file(&file);
}
