/* json_write.h - writes a flat JSON object (RFC 8259) as a single line into a buffer of the caller. Pure.
 *
 *     struct text_json json = text_json_open(buffer, sizeof buffer);
 *     text_json_string(&json, "type", type);
 *     text_json_integer(&json, "status", 503);
 *     size_t length = text_json_close(&json);
 *
 * The object is written whole or not at all: text_json_close returns 0 and leaves an empty string if the buffer was too
 * small or a string was not UTF-8. So members need no check of their own. */
#ifndef TEXT_JSON_WRITE_H
#define TEXT_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_json {
    char *buffer;
    size_t size;
    size_t length; /* written so far, without the NUL */
    bool failed;   /* the buffer is too small, or a string is not UTF-8 */
};

struct text_json text_json_open(char *buffer, size_t size);

/* Each appends a member. Names are literals of ours and are not escaped. */
void text_json_string(struct text_json *json, const char *name, const char *value);
void text_json_integer(struct text_json *json, const char *name, int64_t value);
void text_json_bool(struct text_json *json, const char *name, bool value);

/* Appends a number of seconds with up to three decimals, none of them trailing zeros: 2, 2.5, 0.001. Not negative. */
void text_json_seconds(struct text_json *json, const char *name, int64_t milliseconds);

/* Ends the object and adds the NUL. Returns its length, or 0. */
size_t text_json_close(struct text_json *json);

#endif
