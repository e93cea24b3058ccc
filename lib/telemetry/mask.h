/* mask.h - URLs without their secrets, for spans and logs. */
#ifndef TELEMETRY_MASK_H
#define TELEMETRY_MASK_H

#include <bide/hint.h>

/* The server of a URL. */
struct telemetry_server {
    struct bide_text address; /* of an IPv6 address without its brackets; .length 0: the URL names none */
    uint32_t port;            /* the one of the scheme, if the URL names none; 0: unknown */
};
struct telemetry_server telemetry_url_server(struct bide_text url);

/* Writes a URL without user and password, without its fragment, and with REDACTED in place of each value of its query;
 * the names stay. A part of the query without "=" may be a value, too: it becomes REDACTED. Returns the length, which
 * is at most TELEMETRY_MASKED_MAX(url.length); `masked` has room for that. */
#define TELEMETRY_MASKED_MAX(length) (5 * (size_t)(length) + 9)
size_t telemetry_url_mask(char *masked, struct bide_text url);

#endif
