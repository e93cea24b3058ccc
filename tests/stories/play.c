/* play.c - shared by the parts of the interpreter: failure reports, the words of a line, instants. */
#include "play.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool story_fail(struct story *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(s->script.out, "%s:%d: ", s->script.name, s->line);
    vfprintf(s->script.out, format, args);
    fputc('\n', s->script.out);
    va_end(args);
    s->failures++;
    s->stopped = true;
    return false;
}

void story_report_mismatch(struct story *s, const char *expected, const char *got)
{
    fprintf(s->script.out, "%s:%d: mismatch\n  expected: %s\n  got:      %s\n", s->script.name, s->line, expected, got);
    s->failures++;
    s->stopped = !s->script.keep_going;
}

const char *story_peek(const struct story_cursor *c)
{
    return c->at < c->end ? c->words->word[c->at] : NULL;
}

const char *story_next(struct story_cursor *c)
{
    return c->at < c->end ? c->words->word[c->at++] : NULL;
}

const char *story_take_value(struct story_cursor *c, const char *key)
{
    const char *word = story_peek(c);
    size_t length = strlen(key);
    if (word == NULL || strncmp(word, key, length) != 0 || word[length] != '=')
        return NULL;
    c->at++;
    return word + length + 1;
}

bool story_take_word(struct story_cursor *c, const char *wanted)
{
    const char *word = story_peek(c);
    if (word == NULL || strcmp(word, wanted) != 0)
        return false;
    c->at++;
    return true;
}

bool story_read_u64(const char *word, uint64_t *value)
{
    char *end;
    if (word == NULL || word[0] < '0' || word[0] > '9')
        return false;
    *value = strtoull(word, &end, 0);
    return *end == '\0';
}

bool story_read_u32(const char *word, uint32_t *value)
{
    uint64_t wide;
    if (!story_read_u64(word, &wide) || wide > UINT32_MAX)
        return false;
    *value = (uint32_t)wide;
    return true;
}

/* Converts an instant of the story to the engine's clock; story_from_engine() is the reverse. */
static int64_t story_to_engine(const struct story *s, int64_t ns)
{
    return ns == BIDE_NEVER ? BIDE_NEVER : ns + s->script.epoch_ns;
}

int64_t story_from_engine(const struct story *s, int64_t ns)
{
    return ns == BIDE_NEVER ? BIDE_NEVER : ns - s->script.epoch_ns;
}

bool story_read_instant(const struct story *s, const char *word, int64_t *ns)
{
    if (word == NULL || !text_duration_parse(word, strlen(word), ns))
        return false;
    *ns = story_to_engine(s, *ns);
    return true;
}

bool story_read_instants(const struct story *s, const char *word, struct story_range *range)
{
    if (word == NULL || !story_duration_range(word, range))
        return false;
    range->lo = story_to_engine(s, range->lo);
    range->hi = story_to_engine(s, range->hi);
    return true;
}

bool story_in_range(struct story_range range, int64_t value)
{
    return range.lo <= value && value <= range.hi;
}

void story_join_words(char *text, size_t size, const struct story_cursor *c)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = c->at; i < c->end && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > c->at ? " " : "", c->words->word[i]);
}

bool story_assign_all(struct story *s, const struct story_fields *fields, void *object, struct story_cursor *c)
{
    char reason[STORY_TEXT_MAX];
    for (const char *word; (word = story_next(c)) != NULL;)
        if (!story_assign(fields, object, word, reason, sizeof reason))
            return story_fail(s, "%s", reason);
    return true;
}

struct bide_target *story_get_target(struct story *s)
{
    return s->has_target ? &s->target : BIDE_NO_TARGET;
}

bool story_require_target(struct story *s)
{
    return s->has_target || story_fail(s, "this needs a 'target' line above");
}
