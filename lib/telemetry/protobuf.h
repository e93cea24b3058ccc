/* protobuf.h - writes protocol buffers, from the end of a buffer to its front.
 *
 * The length of a nested message stands before it. Written backwards, a message is complete before its length is
 * written, so nothing is measured first or moved afterwards:
 *
 *     size_t end = proto.at;
 *     ... the fields of the nested message, the last field first ...
 *     telemetry_proto_message(&proto, FIELD, end);
 *
 * If the buffer is full, `failed` is set and nothing more is written: the caller checks once, at the end. */
#ifndef TELEMETRY_PROTOBUF_H
#define TELEMETRY_PROTOBUF_H

#include <bide/hint.h>

struct telemetry_proto {
    unsigned char *bytes;
    size_t size;
    size_t at;    /* what is written begins here, and ends at `size`; so it is `size` at first */
    size_t floor; /* nothing is written before it: room for what follows later */
    bool failed;
};

void telemetry_proto_varint(struct telemetry_proto *proto, uint64_t value);

/* Fields. */
void telemetry_proto_uint(struct telemetry_proto *proto, uint32_t field, uint64_t value);
void telemetry_proto_fixed64(struct telemetry_proto *proto, uint32_t field, uint64_t value);
void telemetry_proto_fixed32(struct telemetry_proto *proto, uint32_t field, uint32_t value);
void telemetry_proto_double(struct telemetry_proto *proto, uint32_t field, double value);
void telemetry_proto_bytes(struct telemetry_proto *proto, uint32_t field, const void *at, size_t length);

/* Repeated fields, packed. */
void telemetry_proto_fixed64s(struct telemetry_proto *proto, uint32_t field, const uint64_t *values, size_t count);
void telemetry_proto_doubles(struct telemetry_proto *proto, uint32_t field, const double *values, size_t count);

/* A string: each byte that begins no well-formed UTF-8 character becomes U+FFFD, because a receiver refuses the whole
 * request for one such byte. */
void telemetry_proto_string(struct telemetry_proto *proto, uint32_t field, struct bide_text text);

/* Makes what was written since `at` was `end` a nested message. */
void telemetry_proto_message(struct telemetry_proto *proto, uint32_t field, size_t end);

/* Reading, as far as it is needed for responses. Returns the next field of a message, and removes it from the front of
 * `text`; false: the message has ended, or is malformed (then `text` is not empty). */
struct telemetry_proto_field {
    uint32_t number;
    uint64_t value;        /* varint or fixed */
    struct bide_text text; /* length-delimited; otherwise .at is NULL */
};
bool telemetry_proto_read(struct bide_text *text, struct telemetry_proto_field *field);

/* The same of a message whose end may be missing: its last text may be shorter than it says. */
bool telemetry_proto_read_cut(struct bide_text *text, struct telemetry_proto_field *field);

#endif
