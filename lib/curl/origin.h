/* origin.h - the target of a handle's URL. */
#ifndef HTTP_ORIGIN_H
#define HTTP_ORIGIN_H

#include <bide/curl.h>

#define HTTP_ORIGIN_SIZE 288u /* scheme, a host of 255, a port, a NUL */

/* table NULL: the one of this process. NULL only if that could not be made. */
struct bide_target *http_target_for_url(struct bide_targets *table, CURL *easy, int64_t now_ns);

#endif
