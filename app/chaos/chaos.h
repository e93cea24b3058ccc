/* chaos.h - an HTTP/1.1 fault-injection server on 127.0.0.1, to be embedded in a test or a program.
 *
 * A script (see script.c and docs/chaos.md) determines its behaviour: each request to a path takes the next step of
 * that path's line. The server runs in the thread that calls chaos_run; another thread may stop it. With `keep`, all
 * requests can be inspected afterwards, in order of arrival.
 *
 *     struct chaos_config config = {.script = "/flaky 503 x2 | 200", .journal_fd = -1, .keep = true};
 *     chaos_new(&server, &config, &error);      ... a thread: chaos_run(server) ...
 *     chaos_stop(server);                       ... join it ...
 *     seen = chaos_seen(server, &count);
 *     chaos_free(server); */
#ifndef CHAOS_CHAOS_H
#define CHAOS_CHAOS_H

#include <bide/hint.h>

#define CHAOS_HEAD_MAX    65536u /* of a request, with its empty line; longer heads get 431 */
#define CHAOS_METHOD_MAX  15u
#define CHAOS_PATH_KEPT   255u /* longer paths are served, but recorded truncated */
#define CHAOS_IDLE_NS     (60 * BIDE_S)
#define CHAOS_SEEN_MAX    1000000u            /* requests recorded; later requests are only served and counted */
#define CHAOS_SEEN_MEMORY (UINT64_C(1) << 28) /* bytes of recorded heads */

struct chaos;

struct chaos_config {
    const char *script; /* script text; NULL or empty: 200 "ok\n" on every path */
    uint16_t port;      /* 0: any free port */
    uint64_t seed;      /* of random failures and delays */
    int journal_fd;     /* for JSON lines, written as requests end; -1: none. Owned by the caller */
    bool keep;          /* record all requests for chaos_seen */
    int64_t idle_ns;    /* disconnect clients that neither send nor read for this long; 0: CHAOS_IDLE_NS */
};

/* An error in a script, with a description of a valid value. */
struct chaos_error {
    uint32_t line; /* from 1; 0: none, the text concerns the whole script */
    char text[160];
};

/* Binds the port and listens. Returns BIDE_ERR_INVALID for a bad script, with *error set (error may be NULL),
 * BIDE_ERR_SYSTEM with errno set, or BIDE_ERR_NOMEM. */
enum bide_err chaos_new(struct chaos **server, const struct chaos_config *config, struct chaos_error *error);
void chaos_free(struct chaos *server); /* accepts NULL */

uint16_t chaos_port(const struct chaos *server);

/* Serves until chaos_stop. Requests in progress at that time end as "unfinished". */
enum bide_err chaos_run(struct chaos *server);

/* Stops the server for good. Safe from any thread and from a signal handler. */
void chaos_stop(struct chaos *server);

/* Returns the number of requests whose head was read so far. Safe from any thread. */
uint64_t chaos_requests(const struct chaos *server);

/* Returns the errno of the first failure that lost a line of the journal, or 0. Valid after chaos_run has returned. */
int chaos_journal_error(const struct chaos *server);

/* A recorded request. The texts live as long as the server. A connection that a step cut on accept is recorded as a
 * request without method and path, number 0 on its connection. */
struct chaos_seen {
    int64_t at_ns;          /* when its head was complete; for a partial head, when it was abandoned */
    int64_t end_ns;         /* when the request ended; 0: still in progress */
    uint64_t connection;    /* from 1 */
    uint32_t on_connection; /* 1: the first request on its connection */
    char method[CHAOS_METHOD_MAX + 1];
    char path[CHAOS_PATH_KEPT + 1]; /* without the query */
    const char *query;              /* without the question mark; this and the next four are NULL if absent */
    const char *key;                /* Idempotency-Key, as received */
    const char *attempt;            /* Bide-Attempt */
    const char *traceparent;
    const char *authorization;
    struct bide_text head; /* as received, up to the empty line; absent if not kept or without memory */
    uint64_t body_bytes;   /* read so far, without chunk framing */
    uint64_t body_hash;    /* bide_hash of these bytes */
    int status;            /* of the response, complete or not; 0: none */
    const char *result;    /* one of CHAOS_RESULT_LIST */
};

/* How a request ended: X(NAME, label, meaning). */
#define CHAOS_RESULT_LIST(X)                                                                                           \
    X(READING, "reading", "its body is still being read, or it waits for its response")                                \
    X(ANSWERED, "answered", "the whole response was passed to the network")                                            \
    X(CLOSED, "closed", "cut with FIN by the script; status 0: no response had begun")                                 \
    X(RESET, "reset", "cut with RST by the script; status 0: no response had begun")                                   \
    X(GARBAGE, "garbage", "answered with something that is not HTTP")                                                  \
    X(HALF, "half", "the client left or stopped sending before the request was complete")                              \
    X(MALFORMED, "malformed", "not a valid request: rejected with 4xx or 5xx, and closed")                             \
    X(LEFT, "left", "the client left or stopped reading before the response was complete")                             \
    X(UNFINISHED, "unfinished", "the server was stopped first")

/* Returns all requests in order of arrival; none unless `keep` was set. Valid after chaos_run has returned. */
const struct chaos_seen *chaos_seen(const struct chaos *server, size_t *count);

/* Finds the first header field with that name (case-insensitive); its value has no blanks around it. */
bool chaos_seen_header(const struct chaos_seen *seen, const char *name, struct bide_text *value);

/* Returns the byte at an offset of every generated body (bytes=N, endless): lines of eight bytes, each with its line
 * number in hex. */
char chaos_pattern(uint64_t offset);

#endif
