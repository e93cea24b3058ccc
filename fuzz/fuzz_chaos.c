/* fuzz_chaos.c - no script and no client input harms the parsers, and the result does not depend on where the network
 * splits the input.
 *
 * The input is parsed three times: as a script, as a request that arrives whole, and as the same request in two pieces.
 * For a valid script every step generates a response. */
#include <stdlib.h>
#include <string.h>

#include "chaos/request.h"
#include "chaos/response.h"
#include "chaos/script.h"

#define PIECES 4 /* of each response: some are endless */

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static char *copy_of(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1); /* exact size: the address sanitizer detects every byte read beyond it */
    CHECK(copy != NULL);
    memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

static void check_reply(const struct chaos_step *step, const struct chaos_request *request)
{
    char *bytes = malloc(CHAOS_RESPONSE_ROOM);
    struct chaos_response reply;
    CHECK(bytes != NULL);
    chaos_response_begin(&reply, step, request);
    for (int i = 0; i < PIECES; i++) {
        size_t length = chaos_response_next(&reply, bytes, 1700000000);
        CHECK(length <= CHAOS_RESPONSE_ROOM);
        if (length == 0)
            break;
    }
    free(bytes);
}

static void check_script(const char *text)
{
    static const struct chaos_request requests[] = {
        {.http10 = true, .close = true},
        {.head_only = true},
        {.range = {"bytes=3-", 8}},
        {.range = {"bytes=-3", 8}, .if_range = {"\"v1\"", 4}},
    };
    struct chaos_script script;
    struct chaos_error error;
    enum bide_err err = chaos_script_read(&script, text, 8080, &error);
    CHECK(err == BIDE_OK || (err == BIDE_ERR_INVALID && script.lines == 0 && error.text[0] != '\0'));
    for (size_t i = 0; i < script.lines; i++) {
        struct chaos_line *line = &script.line[i];
        CHECK(chaos_script_find(&script, (struct bide_text){line->path, line->path_length}) != NULL);
        for (size_t j = 0; j < 8; j++)
            check_reply(chaos_line_next_step(line), &requests[j % (sizeof requests / sizeof *requests)]);
        (void)chaos_line_outage(line, BIDE_S);
    }
    chaos_script_free(&script);
}

/* The parsed request, and the number of bytes consumed. */
struct result {
    enum chaos_read head, body;
    size_t taken;
    struct chaos_request request;
};

static struct result read_whole(const char *bytes, size_t size)
{
    struct result result = {.head = CHAOS_READ_MORE};
    size_t taken = 0;
    result.head = chaos_request_head(&result.request, bytes, size);
    if (result.head != CHAOS_READ_DONE)
        return result;
    CHECK(result.request.head_bytes <= size && result.request.path.length > 0);
    result.taken = result.request.head_bytes;
    result.body =
        chaos_request_body(&result.request, (struct bide_text){bytes + result.taken, size - result.taken}, &taken);
    result.taken += taken;
    CHECK(result.taken <= size && result.request.body_bytes <= size);
    return result;
}

/* The head cannot be split, because its bytes are passed again from the start; the body can. */
static struct result read_cut(const char *bytes, size_t size, size_t cut)
{
    struct result result = {.head = CHAOS_READ_MORE};
    size_t taken = 0;
    result.head = chaos_request_head(&result.request, bytes, cut);
    if (result.head == CHAOS_READ_MORE)
        result.head = chaos_request_head(&result.request, bytes, size);
    if (result.head != CHAOS_READ_DONE)
        return result;
    result.taken = result.request.head_bytes;
    if (cut < result.taken)
        cut = result.taken;
    result.body =
        chaos_request_body(&result.request, (struct bide_text){bytes + result.taken, cut - result.taken}, &taken);
    result.taken += taken;
    if (result.body == CHAOS_READ_MORE) {
        result.body =
            chaos_request_body(&result.request, (struct bide_text){bytes + result.taken, size - result.taken}, &taken);
        result.taken += taken;
    }
    return result;
}

static void check_request(const char *bytes, size_t size)
{
    struct result whole = read_whole(bytes, size), cut = read_cut(bytes, size, size / 2);
    struct chaos_request half;
    CHECK(whole.head == cut.head && whole.taken == cut.taken && whole.request.error_status == cut.request.error_status);
    if (whole.head == CHAOS_READ_DONE) {
        CHECK(whole.body == cut.body && whole.request.body_bytes == cut.request.body_bytes);
        CHECK(chaos_request_hash(&whole.request) == chaos_request_hash(&cut.request));
        check_reply(&(struct chaos_step){.status = 200, .ranges = true}, &whole.request);
    }
    (void)chaos_request_partial(&half, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = copy_of(data, size);
    check_script(copy);
    check_request(copy, size);
    free(copy);
    return 0;
}
