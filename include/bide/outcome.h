/* outcome.h - how an attempt ended: the input of the engine.
 *
 * Three things matter. The kind: would a retry help? The evidence: how far did the request get, so may it be repeated
 * at all (the idempotency gate)? The hint: did the server ask for time? Their zero values are the careful choice: a
 * permanent failure of a request that may have run, without a hint.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_OUTCOME_H
#define BIDE_OUTCOME_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

enum bide_kind {
    BIDE_KIND_PERMANENT = 0, /* a retry will not help */
    BIDE_KIND_TRANSIENT,     /* may succeed next time */
    BIDE_KIND_THROTTLED,     /* the server asked for fewer requests (429, RESOURCE_EXHAUSTED) */
    BIDE_KIND_CONFLICT,      /* lost an optimistic race: may be retried at once, one time */
    BIDE_KIND_CANCELLED,     /* stopped by our own side: no evidence about the server */
    BIDE_KIND_OK,            /* succeeded */
};

enum bide_evidence {
    BIDE_EVIDENCE_UNKNOWN = 0, /* sent, or unknown: the server may have processed it */
    BIDE_EVIDENCE_NOT_SENT,    /* no byte of it left this process */
    BIDE_EVIDENCE_REJECTED,    /* proved unprocessed by the protocol (REFUSED_STREAM, GOAWAY above the id, 421, 425) */
    BIDE_EVIDENCE_ANSWERED,    /* a complete response arrived, and it is a failure */
    BIDE_EVIDENCE_BODY_DELIVERED, /* part of the response already reached the caller: never repeated */
};

/* Further results of a classification. */
enum bide_outcome_flag {
    BIDE_FLAG_TIMED_OUT = 1u << 0,   /* stopped by a timeout (some budgets charge more) */
    BIDE_FLAG_UNAVAILABLE = 1u << 1, /* the server replied "unavailable" (503): see BIDE_TRUST_UNAVAILABLE */
    BIDE_FLAG_ONCE = 1u << 2,        /* worth one more attempt, not two (425) */
    BIDE_FLAG_FRESH = 1u << 3,       /* for the driver: the next attempt needs a new connection (408, 421, 425) */
    BIDE_FLAG_BODY_SPENT = 1u << 4,  /* the request body was consumed and cannot be sent again */
    BIDE_FLAG_KEY_409 = 1u << 5,     /* 409: permanent, unless the request is keyed, which may then be retried */
    BIDE_FLAG_LOCAL = 1u << 6,       /* a failure on the caller's own side or of name resolution (EMFILE, unknown name):
                                      * no evidence about the server, so it casts no vote */
};

enum bide_hint_kind {
    BIDE_HINT_NONE = 0,
    BIDE_HINT_WAIT, /* wait at least wait_ns */
    BIDE_HINT_STOP, /* do not retry at all */
};

/* The time that the server asked for. hint.h parses it from header fields. Final: its size will not change. */
struct bide_hint {
    enum bide_hint_kind kind;
    int64_t wait_ns; /* 0 or more; a negative value counts as no hint */
};

/* Final: its size will not change. */
struct bide_outcome {
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags; /* enum bide_outcome_flag */
    struct bide_hint hint;
};

/* Return a label, as "transient" or "unknown"; never NULL. */
BIDE_API const char *bide_kind_label(enum bide_kind kind);
BIDE_API const char *bide_evidence_label(enum bide_evidence evidence);

BIDE_END_DECLS
#endif
