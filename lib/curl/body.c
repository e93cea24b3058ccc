/* body.c - the request body: how it is sent, and sent again with exactly the same bytes.
 *
 *     memory       libcurl sends it (CURLOPT_POSTFIELDS); with `put` bide's reader copies it (CURLOPT_UPLOAD)
 *     file         read with pread at a position of bide's own, so that neither the descriptor's offset nor a parallel
 *                  attempt matters; a file that changed since it was first sent is not sent again
 *     stream       rewound by its seek function; without that it is one-shot: not sent again once a byte was read
 *     repeatable   set on the handle; the caller guarantees that libcurl can send it any number of times. bide detects
 *                  two cases in which a read function disproves that, and then treats it as spent
 *     unknown      set on the handle, nothing else is known: treated as spent once libcurl was about to send it, unless
 *                  the method normally has no body (GET, HEAD, OPTIONS, DELETE, TRACE) and nothing was uploaded */
#include "attempt.h"
#include "record.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t body_read_file(struct http_attempt *attempt, char *into, size_t room)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    size_t limit = room;
    assert(b->length < 0 || attempt->uploaded_bytes <= (uint64_t)b->length);
    if (b->length >= 0 && (uint64_t)b->length - attempt->uploaded_bytes < limit)
        limit = (size_t)b->length - attempt->uploaded_bytes;
    ssize_t n;
    while ((n = pread(b->fd, into, limit, b->offset + (off_t)attempt->uploaded_bytes)) < 0 && errno == EINTR)
        continue;
    return n < 0 || (n == 0 && limit > 0 && b->length >= 0) ? CURL_READFUNC_ABORT : (size_t)n; /* 0: the file shrank */
}

static size_t body_read_memory(struct http_attempt *attempt, char *into, size_t room)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    assert(attempt->uploaded_bytes <= (uint64_t)b->length);
    size_t rest = (size_t)b->length - attempt->uploaded_bytes;
    size_t n = rest < room ? rest : room;
    if (n > 0)
        memcpy(into, (const char *)b->at + attempt->uploaded_bytes, n);
    return n;
}

static size_t body_read(struct http_attempt *attempt, char *into, size_t size, size_t count)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    if (b->kind == BIDE_CURL_BODY_STREAM)
        return b->read(into, size, count, b->read_data);
    return b->kind == BIDE_CURL_BODY_FILE ? body_read_file(attempt, into, size * count)
                                          : body_read_memory(attempt, into, size * count);
}

static size_t on_read(char *into, size_t size, size_t count, void *context)
{
    struct http_attempt *attempt = context;
    size_t n = body_read(attempt, into, size, count);
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
    if (b->kind == BIDE_CURL_BODY_MEMORY && offset > b->length)
        return CURL_SEEKFUNC_FAIL;
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

/* Returns true if bide's on_read and on_seek are on the handle. */
static bool body_has_reader(const struct bide_curl_body *b)
{
    return b->kind == BIDE_CURL_BODY_FILE || b->kind == BIDE_CURL_BODY_STREAM ||
           (b->kind == BIDE_CURL_BODY_MEMORY && b->put);
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

/* Clears CURLOPT_UPLOAD first: with it libcurl before 8.1 sends a PUT whose bytes come from a read function
 * (CVE-2023-28322). */
static CURLcode body_install_post_fields(CURL *easy, const void *at, curl_off_t length)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_UPLOAD, 0L);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, length);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_POSTFIELDS, at) : code;
}

CURLcode http_body_install(struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    CURLcode code = CURLE_OK;
    switch (b->kind) {
    case BIDE_CURL_BODY_UNKNOWN:
    case BIDE_CURL_BODY_REPEATABLE: break;
    case BIDE_CURL_BODY_MEMORY:
        if (!b->put)
            return body_install_post_fields(attempt->easy, b->at, b->length);
        code = curl_easy_setopt(attempt->easy, CURLOPT_UPLOAD, 1L);
        return code == CURLE_OK ? body_install_reader(attempt, b->length) : code;
    case BIDE_CURL_BODY_FILE:
        if (attempt->call->file_stamp == 0)
            attempt->call->file_stamp = file_stamp_now(b->fd);
        return body_install_reader(attempt, b->length);
    case BIDE_CURL_BODY_STREAM: return body_install_reader(attempt, b->length);
    }
    return code;
}

/* Removes bide's callbacks and each pointer to the caller's memory. An empty body remains on the handle: libcurl would
 * otherwise read the next body from freed memory or from stdin. A stream keeps its functions and its length. */
void http_body_uninstall(struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    struct http_record *record = attempt->is_copy ? NULL : attempt->call->record;
    bool is_stream = b->kind == BIDE_CURL_BODY_STREAM;
    if (!body_has_reader(b))
        (void)body_install_post_fields(attempt->easy, NULL, 0);
    if (record && is_stream)
        http_record_restore_reader(record, attempt->easy);
    else if (record)
        http_record_note_empty_body(record, !body_has_reader(b));
    if (!body_has_reader(b) || (record && is_stream))
        return;
    curl_easy_setopt(attempt->easy, CURLOPT_READFUNCTION, is_stream ? b->read : NULL);
    curl_easy_setopt(attempt->easy, CURLOPT_READDATA, is_stream ? b->read_data : stdin);
    curl_easy_setopt(attempt->easy, CURLOPT_SEEKFUNCTION, is_stream ? b->seek : NULL);
    curl_easy_setopt(attempt->easy, CURLOPT_SEEKDATA, is_stream ? b->seek_data : NULL);
    if (is_stream)
        return;
    curl_easy_setopt(attempt->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
    curl_easy_setopt(attempt->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)0);
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

/* ---- what libcurl reports about a body ---- */

struct body_sizes {
    curl_off_t total; /* -1: libcurl does not know the length, or there is no body */
    curl_off_t sent;
};

static struct body_sizes body_sizes_of_leg(CURL *easy)
{
    struct body_sizes sizes = {-1, 0};
    curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T, &sizes.total);
    curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &sizes.sent);
    return sizes;
}

/* libcurl reports no total length for a chunked upload, nor for a request without a body. Then bide's own reader knows
 * whether all was read; an unknown body counts as not sent. */
bool http_body_sent(const struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    struct body_sizes sizes = body_sizes_of_leg(attempt->easy);
    if (sizes.total >= 0)
        return sizes.sent >= sizes.total;
    return body_has_reader(b) ? attempt->upload_complete : b->kind != BIDE_CURL_BODY_UNKNOWN;
}

/* libcurl uploaded bytes of a body whose length it does not know: they came from a read function (or from a mime part
 * with one), which libcurl does not rewind before another attempt. POSTFIELDS and other mime parts have a length. */
static bool leg_uploaded_chunks(const struct http_attempt *attempt)
{
    struct body_sizes sizes = body_sizes_of_leg(attempt->easy);
    return sizes.sent > 0 && sizes.total < 0;
}

void http_body_note_end_of_leg(struct http_attempt *attempt)
{
    if (attempt->call->options->body.kind == BIDE_CURL_BODY_REPEATABLE && leg_uploaded_chunks(attempt))
        attempt->state.uploaded_chunks = true;
}

/* A read function with a declared length has no such mark. Its retry sends a head that announces the length and no byte
 * of the body, and the server waits until the attempt times out. This ends the call after the first such attempt.
 * Known weakness: the same is observed if an attempt times out while libcurl waits for "100 Continue" (a body of more
 * than 1 MB, and an attempt timeout below a second); that call then lacks its other retries. */
static bool retry_uploaded_nothing(const struct http_attempt *attempt)
{
    if (attempt->start.attempt == 1 || attempt->state.legs == 0 ||
        attempt->state.end_code != CURLE_OPERATION_TIMEDOUT || attempt->response.status != 0)
        return false;
    struct body_sizes sizes = body_sizes_of_leg(attempt->easy);
    return sizes.sent == 0 && sizes.total > 0;
}

bool http_body_spent(const struct http_attempt *attempt)
{
    const struct bide_curl_body *b = &attempt->call->options->body;
    switch (b->kind) {
    case BIDE_CURL_BODY_UNKNOWN:
        return attempt->state.legs > 0 &&
               (!attempt->state.bodyless_method || body_sizes_of_leg(attempt->easy).sent > 0);
    case BIDE_CURL_BODY_REPEATABLE:
        return attempt->state.uploaded_chunks || leg_uploaded_chunks(attempt) || retry_uploaded_nothing(attempt);
    case BIDE_CURL_BODY_MEMORY: return false;
    case BIDE_CURL_BODY_FILE: return file_stamp_now(b->fd) != attempt->call->file_stamp;
    case BIDE_CURL_BODY_STREAM: return attempt->uploaded_bytes > 0 && b->seek == NULL;
    }
    return true;
}
