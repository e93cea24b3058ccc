/* json.h - JSON (RFC 8259) read where it lies: strict, without memory, member by member.
 *
 *     struct http_json json = http_json_open(body);
 *     struct http_json_member member;
 *     while (http_json_next(&json, &member))
 *         look at member.name and member.value
 *     if (!http_json_is_whole(&json))
 *         forget all of it: the text is no JSON object
 *
 * A member is two pieces of the text, as they stand there: the name with its quotes, and the value, already checked.
 * Its first character tells its type. Strings are UTF-8 and have no lone surrogates. */
#ifndef HTTP_JSON_H
#define HTTP_JSON_H

#include <bide/hint.h>

#define HTTP_JSON_DEPTH 32u /* most objects and arrays inside one another, the outermost included */

struct http_json {
    struct bide_text rest;
    bool open;       /* more may follow */
    bool has_member; /* a member was read: the next one needs a comma */
    bool complete;   /* read to the end, and all was well */
};

struct http_json_member {
    struct bide_text name;
    struct bide_text value;
};

struct http_json http_json_open(struct bide_text text);

/* False at the end, and at the first thing that is malformed. */
bool http_json_next(struct http_json *json, struct http_json_member *member);
bool http_json_is_complete(const struct http_json *json);

/* What a string says, and a NUL. False if `quoted` is no string, or says more than fits. It may say NUL itself: the
 * length tells. */
bool http_json_string(struct bide_text quoted, char *text, size_t size, size_t *length);

/* A number times 10^places, rounded up, saturated. False if `value` is no number, or a negative one. *exact: nothing
 * had to be rounded. No double comes in between: 2.1 seconds are 2100000000 nanoseconds. */
bool http_json_scaled(struct bide_text value, int places, int64_t *number, bool *exact);

#endif
