/* classify.h - from a number to an outcome: shared by the tables of the engine and of the OS layer.
 *
 * A table is a list of rules in the form that users write; its last row must match every number, so that a look-up
 * always finds a row. The user's rules, if any, overrule the table. */
#ifndef CORE_CLASSIFY_H
#define CORE_CLASSIFY_H

#include <bide/classify.h>

#define CORE_EVERY_NUMBER INT32_MIN, INT32_MAX

/* Makes a table from an array of rows; the first match decides, as in the rules of the user. */
#define CORE_TABLE(rows)                                                                                               \
    {                                                                                                                  \
        .rule = (rows), .count = sizeof(rows) / sizeof *(rows)                                                         \
    }

/* Returns the outcome of `number` by the user's rules (may be NULL), then by the table. With user->only, a number that
 * no rule names is permanent unless the table calls it a success. The hint is NONE. */
struct bide_outcome core_classify(int32_t number, const struct bide_rules *table, const struct bide_rules *user);

#endif
