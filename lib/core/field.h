/* field.h - structured fields of HTTP (RFC 9651): bare items and parameters, read strictly.
 *
 * Of the eight types only integers and booleans carry their value here, for no field that bide reads needs more of the
 * others than that they are well formed. */
#ifndef CORE_FIELD_H
#define CORE_FIELD_H

#include "text.h"

enum core_type {
    CORE_ABSENT = 0, /* a parameter that is not there */
    CORE_INTEGER,
    CORE_DECIMAL,
    CORE_STRING,
    CORE_TOKEN,
    CORE_BYTES,
    CORE_BOOLEAN,
    CORE_DATE,
    CORE_DISPLAY,
};

struct core_bare {
    enum core_type type;
    int64_t number; /* of an integer; of a boolean, 0 or 1 */
};

bool core_take_bare(struct core_cursor *cursor, struct core_bare *bare);

/* Reads all parameters that stand here, also none. values[i] becomes that of the parameter keys[i]; where it is given
 * more than once, the last. Other parameters are read and skipped. */
bool core_take_parameters(struct core_cursor *cursor, const char *const *keys, size_t count, struct core_bare *values);

/* An integer that is not below `least`. */
bool core_is_count(const struct core_bare *bare, int64_t least);

/* Absent, or such an integer. */
bool core_may_be_count(const struct core_bare *bare, int64_t least);

/* Absent, or of this type. */
bool core_may_be(const struct core_bare *bare, enum core_type type);

#endif
