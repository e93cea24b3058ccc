/* body.c - the request body: how it is sent, and sent again with exactly the same bytes.
 *
 *     memory       libcurl sends it (CURLOPT_POSTFIELDS)
 *     file         read with pread at a position of bide's own, so that neither the descriptor's offset nor a parallel
 *                  attempt matters; a file that changed since it was first sent is not sent again
 *     stream       rewound by its seek function; without that it is one-shot: not sent again once a byte was read
 *     repeatable   set on the handle; the caller guarantees that libcurl can send it any number of times
 *     unknown      set on the handle, nothing else is known: treated as spent once libcurl was about to send it, unless
 *                  the method normally has no body (GET, HEAD, OPTIONS, DELETE, TRACE) and nothing was uploaded */
#include "attempt.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t body_read_file(struct http_attempt *attempt, char *into, size_t room)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    size_t limit = room;
    if (b->length >= 0 && (uint64_t)b->length - attempt->uploaded_bytes < limit)
        limit = (size_t)b->length - attempt->uploaded_bytes;
    ssize_t n;
    while ((n = pread(b->fd, into, limit, b->offset + (off_t)attempt->uploaded_bytes)) < 0 && errno == EINTR)
        continue;
    return n < 0 || (n == 0 && limit > 0 && b->length >= 0) ? CURL_READFUNC_ABORT : (size_t)n; /* 0: the file shrank */
}

static size_t on_read(char *into, size_t size, size_t count, void *context)
{
    struct http_attempt *attempt = context;
    const struct bide_curl_body *b = &attempt->call->options->body;
    size_t n = b->kind == BIDE_CURL_BODY_FILE ? body_read_file(attempt, into, size * count)
                                              : b->read(into, size, count, b->read_data);
    if (n <= size * count)
        attempt->uploaded_bytes += n;
    attempt->upload_complete = n == 0;
    return n;
}

/* libcurl itself rewinds within an attempt: for a redirect, or after a 401. */
static int on_seek(void *context, curl_off_t offset, int origin)
{
    struct http_attempt *attempt = context;
    const struct bide_curl_body *b = &attempt->call->options->body;
    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    if (b->kind == BIDE_CURL_BODY_STREAM && b->seek == NULL)
        return attempt->uploaded_bytes == 0 && offset == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
    int seek_result = b->kind == BIDE_CURL_BODY_STREAM ? b->seek(b->seek_data, offset, origin) : CURL_SEEKFUNC_OK;
    if (seek_result == CURL_SEEKFUNC_OK) {
        attempt->uploaded_bytes = (size_t)offset;
        attempt->upload_complete = false;
    }
    return seek_result;
}

/* Returns a number that changes when the file does, never 0. Known weakness: a change within a tick of the kernel's
 * clock that keeps the length goes unnoticed. */
static uint64_t file_stamp_now(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return 1;
    int64_t identity[] = {st.st_ctim.tv_sec, st.st_ctim.tv_nsec, st.st_size};
    return bide_hash(identity, sizeof identity);
}

static CURLcode body_install_reader(struct http_attempt *attempt, curl_off_t length)
{
    CURLcode code = curl_easy_setopt(attempt->easy, CURLOPT_READFUNCTION, on_read);
    if (code == CURLE_OK)
        code = curl_easy_setopt(attempt->easy, CURLOPT_READDATA, attempt);
    if (code == CURLE_OK)
        code = curl_easy_setopt(attempt->easy, CURLOPT_SEEKFUNCTION, on_seek);
    if (code == CURLE_OK)
        code = curl_easy_setopt(attempt->easy, CURLOPT_SEEKDATA, attempt);
    if (code == CURLE_OK)
        code = curl_easy_setopt(attempt->easy, CURLOPT_POSTFIELDSIZE_LARGE, length);
    return code == CURLE_OK ? curl_easy_setopt(attempt->easy, CURLOPT_INFILESIZE_LARGE, length) : code;
}

CURLcode http_body_install(struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    CURLcode code = CURLE_OK;
    switch (b->kind) {
    case BIDE_CURL_BODY_UNKNOWN:
    case BIDE_CURL_BODY_REPEATABLE: break;
    case BIDE_CURL_BODY_MEMORY:
        code = curl_easy_setopt(attempt->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)b->length);
        return code == CURLE_OK ? curl_easy_setopt(attempt->easy, CURLOPT_POSTFIELDS, b->at) : code;
    case BIDE_CURL_BODY_FILE:
        if (attempt->call->file_stamp == 0)
            attempt->call->file_stamp = file_stamp_now(b->fd);
        return body_install_reader(attempt, b->length);
    case BIDE_CURL_BODY_STREAM: return body_install_reader(attempt, b->length);
    }
    return code;
}

/* Removes the callbacks of bide. A body in memory belongs to the caller and stays on the handle. */
void http_body_uninstall(struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    if (b->kind != BIDE_CURL_BODY_FILE && b->kind != BIDE_CURL_BODY_STREAM)
        return;
    curl_easy_setopt(attempt->easy, CURLOPT_READFUNCTION, b->read);
    curl_easy_setopt(attempt->easy, CURLOPT_READDATA, b->read ? b->read_data : stdin);
    curl_easy_setopt(attempt->easy, CURLOPT_SEEKFUNCTION, b->seek);
    curl_easy_setopt(attempt->easy, CURLOPT_SEEKDATA, b->seek_data);
}

bool http_body_rewind(struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    if (b->kind == BIDE_CURL_BODY_STREAM && attempt->uploaded_bytes > 0)
        return on_seek(attempt, 0, SEEK_SET) == CURL_SEEKFUNC_OK;
    if (b->kind == BIDE_CURL_BODY_FILE && file_stamp_now(b->fd) != attempt->call->file_stamp)
        return false;
    attempt->uploaded_bytes = 0;
    attempt->upload_complete = false;
    return true;
}

static bool body_upload_began(const struct http_attempt *attempt)
{
    curl_off_t bytes = 0;
    return curl_easy_getinfo(attempt->easy, CURLINFO_SIZE_UPLOAD_T, &bytes) == CURLE_OK && bytes > 0;
}

/* libcurl reports no total length for a chunked upload, nor for a request without a body. Then bide's own reader knows
 * whether all was read; an unknown body counts as not sent. */
bool http_body_sent(const struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    bool has_reader = b->kind == BIDE_CURL_BODY_FILE || b->kind == BIDE_CURL_BODY_STREAM;
    curl_off_t total = -1, sent = 0;
    curl_easy_getinfo(attempt->easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T, &total);
    curl_easy_getinfo(attempt->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    if (total >= 0)
        return sent >= total;
    return has_reader ? attempt->upload_complete : b->kind != BIDE_CURL_BODY_UNKNOWN;
}

bool http_body_spent(const struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    switch (b->kind) {
    case BIDE_CURL_BODY_UNKNOWN:
        return attempt->state.legs > 0 && attempt->state.stop != HTTP_STOP_STALE &&
               (!attempt->state.bodyless_method || body_upload_began(attempt));
    case BIDE_CURL_BODY_REPEATABLE:
    case BIDE_CURL_BODY_MEMORY: return false;
    case BIDE_CURL_BODY_FILE: return file_stamp_now(b->fd) != attempt->call->file_stamp;
    case BIDE_CURL_BODY_STREAM: return attempt->uploaded_bytes > 0 && b->seek == NULL;
    }
    return true;
}
