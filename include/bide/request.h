/* request.h - what the caller wants of one call.
 *
 * A plain value, zero-initialised by the caller: the zero request is unsafe to repeat, has no deadline of its own (the
 * policy's applies), came from nobody, and has no retry key. */
#ifndef BIDE_REQUEST_H
#define BIDE_REQUEST_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

/* May it be repeated once it may have run? */
enum bide_safety {
    BIDE_UNSAFE = 0, /* no (POST, PATCH) */
    BIDE_IDEMPOTENT, /* yes: twice is as once (PUT, DELETE) */
    BIDE_SAFE,       /* yes: it changes nothing (GET, HEAD) */
    BIDE_KEYED,      /* yes: it carries an idempotency key that the server remembers */
};

/* What an inbound request already said about retrying: see layer.h, which reads it from a header. */
struct bide_inbound {
    uint32_t attempt; /* 0 or 1: a first attempt. 2 or more: the caller above is retrying already */
    bool no_retry;    /* the caller above asked that nobody retries */
};

struct bide_request {
    enum bide_safety safety;
    uint32_t lane;       /* any small number that differs between threads: spreads counters (drivers fill it) */
    uint64_t seed;       /* all chance in this call comes from here: same seed, same verdicts */
    int64_t deadline_ns; /* absolute; 0: none but the policy's, and the earlier of the two holds. Below 0: passed */
    uint64_t retry_key;  /* any number; 0: none. Calls with the same one share the per-key retry limit */
    struct bide_inbound inbound;
};

/* The safety of an HTTP method by RFC 9110 section 9.2 (and QUERY by its draft). Case-sensitive as methods are; an
 * unknown method is unsafe. */
BIDE_API enum bide_safety bide_method_safety(const char *method, size_t length);

/* A 64-bit hash for names and retry keys. Not for secrets: it is fast and unkeyed. Never 0. */
BIDE_API uint64_t bide_hash(const void *bytes, size_t length);

BIDE_END_DECLS
#endif
