/* protobuf.c - writes protocol buffers backwards: see protobuf.h. */
#include "protobuf.h"

#include "text/utf8.h"

#include <assert.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* Returns room for `size` bytes before what is written; NULL: there is none. */
static unsigned char *proto_take(struct telemetry_proto *proto, size_t size)
{
    proto->failed = proto->failed || proto->at - proto->floor < size;
    if (proto->failed)
        return NULL;
    proto->at -= size;
    return proto->bytes + proto->at;
}

static size_t varint_size(uint64_t value)
{
    return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

void telemetry_proto_varint(struct telemetry_proto *proto, uint64_t value)
{
    unsigned char *at = proto_take(proto, varint_size(value));
    if (at == NULL)
        return;
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at = (unsigned char)value;
}

static void proto_tag(struct telemetry_proto *proto, uint32_t field, enum wire wire)
{
    telemetry_proto_varint(proto, (uint64_t)field << 3 | wire);
}

void telemetry_proto_uint(struct telemetry_proto *proto, uint32_t field, uint64_t value)
{
    telemetry_proto_varint(proto, value);
    proto_tag(proto, field, WIRE_VARINT);
}

/* Little endian, whatever the machine. */
static void proto_fixed(struct telemetry_proto *proto, uint64_t value, size_t size)
{
    unsigned char *at = proto_take(proto, size);
    for (size_t i = 0; at != NULL && i < size; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

void telemetry_proto_fixed64(struct telemetry_proto *proto, uint32_t field, uint64_t value)
{
    proto_fixed(proto, value, 8);
    proto_tag(proto, field, WIRE_FIXED64);
}

void telemetry_proto_fixed32(struct telemetry_proto *proto, uint32_t field, uint32_t value)
{
    proto_fixed(proto, value, 4);
    proto_tag(proto, field, WIRE_FIXED32);
}

/* OTLP wants the bits of IEEE 754, which the compiler has. */
static uint64_t double_bits(double value)
{
    uint64_t bits;
    _Static_assert(sizeof bits == sizeof value, "a double has 64 bits");
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void telemetry_proto_double(struct telemetry_proto *proto, uint32_t field, double value)
{
    telemetry_proto_fixed64(proto, field, double_bits(value));
}

void telemetry_proto_fixed64s(struct telemetry_proto *proto, uint32_t field, const uint64_t *values, size_t count)
{
    size_t end = proto->at;
    for (size_t i = count; i > 0; i--)
        proto_fixed(proto, values[i - 1], 8);
    telemetry_proto_message(proto, field, end);
}

void telemetry_proto_doubles(struct telemetry_proto *proto, uint32_t field, const double *values, size_t count)
{
    size_t end = proto->at;
    for (size_t i = count; i > 0; i--)
        proto_fixed(proto, double_bits(values[i - 1]), 8);
    telemetry_proto_message(proto, field, end);
}

void telemetry_proto_message(struct telemetry_proto *proto, uint32_t field, size_t end)
{
    assert(proto->failed || end >= proto->at);
    telemetry_proto_varint(proto, end - proto->at);
    proto_tag(proto, field, WIRE_BYTES);
}

void telemetry_proto_bytes(struct telemetry_proto *proto, uint32_t field, const void *at, size_t length)
{
    size_t end = proto->at;
    unsigned char *to = proto_take(proto, length);
    if (to != NULL && length > 0)
        memcpy(to, at, length);
    telemetry_proto_message(proto, field, end);
}

/* Removes the next character from the text and returns it; in place of a malformed byte, U+FFFD. */
static struct bide_text text_take_character(struct bide_text *text)
{
    struct bide_text next = {text->at, text_utf8_length(text->at, text->length)};
    size_t taken = next.length > 0 ? next.length : 1;
    if (next.length == 0)
        next = (struct bide_text){REPLACEMENT, sizeof REPLACEMENT - 1};
    text->at += taken;
    text->length -= taken;
    return next;
}

static size_t text_replaced_length(struct bide_text text)
{
    size_t length = 0;
    while (text.length > 0)
        length += text_take_character(&text).length;
    return length;
}

void telemetry_proto_string(struct telemetry_proto *proto, uint32_t field, struct bide_text text)
{
    size_t length = text_replaced_length(text), end = proto->at;
    if (length == text.length && text_utf8_is_valid(text.at, text.length)) {
        telemetry_proto_bytes(proto, field, text.at, text.length);
        return;
    }
    unsigned char *to = proto_take(proto, length);
    while (to != NULL && text.length > 0) {
        struct bide_text next = text_take_character(&text);
        memcpy(to, next.at, next.length);
        to += next.length;
    }
    telemetry_proto_message(proto, field, end);
}

/* ---- reading ---- */

static bool text_take_varint(struct bide_text *text, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && text->length > 0; shift += 7) {
        unsigned char byte = (unsigned char)*text->at++;
        text->length--;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool text_take_fixed(struct bide_text *text, size_t size, uint64_t *value)
{
    *value = 0;
    if (text->length < size)
        return false;
    for (size_t i = 0; i < size; i++)
        *value |= (uint64_t)(unsigned char)text->at[i] << 8 * i;
    text->at += size;
    text->length -= size;
    return true;
}

static bool text_take_bytes(struct bide_text *text, struct bide_text *bytes)
{
    uint64_t length;
    if (!text_take_varint(text, &length) || length > text->length)
        return false;
    *bytes = (struct bide_text){text->at, length};
    text->at += length;
    text->length -= length;
    return true;
}

/* The same of a text whose end may be missing. */
static bool text_take_cut_bytes(struct bide_text *text, struct bide_text *bytes)
{
    uint64_t length;
    if (!text_take_varint(text, &length))
        return false;
    *bytes = (struct bide_text){text->at, length < text->length ? length : text->length};
    text->at += bytes->length;
    text->length -= bytes->length;
    return true;
}

static bool field_take(struct bide_text *text, struct telemetry_proto_field *field, bool may_be_cut)
{
    uint64_t tag;
    if (!text_take_varint(text, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return false;
    *field = (struct telemetry_proto_field){.number = (uint32_t)(tag >> 3)};
    switch (tag & 7) {
    case WIRE_VARINT: return text_take_varint(text, &field->value);
    case WIRE_FIXED64: return text_take_fixed(text, 8, &field->value);
    case WIRE_FIXED32: return text_take_fixed(text, 4, &field->value);
    case WIRE_BYTES: return may_be_cut ? text_take_cut_bytes(text, &field->text) : text_take_bytes(text, &field->text);
    default: return false;
    }
}

static bool proto_read(struct bide_text *text, struct telemetry_proto_field *field, bool may_be_cut)
{
    struct bide_text rest = *text;
    if (text->length == 0 || !field_take(&rest, field, may_be_cut))
        return false;
    *text = rest;
    return true;
}

bool telemetry_proto_read(struct bide_text *text, struct telemetry_proto_field *field)
{
    return proto_read(text, field, false);
}

bool telemetry_proto_read_cut(struct bide_text *text, struct telemetry_proto_field *field)
{
    return proto_read(text, field, true);
}
