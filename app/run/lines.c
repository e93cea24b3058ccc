/* lines.c - splits output into lines, searches them for patterns and reads hints; see lines.h. */
#include "lines.h"

#include "text/slice.h"

#include <bide/clock.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SEARCH_NO_MATCH (-1) /* of re_search; -2: out of memory */

/* ---- patterns ---- */

/* Returns true for "\1" to "\9". That includes bracket expressions, where a backslash is literal: such a class can be
 * written with its digit first. */
static bool pattern_has_back_reference(const char *text)
{
    for (const char *at = strchr(text, '\\'); at != NULL && at[1] != '\0'; at = strchr(at + 2, '\\'))
        if (at[1] >= '1' && at[1] <= '9')
            return true;
    return false;
}

const char *run_patterns_add(struct run_patterns *patterns, const char *text)
{
    static char want[256];
    char error[160];
    if (patterns->count == RUN_PATTERNS_MAX)
        return "one of at most 32 patterns";
    if (pattern_has_back_reference(text))
        return "a POSIX extended regular expression without back-references (\\1)";
    regex_t *regex = &patterns->item[patterns->count].regex;
    int code = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);
    if (code != 0) {
        regerror(code, regex, error, sizeof error);
        snprintf(want, sizeof want, "a POSIX extended regular expression (%s)", error);
        return want;
    }
    patterns->item[patterns->count++].text = text;
    return NULL;
}

void run_patterns_free(struct run_patterns *patterns)
{
    while (patterns != NULL && patterns->count > 0)
        regfree(&patterns->item[--patterns->count].regex);
}

/* A line, or a part of a long line: then only the first and the last part have the line's ends. */
struct line_part {
    const char *at;
    size_t length;
    bool first, last;
};

/* Sets *matched to the first pattern that matches, unless it is set already. Searches with re_search, because regexec
 * of glibc returns REG_NOMATCH if memory ran out, too. */
static void part_match(struct run_lines *lines, const struct line_part *line_part, struct run_patterns *patterns,
                       const char **matched)
{
    for (size_t i = 0; patterns != NULL && i < patterns->count && *matched == NULL; i++) {
        regex_t *regex = &patterns->item[i].regex;
        regoff_t length = (regoff_t)line_part->length;
        regex->not_bol = !line_part->first;
        regex->not_eol = !line_part->last;
        regoff_t at = re_search(regex, line_part->at, length, 0, length, NULL);
        if (at >= 0)
            *matched = patterns->item[i].text;
        else if (at != SEARCH_NO_MATCH)
            lines->error = ENOMEM;
    }
}

/* ---- hints ---- */

/* Returns the text after "name:" (case-insensitive, leading blanks skipped), or an empty text. */
static struct bide_text hint_value(const struct line_part *line, const char *name)
{
    struct bide_text text = text_trim((struct bide_text){line->at, line->length}, TEXT_OWS);
    size_t length = strlen(name);
    if (text.length <= length || strncasecmp(text.at, name, length) != 0)
        return (struct bide_text){0};
    return (struct bide_text){text.at + length, text.length - length};
}

static struct bide_hint hint_parse(const struct run_lines *lines, const struct line_part *line)
{
    static const struct bide_text no_date = {0};
    struct bide_text seconds = hint_value(line, "retry-after:");
    struct bide_text milliseconds = hint_value(line, "retry-after-ms:");
    if (seconds.at != NULL)
        return bide_hint_retry_after(seconds, no_date, bide_wall_s());
    if (milliseconds.at != NULL)
        return bide_hint_milliseconds(milliseconds);
    if (lines->bare)
        return bide_hint_retry_after((struct bide_text){line->at, line->length}, no_date, bide_wall_s());
    return (struct bide_hint){0};
}

/* ---- lines ---- */

static void part_search(struct run_lines *lines, struct line_part line_part)
{
    if (line_part.last && line_part.length > 0 && line_part.at[line_part.length - 1] == '\r')
        line_part.length--;
    part_match(lines, &line_part, lines->patterns, &lines->matched);
    for (size_t i = 0; i < RUN_KNOWN_COUNT; i++)
        part_match(lines, &line_part, lines->known[i], &lines->known_matched[i]);
    if (lines->hints && line_part.first && line_part.last)
        lines->hint = bide_hint_merge(lines->hint, hint_parse(lines, &line_part));
}

/* The buffer is full: search it, then keep its second half, so that parts overlap. */
static void line_search_full(struct run_lines *lines)
{
    part_search(lines, (struct line_part){lines->line, lines->length, !lines->continued, false});
    lines->length = RUN_LINE_MAX / 2;
    memcpy(lines->line, lines->line + RUN_LINE_MAX / 2, RUN_LINE_MAX / 2);
    lines->continued = true;
}

static void line_append(struct run_lines *lines, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t room = RUN_LINE_MAX - lines->length, part = length < room ? length : room;
        memcpy(lines->line + lines->length, bytes, part);
        lines->length += part;
        bytes += part;
        length -= part;
        if (lines->length == RUN_LINE_MAX)
            line_search_full(lines);
    }
}

static void line_finish(struct run_lines *lines)
{
    part_search(lines, (struct line_part){lines->line, lines->length, !lines->continued, true});
    lines->length = 0;
    lines->continued = false;
}

void run_lines_add(struct run_lines *lines, const char *bytes, size_t length)
{
    while (length > 0) {
        const char *newline = memchr(bytes, '\n', length);
        size_t part = newline != NULL ? (size_t)(newline - bytes) : length;
        bool whole = newline != NULL && lines->length == 0 && !lines->continued && part < RUN_LINE_MAX;
        if (whole)
            part_search(lines, (struct line_part){bytes, part, true, true}); /* usual case: without copying */
        else
            line_append(lines, bytes, part);
        if (newline != NULL && !whole)
            line_finish(lines);
        part += newline != NULL;
        bytes += part;
        length -= part;
    }
}

void run_lines_end(struct run_lines *lines)
{
    if (lines->length > 0)
        line_finish(lines);
}

void run_lines_reset(struct run_lines *lines)
{
    lines->matched = NULL;
    memset(lines->known_matched, 0, sizeof lines->known_matched);
    lines->error = 0;
    lines->hint = (struct bide_hint){0};
    lines->length = 0;
    lines->continued = false;
}
