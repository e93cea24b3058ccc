/* suggest.h - search for the word nearest to a misspelt word, among candidates passed in turn. */
#ifndef CONF_SUGGEST_H
#define CONF_SUGGEST_H

#include <stddef.h>

struct conf_suggestion {
    const char *word; /* the misspelt word */
    size_t length;
    const char *found; /* meaning of the nearest candidate so far; NULL: none is near */
    unsigned distance;
};

/* Compares a further candidate; `meaning` is the text to suggest if it is the nearest. The first of equally near
 * candidates wins. */
void conf_suggestion_consider(struct conf_suggestion *suggestion, const char *candidate, const char *meaning);

#endif
