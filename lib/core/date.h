/* date.h - reading dates into seconds since 1970. */
#ifndef CORE_DATE_H
#define CORE_DATE_H

#include "text.h"

/* Reads an HTTP-date in any of its three forms at the cursor. If it returns false, the cursor has not moved. */
bool core_parse_http_date(struct core_cursor *cursor, int64_t wall_s, int64_t *seconds);

/* Reads a whole value in the form of RFC 3339; a fraction of a second counts as a whole second. */
bool core_parse_rfc3339(struct bide_text value, int64_t *seconds);

#endif
