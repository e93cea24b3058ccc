/* input.h - reads option values from arguments, files and standard input. A function that returns a string returns
 * NULL, or a description of a valid value.
 *
 * "@NAME" reads a file, "@-" standard input, which only one option may read. An argument that may contain a secret is
 * overwritten after it was read. */
#ifndef FETCH_INPUT_H
#define FETCH_INPUT_H

#include <curl/curl.h>

#include <stdbool.h>
#include <stddef.h>

#define FETCH_DATA_MAX 268435456u /* of all -d together: the body stays in memory, so that it can be sent again */
#define FETCH_LINE_MAX 8192u      /* a header field, a URL of a list, a line with user and password */

struct fetch_bytes {
    char *at;
    size_t length;
};

/* Appends to the request body, unchanged; several values are joined with "&". */
const char *fetch_data_add(struct fetch_bytes *data, const char *value);

/* The same without "@NAME". */
const char *fetch_data_add_raw(struct fetch_bytes *data, const char *value);

/* As curl's --data-urlencode: "CONTENT", "=CONTENT", "NAME=CONTENT", "@FILE" or "NAME@FILE"; the content is encoded. */
const char *fetch_data_add_encoded(struct fetch_bytes *data, const char *value);

/* "Name: value", or a file with one field per line. */
const char *fetch_header_add(struct curl_slist **list, const char *value);
bool fetch_has_header(const struct curl_slist *list, const char *name);

/* "user:password" or "user", or a file with that in its first line. Free *user with fetch_secret_free. */
const char *fetch_user_read(char **user, const char *value);

/* Calls `line` for each line of a file that is not empty and does not start with #. A byte order mark before the
 * first line is skipped. */
const char *fetch_read_lines(const char *name, const char *(*line)(void *context, char *text), void *context);

/* Checks that a file is readable without opening it: the writer of a FIFO would notice. */
const char *fetch_file_check(const char *name);

/* Opens a file for upload; "-" is standard input. */
const char *fetch_upload_open(int *fd, const char *name);

#endif
