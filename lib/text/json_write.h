/* json_write.h - writes JSON (RFC 8259), into a buffer of the caller or to a stream. Never allocates.
 *
 *     struct text_json json = text_json_to_stream(stdout, TEXT_JSON_INDENTED);
 *     text_json_object(&json, NULL);
 *     text_json_string(&json, "target", name);
 *     text_json_array(&json, "waits_ns");
 *     text_json_integer(&json, NULL, 250);
 *     text_json_end(&json);
 *     text_json_end(&json);
 *     bool whole = text_json_finish(&json) > 0;
 *
 * Text in a buffer is written whole or not at all: text_json_finish returns 0 and leaves an empty string if the buffer
 * was too small. On a stream a failed write is kept in json.failed and in ferror(). So members need no check of their
 * own. The text is UTF-8 for every input: each byte that is not part of a well-formed character becomes U+FFFD. */
#ifndef TEXT_JSON_WRITE_H
#define TEXT_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define TEXT_JSON_DEPTH_MAX 16u

enum text_json_layout {
    TEXT_JSON_LINE,    /* without blanks and line breaks */
    TEXT_JSON_INDENTED /* one member or element per line, indented by two blanks per level; ends with a line break */
};

struct text_json {
    FILE *out; /* NULL: the buffer is written */
    char *buffer;
    size_t size;   /* of the buffer */
    size_t length; /* written so far, without the NUL */
    enum text_json_layout layout;
    unsigned depth;      /* open objects and arrays */
    unsigned line_depth; /* depth of the outermost container that text_json_line put on one line; 0: none */
    bool is_array[TEXT_JSON_DEPTH_MAX]; /* by depth - 1 */
    bool is_empty[TEXT_JSON_DEPTH_MAX];
    bool next_on_line; /* text_json_line was called for the next container */
    bool failed;       /* the buffer is too small, or the stream could not be written */
};

struct text_json text_json_to_buffer(char *buffer, size_t size);
struct text_json text_json_to_stream(FILE *out, enum text_json_layout layout);

/* Each appends a value: a member if the open container is an object, an element if it is an array or the text is empty.
 * The name is NULL for elements. */
void text_json_object(struct text_json *json, const char *name); /* opens it */
void text_json_array(struct text_json *json, const char *name);
void text_json_end(struct text_json *json); /* closes the innermost open container */
void text_json_string(struct text_json *json, const char *name, const char *value); /* NULL is written as null */
void text_json_bytes(struct text_json *json, const char *name, const char *value, size_t length);
void text_json_integer(struct text_json *json, const char *name, int64_t value);
void text_json_unsigned(struct text_json *json, const char *name, uint64_t value);
void text_json_bool(struct text_json *json, const char *name, bool value);
void text_json_null(struct text_json *json, const char *name);

/* Appends a number with up to this many significant digits, 1 to 17, the same in every locale. JSON has no infinities
 * and no NaN: they are written as null. */
void text_json_real(struct text_json *json, const char *name, double value, int digits);

/* Appends a number that is formatted already; NULL is written as null. */
void text_json_digits(struct text_json *json, const char *name, const char *digits);

/* Appends a number of seconds with up to three decimals, none of them trailing zeros: 2, 2.5, 0.001. Not negative. */
void text_json_seconds(struct text_json *json, const char *name, int64_t milliseconds);

/* Appends an instant in UTC, in the form of RFC 3339, with milliseconds: "2026-01-31T12:00:00.000Z". */
void text_json_time(struct text_json *json, const char *name, struct timespec time);

/* Puts the container that is opened next, with all it contains, on one line: for long arrays of numbers. */
void text_json_line(struct text_json *json);

/* Ends the text; all containers must be closed. Returns its length, or 0 if it failed. */
size_t text_json_finish(struct text_json *json);

#endif
