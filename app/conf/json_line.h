/* json_line.h - the line number of a member in a JSON text, which jansson does not keep. */
#ifndef CONF_JSON_LINE_H
#define CONF_JSON_LINE_H

#include <bide/hint.h>

/* Returns the line, from 1, of a member in a well-formed text. `path` is such as "methodConfig[0].retryPolicy", or ""
 * for the whole; `member` is a key there, or NULL. If it does not exist, the line of the deepest part of the path that
 * does. */
unsigned conf_json_line(struct bide_text text, const char *path, const char *member);

#endif
