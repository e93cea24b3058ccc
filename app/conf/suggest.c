/* near.c - the word that was meant, by edit distance: for messages, never for guessing a value. */
#include <ctype.h>
#include <string.h>

#include "field.h"
#include "suggest.h"

#define WORD_MAX 48u

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Capitals, and - for _, are what people mistake most and mean least: ATTEMPTS is as near as can be. */
static bool alike(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b) || (a == '-' && b == '_') || (a == '_' && b == '-');
}

/* Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. Three rows of the
 * usual table are enough; words longer than WORD_MAX are far from everything. */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
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
            now[j] = least(least(before[j], now[j - 1]) + 1, before[j - 1] + !alike(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && alike(a[i - 1], b[j - 2]) && alike(a[i - 2], b[j - 1]))
                now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return row[a_length % 3][b_length];
}

void conf_suggestion_consider(struct conf_suggestion *nearest, const char *candidate, const char *meaning)
{
    size_t length = strlen(candidate), longer = length > nearest->length ? length : nearest->length;
    unsigned limit = nearest->length < 3 ? 1 : nearest->length < 8 ? 2 : 3; /* beyond it, a guess would only confuse */
    if (longer - nearest->length > limit || longer - length > limit)
        return; /* that much is missing at least: not worth a look */
    unsigned far = distance(nearest->word, nearest->length, candidate, length);
    if (far > limit || far >= length || (nearest->found != NULL && far >= nearest->distance))
        return;
    nearest->distance = far;
    nearest->found = meaning;
}

const char *conf_suggest(const char *word, size_t length, const char *const *words)
{
    struct conf_suggestion nearest = {word, length, NULL, 0};
    for (; *words != NULL; words++)
        conf_suggestion_consider(&nearest, *words, *words);
    return nearest.found;
}
