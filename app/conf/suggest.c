/* suggest.c - suggestions for unknown words: completions of a beginning, else the nearest by edit distance. They are
 * used in messages only, never to guess a value. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "field.h"
#include "suggest.h"

#define WORD_MAX   48u
#define LIST_WIDTH 52u /* of several completions, so that a message has less than 100 columns */

static unsigned min_unsigned(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Case and '-' for '_' are frequent mistakes without meaning, so they do not count as a difference. */
static bool chars_match(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b) || (a == '-' && b == '_') || (a == '_' && b == '-');
}

/* Returns the number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other
 * (optimal string alignment). Three rows of the table suffice. Words longer than WORD_MAX are far from every word. */
static unsigned edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned row[3][WORD_MAX + 1];
    if (a_length > WORD_MAX || b_length > WORD_MAX)
        return WORD_MAX;
    for (unsigned j = 0; j <= b_length; j++)
        row[0][j] = j;
    for (unsigned i = 1; i <= a_length; i++) {
        unsigned *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            now[j] =
                min_unsigned(min_unsigned(before[j], now[j - 1]) + 1, before[j - 1] + !chars_match(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && chars_match(a[i - 1], b[j - 2]) && chars_match(a[i - 2], b[j - 1]))
                now[j] = min_unsigned(now[j], earlier[j - 2] + 1);
        }
    }
    return row[a_length % 3][b_length];
}

/* Returns the distance up to which another word is probably the same word misspelt. Between short words two changed
 * letters make an unrelated word: set for att, seed for dead, script for strict. */
static unsigned distance_limit(size_t length, size_t longer)
{
    return length <= 5 || longer <= 6 ? 1 : 2;
}

static void suggestion_consider_spelling(struct conf_suggestion *suggestion, const char *candidate, const char *meaning)
{
    size_t length = strlen(candidate), longer = length > suggestion->length ? length : suggestion->length;
    unsigned limit = distance_limit(suggestion->length, longer);
    if (longer - suggestion->length > limit || longer - length > limit)
        return; /* the difference in length alone exceeds the limit */
    unsigned distance = edit_distance(suggestion->word, suggestion->length, candidate, length);
    if (distance > limit || distance >= length || (suggestion->found != NULL && distance >= suggestion->distance))
        return;
    suggestion->distance = distance;
    suggestion->found = meaning;
}

static bool begins_with(const char *candidate, const char *word, size_t length)
{
    size_t i = 0;
    while (i < length && candidate[i] != '\0' && chars_match(candidate[i], word[i]))
        i++;
    return i == length && length > 0;
}

static void suggestion_consider_completion(struct conf_suggestion *suggestion, const char *candidate,
                                           const char *meaning)
{
    if (!begins_with(candidate, suggestion->word, suggestion->length))
        return;
    for (size_t i = 0; i < suggestion->completions; i++)
        if (strcmp(suggestion->completion[i], meaning) == 0)
            return;
    if (suggestion->completions == CONF_COMPLETIONS)
        suggestion->completions_left++;
    else
        suggestion->completion[suggestion->completions++] = meaning;
}

void conf_suggestion_consider(struct conf_suggestion *suggestion, const char *candidate, const char *meaning)
{
    suggestion_consider_spelling(suggestion, candidate, meaning);
    suggestion_consider_completion(suggestion, candidate, meaning);
}

/* Returns how many completions fit: all, or as many as leave room for "or 12 others"; at least one. */
static size_t completions_fitting(const struct conf_suggestion *suggestion, const char *prefix)
{
    size_t used = 0, fitting = 0, count = suggestion->completions;
    for (size_t i = 0; i < count; i++) {
        used += strlen(prefix) + strlen(suggestion->completion[i]) + strlen(", ");
        if (i == 0 || used <= LIST_WIDTH - strlen("or 12 others"))
            fitting = i + 1;
    }
    return used <= LIST_WIDTH && suggestion->completions_left == 0 ? count : fitting;
}

static const char *completions_format(char text[CONF_SUGGESTION_SIZE], const struct conf_suggestion *suggestion,
                                      const char *prefix)
{
    size_t used = 0, shown = completions_fitting(suggestion, prefix);
    size_t others = suggestion->completions - shown + suggestion->completions_left;
    for (size_t i = 0; i < shown && used < CONF_SUGGESTION_SIZE; i++) {
        const char *separator = i == 0 ? "" : i + 1 < shown || others > 0 ? ", " : " or ";
        used += (size_t)snprintf(text + used, CONF_SUGGESTION_SIZE - used, "%s%s%s", separator, prefix,
                                 suggestion->completion[i]);
    }
    if (others > 0 && used < CONF_SUGGESTION_SIZE)
        snprintf(text + used, CONF_SUGGESTION_SIZE - used, " or %zu other%s", others, others > 1 ? "s" : "");
    return text;
}

const char *conf_suggestion_format(char text[CONF_SUGGESTION_SIZE], const struct conf_suggestion *suggestion,
                                   const char *prefix)
{
    size_t count = suggestion->completions;
    if (suggestion->found != NULL && (count == 0 || suggestion->distance == 0)) {
        snprintf(text, CONF_SUGGESTION_SIZE, "%s%s", prefix, suggestion->found);
        return text;
    }
    return count > 0 ? completions_format(text, suggestion, prefix) : NULL;
}

const char *conf_suggest(const char *word, size_t length, const char *const *words)
{
    static char text[CONF_SUGGESTION_SIZE];
    struct conf_suggestion suggestion = {.word = word, .length = length};
    for (; *words != NULL; words++)
        conf_suggestion_consider(&suggestion, *words, *words);
    return conf_suggestion_format(text, &suggestion, "");
}
