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

struct fleet_replies {
    redisReader *reader;
    const char *secret;
    const char *refused;      /* NULL: nothing */
    struct fleet_reply draft; /* of the reply being read */
    size_t announced;         /* values that it has if all of it are numbers */
    bool absent;              /* there was a nil */
    size_t unread;            /* bytes fed since the last whole reply */
    unsigned char first;      /* byte of a connection: tells other protocols */
    bool began;
};

static int there; /* what the functions return for "fine": nobody looks inside */

/* ---- texts ---- */

static char printable(char c)
{
    if (c < ' ' || c > '~')
        return '?';
    return c;
}

/* What is read and not only told stays as it is, even if the password ("redis", "1") is a piece of it: an error's first
 * word, which is in capitals, and the place that MOVED names. Neither repeats what was sent. */
static size_t open_part(const char *text, size_t length)
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
static void copy_error(char into[FLEET_ERROR_MAX], const char *text, size_t length, const char *secret)
{
    size_t hidden = secret != NULL ? strlen(secret) : 0, open = open_part(text, length), used = 0;
    for (size_t i = 0; i < length && used + 1 < FLEET_ERROR_MAX;) {
        if (hidden > 0 && i >= open && length - i >= hidden && memcmp(text + i, secret, hidden) == 0) {
            for (size_t star = 0; star < 3 && used + 1 < FLEET_ERROR_MAX; star++)
                into[used++] = '*';
            i += hidden;
            continue;
        }
        into[used++] = printable(text[i++]);
    }
    into[used] = '\0';
}

/* A decimal integer and nothing else. */
static bool read_integer(const char *text, size_t length, int64_t *value)
{
    bool negative = length > 0 && text[0] == '-';
    uint64_t sum = 0, most = negative ? UINT64_C(1) << 63 : (uint64_t)INT64_MAX;
    size_t i = negative;
    if (length == i || length > 20)
        return false;
    for (; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || sum > (most - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

/* ---- what the reader calls ---- */

static void *refuse(struct fleet_replies *r, const char *reason)
{
    r->refused = reason;
    return NULL;
}

static void *add(struct fleet_replies *r, int64_t value)
{
    if (r->draft.values == FLEET_VALUES_MAX)
        return refuse(r, "it sends a reply of too many values");
    r->draft.value[r->draft.values++] = value;
    return &there;
}

static void *on_string(const redisReadTask *task, char *text, size_t length)
{
    struct fleet_replies *r = task->privdata;
    int64_t value;
    if (task->type == REDIS_REPLY_STRING && read_integer(text, length, &value))
        return add(r, value);
    if (task->type == REDIS_REPLY_ERROR && task->parent == NULL) {
        r->draft.kind = FLEET_REPLY_ERROR;
        copy_error(r->draft.error, text, length, r->secret);
    }
    return &there; /* anything else is one value too few */
}

static void *on_array(const redisReadTask *task, COUNT elements)
{
    struct fleet_replies *r = task->privdata;
    if (task->parent != NULL)
        return refuse(r, "it sends an array inside an array");
    if ((size_t)elements > FLEET_VALUES_MAX)
        return refuse(r, "it sends a reply of too many values");
    r->announced = (size_t)elements;
    return &there;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    return add(task->privdata, value);
}

static void *on_nil(const redisReadTask *task)
{
    struct fleet_replies *r = task->privdata;
    r->absent = true;
    return &there;
}

static redisReplyObjectFunctions functions = {
    .createString = on_string, .createArray = on_array, .createInteger = on_integer, .createNil = on_nil};

/* ---- the stream ---- */

struct fleet_replies *fleet_replies_new(const char *secret)
{
    struct fleet_replies *replies = calloc(1, sizeof *replies);
    if (replies != NULL)
        replies->secret = secret;
    return replies;
}

void fleet_replies_free(struct fleet_replies *replies)
{
    if (replies != NULL)
        redisReaderFree(replies->reader);
    free(replies);
}

static void begin_draft(struct fleet_replies *r)
{
    r->draft = (struct fleet_reply){.kind = FLEET_REPLY_VALUES};
    r->announced = 1;
    r->absent = false;
}

bool fleet_replies_begin(struct fleet_replies *r)
{
    redisReaderFree(r->reader);
    r->reader = redisReaderCreateWithFunctions(&functions);
    r->refused = NULL;
    r->unread = 0;
    r->began = false;
    begin_draft(r);
    if (r->reader == NULL)
        return false;
    r->reader->privdata = r;
    r->reader->maxbuf = 0; /* never freed and made anew in between: hiredis asserts that it can be */
    return true;
}

bool fleet_replies_room(const struct fleet_replies *r)
{
    return r->unread < FLEET_REPLY_MAX;
}

size_t fleet_replies_unread(const struct fleet_replies *r)
{
    return r->unread;
}

void fleet_replies_feed(struct fleet_replies *r, const char *bytes, size_t length)
{
    if (length == 0 || r->reader == NULL)
        return;
    if (!r->began)
        r->first = (unsigned char)bytes[0];
    r->began = true;
    r->unread += length;
    redisReaderFeed(r->reader, bytes, length); /* a failure stays in the reader, and fleet_replies_next tells it */
}

/* What came instead of the protocol. The bytes themselves are not repeated: they may hold anything. */
static const char *garbage(const struct fleet_replies *r)
{
    if (r->refused != NULL)
        return r->refused;
    if (r->reader == NULL || r->reader->err == REDIS_ERR_OOM)
        return "no memory for a reply";
    if (r->first == 'H')
        return "it does not speak Redis, but perhaps HTTP";
    if (r->first == 0x15 || r->first == 0x16)
        return "it does not speak Redis, but perhaps TLS; want rediss://";
    return "it does not speak Redis";
}

/* An array is of numbers only, or it is something else; one nil in it, and it is absent. */
static void finish(struct fleet_replies *r, struct fleet_reply *reply)
{
    if (r->draft.kind == FLEET_REPLY_VALUES && r->absent)
        r->draft.values = 0;
    else if (r->draft.kind == FLEET_REPLY_VALUES && r->draft.values != r->announced)
        r->draft.kind = FLEET_REPLY_OTHER;
    *reply = r->draft;
    begin_draft(r);
}

enum fleet_reading fleet_replies_next(struct fleet_replies *r, struct fleet_reply *reply, const char **reason)
{
    void *whole = NULL;
    if (r->reader == NULL || redisReaderGetReply(r->reader, &whole) != REDIS_OK) {
        *reason = garbage(r);
        return FLEET_READING_GARBAGE;
    }
    if (whole != NULL) {
        r->unread = r->reader->len - r->reader->pos;
        finish(r, reply);
        return FLEET_READING_REPLY;
    }
    if (fleet_replies_room(r))
        return FLEET_READING_NOTHING;
    *reason = "it sends a reply that does not end";
    return FLEET_READING_GARBAGE;
}
