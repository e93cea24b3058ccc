/* suggest.h - search for the word that was meant by an unknown word, among candidates passed in turn: the words that
 * begin with it, else the word nearest to it by spelling. */
#ifndef CONF_SUGGEST_H
#define CONF_SUGGEST_H

#include <stddef.h>

#define CONF_COMPLETIONS     16u
#define CONF_SUGGESTION_SIZE 192u

struct conf_suggestion {
    const char *word; /* the unknown word; the other fields start as zero */
    size_t length;
    const char *found; /* meaning of the nearest candidate so far; NULL: none is near */
    unsigned distance;
    const char *completion[CONF_COMPLETIONS]; /* the first candidates that begin with the word */
    size_t completions;                       /* of them */
    size_t completions_left;                  /* further ones, not kept */
};

/* Compares a further candidate; `meaning` is the text to suggest if it is the nearest. The first of equally near
 * candidates wins. */
void conf_suggestion_consider(struct conf_suggestion *suggestion, const char *candidate, const char *meaning);

/* Formats what is to be suggested, each word with the prefix: the candidates that begin with the word ("--base or
 * --backlog"; if a line has no room for all, "--sh, --set or 5 others"), else the nearest. Returns text, or NULL if
 * there is neither. */
const char *conf_suggestion_format(char text[CONF_SUGGESTION_SIZE], const struct conf_suggestion *suggestion,
                                   const char *prefix);

#endif
