/* fuzz_layer.c - any Bide-Attempt header is parsed without harm, and a written header parses back.
 *
 * The input is used twice: as a header value, and its first bytes as a layer to be written. */
#include <bide/layer.h>

#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static bool layers_are_equal(struct bide_layer a, struct bide_layer b)
{
    return a.attempt == b.attempt && a.attempts_max == b.attempts_max && a.left_ns == b.left_ns &&
           a.no_retry == b.no_retry;
}

/* parse(format(layer)) == layer, for a layer that is not empty and whose time is in whole milliseconds. */
static void check_round_trip(struct bide_layer layer)
{
    char text[BIDE_LAYER_TEXT_MAX];
    struct bide_layer parsed;
    size_t length = bide_layer_format(text, sizeof text, &layer);
    CHECK(length > 0 && length < sizeof text && text[length] == '\0');
    CHECK(bide_layer_parse((struct bide_text){text, length}, &parsed));
    CHECK(layers_are_equal(layer, parsed));
    CHECK(bide_layer_format(text, length, &layer) == 0); /* one byte too small */
}

static void check_apply(struct bide_layer layer, int64_t deadline_ns, int64_t now_ns)
{
    struct bide_request request = {.deadline_ns = deadline_ns};
    bide_layer_apply(&layer, &request, now_ns);
    CHECK(deadline_ns == 0 || request.deadline_ns <= deadline_ns);
    CHECK((request.deadline_ns == 0) == (deadline_ns == 0 && layer.left_ns == BIDE_NEVER));
    CHECK(request.inbound.attempt == layer.attempt && request.inbound.no_retry == layer.no_retry);
    CHECK(bide_layer_outbound(&request, layer).attempt == layer.attempt);
}

static void check_header(const uint8_t *data, size_t size)
{
    struct bide_layer layer;
    char *copy = malloc(size); /* of exactly its size: the address sanitizer detects every overread */
    CHECK(copy != NULL);
    memcpy(copy, data, size);
    if (bide_layer_parse((struct bide_text){copy, size}, &layer)) {
        CHECK(layer.attempt > 0 && layer.left_ns >= 0);
        check_round_trip(layer);
        check_apply(layer, (int64_t)size, (int64_t)size * 1000);
        check_apply(layer, 0, BIDE_NEVER);
        check_apply(layer, 0, 0);
    } else {
        CHECK(layers_are_equal(layer, (struct bide_layer){.left_ns = BIDE_NEVER}));
    }
    free(copy);
}

static void check_written(const uint8_t *data)
{
    struct bide_layer layer = {.no_retry = data[16] & 1};
    memcpy(&layer.attempt, data, 4);
    memcpy(&layer.attempts_max, data + 4, 4);
    memcpy(&layer.left_ns, data + 8, 8);
    layer.attempt += layer.attempt == 0;
    layer.left_ns = data[16] & 2 ? BIDE_NEVER : (layer.left_ns & INT64_MAX) / BIDE_MS * BIDE_MS;
    check_round_trip(layer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_header(data, size);
    if (size >= 17)
        check_written(data);
    return 0;
}
