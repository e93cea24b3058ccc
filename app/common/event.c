/* event.c - JSON events; see event.h. Each line is rendered into a buffer on the stack. A line that does not fit,
 * because of a very long URL, is rendered again into a larger buffer; without memory, directly to the stream, which for
 * stderr means a system call for each character. */
#include "event.h"

#include "text/json_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define LINE_SIZE      8192u
#define LONG_LINE_SIZE (1u << 20) /* a URL of 128 KiB, the longest argument, with all its bytes escaped */

static const char *const event_names[] = {
    [CLI_EVENT_ATTEMPT] = "attempt", [CLI_EVENT_OUTCOME] = "outcome", [CLI_EVENT_WAIT] = "wait",
    [CLI_EVENT_DONE] = "done",       [CLI_EVENT_GIVE_UP] = "give_up", [CLI_EVENT_FALLBACK] = "fallback",
    [CLI_EVENT_FLEET] = "fleet",     [CLI_EVENT_ERROR] = "error",
};

/* ---- members ---- */

/* Rounded up: a wait is never shown too short. */
static void put_ms(struct text_json *json, const char *name, int64_t ns)
{
    text_json_integer(json, name, ns <= 0 ? 0 : ns / BIDE_MS + (ns % BIDE_MS != 0));
}

static void put_text(struct text_json *json, const char *name, const char *text)
{
    text_json_string(json, name, text != NULL && text[0] != '\0' ? text : NULL);
}

static void put_number(struct text_json *json, const char *name, int64_t number, int64_t none)
{
    if (number == none)
        text_json_null(json, name);
    else
        text_json_integer(json, name, number);
}

static void put_reason(struct text_json *json, const struct cli_event *event)
{
    text_json_string(json, "reason", bide_reason_label(event->reason));
}

static void put_time(struct text_json *json)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    text_json_time(json, "time", now);
}

const char *cli_attempt_text(char text[CLI_ATTEMPT_SIZE], uint32_t attempt, uint32_t attempts_max)
{
    int n = snprintf(text, CLI_ATTEMPT_SIZE, "%" PRIu32, attempt);
    if (attempts_max != UINT32_MAX)
        snprintf(text + n, CLI_ATTEMPT_SIZE - (size_t)n, " of %" PRIu32, attempts_max);
    return text;
}

static void put_call(struct text_json *json, const struct cli_event *event)
{
    if (event->url != NULL)
        text_json_string(json, "url", event->url);
    text_json_unsigned(json, "attempt", event->attempt);
    if (event->attempts_max != UINT32_MAX)
        text_json_unsigned(json, "attempts", event->attempts_max);
}

static void put_outcome(struct text_json *json, const struct cli_event *event)
{
    put_number(json, "status", event->status, CLI_EVENT_NO_STATUS);
    text_json_string(json, "kind", bide_kind_label(event->outcome));
    put_text(json, "text", event->text);
    put_ms(json, "took_ms", event->took_ns);
    if (event->transfer != NULL)
        put_number(json, "code", event->transfer->code, 0);
    if (event->timed_out)
        text_json_bool(json, "timed_out", true);
    if (event->hint.kind == BIDE_HINT_WAIT)
        put_ms(json, "hint_ms", event->hint.wait_ns);
}

static void put_end(struct text_json *json, const struct cli_event *event)
{
    const struct cli_event_transfer *transfer = event->transfer;
    put_reason(json, event);
    put_number(json, "status", event->status, CLI_EVENT_NO_STATUS);
    text_json_integer(json, "exit", event->exit_status);
    put_text(json, "text", event->text);
    put_ms(json, "elapsed_ms", event->elapsed_ns);
    if (transfer != NULL) {
        put_number(json, "code", transfer->code, 0);
        text_json_unsigned(json, "bytes", transfer->bytes);
        text_json_bool(json, "resumed", transfer->resumed);
        put_text(json, "file", transfer->file);
        put_text(json, "key", transfer->key);
    }
    if (event->signal != 0)
        text_json_integer(json, "signal", event->signal);
}

/* ---- lines ---- */

static void put_members(struct text_json *json, const struct cli_event *event)
{
    switch (event->kind) {
    case CLI_EVENT_ATTEMPT: put_reason(json, event); break;
    case CLI_EVENT_OUTCOME: put_outcome(json, event); break;
    case CLI_EVENT_WAIT:
        put_ms(json, "wait_ms", event->wait_ns);
        put_reason(json, event);
        break;
    case CLI_EVENT_DONE:
    case CLI_EVENT_GIVE_UP: put_end(json, event); break;
    case CLI_EVENT_FALLBACK:
        text_json_integer(json, "exit", event->exit_status);
        put_ms(json, "elapsed_ms", event->elapsed_ns);
        break;
    case CLI_EVENT_FLEET:
    case CLI_EVENT_ERROR: put_text(json, "text", event->text); break;
    }
}

static void put_event(struct text_json *json, const void *line)
{
    const struct cli_event *event = line;
    text_json_object(json, NULL);
    text_json_string(json, "event", event_names[event->kind]);
    put_time(json);
    if (event->target != NULL)
        text_json_string(json, "target", event->target);
    if (event->kind != CLI_EVENT_FLEET)
        put_call(json, event);
    put_members(json, event);
    text_json_end(json);
}

/* An element of the summary's array. */
static void put_summary_row(struct text_json *json, const void *line)
{
    text_json_object(json, NULL);
    put_call(json, line);
    put_end(json, line);
    text_json_end(json);
}

struct line {
    void (*put)(struct text_json *json, const void *event);
    const void *event;
    char end; /* the character that follows */
};

/* Renders the line into a buffer. Returns its length; 0: it does not fit. */
static size_t line_render(const struct line *line, char *text, size_t size)
{
    struct text_json json = text_json_to_buffer(text, size - 1);
    line->put(&json, line->event);
    size_t length = text_json_finish(&json);
    if (length > 0)
        text[length++] = line->end;
    return length;
}

static bool line_write_long(FILE *out, const struct line *line)
{
    char *text = malloc(LONG_LINE_SIZE);
    size_t length = text != NULL ? line_render(line, text, LONG_LINE_SIZE) : 0;
    bool written = length > 0 && fwrite(text, 1, length, out) == length;
    free(text);
    if (length > 0)
        return written;
    struct text_json json = text_json_to_stream(out, TEXT_JSON_LINE);
    line->put(&json, line->event);
    return text_json_finish(&json) > 0 && fputc(line->end, out) != EOF;
}

static bool line_write(FILE *out, const struct line *line)
{
    char text[LINE_SIZE];
    size_t length = line_render(line, text, sizeof text);
    return length > 0 ? fwrite(text, 1, length, out) == length : line_write_long(out, line);
}

bool cli_event_write(FILE *out, const struct cli_event *event)
{
    errno = 0;
    return line_write(out, &(struct line){put_event, event, '\n'}) && fflush(out) == 0;
}

/* ---- summary ---- */

/* Writes the object up to its array. */
static bool summary_begin(FILE *out)
{
    char text[128];
    struct text_json json = text_json_to_buffer(text, sizeof text);
    text_json_object(&json, NULL);
    text_json_string(&json, "event", "summary");
    put_time(&json);
    text_json_end(&json);
    size_t length = text_json_finish(&json);
    return length > 0 && fprintf(out, "%.*s,\"urls\":[", (int)length - 1, text) > 0;
}

bool cli_event_write_summary(FILE *out, size_t count, void (*get)(void *context, size_t i, struct cli_event *event),
                             void *context)
{
    errno = 0;
    bool ok = summary_begin(out);
    for (size_t i = 0; i < count && ok; i++) {
        struct cli_event event = {.kind = CLI_EVENT_DONE};
        get(context, i, &event);
        ok = line_write(out, &(struct line){put_summary_row, &event, i + 1 < count ? ',' : ']'});
    }
    return ok && fputs(count > 0 ? "}\n" : "]}\n", out) >= 0 && fflush(out) == 0;
}
