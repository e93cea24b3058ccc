/* details.c - problem details (RFC 9457): a body of JSON, read for what a retry cares for, and written.
 *
 * The body comes from a server that is in trouble, or from whoever answers in its name, so every way in which it could
 * be large is bounded first: its length, and its depth, because the parser recurses. A number is read as a double, also
 * one without a fraction: then an account number of thirty digits somewhere in the body does not spoil the rest.
 *
 * Known weaknesses: the parser may need 160 times a body's length (10 MB) for a moment. A number beyond the doubles
 * (1e309) makes the whole body absent, for the parser stops there. Waits of more than 97 days are as exact as a double
 * is: to a microsecond in the worst case. */
#include <bide/details.h>

#include "core/saturate.h"
#include "value.h"

#include <jansson.h>
#include <string.h>

/* ---- media type ---- */

/* RFC 9110 8.3.1: type and subtype know no case; parameters follow after a semicolon. */
bool bide_details_media_type(struct bide_text value)
{
    struct bide_text trimmed = http_trim(value);
    size_t length = http_begins(trimmed, "application/problem+json");
    struct bide_text rest = http_trim(http_from(trimmed, length));
    return length > 0 && (rest.length == 0 || rest.at[0] == ';');
}

/* ---- reading ---- */

/* Looks only at strings and brackets. A text that misleads it is no JSON up to that point, so the parser, which reads
 * from the left as well, gets no further. */
static bool is_shallow(struct bide_text body)
{
    unsigned depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < body.length; i++) {
        char c = body.at[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && (c == '}' || c == ']') && depth > 0)
            depth--;
        if (depth > BIDE_DETAILS_DEPTH)
            return false;
    }
    return true;
}

static json_t *load_once(struct bide_text body)
{
    return json_loadb(body.at, body.length, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
}

/* Twice, for jansson 2.14 has a flaw: a token whose buffer could not grow loses a character without a word, and a wait
 * of 1000 s might become one of 100 s. Only if memory came back at once, but then nothing else would tell. */
static json_t *load(struct bide_text body)
{
    if (body.at == NULL || body.length > BIDE_DETAILS_MAX || !is_shallow(body))
        return NULL;
    json_t *json = load_once(body), *again = json_is_object(json) ? load_once(body) : NULL;
    bool sure = json_equal(json, again) != 0;
    json_decref(again);
    if (sure)
        return json;
    json_decref(json);
    return NULL;
}

static bool has_controls(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f)
        i++;
    return i < length;
}

/* A URI has no control characters; who logs this one must not be made to log a line of the server's. */
static void read_type(char type[BIDE_DETAILS_TYPE_MAX], const json_t *member)
{
    size_t length = json_string_length(member); /* 0 if it is no string */
    if (length > 0 && length < BIDE_DETAILS_TYPE_MAX && !has_controls(json_string_value(member), length))
        memcpy(type, json_string_value(member), length + 1);
}

static int read_status(const json_t *member)
{
    double number = json_real_value(member); /* 0 if it is no number */
    bool good = number >= 100 && number <= 999 && number == (double)(int)number;
    return good ? (int)number : 0;
}

/* The least number of nanoseconds that is not less when written in seconds and read as a double: rounded up, but not
 * for the error of the double itself. 2.1 s are 2100000000 ns and not one more. */
static int64_t nanoseconds(double seconds)
{
    if (seconds >= (double)(BIDE_NEVER / BIDE_S))
        return BIDE_NEVER;
    int64_t whole = (int64_t)seconds;
    int64_t ns = whole * BIDE_S + (int64_t)((seconds - (double)whole) * (double)BIDE_S + 0.5);
    return ns + ((double)ns / (double)BIDE_S < seconds);
}

static struct bide_hint read_wait(const json_t *member)
{
    double seconds = json_real_value(member);
    if (!json_is_real(member) || !(seconds >= 0))
        return (struct bide_hint){BIDE_HINT_NONE, 0};
    return (struct bide_hint){BIDE_HINT_WAIT, nanoseconds(seconds)};
}

static struct bide_hint read_hint(const json_t *json)
{
    static const char *const spellings[] = {"retry_after", "retry-after", "retryAfter"};
    struct bide_hint hint = {json_is_false(json_object_get(json, "retry")) ? BIDE_HINT_STOP : BIDE_HINT_NONE, 0};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        hint = bide_hint_merge(hint, read_wait(json_object_get(json, spellings[i])));
    return hint;
}

bool bide_details_parse(struct bide_text body, struct bide_details *details)
{
    json_t *json = load(body);
    *details = (struct bide_details){0};
    if (json == NULL)
        return false;
    read_type(details->type, json_object_get(json, "type"));
    details->status = read_status(json_object_get(json, "status"));
    details->hint = read_hint(json);
    json_decref(json);
    return true;
}

const struct bide_details_rule *bide_details_find(const struct bide_details *details,
                                                  const struct bide_details_rule *rule, size_t count)
{
    for (size_t i = 0; i < count && details->type[0] != '\0'; i++)
        if (rule[i].type != NULL && strcmp(rule[i].type, details->type) == 0)
            return &rule[i];
    return NULL;
}

/* ---- writing ---- */

static bool put(json_t *json, const char *name, json_t *value)
{
    return json_object_set_new(json, name, value) == 0; /* fails also for a value that could not be made */
}

static bool put_text(json_t *json, const char *name, const char *text)
{
    return text == NULL || put(json, name, json_string(text));
}

/* Whole seconds without a point, for readers that want an integer. */
static bool put_wait(json_t *json, int64_t wait_ns)
{
    if (wait_ns == BIDE_NEVER)
        return true;
    int64_t ms = core_sum(core_max(wait_ns, 0), BIDE_MS - 1) / BIDE_MS;
    return put(json, "retry_after", ms % 1000 == 0 ? json_integer(ms / 1000) : json_real((double)ms / 1000));
}

static bool put_all(json_t *json, const struct bide_details_reply *reply)
{
    return put_text(json, "type", reply->type) && put_text(json, "title", reply->title) &&
           (reply->status == 0 || put(json, "status", json_integer(reply->status))) &&
           put_text(json, "detail", reply->detail) && put_wait(json, reply->retry_after_ns) &&
           (!reply->no_retry || put(json, "retry", json_false()));
}

size_t bide_details_format(char *text, size_t size, const struct bide_details_reply *reply)
{
    json_t *json = json_object();
    size_t length = 0;
    if (json != NULL && put_all(json, reply))
        length = json_dumpb(json, text, size, JSON_COMPACT | JSON_REAL_PRECISION(15)); /* 13 digits are used */
    json_decref(json);
    if (length >= size)
        length = 0;
    if (size > 0)
        text[length] = '\0';
    return length;
}
