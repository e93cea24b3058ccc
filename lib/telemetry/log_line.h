/* log_line.h - one line of the log, rendered into a buffer as logfmt or as a JSON object: the same members under the
 * same names.
 *
 *     struct telemetry_line line = telemetry_line_begin(BIDE_TELEMETRY_LOG_LOGFMT, buffer, sizeof buffer);
 *     telemetry_line_text(&line, "target", name);
 *     telemetry_line_number(&line, "attempt", 2);
 *     size_t length = telemetry_line_end(&line); // target=inventory attempt=2, and a line break
 *
 * Whatever the texts hold, a line is one line of UTF-8 without control characters. A byte that is not
 * part of a well-formed character becomes U+FFFD. In logfmt a value that needs it is quoted and escaped as in JSON. */
#ifndef TELEMETRY_LOG_LINE_H
#define TELEMETRY_LOG_LINE_H

#include <bide/hint.h>
#include <bide/telemetry.h>

#include "text/json_write.h"

struct telemetry_line {
    struct text_json json; /* BIDE_TELEMETRY_LOG_JSON */
    bool is_json;
    bool failed; /* logfmt: the buffer is too small */
    char *text;
    size_t size;
    size_t length; /* logfmt: written so far */
};

struct telemetry_line telemetry_line_begin(enum bide_telemetry_log format, char *text, size_t size);

/* Appends an instant of the wall clock, as 2026-11-19T21:23:02.024Z. */
void telemetry_line_time(struct telemetry_line *line, const char *name, int64_t wall_ns);

void telemetry_line_text(struct telemetry_line *line, const char *name, struct bide_text value);
void telemetry_line_label(struct telemetry_line *line, const char *name, const char *label);
void telemetry_line_number(struct telemetry_line *line, const char *name, int64_t value);

/* Appends milliseconds, rounded up: a wait is never shown too short. */
void telemetry_line_ms(struct telemetry_line *line, const char *name, int64_t ns);

/* A member without a value: null in JSON, nothing in logfmt. */
void telemetry_line_null(struct telemetry_line *line, const char *name);

/* Appends an id as 16 or 32 hexadecimal digits. */
void telemetry_line_id(struct telemetry_line *line, const char *name, uint64_t id);
void telemetry_line_id_pair(struct telemetry_line *line, const char *name, uint64_t high, uint64_t low);

/* Appends the line break. Returns the length with it; 0: the buffer is too small. */
size_t telemetry_line_end(struct telemetry_line *line);

#endif
