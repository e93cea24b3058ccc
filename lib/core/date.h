/* date.h - instants written as texts, read into seconds since 1970. */
#ifndef CORE_DATE_H
#define CORE_DATE_H

#include "text.h"

/* Reads an HTTP-date in any of its three forms from the front. On false the cursor has not moved. */
bool core_parse_http_date(struct core_cursor *cursor, int64_t wall_s, int64_t *seconds);

/* Reads a whole value as RFC 3339 has it; a fraction of a second counts as a whole one. */
bool core_parse_rfc3339(struct bide_text value, int64_t *seconds);

#endif
