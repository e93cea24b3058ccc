/* ini.c - reads INI files: see ini.h.
 *
 * All strings are in one block that is as large as the file: every string is shorter than the line that it comes from,
 * which has a bracket, a separator or a line end more. A continued value is always the last string, so its next line is
 * appended in place. */
#include "ini.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/slice.h"
#include "text/utf8.h"

struct reader {
    struct conf_ini *ini;
    struct conf_diagnostics *diagnostics;
    const struct conf_ini_syntax *(*syntax_of)(const char *heading);
    const struct conf_ini_syntax *syntax; /* of the current section; NULL: its lines are skipped */
    struct bide_text rest;
    unsigned line;
    size_t section_room, entry_room;
    size_t strings_size, strings_used;
    bool may_continue; /* the next line may continue the last value */
    bool no_memory;
};

/* ---- memory ---- */

static const char *strings_add(struct reader *r, struct bide_text text)
{
    char *at = r->ini->strings + r->strings_used;
    assert(r->strings_used + text.length + 1 <= r->strings_size);
    memcpy(at, text.at, text.length);
    at[text.length] = '\0';
    r->strings_used += text.length + 1;
    return at;
}

/* Makes room for one more item. Returns NULL without memory; the old array stays valid. */
static void *array_reserve(struct reader *r, void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    size_t more = *room == 0 ? 32 : 2 * *room;
    void *larger = realloc(items, more * size);
    r->no_memory = larger == NULL;
    if (larger != NULL)
        *room = more;
    return larger;
}

/* ---- lines ---- */

static struct bide_text next_line(struct reader *r)
{
    const char *end = memchr(r->rest.at, '\n', r->rest.length);
    size_t length = end == NULL ? r->rest.length : (size_t)(end - r->rest.at), taken = length + (end != NULL);
    struct bide_text line = {r->rest.at, length};
    r->rest = (struct bide_text){r->rest.at + taken, r->rest.length - taken};
    r->line++;
    return line;
}

/* Returns the line without its comment and surrounding blanks. */
static struct bide_text line_content(struct bide_text line)
{
    size_t end = 0;
    while (end < line.length &&
           !(text_is_one_of(line.at[end], "#;") && (end == 0 || text_is_one_of(line.at[end - 1], TEXT_BLANKS))))
        end++;
    return text_trim((struct bide_text){line.at, end}, TEXT_BLANKS);
}

static void report_line(struct reader *r, struct bide_text text, const char *problem)
{
    conf_diagnostics_add(r->diagnostics, r->line, "%s: %s", conf_printable(text.at, text.length).text, problem);
}

/* ---- headings ---- */

static void heading_read(struct reader *r, struct bide_text text)
{
    struct conf_ini *ini = r->ini;
    struct conf_ini_section *more =
        array_reserve(r, ini->section, ini->sections, &r->section_room, sizeof *ini->section);
    if (more == NULL)
        return;
    ini->section = more;
    struct conf_ini_section *section = &more[ini->sections++];
    *section = (struct conf_ini_section){.line = r->line, .first = ini->entries};
    if (text.length >= 2 && text.at[text.length - 1] == ']')
        section->heading = strings_add(r, text_trim((struct bide_text){text.at + 1, text.length - 2}, TEXT_BLANKS));
    else
        report_line(r, text, "must be [section] and nothing after it");
    r->syntax = r->syntax_of(section->heading);
    r->may_continue = false;
}

const char *conf_ini_name_after(const char *heading, const char *kind)
{
    size_t length = strlen(kind);
    if (strncmp(heading, kind, length) != 0)
        return NULL;
    heading += length;
    size_t blanks = strspn(heading, TEXT_BLANKS);
    return blanks > 0 || *heading == '\0' ? heading + blanks : NULL;
}

/* ---- keys and values ---- */

static void value_continue(struct reader *r, struct bide_text text)
{
    assert(r->strings_used > 0 && r->ini->strings[r->strings_used - 1] == '\0');
    if (r->ini->entry[r->ini->entries - 1].value[0] == '\0')
        r->strings_used--; /* nothing to separate the text from */
    else
        r->ini->strings[r->strings_used - 1] = ' ';
    strings_add(r, text);
}

static void entry_add(struct reader *r, struct bide_text key, struct bide_text value)
{
    struct conf_ini *ini = r->ini;
    struct conf_ini_entry *more = array_reserve(r, ini->entry, ini->entries, &r->entry_room, sizeof *ini->entry);
    if (more == NULL)
        return;
    ini->entry = more;
    struct conf_ini_entry *entry = &more[ini->entries++];
    entry->line = r->line;
    entry->key = strings_add(r, key);
    entry->value = strings_add(r, value);
    ini->section[ini->sections - 1].count++;
    r->may_continue = r->syntax->may_continue == NULL || r->syntax->may_continue(entry->key);
}

static void entry_read(struct reader *r, struct bide_text text, bool is_indented)
{
    size_t mark = 0;
    while (mark < text.length && !text_is_one_of(text.at[mark], r->syntax->separators))
        mark++;
    if (mark == text.length && is_indented && r->may_continue) {
        value_continue(r, text);
        return;
    }
    r->may_continue = false;
    struct bide_text key = text_trim((struct bide_text){text.at, mark}, TEXT_BLANKS);
    if (mark == text.length || key.length == 0)
        report_line(r, text, "must be key = value");
    else
        entry_add(r, key, text_trim((struct bide_text){text.at + mark + 1, text.length - mark - 1}, TEXT_BLANKS));
}

/* ---- the file ---- */

static void line_read(struct reader *r)
{
    struct bide_text line = next_line(r), text = line_content(line);
    if (memchr(line.at, '\0', line.length) != NULL)
        conf_diagnostics_add(r->diagnostics, r->line, "contains a NUL byte: must be text");
    else if (!text_utf8_is_valid(text.at, text.length))
        report_line(r, text, "must be UTF-8");
    else if (text.length > 0 && text.at[0] == '[')
        heading_read(r, text);
    else if (text.length > 0 && r->ini->sections == 0)
        report_line(r, text, "must follow a [section]");
    else if (text.length > 0 && r->syntax != NULL)
        entry_read(r, text, text.at > line.at);
}

bool conf_ini_read(struct conf_ini *ini, struct bide_text text,
                   const struct conf_ini_syntax *(*syntax_of)(const char *heading),
                   struct conf_diagnostics *diagnostics)
{
    struct reader r = {.ini = ini,
                       .diagnostics = diagnostics,
                       .syntax_of = syntax_of,
                       .rest = text,
                       .strings_size = text.length + 1}; /* the last line may have no line end */
    *ini = (struct conf_ini){.strings = malloc(r.strings_size)};
    r.no_memory = ini->strings == NULL;
    while (r.rest.length > 0 && !r.no_memory)
        line_read(&r);
    if (r.no_memory)
        conf_diagnostics_add(diagnostics, r.line, "out of memory");
    return !r.no_memory;
}

void conf_ini_free(struct conf_ini *ini)
{
    free(ini->section);
    free(ini->entry);
    free(ini->strings);
    *ini = (struct conf_ini){.sections = 0};
}
