/* body.c - the request's body: how it is sent, and sent again, byte for byte the same.
 *
 * Memory is libcurl's to send. A file is read by pread from a place of our own, so that neither the descriptor's
 * offset nor another attempt matters; if it changed since it was first sent, it is another body and is not sent
 * again. A stream is rewound by its seek function, or it is one-shot: once a byte was read, there is no second time.
 * Of a body that was only set on the handle nothing is known; careful is to take it for spent as soon as libcurl
 * asked to send. */
#include "attempt.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t read_file(struct http_exchange *x, char *into, size_t room)
{
    const struct bide_curl_body *b = &x->transfer->options->body;
    size_t most = room;
    if (b->length >= 0 && (uint64_t)b->length - x->read_bytes < most)
        most = (size_t)b->length - x->read_bytes;
    ssize_t n;
    while ((n = pread(b->fd, into, most, b->offset + (off_t)x->read_bytes)) < 0 && errno == EINTR)
        continue;
    return n < 0 || (n == 0 && most > 0 && b->length >= 0) ? CURL_READFUNC_ABORT : (size_t)n; /* 0: it shrank */
}

static size_t on_read(char *into, size_t size, size_t count, void *context)
{
    struct http_exchange *x = context;
    const struct bide_curl_body *b = &x->transfer->options->body;
    size_t n =
        b->kind == BIDE_CURL_BODY_FILE ? read_file(x, into, size * count) : b->read(into, size, count, b->read_data);
    if (n <= size * count)
        x->read_bytes += n;
    x->read_all = n == 0;
    return n;
}

/* libcurl itself rewinds within an attempt: for a redirect, or after 401. */
static int on_seek(void *context, curl_off_t offset, int origin)
{
    struct http_exchange *x = context;
    const struct bide_curl_body *b = &x->transfer->options->body;
    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    if (b->kind == BIDE_CURL_BODY_STREAM && b->seek == NULL)
        return x->read_bytes == 0 && offset == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
    int answer = b->kind == BIDE_CURL_BODY_STREAM ? b->seek(b->seek_data, offset, origin) : CURL_SEEKFUNC_OK;
    if (answer == CURL_SEEKFUNC_OK) {
        x->read_bytes = (size_t)offset;
        x->read_all = false;
    }
    return answer;
}

/* A number that changes when the file does, never 0. (Within one tick of the kernel's clock a file of the same
 * length may change unnoticed.) */
static uint64_t stamp_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return 1;
    int64_t facts[] = {st.st_ctim.tv_sec, st.st_ctim.tv_nsec, st.st_size};
    return bide_hash(facts, sizeof facts);
}

static CURLcode own_reader(struct http_exchange *x, curl_off_t length)
{
    CURLcode code = curl_easy_setopt(x->easy, CURLOPT_READFUNCTION, on_read);
    if (code == CURLE_OK)
        code = curl_easy_setopt(x->easy, CURLOPT_READDATA, x);
    if (code == CURLE_OK)
        code = curl_easy_setopt(x->easy, CURLOPT_SEEKFUNCTION, on_seek);
    if (code == CURLE_OK)
        code = curl_easy_setopt(x->easy, CURLOPT_SEEKDATA, x);
    if (code == CURLE_OK)
        code = curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, length);
    return code == CURLE_OK ? curl_easy_setopt(x->easy, CURLOPT_INFILESIZE_LARGE, length) : code;
}

CURLcode http_body_own(struct http_exchange *x)
{
    const struct bide_curl_body *b = &x->transfer->options->body;
    CURLcode code = CURLE_OK;
    switch (b->kind) {
    case BIDE_CURL_BODY_UNKNOWN:
    case BIDE_CURL_BODY_REPEATABLE: break;
    case BIDE_CURL_BODY_MEMORY:
        code = curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)b->length);
        return code == CURLE_OK ? curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, b->at) : code;
    case BIDE_CURL_BODY_FILE:
        if (x->transfer->body_stamp == 0)
            x->transfer->body_stamp = stamp_of(b->fd);
        return own_reader(x, b->length);
    case BIDE_CURL_BODY_STREAM: return own_reader(x, b->length);
    }
    return code;
}

/* Nothing of ours stays on the handle. Memory may: it is the owner's. */
void http_body_disown(struct http_exchange *x)
{
    const struct bide_curl_body *b = &x->transfer->options->body;
    if (b->kind != BIDE_CURL_BODY_FILE && b->kind != BIDE_CURL_BODY_STREAM)
        return;
    curl_easy_setopt(x->easy, CURLOPT_READFUNCTION, b->read);
    curl_easy_setopt(x->easy, CURLOPT_READDATA, b->read ? b->read_data : stdin);
    curl_easy_setopt(x->easy, CURLOPT_SEEKFUNCTION, b->seek);
    curl_easy_setopt(x->easy, CURLOPT_SEEKDATA, b->seek_data);
}

bool http_body_rewind(struct http_exchange *x)
{
    const struct bide_curl_body *b = &x->transfer->options->body;
    if (b->kind == BIDE_CURL_BODY_STREAM && x->read_bytes > 0)
        return on_seek(x, 0, SEEK_SET) == CURL_SEEKFUNC_OK;
    if (b->kind == BIDE_CURL_BODY_FILE && stamp_of(b->fd) != x->transfer->body_stamp)
        return false;
    x->read_bytes = 0;
    x->read_all = false;
    return true;
}

static bool uploaded(const struct http_exchange *x)
{
    curl_off_t bytes = 0;
    return curl_easy_getinfo(x->easy, CURLINFO_SIZE_UPLOAD_T, &bytes) == CURLE_OK && bytes > 0;
}

/* libcurl knows no length of what is sent in chunks, nor of a request that has no body. */
bool http_body_sent(const struct http_exchange *x)
{
    const struct bide_curl_body *b = &x->transfer->options->body;
    bool reader = b->kind == BIDE_CURL_BODY_FILE || b->kind == BIDE_CURL_BODY_STREAM;
    curl_off_t all = -1, sent = 0;
    curl_easy_getinfo(x->easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T, &all);
    curl_easy_getinfo(x->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    if (all >= 0)
        return sent >= all;
    return reader ? x->read_all : b->kind != BIDE_CURL_BODY_UNKNOWN;
}

bool http_body_spent(const struct http_exchange *x)
{
    const struct bide_curl_body *b = &x->transfer->options->body;
    switch (b->kind) {
    case BIDE_CURL_BODY_UNKNOWN:
        return x->run.legs > 0 && x->run.stop != HTTP_STALE && (!x->run.bodiless || uploaded(x));
    case BIDE_CURL_BODY_REPEATABLE:
    case BIDE_CURL_BODY_MEMORY: return false;
    case BIDE_CURL_BODY_FILE: return stamp_of(b->fd) != x->transfer->body_stamp;
    case BIDE_CURL_BODY_STREAM: return x->read_bytes > 0 && b->seek == NULL;
    }
    return true;
}
