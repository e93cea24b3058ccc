/* fuzz_content_range.c - a resumed download continues only where it stopped, whatever Content-Range a server sends.
 *
 * The input is the position, in 8 bytes, and the value of the field. Invariants: an accepted range begins at the
 * position and before the total; the same range, written canonically, is accepted; no other position is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "curl/attempt.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(uint64_t from, uint64_t total)
{
    char text[96];
    uint64_t again;
    CHECK(from < total);
    snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from, total - 1, total);
    CHECK(http_content_range_continues(text, from, &again) && again == total);
    CHECK(!http_content_range_continues(text, from + 1, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t from, total = 0;
    if (size < sizeof from)
        return 0;
    memcpy(&from, data, sizeof from);
    size_t length = size - sizeof from;
    char *value = malloc(length + 1); /* of exactly its size: the address sanitizer detects every overread */
    CHECK(value != NULL);
    memcpy(value, data + sizeof from, length);
    value[length] = '\0';
    if (http_content_range_continues(value, from, &total))
        check_accepted(from, total);
    free(value);
    return 0;
}
