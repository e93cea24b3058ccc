/* classify.h - the one way from a number to an outcome, shared by the tables of the core and of the OS layer.
 *
 * A table is a list of rules as users write them; its last row must hold every number, so that a look-up always ends
 * in a row. To classify is to find the number in the table and to let the user's rules, if any, overrule that. */
#ifndef CORE_CLASSIFY_H
#define CORE_CLASSIFY_H

#include <bide/classify.h>

#define CORE_EVERY_NUMBER INT32_MIN, INT32_MAX

/* A table from an array of rows: first match decides, as in rules of the user. */
#define CORE_TABLE(rows)                                                                                               \
    {                                                                                                                  \
        .rule = (rows), .count = sizeof(rows) / sizeof *(rows)                                                         \
    }

/* The outcome of `number`: the user's rules first (may be NULL), then the table. With user->only, what no rule names is
 * permanent, unless the table calls it a success. The hint is NONE. */
struct bide_outcome core_classify(int32_t number, const struct bide_rules *table, const struct bide_rules *user);

#endif
