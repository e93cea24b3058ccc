/* span.c - records as spans: see span.h. docs/telemetry.md has the table of all attributes.
 *
 * A call is an INTERNAL span, "call TARGET", whose parent is the span that called this service; so all attempts are in
 * one trace, also if no context came in. The attempts are CLIENT spans beneath it, one for each request or process.
 *
 * Everything is written backwards (protobuf.h): the last field first. */
#include "span.h"

#include "mask.h"
#include "text/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Fields of opentelemetry.proto.trace.v1 and .common.v1. */
enum {
    REQUEST_RESOURCE_SPANS = 1,
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_SPANS_SCOPE_SPANS = 2,
    SCOPE_SPANS_SCOPE = 1,
    SCOPE_SPANS_SPANS = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_DROPPED_ATTRIBUTES = 10,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16,
    STATUS_MESSAGE = 2,
    STATUS_CODE = 3,
    STATUS_ERROR = 2,
    KIND_INTERNAL = 1,
    KIND_CLIENT = 3,
    FLAG_REMOTE_KNOWN = 0x100, /* whether the parent is of another process; its own flag is 0x200 */
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    VALUE_STRING = 1,
    VALUE_BOOL = 2,
    VALUE_INT = 3,
};

/* What is being written. */
struct writer {
    struct telemetry_proto *proto;
    const struct telemetry_record *record;
    const struct telemetry_span_options *options;
    struct bide_text method, url, program, target;
};

static struct bide_text text_of(const char *text)
{
    return (struct bide_text){text, strlen(text)};
}

static struct bide_text record_text(const struct telemetry_record *record, enum telemetry_text which)
{
    return (struct bide_text){telemetry_record_text(record, which), record->length[which]};
}

/* ---- attributes ---- */

/* Completes an attribute behind whose key the value was written since `end`. */
static void attribute_finish(struct telemetry_proto *proto, uint32_t field, const char *key, size_t end)
{
    telemetry_proto_message(proto, ATTRIBUTE_VALUE, end);
    telemetry_proto_bytes(proto, ATTRIBUTE_KEY, key, strlen(key));
    telemetry_proto_message(proto, field, end);
}

void telemetry_attribute_write(struct telemetry_proto *proto, uint32_t field, const char *key, struct bide_text value)
{
    size_t end = proto->at;
    telemetry_proto_string(proto, VALUE_STRING, value);
    attribute_finish(proto, field, key, end);
}

void telemetry_attribute_write_bool(struct telemetry_proto *proto, uint32_t field, const char *key, bool value)
{
    size_t end = proto->at;
    telemetry_proto_uint(proto, VALUE_BOOL, value);
    attribute_finish(proto, field, key, end);
}

static void add_text(const struct writer *w, const char *key, struct bide_text value)
{
    value.length = text_utf8_prefix(value.at, value.length, w->options->value_max);
    telemetry_attribute_write(w->proto, SPAN_ATTRIBUTES, key, value);
}

static void add_int(const struct writer *w, const char *key, int64_t value)
{
    size_t end = w->proto->at;
    telemetry_proto_uint(w->proto, VALUE_INT, (uint64_t)value);
    attribute_finish(w->proto, SPAN_ATTRIBUTES, key, end);
}

static void add_bool(const struct writer *w, const char *key, bool value)
{
    telemetry_attribute_write_bool(w->proto, SPAN_ATTRIBUTES, key, value);
}

/* ---- HTTP ---- */

static bool method_is_known(struct bide_text method)
{
    static const char *const known[] = {"GET",     "HEAD",    "POST",  "PUT",   "DELETE",
                                        "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == method.length && memcmp(known[i], method.at, method.length) == 0)
            return true;
    return false;
}

static void add_url(const struct writer *w)
{
    char masked[TELEMETRY_MASKED_MAX(TELEMETRY_TEXT_MAX)];
    struct telemetry_server server = telemetry_url_server(w->url);
    add_text(w, "url.full", (struct bide_text){masked, telemetry_url_mask(masked, w->url)});
    if (server.port != 0)
        add_int(w, "server.port", server.port);
    if (server.address.length > 0)
        add_text(w, "server.address", server.address);
}

/* How often the request was sent before: the repetition after a 401 does not count as a retry. */
static uint32_t resend_count(const struct telemetry_record *record)
{
    return record->attempt_kind == BIDE_ATTEMPT_REFRESH ? record->attempt : record->attempt - 1;
}

static void add_http(const struct writer *w)
{
    const struct telemetry_record *record = w->record;
    if (record->status != 0)
        add_int(w, "http.response.status_code", record->status);
    if (resend_count(record) > 0)
        add_int(w, "http.request.resend_count", resend_count(record));
    if (w->url.length > 0)
        add_url(w);
    bool is_known = method_is_known(w->method);
    if (w->method.length > 0 && !is_known)
        add_text(w, "http.request.method_original", w->method);
    if (w->method.length > 0)
        add_text(w, "http.request.method", is_known ? w->method : text_of("_OTHER"));
}

/* ---- an attempt ---- */

static bool is_http(const struct writer *w)
{
    return w->method.length > 0 || w->url.length > 0;
}

static bool attempt_failed(const struct telemetry_record *record)
{
    return record->kind != BIDE_KIND_OK && record->kind != BIDE_KIND_CANCELLED;
}

static void add_error_type(const struct writer *w)
{
    char status[16];
    if (is_http(w) && w->record->status >= 400) {
        snprintf(status, sizeof status, "%d", w->record->status);
        add_text(w, "error.type", text_of(status));
    } else {
        add_text(w, "error.type", text_of(bide_kind_label((enum bide_kind)w->record->kind)));
    }
}

static void add_program(const struct writer *w)
{
    if (w->record->status != 0 || w->record->kind == BIDE_KIND_OK)
        add_int(w, "process.exit.code", w->record->status);
    add_text(w, "process.executable.name", w->program);
}

static void attempt_add_attributes(const struct writer *w)
{
    const struct telemetry_record *record = w->record;
    if (record->hint_ns > 0)
        add_int(w, "bide.hint_ms", record->hint_ns / BIDE_MS);
    if (record->attempt_kind == BIDE_ATTEMPT_REFRESH)
        add_bool(w, "bide.refresh", true);
    if (record->attempt_kind == BIDE_ATTEMPT_HEDGE)
        add_bool(w, "bide.hedge", true);
    add_text(w, "bide.evidence", text_of(bide_evidence_label((enum bide_evidence)record->evidence)));
    add_text(w, "bide.kind", text_of(bide_kind_label((enum bide_kind)record->kind)));
    if (w->target.length > 0)
        add_text(w, "bide.target", w->target);
    add_int(w, "retry.delay_ms", record->delay_ns / BIDE_MS);
    add_int(w, "retry.attempt", record->attempt);
    if (attempt_failed(record))
        add_error_type(w);
    if (w->program.length > 0)
        add_program(w);
    if (is_http(w))
        add_http(w);
}

/* Writes a name of several parts: "call inventory". */
static void write_name(const struct writer *w, const char *word, struct bide_text rest)
{
    char name[TELEMETRY_TEXT_MAX + 16];
    int length = snprintf(name, sizeof name, "%s%s%.*s", word, word[0] != '\0' && rest.length > 0 ? " " : "",
                          (int)rest.length, rest.at);
    telemetry_proto_string(w->proto, SPAN_NAME, (struct bide_text){name, (size_t)length});
}

static void attempt_write_name(const struct writer *w)
{
    if (is_http(w))
        write_name(w, method_is_known(w->method) ? "" : "HTTP",
                   method_is_known(w->method) ? w->method : (struct bide_text){"", 0});
    else if (w->program.length > 0)
        write_name(w, "", w->program);
    else
        write_name(w, "attempt", w->target);
}

/* ---- both spans ---- */

/* What an attempt's span and a call's span have in common. */
struct span {
    uint64_t id, parent;
    int64_t start_ns;
    uint32_t kind;
    uint32_t flags;
    bool is_error;
    const char *message;
};

static void write_id(struct telemetry_proto *proto, uint32_t field, uint64_t id)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(id >> 8 * (7 - i));
    telemetry_proto_bytes(proto, field, bytes, sizeof bytes);
}

static void write_trace_id(struct telemetry_proto *proto, const struct telemetry_record *record)
{
    unsigned char bytes[16];
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(record->trace_hi >> 8 * (7 - i));
        bytes[8 + i] = (unsigned char)(record->trace_lo >> 8 * (7 - i));
    }
    telemetry_proto_bytes(proto, SPAN_TRACE_ID, bytes, sizeof bytes);
}

/* Writes the fields behind the attributes. */
static void span_write_tail(const struct writer *w, const struct span *span)
{
    telemetry_proto_fixed32(w->proto, SPAN_FLAGS, span->flags | w->record->trace_flags);
    if (span->is_error) {
        size_t end = w->proto->at;
        telemetry_proto_uint(w->proto, STATUS_CODE, STATUS_ERROR);
        if (span->message != NULL)
            telemetry_proto_string(w->proto, STATUS_MESSAGE, text_of(span->message));
        telemetry_proto_message(w->proto, SPAN_STATUS, end);
    }
    if (w->record->texts_dropped > 0)
        telemetry_proto_uint(w->proto, SPAN_DROPPED_ATTRIBUTES, w->record->texts_dropped);
}

/* Writes the fields before the name. */
static void span_write_head(const struct writer *w, const struct span *span)
{
    struct bide_text state = record_text(w->record, TELEMETRY_TEXT_TRACE_STATE);
    if (span->parent != 0)
        write_id(w->proto, SPAN_PARENT, span->parent);
    if (state.length > 0)
        telemetry_proto_string(w->proto, SPAN_TRACE_STATE, state);
    write_id(w->proto, SPAN_ID, span->id);
    write_trace_id(w->proto, w->record);
}

static void span_write_times(const struct writer *w, const struct span *span)
{
    int64_t offset_ns = w->options->wall_offset_ns;
    telemetry_proto_fixed64(w->proto, SPAN_END, (uint64_t)(w->record->now_ns + offset_ns));
    telemetry_proto_fixed64(w->proto, SPAN_START, (uint64_t)(span->start_ns + offset_ns));
    telemetry_proto_uint(w->proto, SPAN_KIND, span->kind);
}

static void write_attempt(const struct writer *w)
{
    const struct telemetry_record *record = w->record;
    const struct span span = {.id = record->span,
                              .parent = record->call_id,
                              .start_ns = record->start_ns,
                              .kind = KIND_CLIENT,
                              .flags = FLAG_REMOTE_KNOWN,
                              .is_error = attempt_failed(record)};
    size_t end = w->proto->at;
    span_write_tail(w, &span);
    attempt_add_attributes(w);
    span_write_times(w, &span);
    attempt_write_name(w);
    span_write_head(w, &span);
    telemetry_proto_message(w->proto, SCOPE_SPANS_SPANS, end);
}

static void call_add_attributes(const struct writer *w, bool is_error)
{
    const struct telemetry_record *record = w->record;
    const char *reason = bide_reason_label((enum bide_reason)record->reason);
    add_text(w, "bide.reason", text_of(reason));
    add_int(w, "bide.attempts", record->attempts);
    if (w->target.length > 0)
        add_text(w, "bide.target", w->target);
    add_bool(w, "retry.budget_exhausted",
             record->action == BIDE_ACTION_GIVE_UP && record->reason == BIDE_REASON_BUDGET_EMPTY);
    if (is_error)
        add_text(w, "error.type", text_of(reason));
}

/* The parent of a call may be of this process, too: its flag does not tell. */
static void write_call(const struct writer *w)
{
    const struct telemetry_record *record = w->record;
    enum bide_reason reason = (enum bide_reason)record->reason;
    bool is_error = record->action == BIDE_ACTION_GIVE_UP && reason != BIDE_REASON_CANCELLED;
    const struct span span = {.id = record->call_id,
                              .parent = record->inbound_id,
                              .start_ns = record->begin_ns,
                              .kind = KIND_INTERNAL,
                              .is_error = is_error,
                              .message = bide_reason_text(reason)};
    size_t end = w->proto->at;
    span_write_tail(w, &span);
    call_add_attributes(w, is_error);
    span_write_times(w, &span);
    write_name(w, "call", w->target);
    span_write_head(w, &span);
    telemetry_proto_message(w->proto, SCOPE_SPANS_SPANS, end);
}

unsigned telemetry_span_write(struct telemetry_proto *proto, const struct telemetry_record *record,
                              const struct telemetry_span_options *options)
{
    const struct writer w = {.proto = proto,
                             .record = record,
                             .options = options,
                             .method = record_text(record, TELEMETRY_TEXT_METHOD),
                             .url = record_text(record, TELEMETRY_TEXT_URL),
                             .program = record_text(record, TELEMETRY_TEXT_PROGRAM),
                             .target = record_text(record, TELEMETRY_TEXT_TARGET)};
    size_t before = proto->at;
    if (!record->is_sampled)
        return 0;
    if (record->attempt_ended)
        write_attempt(&w);
    if (record->call_ended)
        write_call(&w);
    if (!proto->failed)
        return (record->attempt_ended ? 1u : 0u) + (record->call_ended ? 1u : 0u);
    proto->at = before;
    return 0;
}

void telemetry_request_finish(struct telemetry_proto *proto, struct bide_text resource)
{
    size_t scope_end = proto->at;
    proto->floor = 0;
    proto->failed = false;
    telemetry_proto_bytes(proto, SCOPE_VERSION, BIDE_VERSION, strlen(BIDE_VERSION));
    telemetry_proto_bytes(proto, SCOPE_NAME, "bide", strlen("bide"));
    telemetry_proto_message(proto, SCOPE_SPANS_SCOPE, scope_end);
    telemetry_proto_message(proto, RESOURCE_SPANS_SCOPE_SPANS, proto->size);
    telemetry_proto_bytes(proto, RESOURCE_SPANS_RESOURCE, resource.at, resource.length);
    telemetry_proto_message(proto, REQUEST_RESOURCE_SPANS, proto->size);
    assert(!proto->failed);
}
