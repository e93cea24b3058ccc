/* fuzz_fleet_redis_reply.c - parsing replies is safe whatever the server sends, and independent of how the bytes are
 * split.
 *
 * The input is the byte stream of a server, fed whole, byte by byte, and repeatedly until there is no room. Invariants:
 * the same replies in the same order; values within their array; error texts printable and, except MOVED, without the
 * secret; never more bytes kept than the limit of a reply and a chunk. */
#include <stdlib.h>
#include <string.h>

#include "fleet/redis_reply.h"

#define SECRET  "pw"
#define REPLIES 8 /* compared */
#define ROUNDS  16

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

struct result {
    struct fleet_redis_reply reply[REPLIES];
    size_t replies;
    const char *reason; /* of garbage; NULL: none */
};

static void check_reply(const struct fleet_redis_reply *reply)
{
    CHECK(reply->values <= FLEET_REPLY_VALUES_MAX);
    CHECK(memchr(reply->error, '\0', sizeof reply->error) != NULL);
    CHECK(reply->kind == FLEET_REPLY_ERROR || reply->error[0] == '\0');
    CHECK(reply->kind != FLEET_REPLY_ERROR || reply->values == 0);
    CHECK(strstr(reply->error, SECRET) == NULL || strncmp(reply->error, "MOVED ", 6) == 0); /* parsed, so not masked */
    for (const char *c = reply->error; *c != '\0'; c++)
        CHECK(*c >= ' ' && *c <= '~');
}

static void read_all(struct fleet_reply_reader *replies, struct result *result)
{
    struct fleet_redis_reply reply;
    enum fleet_read_result reading;
    while ((reading = fleet_reply_reader_next(replies, &reply, &result->reason)) == FLEET_READ_REPLY) {
        check_reply(&reply);
        if (result->replies < REPLIES)
            result->reply[result->replies] = reply;
        result->replies++;
    }
    CHECK((reading == FLEET_READ_GARBAGE) == (result->reason != NULL));
}

static void feed_stream(const char *bytes, size_t size, size_t chunk, unsigned rounds, struct result *result)
{
    struct fleet_reply_reader *replies = fleet_reply_reader_new(SECRET);
    CHECK(replies != NULL && fleet_reply_reader_reset(replies));
    memset(result, 0, sizeof *result);
    for (unsigned round = 0; round < rounds; round++)
        for (size_t i = 0; i < size && result->reason == NULL; i += chunk) {
            CHECK(fleet_reply_reader_has_room(replies));
            fleet_reply_reader_feed(replies, bytes + i, size - i < chunk ? size - i : chunk);
            CHECK(fleet_reply_reader_unread(replies) < FLEET_REPLY_MAX + FLEET_CHUNK_MAX);
            read_all(replies, result);
        }
    fleet_reply_reader_free(replies);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct result whole, bytes, many;
    if (size == 0 || size > FLEET_CHUNK_MAX)
        return 0;
    char *copy = malloc(size); /* exact size, so that the address sanitizer sees reads beyond the end */
    CHECK(copy != NULL);
    memcpy(copy, data, size);
    feed_stream(copy, size, size, 1, &whole);
    feed_stream(copy, size, 1, 1, &bytes);
    CHECK(whole.replies == bytes.replies && whole.reason == bytes.reason);
    CHECK(memcmp(whole.reply, bytes.reply, sizeof whole.reply) == 0);
    feed_stream(copy, size, size, ROUNDS, &many);
    free(copy);
    return 0;
}
