/* otlp_text.h - for tests: decodes the spans of an ExportTraceServiceRequest, independently of lib/telemetry.
 *
 * Attributes become lines, "\nkey=value\n", to be found by strstr; strings must be well-formed UTF-8. */
#ifndef OTLP_TEXT_H
#define OTLP_TEXT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTLP_LINES 4096u

struct otlp_span {
    char trace[33], id[17], parent[17]; /* hexadecimal; "" if absent */
    char name[256];
    char state[256];
    unsigned kind, status;
    uint32_t flags, dropped;
    uint64_t start_ns, end_ns;
    char message[128];
    char attributes[OTLP_LINES];
};

struct otlp_request {
    char resource[OTLP_LINES];
    char scope[64], version[64];
    struct otlp_span *span;
    size_t count;
    bool is_malformed;
};

struct otlp_cursor {
    const unsigned char *at, *end;
};

static inline uint64_t otlp_varint(struct otlp_cursor *c, bool *bad)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->at == c->end)
            break;
        unsigned char byte = *c->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    *bad = true;
    return 0;
}

/* A field: its number, and its number value or its bytes. */
struct otlp_field {
    unsigned number;
    uint64_t value;
    struct otlp_cursor bytes;
};

static inline bool otlp_next(struct otlp_cursor *c, struct otlp_field *field, bool *bad)
{
    if (c->at == c->end || *bad)
        return false;
    uint64_t tag = otlp_varint(c, bad);
    unsigned wire = tag & 7;
    size_t size = wire == 1 ? 8 : wire == 5 ? 4 : 0;
    *field = (struct otlp_field){.number = (unsigned)(tag >> 3)};
    if (wire == 0)
        field->value = otlp_varint(c, bad);
    if (wire == 2)
        size = otlp_varint(c, bad);
    if ((wire != 0 && wire != 1 && wire != 2 && wire != 5) || field->number == 0 || size > (size_t)(c->end - c->at))
        *bad = true;
    if (*bad)
        return false;
    field->bytes = (struct otlp_cursor){c->at, c->at + size};
    for (size_t i = 0; wire != 2 && i < size; i++)
        field->value |= (uint64_t)c->at[i] << 8 * i;
    c->at += size;
    return true;
}

static inline bool otlp_is_utf8(struct otlp_cursor c)
{
    while (c.at < c.end) {
        unsigned char first = *c.at++;
        unsigned more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : (first & 0xf0) == 0xe0 ? 2 : 3;
        if (first >= 0x80 && (first < 0xc2 || first > 0xf4))
            return false;
        for (; more > 0; more--)
            if (c.at == c.end || (*c.at++ & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static inline void otlp_string(char *to, size_t size, struct otlp_cursor from, bool *bad)
{
    *bad = *bad || !otlp_is_utf8(from);
    snprintf(to, size, "%.*s", (int)(from.end - from.at), (const char *)from.at);
}

static inline void otlp_hex(char *to, struct otlp_cursor from)
{
    for (to[0] = '\0'; from.at < from.end; from.at++)
        to += sprintf(to, "%02x", *from.at);
}

static inline void otlp_attribute(char lines[OTLP_LINES], struct otlp_cursor c, bool *bad)
{
    char key[256] = "", value[5000] = "";
    struct otlp_field field, inner;
    while (otlp_next(&c, &field, bad)) {
        if (field.number == 1)
            otlp_string(key, sizeof key, field.bytes, bad);
        while (field.number == 2 && otlp_next(&field.bytes, &inner, bad)) {
            if (inner.number == 1)
                otlp_string(value, sizeof value, inner.bytes, bad);
            else if (inner.number == 2)
                snprintf(value, sizeof value, "%s", inner.value ? "true" : "false");
            else
                snprintf(value, sizeof value, "%" PRId64, (int64_t)inner.value);
        }
    }
    size_t length = strlen(lines);
    snprintf(lines + length, OTLP_LINES - length, "%s%s=%s\n", length == 0 ? "\n" : "", key, value);
}

static inline void otlp_status(struct otlp_span *span, struct otlp_cursor c, bool *bad)
{
    struct otlp_field field;
    while (otlp_next(&c, &field, bad)) {
        if (field.number == 2)
            otlp_string(span->message, sizeof span->message, field.bytes, bad);
        if (field.number == 3)
            span->status = (unsigned)field.value;
    }
}

static inline void otlp_span_decode(struct otlp_span *span, struct otlp_cursor c, bool *bad)
{
    struct otlp_field f;
    while (otlp_next(&c, &f, bad)) {
        size_t size = (size_t)(f.bytes.end - f.bytes.at);
        switch (f.number) {
        case 1: size == 16 ? otlp_hex(span->trace, f.bytes) : (void)(*bad = true); break;
        case 2: size == 8 ? otlp_hex(span->id, f.bytes) : (void)(*bad = true); break;
        case 3: otlp_string(span->state, sizeof span->state, f.bytes, bad); break;
        case 4: size == 8 ? otlp_hex(span->parent, f.bytes) : (void)(*bad = true); break;
        case 5: otlp_string(span->name, sizeof span->name, f.bytes, bad); break;
        case 6: span->kind = (unsigned)f.value; break;
        case 7: span->start_ns = f.value; break;
        case 8: span->end_ns = f.value; break;
        case 9: otlp_attribute(span->attributes, f.bytes, bad); break;
        case 10: span->dropped = (uint32_t)f.value; break;
        case 15: otlp_status(span, f.bytes, bad); break;
        case 16: span->flags = (uint32_t)f.value; break;
        default: *bad = true;
        }
    }
}

static inline void otlp_scope_spans(struct otlp_request *request, struct otlp_cursor c)
{
    struct otlp_field field, inner;
    while (otlp_next(&c, &field, &request->is_malformed)) {
        if (field.number == 2) {
            if ((request->count & (request->count - 1)) == 0) /* doubles */
                request->span = realloc(request->span, (2 * request->count + 1) * sizeof *request->span);
            memset(&request->span[request->count], 0, sizeof *request->span);
            otlp_span_decode(&request->span[request->count++], field.bytes, &request->is_malformed);
        }
        while (field.number == 1 && otlp_next(&field.bytes, &inner, &request->is_malformed))
            otlp_string(inner.number == 1 ? request->scope : request->version, 64, inner.bytes, &request->is_malformed);
    }
}

/* Adds the spans of a message to a request that began as zeros; free(request->span) at the end. */
static inline void otlp_decode(struct otlp_request *request, const void *at, size_t length)
{
    const unsigned char *bytes = at;
    struct otlp_cursor c = {bytes, bytes + length};
    struct otlp_field field, inner, attribute;
    request->resource[0] = '\0';
    while (otlp_next(&c, &field, &request->is_malformed))
        while (field.number == 1 && otlp_next(&field.bytes, &inner, &request->is_malformed)) {
            if (inner.number == 2)
                otlp_scope_spans(request, inner.bytes);
            while (inner.number == 1 && otlp_next(&inner.bytes, &attribute, &request->is_malformed))
                otlp_attribute(request->resource, attribute.bytes, &request->is_malformed);
        }
}

/* Returns whether a span or resource has an attribute, "key=value"; the value may be left out: "key=". */
static inline bool otlp_has(const char *lines, const char *attribute)
{
    char line[OTLP_LINES];
    snprintf(line, sizeof line, "\n%s%s", attribute, attribute[strlen(attribute) - 1] == '=' ? "" : "\n");
    return strstr(lines, line) != NULL;
}

#endif
