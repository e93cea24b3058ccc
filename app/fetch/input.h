/* input.h - what options bring in from arguments, files and standard input. Each returns NULL, or what would be right.
 *
 * "@NAME" reads a file, "@-" standard input, which one option alone may read. An argument that may hold a secret is
 * overwritten once it was read. */
#ifndef FETCH_INPUT_H
#define FETCH_INPUT_H

#include <curl/curl.h>

#include <stdbool.h>
#include <stddef.h>

#define FETCH_DATA_MAX 268435456u /* of -d, all together: it is kept in memory, to be sent again */
#define FETCH_LINE_MAX 8192u      /* a header field, a URL of a list, a line with a user and a password */

struct fetch_bytes {
    char *at;
    size_t length;
};

/* Data for a request's body, as it is; more of it follows with "&" between. */
const char *fetch_data_add(struct fetch_bytes *data, const char *value);

/* "Name: value", or a file with one in each line. */
const char *fetch_header_add(struct curl_slist **list, const char *value);
bool fetch_has_header(const struct curl_slist *list, const char *name);

/* "user:password" or "user"; or a file whose first line it is. *user is to be forgotten. */
const char *fetch_user_read(char **user, const char *value);

/* Calls `line` for each line of a file that is not empty and does not begin with #. */
const char *fetch_read_lines(const char *name, const char *(*line)(void *context, char *text), void *context);

/* That a file can be read, without opening it: a FIFO's writer would notice. */
const char *fetch_file_check(const char *name);

/* A file to be uploaded; "-" is standard input. */
const char *fetch_upload_open(int *fd, const char *name);

#endif
