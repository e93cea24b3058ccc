/* classify.h - from a status or error number to an outcome, by tables.
 *
 * Each row gives the kind, the usual evidence of how far such a request got, and flags. A number in no row is
 * permanent. A caller with better evidence should overwrite it.
 *
 * Rules of the user come first: the first rule with the number in its range decides. With `only`, a number that no rule
 * names is permanent (or a success, if the table says so): an empty list then allows no retry. NULL rules: only the
 * table.
 *
 * Threads: all functions may be called from any thread; rules are only read. */
#ifndef BIDE_CLASSIFY_H
#define BIDE_CLASSIFY_H

#include <bide/base.h>
#include <bide/outcome.h>

BIDE_BEGIN_DECLS

struct bide_rule {
    int32_t first;
    int32_t last; /* included */
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags;
};

struct bide_rules {
    const struct bide_rule *rule;
    size_t count;
    bool only;
};

/* Classifies an HTTP status. 1xx-3xx are success; 408 425 429 500 502 503 504 and 421 are retryable; 409 is permanent
 * unless the request carries an idempotency key; all others are permanent, including 501 and 505. */
BIDE_API struct bide_outcome bide_classify_http(int status, const struct bide_rules *rules);

/* Classifies a gRPC status code, 0 to 16. UNAVAILABLE and RESOURCE_EXHAUSTED are retryable, ABORTED is a conflict. */
BIDE_API struct bide_outcome bide_classify_grpc(int code, const struct bide_rules *rules);

/* Classifies the errno of a failed system call on a connection (in the OS layer, not in the pure engine). */
BIDE_API struct bide_outcome bide_classify_errno(int error, const struct bide_rules *rules);

/* Classifies an EAI_* code of getaddrinfo: the request was not sent in any case. */
BIDE_API struct bide_outcome bide_classify_dns(int error, const struct bide_rules *rules);

/* Classifies the exit status of a command as the shell reports it: 0, its code, or 128+n for a signal. Death by SIGINT,
 * SIGQUIT or SIGTERM is cancelled; sysexits 64-68, 70, 72, 73 and 76-78, the shell's 126 and 127, and numbers that are
 * no exit status are permanent; every other failure is transient. The evidence is unknown. */
BIDE_API struct bide_outcome bide_classify_exit(int status, const struct bide_rules *rules);

/* Reports the first invalid rule by its field and value: first above last, or an enum or flag out of range. NULL rules
 * are valid. */
BIDE_API enum bide_err bide_rules_check(const struct bide_rules *rules, struct bide_problem *problem);

BIDE_END_DECLS
#endif
