/* url.h - checks URLs, removes secrets from them, and derives file names. */
#ifndef FETCH_URL_H
#define FETCH_URL_H

#include <stddef.h>

/* Returns NULL if the URL can be fetched, else a description of a valid URL. */
const char *fetch_url_check(const char *url);

/* Returns scheme, host, port, path and query in printable ASCII, the values of the query masked; the caller frees it.
 * NULL: out of memory, or not a URL. */
char *fetch_url_display(const char *url);

/* Returns the last path segment, without decoding, "" if it could not name a file; the caller frees it. NULL: out of
 * memory, or not a URL. */
char *fetch_url_file_name(const char *url);

/* Returns the URL with the query appended; the caller frees it. NULL: out of memory, or not a URL. */
char *fetch_url_with_query(const char *url, const char *query);

/* Overwrites user, password and query of an argument, or JSON, with asterisks. */
void fetch_url_mask(char *url);

/* Check the values of -x and -r. Each returns NULL, or a description of a valid value. */
const char *fetch_proxy_check(const char *proxy);
const char *fetch_range_check(const char *range);

#endif
