/* fuzz_telemetry_request.c - reading a request of a scraper is safe whatever it sends, and independent of how the bytes
 * are split.
 *
 * The input is fed whole, byte by byte, and in pieces whose lengths its first byte chooses. Invariants: the same
 * result, one of the statuses that the server has a response for; what is served begins with GET or HEAD, has no NUL
 * and ends with an empty line; a result is final. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry/request.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static void check_status(const struct telemetry_request *request, size_t length)
{
    static const int statuses[] = {0, 200, 400, 404, 405, 414, 431, 505};
    bool is_known = false;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        is_known |= request->status == statuses[i];
    CHECK(is_known && (request->status != 0 || length < TELEMETRY_REQUEST_MAX));
    CHECK(request->status != 200 || request->resource != TELEMETRY_RESOURCE_NONE);
    CHECK(request->status != 404 || request->resource == TELEMETRY_RESOURCE_NONE);
}

static void check_served(const struct telemetry_request *request, const char *bytes)
{
    size_t end = request->line_at;
    const char *at = bytes;
    if (request->status != 200)
        return;
    while (memcmp(at, "\r\n", 2) == 0)
        at += 2;
    CHECK(memcmp(at, request->is_head ? "HEAD " : "GET ", request->is_head ? 5 : 4) == 0);
    CHECK(end >= 18 && memcmp(bytes + end - 4, "\r\n\r\n", 4) == 0);
    CHECK(memchr(bytes, '\0', end) == NULL);
}

static struct telemetry_request read_pieces(const char *bytes, size_t length, size_t piece)
{
    struct telemetry_request request = {0};
    for (size_t at = 0; at < length && request.status == 0;) {
        at = length - at < piece ? length : at + piece;
        char *copy = malloc(at); /* exact size, so that the address sanitizer sees reads beyond the end */
        CHECK(copy != NULL);
        memcpy(copy, bytes, at);
        CHECK(telemetry_request_read(&request, copy, at) == (request.status != 0));
        check_status(&request, at);
        check_served(&request, copy);
        struct telemetry_request again = request;
        CHECK(request.status == 0 || telemetry_request_read(&again, copy, at));
        CHECK(request.status == 0 || memcmp(&again, &request, sizeof request) == 0);
        free(copy);
    }
    return request;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > TELEMETRY_REQUEST_MAX)
        return 0;
    struct telemetry_request whole = read_pieces((const char *)data, size, size);
    struct telemetry_request bytes = read_pieces((const char *)data, size, 1);
    struct telemetry_request pieces = read_pieces((const char *)data, size, 2 + data[0] % 61);
    CHECK(whole.status == bytes.status && whole.status == pieces.status);
    CHECK(whole.status != 200 || whole.resource == bytes.resource);
    return 0;
}
