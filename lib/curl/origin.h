/* origin.h - finds the target for a handle's URL. */
#ifndef HTTP_ORIGIN_H
#define HTTP_ORIGIN_H

#include <bide/curl.h>

#define HTTP_ORIGIN_SIZE 288u /* scheme, a host of 255 bytes, a port and a NUL */

/* Returns the target of the URL's origin in the table; NULL selects the process-wide table. Returns NULL only if that
 * table could not be created. */
struct bide_target *http_target_for_url(struct bide_targets *table, CURL *easy, int64_t now_ns);

#endif
