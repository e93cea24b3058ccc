/* near.h - a search for the word that was meant, among candidates that come one by one. */
#ifndef CONF_SUGGEST_H
#define CONF_SUGGEST_H

#include <stddef.h>

struct conf_suggestion {
    const char *word; /* the misspelt one */
    size_t length;
    const char *found; /* the meaning of the nearest so far; NULL: none was near enough */
    unsigned distance;
};

/* One more candidate, and what to say if it is the one. Of two that are as near, the first stays. */
void conf_suggestion_consider(struct conf_suggestion *suggestion, const char *candidate, const char *meaning);

#endif
