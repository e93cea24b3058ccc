/* origin.h - finds the target for a handle's URL. */
#ifndef HTTP_ORIGIN_H
#define HTTP_ORIGIN_H

#include <bide/curl.h>

struct http_record;

#define HTTP_ORIGIN_SIZE 288u /* scheme, a host of 255 bytes, a port and a NUL */

/* Returns the target of the URL's origin in the table (NULL: bide_targets_default). A record (may be NULL) keeps the
 * origin for the next call. Returns BIDE_NO_TARGET if there is no memory for the table. */
struct bide_target *http_target_for_url(struct bide_targets *table, CURL *easy, struct http_record *record,
                                        int64_t now_ns);

/* Returns the name of that target: the URL's origin, which is written into `origin`, or a constant. */
const char *http_target_name(char origin[HTTP_ORIGIN_SIZE], CURL *easy);

#endif
