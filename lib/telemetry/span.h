/* span.h - records (record.h) as spans of OTLP: opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest. */
#ifndef TELEMETRY_SPAN_H
#define TELEMETRY_SPAN_H

#include "protobuf.h"
#include "record.h"

struct telemetry_span_options {
    int64_t wall_offset_ns; /* what to add to an instant of bide_now for the time since 1970 */
    size_t value_max;       /* longest value of an attribute, in characters; SIZE_MAX: no limit */
};

/* Writes the spans of a record, in front of those that `proto` has: that of the attempt, and that of the call. Returns
 * how many; 0 if the record has none or its trace is not recorded, or if the buffer is full: then proto->failed is
 * set, and what was written before is unchanged. */
unsigned telemetry_span_write(struct telemetry_proto *proto, const struct telemetry_record *record,
                              const struct telemetry_span_options *options);

/* Completes the request around spans or metrics, whose messages have the same field numbers: with the scope (this
 * library), and the resource, an encoded message. There must be TELEMETRY_REQUEST_FRAME + resource.length bytes below
 * the floor, which is removed. */
#define TELEMETRY_REQUEST_FRAME 128u
void telemetry_request_finish(struct telemetry_proto *proto, struct bide_text resource);

/* Write an attribute, as this field of the message around it: 1 of a resource. */
void telemetry_attribute_write(struct telemetry_proto *proto, uint32_t field, const char *key, struct bide_text value);
void telemetry_attribute_write_bool(struct telemetry_proto *proto, uint32_t field, const char *key, bool value);

#endif
