/* where.h - the line of a member in a JSON text: jansson keeps none once a text is read. */
#ifndef CONF_JSON_LINE_H
#define CONF_JSON_LINE_H

#include <bide/hint.h>

/* The text must be well-formed. `path` is as "methodConfig[0].retryPolicy", "" the whole; `member` is a key there, or
 * NULL. The line of the deepest part of it that is there, from 1. */
unsigned conf_json_line(struct bide_text text, const char *path, const char *member);

#endif
