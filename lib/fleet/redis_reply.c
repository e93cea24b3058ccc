/* reply.c - hiredis' reader with functions that store what they are told into one struct fleet_reply.
 *
 * The reader calls them while it goes through a reply, possibly over several feeds; the draft is handed out when it
 * says that the reply is whole. A function that returns NULL makes the reader give up for good, which it calls out of
 * memory; `refused` keeps what it really was. */
#include "redis_reply.h"

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
    const char *refused;            /* NULL: nothing */
    struct fleet_redis_reply draft; /* of the reply being read */
    size_t expected_values;         /* values that it has if all of it are numbers */
    bool has_nil;                   /* there was a nil */
    size_t unread;                  /* bytes fed since the last whole reply */
    unsigned char first_byte;       /* byte of a connection: tells other protocols */
    bool has_first_byte;
};

static int accepted; /* what the functions return for "fine": nobody looks inside */

/* ---- texts ---- */

static char char_printable(char c)
{
    if (c < ' ' || c > '~')
        return '?';
    return c;
}

/* What is read and not only told stays as it is, even if the password ("redis", "1") is a piece of it: an error's first
 * word, which is in capitals, and the place that MOVED names. Neither repeats what was sent. */
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

/* Copies an error: printable bytes, and stars instead of the secret. The search comes before the cut, so that no part
 * of a secret stays at the end. */
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

/* A decimal integer and nothing else. */
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

/* ---- what the reader calls ---- */

static void *reply_refuse(struct fleet_reply_reader *reader, const char *reason)
{
    reader->refused = reason;
    return NULL;
}

static void *reply_add_value(struct fleet_reply_reader *reader, int64_t value)
{
    if (reader->draft.values == FLEET_REPLY_VALUES_MAX)
        return reply_refuse(reader, "it sends a reply of too many values");
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
    return &accepted; /* anything else is one value too few */
}

static void *on_array(const redisReadTask *task, COUNT elements)
{
    struct fleet_reply_reader *reader = task->privdata;
    if (task->parent != NULL)
        return reply_refuse(reader, "it sends an array inside an array");
    if ((size_t)elements > FLEET_REPLY_VALUES_MAX)
        return reply_refuse(reader, "it sends a reply of too many values");
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

/* ---- the stream ---- */

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
    reader->parser->maxbuf = 0; /* never freed and made anew in between: hiredis asserts that it can be */
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
    redisReaderFeed(reader->parser, bytes, length); /* a failure stays in the reader, and fleet_replies_next tells it */
}

/* What came instead of the protocol. The bytes themselves are not repeated: they may hold anything. */
static const char *reader_garbage_reason(const struct fleet_reply_reader *reader)
{
    if (reader->refused != NULL)
        return reader->refused;
    if (reader->parser == NULL || reader->parser->err == REDIS_ERR_OOM)
        return "no memory for a reply";
    if (reader->first_byte == 'H')
        return "it does not speak Redis, but perhaps HTTP";
    if (reader->first_byte == 0x15 || reader->first_byte == 0x16)
        return "it does not speak Redis, but perhaps TLS; want rediss://";
    return "it does not speak Redis";
}

/* An array is of numbers only, or it is something else; one nil in it, and it is absent. */
static void draft_finish(struct fleet_reply_reader *reader, struct fleet_redis_reply *reply)
{
    if (reader->draft.kind == FLEET_REPLY_VALUES && reader->has_nil)
        reader->draft.values = 0;
    else if (reader->draft.kind == FLEET_REPLY_VALUES && reader->draft.values != reader->expected_values)
        reader->draft.kind = FLEET_REPLY_OTHER;
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
        reader->unread = reader->parser->len - reader->parser->pos;
        draft_finish(reader, reply);
        return FLEET_READ_REPLY;
    }
    if (fleet_reply_reader_has_room(reader))
        return FLEET_READ_INCOMPLETE;
    *reason = "it sends a reply that does not end";
    return FLEET_READ_GARBAGE;
}
