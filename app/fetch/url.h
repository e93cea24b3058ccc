/* url.h - URLs as they may be shown, and as file names. */
#ifndef FETCH_URL_H
#define FETCH_URL_H

#include <stddef.h>

/* Is this a URL that can be fetched? NULL, or what would be right. */
const char *fetch_url_check(const char *url);

/* Scheme, host, port and path, in printable ASCII; to be freed. NULL: no memory, or not a URL. */
char *fetch_url_display(const char *url);

/* The last segment of its path, as it is written there; to be freed. NULL: it has none that could name a file. */
char *fetch_url_file_name(const char *url);

/* The URL with a query, or with one more part of it; to be freed. NULL: no memory, or that is no URL. */
char *fetch_url_with_query(const char *url, const char *query);

/* Overwrites user, password and query with stars: for an argument that others can see. */
void fetch_url_mask(char *url);

#endif
