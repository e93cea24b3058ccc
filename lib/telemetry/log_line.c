/* log_line.c - logfmt and JSON lines: see log_line.h. JSON is written by lib/text. Logfmt has no standard: here a value
 * is bare if it has neither blank, quotation mark, backslash, equals sign nor control character, else a JSON string. */
#include "log_line.h"

#include "text/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

struct telemetry_line telemetry_line_begin(enum bide_telemetry_log format, char *text, size_t size)
{
    struct telemetry_line line = {.is_json = format == BIDE_TELEMETRY_LOG_JSON, .text = text, .size = size};
    assert(size > 1 && format != BIDE_TELEMETRY_LOG_NONE);
    if (line.is_json) {
        line.json = text_json_to_buffer(text, size - 1); /* room for the line break */
        text_json_object(&line.json, NULL);
    }
    return line;
}

/* ---- logfmt ---- */

static void line_append(struct telemetry_line *line, const char *bytes, size_t length)
{
    line->failed |= length >= line->size - line->length; /* one byte stays for the line break */
    if (line->failed)
        return;
    memcpy(line->text + line->length, bytes, length);
    line->length += length;
}

static void line_append_name(struct telemetry_line *line, const char *name)
{
    if (line->length > 0)
        line_append(line, " ", 1);
    line_append(line, name, strlen(name));
    line_append(line, "=", 1);
}

static bool value_is_bare(struct bide_text value)
{
    bool is_bare = value.length > 0;
    for (size_t i = 0, n; i < value.length && is_bare; i += n) {
        n = text_utf8_printable(value.at + i, value.length - i);
        is_bare = n > 0 && strchr(" \"\\=", value.at[i]) == NULL;
    }
    return is_bare;
}

/* Appends the first character of a quoted value, or a replacement for it. Returns how many bytes it has. */
static size_t line_append_character(struct telemetry_line *line, const char *at, size_t left)
{
    char code[8];
    size_t length = text_utf8_length(at, left);
    if (length == 0) {
        line_append(line, REPLACEMENT, 3);
        return 1;
    }
    if (text_utf8_printable(at, left) == 0) { /* C0 and DEL are one byte, C1 is c2 80 to c2 9f */
        snprintf(code, sizeof code, "\\u%04x", (unsigned char)at[length - 1]);
        line_append(line, code, 6);
    } else {
        if (*at == '"' || *at == '\\')
            line_append(line, "\\", 1);
        line_append(line, at, length);
    }
    return length;
}

static void line_append_value(struct telemetry_line *line, struct bide_text value)
{
    if (value_is_bare(value)) {
        line_append(line, value.at, value.length);
        return;
    }
    line_append(line, "\"", 1);
    for (size_t i = 0; i < value.length;)
        i += line_append_character(line, value.at + i, value.length - i);
    line_append(line, "\"", 1);
}

/* ---- members ---- */

void telemetry_line_text(struct telemetry_line *line, const char *name, struct bide_text value)
{
    if (line->is_json) {
        text_json_bytes(&line->json, name, value.at, value.length);
        return;
    }
    line_append_name(line, name);
    line_append_value(line, value);
}

void telemetry_line_label(struct telemetry_line *line, const char *name, const char *label)
{
    telemetry_line_text(line, name, (struct bide_text){label, strlen(label)});
}

void telemetry_line_time(struct telemetry_line *line, const char *name, int64_t wall_ns)
{
    char text[64];
    int64_t rest = wall_ns % BIDE_S;
    struct timespec time = {.tv_sec = wall_ns / BIDE_S - (rest < 0), .tv_nsec = rest < 0 ? rest + BIDE_S : rest};
    if (line->is_json) {
        text_json_time(&line->json, name, time);
        return;
    }
    struct text_json quoted = text_json_to_buffer(text, sizeof text);
    text_json_time(&quoted, NULL, time);
    size_t length = text_json_finish(&quoted);
    telemetry_line_text(line, name, (struct bide_text){text + 1, length - 2});
}

void telemetry_line_number(struct telemetry_line *line, const char *name, int64_t value)
{
    char digits[24];
    if (line->is_json) {
        text_json_integer(&line->json, name, value);
        return;
    }
    snprintf(digits, sizeof digits, "%" PRId64, value);
    telemetry_line_label(line, name, digits);
}

void telemetry_line_ms(struct telemetry_line *line, const char *name, int64_t ns)
{
    telemetry_line_number(line, name, ns <= 0 ? 0 : ns / BIDE_MS + (ns % BIDE_MS != 0));
}

void telemetry_line_null(struct telemetry_line *line, const char *name)
{
    if (line->is_json)
        text_json_null(&line->json, name);
}

void telemetry_line_id(struct telemetry_line *line, const char *name, uint64_t id)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, id);
    telemetry_line_label(line, name, digits);
}

void telemetry_line_id_pair(struct telemetry_line *line, const char *name, uint64_t high, uint64_t low)
{
    char digits[33];
    snprintf(digits, sizeof digits, "%016" PRIx64 "%016" PRIx64, high, low);
    telemetry_line_label(line, name, digits);
}

size_t telemetry_line_end(struct telemetry_line *line)
{
    if (line->is_json) {
        text_json_end(&line->json);
        line->length = text_json_finish(&line->json);
        line->failed = line->length == 0;
    }
    if (line->failed)
        return 0;
    line->text[line->length++] = '\n';
    return line->length;
}
