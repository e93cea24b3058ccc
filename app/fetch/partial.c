/* partial.c - the record beside a partial download; see partial.h. Its format, one item per line:
 *
 *     bide partial 1
 *     url 9a3b5c7d9e1f2a4b
 *     total 104857600
 *     validator "v1"
 *
 * A record is valid only if it is exactly what this version would write for the values read from it. */
#include "partial.h"

#include "common/atomic_file.h"
#include "text/slice.h"
#include "text/unit.h"

#include <bide/request.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_SIZE (FETCH_VALIDATOR_SIZE + 128u)

uint64_t fetch_partial_hash_url(const char *url)
{
    return bide_hash(url, strlen(url));
}

/* ---- text ---- */

/* Returns the length; the text fits. */
static size_t record_format(char text[RECORD_SIZE], const struct fetch_partial *record)
{
    return (size_t)snprintf(text, RECORD_SIZE, "bide partial 1\nurl %016" PRIx64 "\ntotal %" PRIu64 "\nvalidator %s\n",
                            record->url_hash, record->total, record->validator);
}

/* Removes the next line, which must begin with the name, and returns the rest of that line. */
static struct bide_text record_take_line(struct bide_text *rest, const char *name)
{
    struct bide_text line = rest->at ? text_take_item(rest, '\n', "") : (struct bide_text){NULL, 0};
    size_t length = strlen(name);
    if (!line.at || line.length < length || memcmp(line.at, name, length) != 0)
        return (struct bide_text){"", 0};
    return (struct bide_text){line.at + length, line.length - length};
}

static bool record_parse(struct fetch_partial *record, const char *text, size_t length)
{
    char again[RECORD_SIZE];
    struct bide_text rest = {text, length};
    *record = (struct fetch_partial){0};
    record_take_line(&rest, "bide partial 1");
    struct bide_text url = record_take_line(&rest, "url "), total = record_take_line(&rest, "total ");
    struct bide_text validator = record_take_line(&rest, "validator ");
    record->url_hash = strtoull(url.at, NULL, 16); /* stops at the line end at the latest */
    text_number_take(total.at, total.length, &record->total);
    if (validator.length >= sizeof record->validator || memchr(validator.at, '\0', validator.length))
        return false;
    memcpy(record->validator, validator.at, validator.length);
    return record_format(again, record) == length && memcmp(again, text, length) == 0;
}

/* ---- file ---- */

int fetch_partial_write(const char *path, const struct fetch_partial *record)
{
    char text[RECORD_SIZE];
    struct cli_atomic_file file;
    size_t length = record_format(text, record);
    int error = cli_atomic_file_open_fd(&file, path);
    if (error != 0)
        return error;
    errno = 0;
    if (fchmod(file.fd, 0600) == 0 && write(file.fd, text, length) == (ssize_t)length)
        return cli_atomic_file_commit_fd(&file);
    error = errno != 0 ? errno : ENOSPC;
    cli_atomic_file_discard(&file);
    return error;
}

/* Opens a regular file of this user: another user could have prepared one. Returns -1 if there is none. */
static int record_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

const char *fetch_partial_read(const char *path, struct fetch_partial *record)
{
    char text[RECORD_SIZE + 1] = ""; /* one more: a longer file is not valid */
    errno = 0;
    int fd = record_open(path);
    if (fd < 0)
        return errno == ENOENT ? "its record (" CLI_PARTIAL_SUFFIX FETCH_RECORD_SUFFIX ") is missing"
                               : "its record (" CLI_PARTIAL_SUFFIX FETCH_RECORD_SUFFIX ") cannot be read";
    ssize_t length = read(fd, text, RECORD_SIZE);
    close(fd);
    if (length > 0 && record_parse(record, text, (size_t)length))
        return NULL;
    return "its record (" CLI_PARTIAL_SUFFIX FETCH_RECORD_SUFFIX ") is not valid";
}

/* ---- decision ---- */

const char *fetch_partial_check(const struct fetch_partial *record, uint64_t url_hash, uint64_t length)
{
    if (record->url_hash != url_hash)
        return "it is from another URL";
    if (record->validator[0] == '\0')
        return "its response had no strong ETag or, without an ETag, no old Last-Modified";
    if (record->total != 0 && length > record->total)
        return "it is longer than the whole file";
    return NULL;
}

uint64_t fetch_partial_start(const struct fetch_partial *record, uint64_t length)
{
    return record->total == 0 || length == record->total ? length - 1 : length;
}
