/* json.h - a strict JSON (RFC 8259) parser that works in place and allocates nothing: it iterates over the
 * members of an object or the elements of an array.
 *
 *     struct http_json json = http_json_open(body);
 *     struct http_json_member member;
 *     while (http_json_next(&json, &member))
 *         use member.name and member.value
 *     if (!http_json_is_complete(&json))
 *         ignore all members: the text is not a JSON object
 *
 * A member consists of two slices of the text: the name with its quotes, and the validated value, whose first character
 * identifies its type. Strings are UTF-8 without lone surrogates. */
#ifndef HTTP_JSON_H
#define HTTP_JSON_H

#include <bide/hint.h>

#define HTTP_JSON_DEPTH 32u /* maximum nesting of objects and arrays, the outermost included */

struct http_json {
    struct bide_text rest;
    char close;      /* '}' or ']' */
    bool open;       /* more members may follow */
    bool has_member; /* a member was read: the next needs a comma */
    bool complete;   /* the whole text was read and is well-formed */
};

struct http_json_member {
    struct bide_text name;
    struct bide_text value;
};

struct http_json http_json_open(struct bide_text text);

/* Opens an array. Its elements are members without a name (an absent text). */
struct http_json http_json_open_array(struct bide_text text);

/* Returns false at the end, and at the first malformed element; `rest` then begins near the mistake. */
bool http_json_next(struct http_json *json, struct http_json_member *member);
bool http_json_is_complete(const struct http_json *json);

/* Decodes a string and appends a NUL. Returns false if `quoted` is not a string or does not fit. The string may contain
 * NUL: *length is its real length. */
bool http_json_string(struct bide_text quoted, char *text, size_t size, size_t *length);

/* Parses value * 10^places, rounded up, saturated. Returns false if `value` is not a number or is negative. *exact:
 * nothing was rounded. No double is involved: 2.1 seconds are exactly 2100000000 nanoseconds. */
bool http_json_scaled(struct bide_text value, int places, int64_t *number, bool *exact);

#endif
