/* chaos.h - an HTTP/1.1 server on 127.0.0.1 that fails on purpose, to be embedded in a test or a program.
 *
 * It does what a script tells (see script.c and docs/chaos.md): each request to a path takes the next step of that
 * path's line. One thread serves, the one that calls chaos_run; another may stop it. Whoever asked to keep them finds
 * afterwards all requests in order of arrival.
 *
 *     struct chaos_config config = {.script = "/flaky 503 x2 | 200", .journal_fd = -1, .keep = true};
 *     chaos_new(&server, &config, &error);      ... a thread: chaos_run(server) ...
 *     chaos_stop(server);                       ... join it ...
 *     seen = chaos_seen(server, &count);
 *     chaos_free(server); */
#ifndef CHAOS_CHAOS_H
#define CHAOS_CHAOS_H

#include <bide/hint.h>

#define CHAOS_HEAD_MAX    65536u /* of a request, with its empty line: more is answered with 431 */
#define CHAOS_METHOD_MAX  15u
#define CHAOS_PATH_KEPT   255u /* longer paths are served, and remembered cut */
#define CHAOS_IDLE_NS     (60 * BIDE_S)
#define CHAOS_SEEN_MAX    1000000u            /* requests remembered; later ones are served and counted only */
#define CHAOS_SEEN_MEMORY (UINT64_C(1) << 28) /* bytes of their heads */

struct chaos;

struct chaos_config {
    const char *script; /* the text of a script; NULL or empty: 200 "ok\n" on every path */
    uint16_t port;      /* 0: a free one */
    uint64_t seed;      /* fail ratios and delays draw from here */
    int journal_fd;     /* JSON lines go there as requests end; -1: none. The caller's: it is not closed */
    bool keep;          /* remember all requests for chaos_seen */
    int64_t idle_ns;    /* a client that neither sends nor reads for so long is cut; 0: CHAOS_IDLE_NS */
};

/* What is wrong with a script, and what would be right. */
struct chaos_error {
    uint32_t line; /* from 1; 0: it was not the script */
    char text[160];
};

/* Bound and listening on return. BIDE_ERR_INVALID: the script, see the error (which may be NULL). BIDE_ERR_SYSTEM:
 * errno says why. */
enum bide_err chaos_new(struct chaos **server, const struct chaos_config *config, struct chaos_error *error);
void chaos_free(struct chaos *server); /* accepts NULL */

uint16_t chaos_port(const struct chaos *server);

/* Serves until chaos_stop. Requests that are then under way end as "unfinished". */
enum bide_err chaos_run(struct chaos *server);

/* From any thread or a signal handler. Once stopped it stays stopped. */
void chaos_stop(struct chaos *server);

/* Requests whose head was read so far. From any thread. */
uint64_t chaos_requests(const struct chaos *server);

/* Why the journal ends early, an errno; 0: it does not. After chaos_run has returned. */
int chaos_journal_error(const struct chaos *server);

/* One request, or what came of one. The texts live as long as the server. A connection that a step cut at its accept is
 * here too, as a request without method or path, number 0 on its connection. */
struct chaos_seen {
    int64_t at_ns;          /* when its head was complete; of half a head, when it was given up */
    int64_t end_ns;         /* when its deed was done; 0: not yet */
    uint64_t connection;    /* from 1 */
    uint32_t on_connection; /* 1: the first request on this connection */
    char method[CHAOS_METHOD_MAX + 1];
    char path[CHAOS_PATH_KEPT + 1]; /* without query */
    const char *query;              /* without the question mark; this and the next four: NULL if absent */
    const char *key;                /* Idempotency-Key, as it came */
    const char *attempt;            /* Bide-Attempt */
    const char *traceparent;
    const char *authorization;
    struct bide_text head; /* the request as it came, up to the empty line; absent if not kept, or for lack of memory */
    uint64_t body_bytes;   /* that were read, of chunks without their framing */
    uint64_t body_hash;    /* their bide_hash */
    int status;            /* of the answer, begun or complete; 0: none */
    const char *result;    /* one of CHAOS_RESULT_LIST */
};

/* How a request ended: name, meaning. */
#define CHAOS_RESULT_LIST(X)                                                                                           \
    X(READING, "reading", "its body is still being read, or it waits for its answer")                                  \
    X(ANSWERED, "answered", "the whole answer was handed to the network")                                              \
    X(CLOSED, "closed", "cut with FIN, as the script says; status tells whether an answer had begun")                  \
    X(RESET, "reset", "cut with RST, likewise")                                                                        \
    X(GARBAGE, "garbage", "answered with something that is not HTTP")                                                  \
    X(HALF, "half", "the client left, or fell silent, with the request half sent")                                     \
    X(MALFORMED, "malformed", "not a request that can be served: answered with 4xx or 5xx, and closed")                \
    X(LEFT, "left", "the client left, or stopped reading, before it had the whole answer")                             \
    X(UNFINISHED, "unfinished", "the server was stopped first")

/* Requests in order of arrival; empty unless kept. After chaos_run has returned. */
const struct chaos_seen *chaos_seen(const struct chaos *server, size_t *count);

/* The value of the first header field of that name (in any case) that the request had, without blanks around it. */
bool chaos_seen_header(const struct chaos_seen *seen, const char *name, struct bide_text *value);

/* The byte at an offset of every generated body (bytes=N, endless): lines of eight bytes, each its number in hex. */
char chaos_pattern(uint64_t offset);

#endif
