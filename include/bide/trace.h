/* trace.h - W3C trace context: all attempts of a call belong to one trace, each is a parent of its own.
 *
 *     traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *
 * An inbound traceparent is continued: same trace id, same sampled and random bits, a new parent id for every attempt.
 * Without one, or with a malformed one, a new trace begins. */
#ifndef BIDE_TRACE_H
#define BIDE_TRACE_H

#include <bide/base.h>
#include <bide/hint.h>

#define BIDE_TRACE_HEADER    "traceparent"
#define BIDE_TRACE_TEXT_SIZE 56u /* a traceparent and its NUL */

BIDE_BEGIN_DECLS

enum bide_trace_flag {
    BIDE_TRACE_SAMPLED = 1u << 0,
    BIDE_TRACE_RANDOM = 1u << 1, /* the trace id is random (level 2) */
};

struct bide_trace {
    uint64_t trace_hi; /* trace id; both halves 0: none */
    uint64_t trace_lo;
    uint64_t parent; /* parent id */
    uint8_t flags;   /* enum bide_trace_flag; others are not passed on */
};

/* Reads one field value. False and a zeroed trace if it is malformed. Where a request has several traceparent fields,
 * it has none. */
BIDE_API bool bide_trace_parse(struct bide_text value, struct bide_trace *trace);

/* A new trace, not sampled, random. */
BIDE_API struct bide_trace bide_trace_new(void);

/* The same trace with a new parent id: once for every attempt. The child of none is none. */
BIDE_API struct bide_trace bide_trace_child(const struct bide_trace *trace);

/* Writes version 00, lower case, and a NUL. A trace that is none, or has no parent id, is an empty text: no field. */
BIDE_API void bide_trace_format(char text[BIDE_TRACE_TEXT_SIZE], const struct bide_trace *trace);

BIDE_END_DECLS
#endif
