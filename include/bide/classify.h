/* classify.h - from a status, error number or error text to an outcome, by tables.
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
#include <bide/hint.h>
#include <bide/outcome.h>

BIDE_BEGIN_DECLS

/* Final: its size will not change. */
struct bide_rule {
    int32_t first;
    int32_t last; /* included */
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags;
};

/* Final: its size will not change. */
struct bide_rules {
    const struct bide_rule *rule;
    size_t count;
    bool only;
};

/* Classifies an HTTP status. 1xx-3xx are success; 408 421 425 429 500 502 503 504 520-524 and 529 are retryable; 409
 * is permanent unless the request carries an idempotency key; all others are permanent, including 501 and 505. */
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

/* Errors of databases: an attempt is one transaction, which the caller rolls back after a failure, or one statement or
 * command outside a transaction. Evidence "rejected" is proof that it had no effect. If the connection breaks while
 * COMMIT, or a statement outside a transaction, is in flight, the evidence is unknown. */

/* Classifies an SQLSTATE of PostgreSQL, five characters such as "40001". Serialization failures, deadlocks and locks
 * that are not available are conflicts (retried at once, one time); broken connections, insufficient resources,
 * shutdown, start-up and read-only servers are transient; classes 00 to 02 are success. NULL (libpq has no SQLSTATE for
 * a broken connection: pass "08006") and malformed text are permanent, with unknown evidence. There are no rules, since
 * the codes are no numbers: compare the text before the call. */
BIDE_API struct bide_outcome bide_classify_sqlstate(const char *sqlstate);

/* Classifies an error number of MySQL or MariaDB, of the server (1000 and up) or of the client library (2000 and up);
 * 0 is success. rules may be NULL. */
BIDE_API struct bide_outcome bide_classify_mysql(int error, const struct bide_rules *rules);

/* Classifies an error reply of Redis by its code: "LOADING Redis is loading the dataset in memory", with or without "-"
 * in front. LOADING, BUSY, OOM and others that refuse the command before it runs are transient; MOVED and ASK are
 * permanent, since only another node can help. An absent or empty text is permanent, with unknown evidence. For a
 * broken connection use bide_classify_errno. There are no rules: compare the text before the call. */
BIDE_API struct bide_outcome bide_classify_redis(struct bide_text error);

/* Reports the first invalid rule by its field and value: first above last, or an enum or flag out of range. NULL rules
 * are valid. */
BIDE_API enum bide_err bide_rules_check(const struct bide_rules *rules, struct bide_problem *problem);

BIDE_END_DECLS
#endif
