/* redis_reply.c - hiredis' parser with callbacks that fill a struct fleet_redis_reply.
 *
 * The parser calls them while it walks a reply, possibly over several feeds; the draft is handed out when the reply is
 * complete. A callback that returns NULL makes the parser stop for good with "out of memory"; `refused` keeps the true
 * reason. */
#include "redis_reply.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#if HIREDIS_MAJOR >= 1
#define COUNT size_t
#else
#define COUNT int
#endif

struct fleet_reply_reader {
    redisReader *parser;
    const char *secret;
    const char *refused;            /* NULL: no callback refused */
    struct fleet_redis_reply draft; /* of the reply being parsed */
    size_t expected_values;         /* that the reply has if all elements are integers */
    bool has_nil;                   /* an element was nil */
    size_t unread;                  /* bytes fed since the last complete reply */
    unsigned char first_byte;       /* of the connection: identifies other protocols */
    bool has_first_byte;
};

static int accepted; /* non-NULL result of the callbacks; never read */

/* ---- texts ---- */

static char char_printable(char c)
{
    if (c < ' ' || c > '~')
        return '?';
    return c;
}

/* Returns how much of an error is not masked, even if it contains the password ("redis", "1"): the error code in
 * capitals, and all of a MOVED error, because our code parses both. Neither repeats what a client sent. */
static size_t error_unmasked_length(const char *text, size_t length)
{
    static const char moved[] = "MOVED ";
    size_t word = 0;
    if (length >= sizeof moved - 1 && memcmp(text, moved, sizeof moved - 1) == 0)
        return length;
    while (word < length && text[word] >= 'A' && text[word] <= 'Z')
        word++;
    return word < length && text[word] == ' ' ? word : 0;
}

/* Copies an error: unprintable bytes become '?', the secret becomes "***". The search precedes the truncation, so that
 * no part of the secret remains at the end. */
static void error_copy_masked(char into[FLEET_REPLY_ERROR_MAX], const char *text, size_t length, const char *secret)
{
    size_t secret_length = secret != NULL ? strlen(secret) : 0, unmasked = error_unmasked_length(text, length),
           used = 0;
    for (size_t i = 0; i < length && used + 1 < FLEET_REPLY_ERROR_MAX;) {
        if (secret_length > 0 && i >= unmasked && length - i >= secret_length &&
            memcmp(text + i, secret, secret_length) == 0) {
            for (size_t star = 0; star < 3 && used + 1 < FLEET_REPLY_ERROR_MAX; star++)
                into[used++] = '*';
            i += secret_length;
            continue;
        }
        into[used++] = char_printable(text[i++]);
    }
    into[used] = '\0';
}

/* Parses a decimal integer; rejects anything else. */
static bool parse_integer(const char *text, size_t length, int64_t *value)
{
    bool negative = length > 0 && text[0] == '-';
    uint64_t sum = 0, limit = negative ? UINT64_C(1) << 63 : (uint64_t)INT64_MAX;
    size_t i = negative;
    if (length == i || length > 20)
        return false;
    for (; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || sum > (limit - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

/* ---- callbacks of the parser ---- */

static void *reply_refuse(struct fleet_reply_reader *reader, const char *reason)
{
    reader->refused = reason;
    return NULL;
}

static void *reply_add_value(struct fleet_reply_reader *reader, int64_t value)
{
    if (reader->draft.values == FLEET_REPLY_VALUES_MAX)
        return reply_refuse(reader, "the server sent a reply of too many values");
    reader->draft.value[reader->draft.values++] = value;
    return &accepted;
}

static void *on_string(const redisReadTask *task, char *text, size_t length)
{
    struct fleet_reply_reader *reader = task->privdata;
    int64_t value;
    if (task->type == REDIS_REPLY_STRING && parse_integer(text, length, &value))
        return reply_add_value(reader, value);
    if (task->type == REDIS_REPLY_ERROR && task->parent == NULL) {
        reader->draft.kind = FLEET_REPLY_ERROR;
        error_copy_masked(reader->draft.error, text, length, reader->secret);
    }
    return &accepted; /* another kind is a value too few: see draft_finish */
}

static void *on_array(const redisReadTask *task, COUNT elements)
{
    struct fleet_reply_reader *reader = task->privdata;
    if (task->parent != NULL)
        return reply_refuse(reader, "the server sent an array inside an array");
    if ((size_t)elements > FLEET_REPLY_VALUES_MAX)
        return reply_refuse(reader, "the server sent a reply of too many values");
    reader->expected_values = (size_t)elements;
    return &accepted;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    return reply_add_value(task->privdata, value);
}

static void *on_nil(const redisReadTask *task)
{
    struct fleet_reply_reader *reader = task->privdata;
    reader->has_nil = true;
    return &accepted;
}

static redisReplyObjectFunctions parser_functions = {
    .createString = on_string, .createArray = on_array, .createInteger = on_integer, .createNil = on_nil};

/* ---- the reader ---- */

struct fleet_reply_reader *fleet_reply_reader_new(const char *secret)
{
    struct fleet_reply_reader *reader = calloc(1, sizeof *reader);
    if (reader != NULL)
        reader->secret = secret;
    return reader;
}

void fleet_reply_reader_free(struct fleet_reply_reader *reader)
{
    if (reader != NULL)
        redisReaderFree(reader->parser);
    free(reader);
}

static void draft_begin(struct fleet_reply_reader *reader)
{
    reader->draft = (struct fleet_redis_reply){.kind = FLEET_REPLY_VALUES};
    reader->expected_values = 1;
    reader->has_nil = false;
}

bool fleet_reply_reader_reset(struct fleet_reply_reader *reader)
{
    redisReaderFree(reader->parser);
    reader->parser = redisReaderCreateWithFunctions(&parser_functions);
    reader->refused = NULL;
    reader->unread = 0;
    reader->has_first_byte = false;
    draft_begin(reader);
    if (reader->parser == NULL)
        return false;
    reader->parser->privdata = reader;
    reader->parser->maxbuf = 0; /* keep the buffer: hiredis asserts that reallocating it succeeds */
    return true;
}

bool fleet_reply_reader_has_room(const struct fleet_reply_reader *reader)
{
    return reader->unread < FLEET_REPLY_MAX;
}

size_t fleet_reply_reader_unread(const struct fleet_reply_reader *reader)
{
    return reader->unread;
}

void fleet_reply_reader_feed(struct fleet_reply_reader *reader, const char *bytes, size_t length)
{
    if (length == 0 || reader->parser == NULL)
        return;
    if (!reader->has_first_byte)
        reader->first_byte = (unsigned char)bytes[0];
    reader->has_first_byte = true;
    reader->unread += length;
    redisReaderFeed(reader->parser, bytes,
                    length); /* an error is kept in the parser; fleet_reply_reader_next reports it */
}

/* Says which other protocol was received, if known. The bytes themselves are not repeated: they may contain
 * anything. */
static const char *reader_garbage_reason(const struct fleet_reply_reader *reader)
{
    if (reader->refused != NULL)
        return reader->refused;
    if (reader->parser == NULL || reader->parser->err == REDIS_ERR_OOM)
        return "no memory for a reply";
    if (reader->first_byte == 'H')
        return "the server does not speak the Redis protocol, but perhaps HTTP";
    if (reader->first_byte == 0x15 || reader->first_byte == 0x16)
        return "the server does not speak the Redis protocol, but perhaps TLS; use rediss://";
    return "the server does not speak the Redis protocol";
}

/* An array with a nil is absent (0 values); an array with anything but integers is FLEET_REPLY_OTHER. */
static void draft_finish(struct fleet_reply_reader *reader, struct fleet_redis_reply *reply)
{
    if (reader->draft.kind == FLEET_REPLY_VALUES && reader->has_nil)
        reader->draft.values = 0;
    else if (reader->draft.kind == FLEET_REPLY_VALUES && reader->draft.values != reader->expected_values)
        reader->draft.kind = FLEET_REPLY_OTHER;
    assert(reader->draft.values <= FLEET_REPLY_VALUES_MAX && reader->expected_values <= FLEET_REPLY_VALUES_MAX);
    *reply = reader->draft;
    draft_begin(reader);
}

enum fleet_read_result fleet_reply_reader_next(struct fleet_reply_reader *reader, struct fleet_redis_reply *reply,
                                               const char **reason)
{
    void *whole = NULL;
    if (reader->parser == NULL || redisReaderGetReply(reader->parser, &whole) != REDIS_OK) {
        *reason = reader_garbage_reason(reader);
        return FLEET_READ_GARBAGE;
    }
    if (whole != NULL) {
        assert(reader->parser->pos <= reader->parser->len);
        reader->unread = reader->parser->len - reader->parser->pos;
        draft_finish(reader, reply);
        return FLEET_READ_REPLY;
    }
    if (fleet_reply_reader_has_room(reader))
        return FLEET_READ_INCOMPLETE;
    *reason = "the server sent a reply that does not end";
    return FLEET_READ_GARBAGE;
}
