/* outcome.h - what happened to one attempt, as evidence for the engine.
 *
 * Three things matter. The kind: would trying again help? The reach: how far did the request get, so may it be
 * repeated at all? The hint: did the server ask for time? Their zero values are the careful ones: a permanent failure
 * of a request that may have run, with no hint. */
#ifndef BIDE_OUTCOME_H
#define BIDE_OUTCOME_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

enum bide_kind {
    BIDE_KIND_PERMANENT = 0, /* trying again will not help */
    BIDE_KIND_TRANSIENT,     /* may work next time */
    BIDE_KIND_THROTTLED,     /* the server asked for less (429, RESOURCE_EXHAUSTED) */
    BIDE_KIND_CONFLICT,      /* lost an optimistic race: may be tried at once, one time */
    BIDE_KIND_CANCELLED,     /* our own side stopped it: says nothing of the server */
    BIDE_KIND_OK,            /* succeeded */
};

enum bide_evidence {
    BIDE_EVIDENCE_UNKNOWN = 0, /* sent, or unknown: the server may have acted on it */
    BIDE_EVIDENCE_NOT_SENT,    /* no byte of it left this process */
    BIDE_EVIDENCE_REJECTED, /* the protocol says it was not processed (REFUSED_STREAM, GOAWAY above the id, 421, 425) */
    BIDE_EVIDENCE_ANSWERED, /* a complete answer came, and it is a failure */
    BIDE_EVIDENCE_BODY_DELIVERED, /* part of the response already reached the caller: never repeated */
};

/* More that a classification can tell. */
enum bide_outcome_flag {
    BIDE_FLAG_TIMED_OUT = 1u << 0,   /* cut for time (some budgets charge more) */
    BIDE_FLAG_UNAVAILABLE = 1u << 1, /* the server said "unavailable" (503): see BIDE_TRUST_UNAVAILABLE */
    BIDE_FLAG_ONCE = 1u << 2,        /* worth one more attempt, not two (425) */
    BIDE_FLAG_FRESH = 1u << 3,       /* for the driver: the next attempt wants a new connection (408, 421, 425) */
    BIDE_FLAG_BODY_SPENT = 1u << 4,  /* the request body was consumed and cannot be sent again */
    BIDE_FLAG_KEY_409 = 1u << 5,     /* permanent, unless the request is keyed: then it is still running (409) */
};

enum bide_hint_kind {
    BIDE_HINT_NONE = 0,
    BIDE_HINT_WAIT, /* wait at least wait_ns */
    BIDE_HINT_STOP, /* do not retry at all */
};

/* What the server asked for. hint.h reads it from header fields. */
struct bide_hint {
    enum bide_hint_kind kind;
    int64_t wait_ns; /* 0 or more; less is as no hint */
};

struct bide_outcome {
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags; /* enum bide_outcome_flag */
    struct bide_hint hint;
};

/* "transient", "unknown"; never NULL. */
BIDE_API const char *bide_kind_label(enum bide_kind kind);
BIDE_API const char *bide_evidence_label(enum bide_evidence evidence);

BIDE_END_DECLS
#endif
