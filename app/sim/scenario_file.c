/* scenario_file.c - splits a scenario file into sections, keys and values.
 *
 * The rules are those of bide.conf, with three exceptions: only = separates key and value (a tail contains colons), a
 * line has no maximum length, and every value may continue in the next line if that line is indented and contains no =.
 * The lines of a [policy NAME] are copied, not split: app/conf reads them and reports their mistakes in its own words,
 * with the right line numbers. */
#include "scenario_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 65536u /* bytes of a value, all its lines together */

struct reader {
    struct sim_file *file;
    struct conf_diagnostics *diagnostics;
    struct bide_text rest;
    unsigned line;
    size_t section_room, assignment_room;
    bool in_policy;     /* in a [policy NAME] section: lines are copied */
    bool in_section;    /* a section has begun */
    bool skips_section; /* the section head is invalid: the lines below it are skipped */
    bool may_continue;
    size_t value_length; /* length of the last value */
    bool no_memory;
};

/* ---- text ---- */

static bool is_blank_char(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct bide_text file_text_trimmed(struct bide_text text)
{
    while (text.length > 0 && is_blank_char(text.at[text.length - 1]))
        text.length--;
    while (text.length > 0 && is_blank_char(text.at[0]))
        text = (struct bide_text){text.at + 1, text.length - 1};
    return text;
}

/* Returns the line without its comment: a # or ; at the start of a word begins a comment. */
static struct bide_text line_content(struct bide_text line)
{
    size_t end = 0;
    while (end < line.length &&
           !((line.at[end] == '#' || line.at[end] == ';') && (end == 0 || is_blank_char(line.at[end - 1]))))
        end++;
    return file_text_trimmed((struct bide_text){line.at, end});
}

static struct bide_text next_line(struct reader *r)
{
    const char *end = memchr(r->rest.at, '\n', r->rest.length);
    size_t length = end == NULL ? r->rest.length : (size_t)(end - r->rest.at), taken = length + (end != NULL);
    struct bide_text line = {r->rest.at, length};
    r->rest = (struct bide_text){r->rest.at + taken, r->rest.length - taken};
    r->line++;
    return line;
}

static char *file_text_copy(struct reader *r, struct bide_text text)
{
    char *bytes = malloc(text.length + 1);
    if (bytes == NULL) {
        r->no_memory = true;
        return NULL;
    }
    memcpy(bytes, text.at, text.length);
    bytes[text.length] = '\0';
    return bytes;
}

/* Makes room for one more item. Returns NULL without memory; the old array stays valid. */
static void *file_reserve(struct reader *r, void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    size_t more = *room == 0 ? 32 : 2 * *room;
    void *larger = realloc(items, more * size);
    if (larger == NULL) {
        r->no_memory = true;
        return NULL;
    }
    *room = more;
    return larger;
}

/* ---- policies ---- */

/* Copies one line, so that line numbers stay the same. */
static void policy_copy_line(struct reader *r, struct bide_text line)
{
    struct sim_file *file = r->file;
    memcpy(file->policies + file->policies_length, line.at, line.length);
    file->policies_length += line.length;
    file->policies[file->policies_length++] = '\n';
}

/* Writes [policy one] as [one], which is never longer than the original. */
static void policy_copy_head(struct reader *r, struct bide_text name)
{
    char *at = r->file->policies + r->file->policies_length;
    *at++ = '[';
    memcpy(at, name.at, name.length);
    at += name.length;
    *at++ = ']';
    *at++ = '\n';
    r->file->policies_length = (size_t)(at - r->file->policies);
}

/* ---- sections ---- */

static void section_add(struct reader *r, struct bide_text inside, struct bide_text kind, struct bide_text name)
{
    struct sim_file *file = r->file;
    struct sim_section *more = file_reserve(r, file->section, file->sections, &r->section_room, sizeof *more);
    if (more == NULL)
        return;
    file->section = more;
    more[file->sections++] = (struct sim_section){.line = r->line,
                                                  .head = file_text_copy(r, inside),
                                                  .kind = file_text_copy(r, kind),
                                                  .name = file_text_copy(r, name),
                                                  .first = file->assignments};
}

static bool file_text_is(struct bide_text text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.at, word, text.length) == 0;
}

static void section_read_head(struct reader *r, struct bide_text text)
{
    r->in_policy = r->may_continue = r->skips_section = false;
    r->in_section = true;
    if (text.at[text.length - 1] != ']' || text.length < 2) {
        conf_diagnostics_add(r->diagnostics, r->line, "%s: must be [section] with nothing after it",
                             conf_printable(text.at, text.length).text);
        r->skips_section = true;
        return;
    }
    struct bide_text inside = file_text_trimmed((struct bide_text){text.at + 1, text.length - 2});
    size_t length = 0;
    while (length < inside.length && !is_blank_char(inside.at[length]))
        length++;
    struct bide_text kind = {inside.at, length};
    struct bide_text name = file_text_trimmed((struct bide_text){inside.at + length, inside.length - length});
    r->in_policy = file_text_is(kind, "policy");
    if (r->in_policy && name.length == 0) {
        conf_diagnostics_add(r->diagnostics, r->line, "[policy]: needs a name, as in [policy careful]");
        r->in_policy = false;
        r->skips_section = true;
    } else if (r->in_policy)
        policy_copy_head(r, name);
    else
        section_add(r, inside, kind, name);
}

/* ---- keys and values ---- */

static void value_continue(struct reader *r, struct bide_text text)
{
    struct sim_assignment *last = &r->file->assignment[r->file->assignments - 1];
    size_t before = r->value_length;
    if (before + text.length > VALUE_MAX) {
        conf_diagnostics_add(r->diagnostics, r->line, "%s: must be %u bytes at most",
                             conf_printable(last->key, strlen(last->key)).text, VALUE_MAX);
        r->may_continue = false;
        return;
    }
    char *longer = realloc(last->value, before + text.length + 2);
    if (longer == NULL) {
        r->no_memory = true;
        return;
    }
    last->value = longer;
    longer[before] = ' ';
    memcpy(longer + before + 1, text.at, text.length);
    r->value_length = before + 1 + text.length;
    longer[r->value_length] = '\0';
}

static void assignment_add(struct reader *r, struct bide_text key, struct bide_text value)
{
    struct sim_file *file = r->file;
    struct sim_assignment *more =
        file_reserve(r, file->assignment, file->assignments, &r->assignment_room, sizeof *more);
    if (more == NULL)
        return;
    file->assignment = more;
    more[file->assignments++] =
        (struct sim_assignment){.line = r->line, .key = file_text_copy(r, key), .value = file_text_copy(r, value)};
    file->section[file->sections - 1].count++;
    r->may_continue = true;
    r->value_length = value.length;
}

static void assignment_read(struct reader *r, struct bide_text text, bool indented)
{
    const char *mark = memchr(text.at, '=', text.length);
    struct conf_printable printable = conf_printable(text.at, text.length);
    if (r->skips_section)
        return;
    if (!r->in_section) {
        conf_diagnostics_add(r->diagnostics, r->line, "%s: must be inside a [section]", printable.text);
        return;
    }
    if (mark == NULL && indented && r->may_continue) {
        value_continue(r, text);
        return;
    }
    r->may_continue = false;
    size_t before = mark == NULL ? 0 : (size_t)(mark - text.at);
    struct bide_text key = file_text_trimmed((struct bide_text){text.at, before});
    if (key.length == 0)
        conf_diagnostics_add(r->diagnostics, r->line, "%s: must be key = value", printable.text);
    else
        assignment_add(r, key, file_text_trimmed((struct bide_text){mark + 1, text.length - before - 1}));
}

/* ---- file ---- */

static void read_line(struct reader *r)
{
    struct bide_text line = next_line(r), text = line_content(line);
    bool nul = memchr(line.at, '\0', line.length) != NULL, is_head = text.length > 0 && text.at[0] == '[';
    if (nul)
        conf_diagnostics_add(r->diagnostics, r->line, "must be text: contains a NUL byte");
    else if (is_head)
        section_read_head(r, text);
    else if (r->in_policy)
        policy_copy_line(r, line);
    else if (text.length > 0)
        assignment_read(r, text, text.at > line.at);
    /* Keep the line numbers of the policies' text in step. */
    if (nul || !r->in_policy)
        r->file->policies[r->file->policies_length++] = '\n';
}

bool sim_file_read(struct sim_file *file, struct bide_text text, struct conf_diagnostics *diagnostics)
{
    if (text.length >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0) /* skip a byte order mark */
        text = (struct bide_text){text.at + 3, text.length - 3};
    struct reader r = {.file = file, .diagnostics = diagnostics, .rest = text};
    *file = (struct sim_file){.policies = malloc(text.length + 2)}; /* one more line end, and a NUL */
    r.no_memory = file->policies == NULL;
    while (r.rest.length > 0 && !r.no_memory)
        read_line(&r);
    if (file->policies != NULL)
        file->policies[file->policies_length] = '\0';
    if (r.no_memory)
        conf_diagnostics_add(diagnostics, 0, "no memory");
    return !r.no_memory;
}

void sim_file_free(struct sim_file *file)
{
    for (size_t i = 0; i < file->sections; i++) {
        free(file->section[i].head);
        free(file->section[i].kind);
        free(file->section[i].name);
    }
    for (size_t i = 0; i < file->assignments; i++) {
        free(file->assignment[i].key);
        free(file->assignment[i].value);
    }
    free(file->section);
    free(file->assignment);
    free(file->policies);
    *file = (struct sim_file){.sections = 0};
}
