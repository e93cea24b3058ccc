/* script.c - the server's behaviour by path: lines of steps, parsed once from text.
 *
 *     # a comment
 *     /flaky    503 retry-after=2 | 503 x2 | 200 body="hello"
 *     /api*     fail=30%:503 200
 *
 * A line is a path and its steps, separated by |. Each request to the path takes the next step; the last step repeats,
 * unless the line ends in `loop`. A path that ends in * is a prefix; an exact path has priority over a prefix, a longer
 * prefix over a shorter prefix. A step is a list of words in any order: a status, xN, or a directive `name` or
 * `name=value` (directives.c). Part of a word may be in double quotes: there blanks, | and # are literal and \n \r \t
 * \" \\ \xHH are escapes.
 *
 * Parsing stops at the first error, with a description of a valid value. Everything is bounded: script.h has the
 * limits. */
#include "script.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at;
    uint32_t number; /* of the line */
    enum bide_err err;
    struct chaos_error *error;
    struct chaos_script *script;
    struct chaos_directive_target target;
    uint32_t words; /* in the step */
    struct chaos_word word;
};

bool chaos_bytes_add(struct chaos_bytes *bytes, const void *more, size_t length)
{
    char *grown = realloc(bytes->at, bytes->length + length + 1);
    if (grown == NULL)
        return false;
    memcpy(grown + bytes->length, more, length);
    bytes->at = grown;
    bytes->length += length;
    grown[bytes->length] = '\0';
    return true;
}

/* Sets the error. Returns false, so that callers can return it. */
static bool reader_error(struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool reader_error(struct reader *reader, const char *format, ...)
{
    reader->err = BIDE_ERR_INVALID;
    if (reader->error == NULL)
        return false;
    va_list list;
    va_start(list, format);
    reader->error->line = reader->number;
    vsnprintf(reader->error->text, sizeof reader->error->text, format, list);
    va_end(list);
    return false;
}

static bool reader_nomem(struct reader *reader)
{
    reader->err = BIDE_ERR_NOMEM;
    return false;
}

/* Appends a zeroed element to an array. Returns NULL, with the array unchanged, if there is no memory. */
static void *array_grow(void *array, size_t *count, size_t size)
{
    char *grown = realloc(array, (*count + 1) * size);
    if (grown != NULL)
        memset(grown + (*count)++ * size, 0, size);
    return grown;
}

/* ---- words ---- */

static bool at_line_end(const struct reader *reader)
{
    return *reader->at == '\0' || *reader->at == '\n' || *reader->at == '#';
}

static void skip_blanks(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r')
        reader->at++;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *found = c != '\0' ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* Decodes the characters after a backslash. */
static bool take_escape(struct reader *reader, char *byte)
{
    static const char from[] = "nrt\"\\", to[] = "\n\r\t\"\\";
    const char *found = *reader->at != '\0' ? strchr(from, *reader->at) : NULL;
    if (found != NULL) {
        *byte = to[found - from];
        reader->at++;
        return true;
    }
    int high = *reader->at == 'x' ? hex_digit(reader->at[1]) : -1;
    int low = high >= 0 ? hex_digit(reader->at[2]) : -1;
    if (low < 0)
        return reader_error(reader, "a backslash before %.2s: expected \\n \\r \\t \\\" \\\\ or \\xHH", reader->at);
    *byte = (char)(high * 16 + low);
    reader->at += 3;
    return true;
}

static bool word_add_byte(struct reader *reader, char byte)
{
    struct chaos_word *word = &reader->word;
    if (word->length == CHAOS_WORD_MAX)
        return reader_error(reader, "word too long: must be at most %u bytes", CHAOS_WORD_MAX);
    word->text[word->length++] = byte;
    return true;
}

static bool take_quoted(struct reader *reader)
{
    for (reader->at++; *reader->at != '"';) {
        char byte = *reader->at;
        if (byte == '\0' || byte == '\n')
            return reader_error(reader, "unclosed quote: expected \" before the end of the line");
        reader->at++;
        if ((byte == '\\' && !take_escape(reader, &byte)) || !word_add_byte(reader, byte))
            return false;
    }
    reader->at++;
    return true;
}

/* Reads the word at the cursor, and splits it at the first = outside quotes. */
static bool take_word(struct reader *reader)
{
    struct chaos_word *word = &reader->word;
    size_t split = 0; /* start of the value */
    word->length = 0;
    word->quoted = false;
    while (*reader->at != '\0' && strchr(" \t\r\n|", *reader->at) == NULL) {
        bool equals = *reader->at == '=' && split == 0;
        if (*reader->at == '"' ? !take_quoted(reader) : !word_add_byte(reader, *reader->at++))
            return false;
        if (equals) {
            split = word->length;
            word->quoted = *reader->at == '"';
        }
    }
    word->text[word->length] = '\0';
    word->name = (struct bide_text){word->text, split > 0 ? split - 1 : word->length};
    word->value = (struct bide_text){split > 0 ? word->text + split : NULL, split > 0 ? word->length - split : 0};
    return true;
}

/* ---- lines ---- */

static bool begin_step(struct reader *reader)
{
    struct chaos_line *line = reader->target.line;
    if (line->steps == CHAOS_STEPS_MAX)
        return reader_error(reader, "too many steps: must be at most %u per line", CHAOS_STEPS_MAX);
    struct chaos_step *step = array_grow(line->step, &line->steps, sizeof *step);
    if (step == NULL)
        return reader_nomem(reader);
    line->step = step;
    reader->words = 0;
    reader->target.step = &step[line->steps - 1];
    reader->target.first = line->steps == 1;
    return true;
}

/* `more`: another step follows. A line without words has an empty step, which responds with 200. */
static bool end_step(struct reader *reader, bool more)
{
    struct chaos_line *line = reader->target.line;
    struct chaos_step *step = reader->target.step;
    if (reader->words == 0 && line->steps > 1 && line->loop)
        line->steps--; /* `| loop` is not a step */
    else if (reader->words == 0 && (line->steps > 1 || more))
        return reader_error(reader, "empty step: expected a status such as 503, or a directive, on each side of |");
    if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_ACCEPT && reader->script->catch_all != line)
        return reader_error(reader, "the path is unknown on accept: =accept must be on the line *");
    if (step->status == 0)
        step->status = 200;
    return true;
}

/* `loop` applies to the line, and ends it. */
static bool apply_word(struct reader *reader)
{
    struct chaos_word *word = &reader->word;
    struct chaos_directive_target *target = &reader->target;
    if (target->line->loop)
        return reader_error(reader, "%.40s after loop: loop must be last on its line", word->text);
    if (strcmp(word->text, "loop") == 0)
        return target->line->loop = true;
    reader->words++;
    const char *want = chaos_directive_apply(word, target);
    if (target->nomem)
        return reader_nomem(reader);
    return want == NULL || reader_error(reader, "%.40s: expected %s", word->text, want);
}

static bool read_steps(struct reader *reader)
{
    if (!begin_step(reader))
        return false;
    for (skip_blanks(reader); !at_line_end(reader); skip_blanks(reader)) {
        bool next = *reader->at == '|';
        reader->at += next;
        if (next ? !end_step(reader, true) || !begin_step(reader) : !take_word(reader) || !apply_word(reader))
            return false;
    }
    return end_step(reader, false);
}

static bool same_path(const struct chaos_line *a, const struct chaos_line *b)
{
    return a->prefix == b->prefix && a->path_length == b->path_length && memcmp(a->path, b->path, a->path_length) == 0;
}

static bool begin_line(struct reader *reader)
{
    struct chaos_script *script = reader->script;
    if (script->lines == CHAOS_LINES_MAX)
        return reader_error(reader, "too many paths: must be at most %u", CHAOS_LINES_MAX);
    struct chaos_line *line = array_grow(script->line, &script->lines, sizeof *line);
    if (line == NULL)
        return reader_nomem(reader);
    script->line = line;
    reader->target.line = &line[script->lines - 1];
    return true;
}

static bool read_path(struct reader *reader)
{
    struct chaos_line *line = reader->target.line;
    if (!take_word(reader))
        return false;
    if (reader->word.text[0] != '/' && strcmp(reader->word.text, "*") != 0)
        return reader_error(reader, "%.40s: expected a path that begins with /, or *, at the start of the line",
                            reader->word.text);
    if ((line->path = strdup(reader->word.text)) == NULL)
        return reader_nomem(reader);
    line->path_length = strlen(line->path);
    line->prefix = line->path[line->path_length - 1] == '*';
    line->path_length -= line->prefix;
    for (const struct chaos_line *other = reader->script->line; other < line; other++)
        if (same_path(line, other))
            return reader_error(reader, "%.60s has two lines: its steps must be on one line, separated by |",
                                line->path);
    return true;
}

static bool check_line(struct reader *reader)
{
    const struct chaos_line *line = reader->target.line;
    if (line->capacity != 0 && line->service_ns == 0)
        return reader_error(reader, "capacity=%u without service=: expected both, such as service=20ms",
                            line->capacity);
    if (line->capacity == 0 && (line->queue != 0 || line->service_ns != 0))
        return reader_error(reader, "queue= or service= without capacity=: expected both, such as capacity=10");
    for (size_t i = 0; i < line->outages; i++)
        if (line->outage[i].refuse && line != reader->script->catch_all)
            return reader_error(reader, "connections cannot be refused by path: :refuse must be on the line *");
    return true;
}

/* Finds the line `*` again, because realloc may have moved the lines. */
static void script_find_catch_all(struct chaos_script *script)
{
    script->catch_all = NULL;
    for (size_t i = 0; i < script->lines; i++)
        if (script->line[i].prefix && script->line[i].path_length == 0)
            script->catch_all = &script->line[i];
}

static bool read_line(struct reader *reader)
{
    if (!begin_line(reader) || !read_path(reader))
        return false;
    script_find_catch_all(reader->script);
    return read_steps(reader) && check_line(reader);
}

static bool read_text(struct reader *reader)
{
    for (reader->number = 1; *reader->at != '\0'; reader->number++) {
        skip_blanks(reader);
        if (!at_line_end(reader) && !read_line(reader))
            return false;
        reader->at += strcspn(reader->at, "\n");
        reader->at += *reader->at == '\n';
    }
    return true;
}

enum bide_err chaos_script_read(struct chaos_script *script, const char *text, uint16_t port, struct chaos_error *error)
{
    struct reader *reader = calloc(1, sizeof *reader);
    enum bide_err err = BIDE_ERR_NOMEM;
    *script = (struct chaos_script){0};
    if (error != NULL)
        *error = (struct chaos_error){0};
    if (reader == NULL)
        goto out;
    *reader = (struct reader){.at = text, .error = error, .script = script, .target.port = port};
    if (strnlen(text, CHAOS_SCRIPT_MAX + 1) > CHAOS_SCRIPT_MAX)
        reader_error(reader, "script too long: must be at most %u bytes", CHAOS_SCRIPT_MAX);
    else
        read_text(reader);
    err = reader->err;
    if (err != BIDE_OK)
        chaos_script_free(script);
out:
    free(reader);
    return err;
}

/* ---- using a script ---- */

static void free_step(struct chaos_step *step)
{
    free(step->fields.at);
    free(step->text.at);
    free(step->etag.at);
}

/* The steps of failures and outages own no memory: they are a status or a cut. */
void chaos_script_free(struct chaos_script *script)
{
    for (size_t i = 0; i < script->lines; i++) {
        struct chaos_line *line = &script->line[i];
        for (size_t j = 0; j < line->steps; j++)
            free_step(&line->step[j]);
        free(line->step);
        free(line->path);
    }
    free(script->line);
    *script = (struct chaos_script){0};
}

static bool line_serves_path(const struct chaos_line *line, struct bide_text path)
{
    return line->prefix ? path.length >= line->path_length && memcmp(path.at, line->path, line->path_length) == 0
                        : path.length == line->path_length && memcmp(path.at, line->path, path.length) == 0;
}

struct chaos_line *chaos_script_find(const struct chaos_script *script, struct bide_text path)
{
    struct chaos_line *best = NULL;
    for (size_t i = 0; i < script->lines; i++) {
        struct chaos_line *line = &script->line[i];
        if (!line_serves_path(line, path))
            continue;
        if (!line->prefix)
            return line;
        if (best == NULL || line->path_length > best->path_length)
            best = line;
    }
    return best;
}

const struct chaos_step *chaos_line_next_step(struct chaos_line *line)
{
    const struct chaos_step *step = &line->step[line->step_index];
    if (++line->step_uses < step->times)
        return step;
    line->step_uses = 0;
    if (line->step_index + 1 < line->steps)
        line->step_index++;
    else if (line->loop)
        line->step_index = 0;
    return step;
}

const struct chaos_step *chaos_step_plain(int status)
{
    static const struct chaos_step steps[] = {
        {.status = 200},
        {.status = 404},
        {.status = 503},
        {.status = 431, .connection_close = true},
        {.status = 501, .connection_close = true},
        {.status = 505, .connection_close = true},
        {.status = 400, .connection_close = true},
    };
    size_t i = 0;
    while (i < sizeof steps / sizeof *steps - 1 && steps[i].status != status)
        i++;
    return &steps[i];
}

const struct chaos_step *chaos_step_cut(enum chaos_cut cut)
{
    static const struct chaos_step steps[] = {
        [CHAOS_CUT_CLOSE] = {.cut = CHAOS_CUT_CLOSE, .cut_at = CHAOS_AT_REQUEST},
        [CHAOS_CUT_RESET] = {.cut = CHAOS_CUT_RESET, .cut_at = CHAOS_AT_REQUEST},
    };
    return &steps[cut];
}

const struct chaos_outage *chaos_line_outage(const struct chaos_line *line, int64_t since_ns)
{
    for (size_t i = 0; i < line->outages; i++)
        if (since_ns >= line->outage[i].when.min_ns && since_ns < line->outage[i].when.max_ns)
            return &line->outage[i];
    return NULL;
}
