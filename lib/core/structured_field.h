/* structured_field.h - structured fields of HTTP (RFC 9651): bare items and parameters, parsed strictly.
 *
 * Of the eight types only integers and booleans keep their value: of the others, the fields that bide reads only need
 * to know that they are well formed. */
#ifndef CORE_STRUCTURED_FIELD_H
#define CORE_STRUCTURED_FIELD_H

#include "text.h"

enum core_item_type {
    CORE_ITEM_ABSENT = 0, /* the parameter was not given */
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
    int64_t number; /* value of an integer; 0 or 1 for a boolean */
};

bool core_parse_item(struct core_cursor *cursor, struct core_item *item);

/* Parses all parameters at the cursor; there may be none. values[i] receives the value of the parameter keys[i], the
 * last value if it is repeated. Other parameters are parsed and skipped. */
bool core_parse_parameters(struct core_cursor *cursor, const char *const *keys, size_t count, struct core_item *values);

/* Returns true for an integer of `least` or more. */
bool core_item_is_count(const struct core_item *item, int64_t least);

/* Returns true if the item is absent or an integer of `least` or more. */
bool core_item_is_optional_count(const struct core_item *item, int64_t least);

/* Returns true if the item is absent or of this type. */
bool core_item_is_optional(const struct core_item *item, enum core_item_type type);

#endif
