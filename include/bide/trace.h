/* trace.h - W3C trace context: all attempts of a call belong to one trace, and each has its own parent id.
 *
 *     traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *
 * An inbound traceparent is continued: same trace id, same sampled and random bits, a new parent id for every attempt.
 * Without a valid inbound field, a new trace begins.
 *
 * Threads: all functions may be called from any thread. */
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

/* Final: its size will not change. */
struct bide_trace {
    uint64_t trace_hi; /* trace id; both halves 0: none */
    uint64_t trace_lo;
    uint64_t parent; /* parent id */
    uint8_t flags;   /* enum bide_trace_flag; other flags are not passed on */
};

/* Parses a field value. Returns false and a zeroed trace if it is malformed. A request with several traceparent fields
 * counts as a request without. */
BIDE_API bool bide_trace_parse(struct bide_text value, struct bide_trace *trace);

/* Returns a new trace, without a parent id: random, and sampled if the listener of the process records it (bide_listen
 * in event.h). */
BIDE_API struct bide_trace bide_trace_new(void);

/* Returns the same trace with a new parent id: call it for every attempt. An empty trace stays empty. */
BIDE_API struct bide_trace bide_trace_child(const struct bide_trace *trace);

/* Writes version 00, lower case, and a NUL. A trace that is empty or has no parent id gives an empty text: no field. */
BIDE_API void bide_trace_format(char text[BIDE_TRACE_TEXT_SIZE], const struct bide_trace *trace);

BIDE_END_DECLS
#endif
