/* classify.h - from a status or error number to an outcome, by tables.
 *
 * Each row says the kind, how far such a request usually got, and more (flags). What is in no row is permanent. The
 * caller may have better evidence of the reach and should then overwrite it.
 *
 * Rules of the user come first: the first rule whose range holds the number decides. With `only`, what no rule names is
 * permanent (or success, where the number says success): an empty list then allows nothing. */
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

/* HTTP status. 1xx-3xx are success; 408 425 429 500 502 503 504 and 421 may be retried; 409 is permanent unless the
 * request is keyed; all else is permanent, 501 and 505 included. rules may be NULL. */
BIDE_API struct bide_outcome bide_classify_http(int status, const struct bide_rules *rules);

/* gRPC status code, 0 to 16. UNAVAILABLE and RESOURCE_EXHAUSTED may be retried, ABORTED is a conflict. */
BIDE_API struct bide_outcome bide_classify_grpc(int code, const struct bide_rules *rules);

/* errno of a failed system call on a connection (libbide's OS layer; not in the pure core). */
BIDE_API struct bide_outcome bide_classify_errno(int error, const struct bide_rules *rules);

/* EAI_* of getaddrinfo: nothing was sent in any case. */
BIDE_API struct bide_outcome bide_classify_dns(int error, const struct bide_rules *rules);

/* Exit status of a command as the shell reports it: 0, its code, or 128+n for a signal. Death by SIGINT, SIGQUIT or
 * SIGTERM is cancelled; sysexits 64-68, 70, 72, 73 and 76-78, the shell's 126 and 127, and what is no exit status are
 * permanent; every other failure is transient. The reach is UNKNOWN. */
BIDE_API struct bide_outcome bide_classify_exit(int status, const struct bide_rules *rules);

/* Finds the first rule that is wrong and names its field and value: first above last, or an enum or flag out of range.
 * NULL rules are right. */
BIDE_API enum bide_err bide_rules_check(const struct bide_rules *rules, struct bide_problem *problem);

BIDE_END_DECLS
#endif
