/* json_write.c - JSON text, appended to a bounded buffer or to a stream. */
#include "json_write.h"

#include "utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

static void append(struct text_json *json, const char *bytes, size_t length)
{
    if (json->out != NULL) { /* also after a failure: the caller's fflush then fails, too, and sets errno */
        json->failed |= fwrite(bytes, 1, length, json->out) != length;
    } else if (json->failed || length >= json->size - json->length) { /* one byte stays for the NUL */
        json->failed = true;
        return;
    } else {
        memcpy(json->buffer + json->length, bytes, length);
    }
    json->length += length;
}

static void append_text(struct text_json *json, const char *text)
{
    append(json, text, strlen(text));
}

static void append_number(struct text_json *json, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    append(json, digits + at, sizeof digits - at);
}

/* ---- strings ---- */

/* RFC 8259 section 7: the quotation mark, the reverse solidus and the control characters are escaped; DEL too, which
 * terminals do not show. */
static bool needs_escape(char c)
{
    return (c >= 0 && c < ' ') || c == '"' || c == '\\' || c == 0x7f;
}

static void append_escaped(struct text_json *json, char c)
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt", hex[] = "0123456789abcdef";
    const char *found = memchr(special, c, sizeof special - 1);
    if (found != NULL)
        append(json, (const char[]){'\\', letters[found - special]}, 2);
    else
        append(json, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

static void append_string(struct text_json *json, const char *value, size_t left)
{
    append(json, "\"", 1);
    for (size_t n; left > 0; value += n, left -= n) {
        n = text_utf8_length(value, left);
        if (n == 0) {
            append_text(json, "\xef\xbf\xbd");
            n = 1;
        } else if (needs_escape(*value)) {
            append_escaped(json, *value);
        } else {
            append(json, value, n);
        }
    }
    append(json, "\"", 1);
}

/* ---- layout ---- */

static bool is_indented(const struct text_json *json)
{
    return json->layout == TEXT_JSON_INDENTED && json->line_depth == 0;
}

static void append_line_break(struct text_json *json)
{
    static const char blanks[2 * TEXT_JSON_DEPTH_MAX + 1] = "\n                                ";
    append(json, blanks, 1 + 2 * (size_t)json->depth);
}

/* Appends the comma, the line break and the name before a value. */
static void append_name(struct text_json *json, const char *name)
{
    if (json->depth > 0) {
        bool *is_empty = &json->is_empty[json->depth - 1];
        assert(json->is_array[json->depth - 1] == (name == NULL));
        if (!*is_empty)
            append_text(json, json->layout == TEXT_JSON_INDENTED && !is_indented(json) ? ", " : ",");
        *is_empty = false;
        if (is_indented(json))
            append_line_break(json);
    } else {
        assert(json->length == 0 || json->failed);
    }
    if (name == NULL)
        return;
    append_string(json, name, strlen(name));
    append_text(json, json->layout == TEXT_JSON_INDENTED ? ": " : ":");
}

static void container_open(struct text_json *json, const char *name, bool is_array)
{
    append_name(json, name);
    append(json, is_array ? "[" : "{", 1);
    assert(json->depth < TEXT_JSON_DEPTH_MAX);
    json->is_array[json->depth] = is_array;
    json->is_empty[json->depth] = true;
    json->depth++;
    if (json->next_on_line && json->line_depth == 0)
        json->line_depth = json->depth;
    json->next_on_line = false;
}

void text_json_line(struct text_json *json)
{
    json->next_on_line = true;
}

void text_json_object(struct text_json *json, const char *name)
{
    container_open(json, name, false);
}

void text_json_array(struct text_json *json, const char *name)
{
    container_open(json, name, true);
}

void text_json_end(struct text_json *json)
{
    assert(json->depth > 0);
    bool was_indented = is_indented(json);
    if (json->line_depth == json->depth)
        json->line_depth = 0;
    json->depth--;
    if (was_indented && !json->is_empty[json->depth])
        append_line_break(json);
    append(json, json->is_array[json->depth] ? "]" : "}", 1);
}

/* ---- values ---- */

void text_json_bytes(struct text_json *json, const char *name, const char *value, size_t length)
{
    append_name(json, name);
    append_string(json, value, length);
}

void text_json_string(struct text_json *json, const char *name, const char *value)
{
    if (value == NULL)
        text_json_null(json, name);
    else
        text_json_bytes(json, name, value, strlen(value));
}

void text_json_integer(struct text_json *json, const char *name, int64_t value)
{
    append_name(json, name);
    if (value < 0)
        append(json, "-", 1);
    append_number(json, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void text_json_unsigned(struct text_json *json, const char *name, uint64_t value)
{
    append_name(json, name);
    append_number(json, value);
}

void text_json_digits(struct text_json *json, const char *name, const char *digits)
{
    append_name(json, name);
    append_text(json, digits != NULL ? digits : "null");
}

void text_json_bool(struct text_json *json, const char *name, bool value)
{
    text_json_digits(json, name, value ? "true" : "false");
}

void text_json_null(struct text_json *json, const char *name)
{
    text_json_digits(json, name, NULL);
}

/* printf writes the decimal point of the locale, which may be several bytes. */
static void use_decimal_point(char *digits)
{
    size_t mark = strspn(digits, "-0123456789e+"), bytes = strcspn(digits + mark, "0123456789e");
    if (bytes == 0)
        return;
    digits[mark] = '.';
    memmove(digits + mark + 1, digits + mark + bytes, strlen(digits + mark + bytes) + 1);
}

void text_json_real(struct text_json *json, const char *name, double value, int digits)
{
    char text[64];
    assert(digits >= 1 && digits <= 17);
    snprintf(text, sizeof text, "%.*g", digits, value);
    use_decimal_point(text);
    text_json_digits(json, name, isfinite(value) ? text : NULL);
}

void text_json_seconds(struct text_json *json, const char *name, int64_t milliseconds)
{
    int rest = (int)(milliseconds % 1000);
    assert(milliseconds >= 0);
    text_json_integer(json, name, milliseconds / 1000);
    if (rest == 0)
        return;
    append(json, ".", 1);
    for (int unit = 100; rest > 0; rest %= unit, unit /= 10)
        append_number(json, (uint64_t)(rest / unit));
}

void text_json_time(struct text_json *json, const char *name, struct timespec time)
{
    struct tm date;
    char text[48];
    assert(time.tv_nsec >= 0 && time.tv_nsec < 1000000000);
    bool has_date = gmtime_r(&time.tv_sec, &date) != NULL;
    size_t length = has_date ? strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &date) : 0;
    snprintf(text + length, sizeof text - length, ".%03dZ", (int)(time.tv_nsec / 1000000));
    text_json_string(json, name, has_date ? text : NULL);
}

/* ---- whole texts ---- */

struct text_json text_json_to_buffer(char *buffer, size_t size)
{
    return (struct text_json){.buffer = buffer, .size = size, .failed = size == 0};
}

struct text_json text_json_to_stream(FILE *out, enum text_json_layout layout)
{
    return (struct text_json){.out = out, .layout = layout};
}

size_t text_json_finish(struct text_json *json)
{
    assert(json->depth == 0);
    if (json->layout == TEXT_JSON_INDENTED)
        append(json, "\n", 1);
    if (json->failed)
        json->length = 0;
    if (json->out == NULL && json->size > 0)
        json->buffer[json->length] = '\0';
    return json->length;
}
