/* json_write.c - members of a JSON object, appended to a bounded buffer. */
#include "json_write.h"

#include "utf8.h"

#include <string.h>

static void append(struct text_json *json, const char *bytes, size_t length)
{
    if (json->failed || length >= json->size - json->length) { /* one byte stays for the NUL */
        json->failed = true;
        return;
    }
    memcpy(json->buffer + json->length, bytes, length);
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

static void append_name(struct text_json *json, const char *name)
{
    append_text(json, json->length > 1 ? ",\"" : "\"");
    append_text(json, name);
    append_text(json, "\":");
}

/* RFC 8259 section 7: the quotation mark, the reverse solidus and the control characters are escaped. */
static void append_escaped(struct text_json *json, char c)
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt", hex[] = "0123456789abcdef";
    const char *found = memchr(special, c, sizeof special - 1);
    if (found != NULL)
        append(json, (const char[]){'\\', letters[found - special]}, 2);
    else
        append(json, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

static bool needs_escape(char c)
{
    return (c >= 0 && c < ' ') || c == '"' || c == '\\';
}

struct text_json text_json_open(char *buffer, size_t size)
{
    struct text_json json = {.buffer = buffer, .size = size, .failed = size == 0};
    append(&json, "{", 1);
    return json;
}

void text_json_string(struct text_json *json, const char *name, const char *value)
{
    append_name(json, name);
    append(json, "\"", 1);
    for (size_t left = strlen(value), n; left > 0; value += n, left -= n) {
        n = text_utf8_length(value, left);
        if (n == 0) {
            json->failed = true;
            return;
        }
        if (needs_escape(*value))
            append_escaped(json, *value);
        else
            append(json, value, n);
    }
    append(json, "\"", 1);
}

void text_json_integer(struct text_json *json, const char *name, int64_t value)
{
    append_name(json, name);
    if (value < 0)
        append(json, "-", 1);
    append_number(json, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void text_json_bool(struct text_json *json, const char *name, bool value)
{
    append_name(json, name);
    append_text(json, value ? "true" : "false");
}

void text_json_seconds(struct text_json *json, const char *name, int64_t milliseconds)
{
    int rest = (int)(milliseconds % 1000);
    text_json_integer(json, name, milliseconds / 1000);
    if (rest == 0)
        return;
    append(json, ".", 1);
    for (int unit = 100; rest > 0; rest %= unit, unit /= 10)
        append_number(json, (uint64_t)(rest / unit));
}

size_t text_json_close(struct text_json *json)
{
    append(json, "}", 1);
    if (json->failed)
        json->length = 0;
    if (json->size > 0)
        json->buffer[json->length] = '\0';
    return json->length;
}
