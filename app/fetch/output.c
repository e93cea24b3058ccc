/* output.c - destination of a response: files, devices, and spools for standard output; see output.h. */
#include "output.h"

#include "fetch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES     65536u
#define DIRECTORY_MODE 0750 /* as curl */

static bool output_fail(struct fetch_output *output)
{
    if (output->error == 0)
        output->error = errno != 0 ? errno : EIO;
    return false;
}

/* A termination signal ends a blocked write; that is not recorded as an error. */
static bool output_write_all(struct fetch_output *output, int fd, const char *at, size_t length)
{
    while (length > 0 && fetch_signal == 0) {
        ssize_t written = write(fd, at, length);
        if (written >= 0) {
            at += written;
            length -= (size_t)written;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return output_fail(output);
        }
    }
    return length == 0;
}

static bool output_fail_spool(struct fetch_output *output)
{
    output->spool_failed = output->error == 0;
    return output_fail(output);
}

bool fetch_output_copy_spool(struct fetch_output *output)
{
    char bytes[COPY_BYTES];
    ssize_t n = 0;
    for (int64_t from = 0; output->error == 0; from += n) {
        n = cli_spool_read(&output->spool, from, bytes, sizeof bytes);
        if (n < 0)
            output_fail_spool(output);
        if (n <= 0 || !output_write_all(output, STDOUT_FILENO, bytes, (size_t)n))
            break;
    }
    return output->error == 0 && n == 0;
}

int fetch_output_create_directories(const char *path)
{
    char *copy = strdup(path);
    int error = copy ? 0 : ENOMEM;
    for (char *slash = copy; copy && error == 0 && (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = '\0';
        if (mkdir(copy, DIRECTORY_MODE) != 0 && errno != EEXIST)
            error = errno;
    }
    free(copy);
    return error;
}

bool fetch_output_open(struct fetch_output *output, const char *path, bool is_next)
{
    *output = (struct fetch_output){.kind = is_next ? FETCH_OUTPUT_STDOUT : FETCH_OUTPUT_SPOOL,
                                    .spool.memory_max = FETCH_SPOOL_MEMORY};
    if (!path)
        return true;
    output->error = cli_atomic_file_open_fd(&output->file, path);
    if (output->error != 0)
        return false;
    output->kind = output->file.temp_path ? FETCH_OUTPUT_FILE : FETCH_OUTPUT_DEVICE;
    return true;
}

static bool output_is_partial(const struct fetch_output *output)
{
    return output->record_path != NULL;
}

/* Returns why the bytes in the partial file cannot be continued, or NULL after setting output->record. */
static const char *partial_examine(struct fetch_output *output, const char *url, uint64_t length)
{
    const char *why = fetch_partial_read(output->record_path, &output->record);
    return why ? why : fetch_partial_check(&output->record, fetch_partial_hash_url(url), length);
}

bool fetch_output_open_partial(struct fetch_output *output, const char *path, const char *url, uint64_t *held,
                               const char **why)
{
    struct stat st;
    *output = (struct fetch_output){.kind = FETCH_OUTPUT_FILE};
    *held = 0;
    *why = NULL;
    output->error = cli_atomic_file_open_partial(&output->file, path);
    output->is_locked = output->error == EBUSY;
    if (output->error != 0)
        return false;
    if (asprintf(&output->record_path, "%s" FETCH_RECORD_SUFFIX, output->file.temp_path) < 0)
        output->record_path = NULL;
    if (!output->record_path || fstat(output->file.fd, &st) != 0)
        return output_fail(output);
    if (st.st_size > 0)
        *why = partial_examine(output, url, (uint64_t)st.st_size);
    if (st.st_size > 0 && !*why)
        *held = fetch_partial_start(&output->record, (uint64_t)st.st_size);
    output->recorded = *held > 0;
    return ftruncate(output->file.fd, (off_t)*held) == 0 || output_fail(output);
}

bool fetch_output_can_rewind(const struct fetch_output *output)
{
    return output->kind == FETCH_OUTPUT_FILE || output->kind == FETCH_OUTPUT_SPOOL;
}

/* The record precedes the first byte of its response: see partial.h. */
static bool output_write_file(struct fetch_output *output, const char *at, size_t length)
{
    if (output_is_partial(output) && !output->recorded && length > 0) {
        errno = fetch_partial_write(output->record_path, &output->next);
        if (errno != 0)
            return output_fail(output);
        output->record = output->next;
        output->recorded = true;
    }
    return output_write_all(output, output->file.fd, at, length);
}

bool fetch_output_write(struct fetch_output *output, const void *at, size_t length)
{
    switch (output->kind) {
    case FETCH_OUTPUT_SPOOL: return cli_spool_add(&output->spool, at, length) || output_fail_spool(output);
    case FETCH_OUTPUT_STDOUT: return output_write_all(output, STDOUT_FILENO, at, length);
    case FETCH_OUTPUT_FILE:
    case FETCH_OUTPUT_DEVICE: break;
    }
    return output_write_file(output, at, length);
}

bool fetch_output_rewind(struct fetch_output *output)
{
    if (!fetch_output_can_rewind(output))
        return false;
    cli_spool_clear(&output->spool);
    if (output->kind == FETCH_OUTPUT_SPOOL)
        return true;
    int fd = output->file.fd;
    output->recorded = false;
    return (ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0) || output_fail(output);
}

bool fetch_output_commit(struct fetch_output *output)
{
    if (output->error == 0 && output->file.is_open)
        output->error = cli_atomic_file_commit_fd(&output->file);
    if (output->error == 0 && output_is_partial(output))
        unlink(output->record_path);
    return output->error == 0;
}

/* An empty partial file serves no later process. It is deleted while it is locked. */
static void output_drop_empty_partial(struct fetch_output *output)
{
    struct stat st;
    if (!output->file.is_open || fstat(output->file.fd, &st) != 0 || st.st_size > 0)
        return;
    unlink(output->record_path);
    unlink(output->file.temp_path);
}

void fetch_output_close(struct fetch_output *output)
{
    if (output_is_partial(output))
        output_drop_empty_partial(output);
    free(output->record_path);
    output->record_path = NULL;
    cli_atomic_file_discard(&output->file);
    cli_spool_clear(&output->spool);
}
