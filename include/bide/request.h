/* request.h - the request of a caller: safety, deadline, seed, retry key, inbound context.
 *
 * A plain value, zero-initialised by the caller: the zero request is unsafe to repeat, has no deadline of its own (that
 * of the policy applies), no inbound request behind it, and no retry key.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_REQUEST_H
#define BIDE_REQUEST_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

/* May the request be repeated after it may have run? */
enum bide_safety {
    BIDE_UNSAFE = 0, /* no (POST, PATCH) */
    BIDE_IDEMPOTENT, /* yes: repeating it has the effect of one request (PUT, DELETE) */
    BIDE_SAFE,       /* yes: it changes nothing (GET, HEAD) */
    BIDE_KEYED,      /* yes: it carries an idempotency key that the server remembers */
};

/* Retry information of an inbound request: layer.h parses it from a header. Final: its size will not change. */
struct bide_inbound {
    uint32_t attempt; /* 0 or 1: a first attempt. 2 or more: the caller above is retrying already */
    bool no_retry;    /* the caller above asks that no layer retries */
};

struct bide_request {
    enum bide_safety safety;
    uint32_t lane;       /* any small number that differs between threads: spreads counters (drivers fill it) */
    uint64_t seed;       /* source of all randomness of this call: same seed, same verdicts */
    int64_t deadline_ns; /* absolute; 0: only the policy's. The earlier of the two applies. Below 0: passed */
    uint64_t retry_key;  /* any number; 0: none. Calls with the same key share the limit of retries per key */
    struct bide_inbound inbound;
    uint64_t reserved_[2]; /* zero: room to grow */
};

/* Returns the safety of an HTTP method by RFC 9110 section 9.2 (and QUERY by its draft). Case-sensitive as methods are;
 * an unknown method is unsafe. */
BIDE_API enum bide_safety bide_method_safety(const char *method, size_t length);

/* Returns a 64-bit hash for names and retry keys. Not for secrets: it is fast and unkeyed. Never 0. */
BIDE_API uint64_t bide_hash(const void *bytes, size_t length);

BIDE_END_DECLS
#endif
