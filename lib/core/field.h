/* field.h - structured fields of HTTP (RFC 9651): bare items and parameters, read strictly.
 *
 * Of the eight types only integers and booleans carry their value here, for no field that bide reads needs more of the
 * others than that they are well formed. */
#ifndef CORE_FIELD_H
#define CORE_FIELD_H

#include "text.h"

enum core_item_type {
    CORE_ITEM_ABSENT = 0, /* a parameter that is not there */
    CORE_ITEM_INTEGER,
    CORE_ITEM_DECIMAL,
    CORE_ITEM_STRING,
    CORE_ITEM_TOKEN,
    CORE_ITEM_BYTES,
    CORE_ITEM_BOOLEAN,
    CORE_ITEM_DATE,
    CORE_ITEM_DISPLAY,
};

struct core_item {
    enum core_item_type type;
    int64_t number; /* of an integer; of a boolean, 0 or 1 */
};

bool core_parse_item(struct core_cursor *cursor, struct core_item *item);

/* Reads all parameters that stand here, also none. values[i] becomes that of the parameter keys[i]; where it is given
 * more than once, the last. Other parameters are read and skipped. */
bool core_parse_parameters(struct core_cursor *cursor, const char *const *keys, size_t count, struct core_item *values);

/* An integer that is not below `least`. */
bool core_item_is_count(const struct core_item *item, int64_t least);

/* Absent, or such an integer. */
bool core_item_is_optional_count(const struct core_item *item, int64_t least);

/* Absent, or of this type. */
bool core_item_is_optional(const struct core_item *item, enum core_item_type type);

#endif
