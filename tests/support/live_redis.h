/* live_redis.h - for live tests: a real redis-server, in a directory and on a port of its own.
 *
 *     struct live_redis redis = {0};
 *     live_redis_start(&redis, "");                          redis://127.0.0.1:PORT, nothing is ever written to disk
 *     live_redis_url(&redis, "?capacity=10")
 *     live_redis_do(&redis, "GET %s", key)                   the reply as a text
 *     live_redis_kill(&redis, SIGKILL); live_redis_again(&redis);
 *     live_redis_signal(&redis, SIGSTOP); live_redis_signal(&redis, SIGCONT);
 *     live_redis_free(&redis);
 *
 * The second argument of live_redis_start is lines of redis.conf, in which $DIR and $PORT stand for the directory and
 * the port; it is followed by nothing and may overrule what we set. LIVE_REDIS_* are such lines, to be put together.
 *
 * It always listens at $DIR/redis.sock, too, where a user of our own may do everything: so commands of the test work
 * whatever users, passwords or TLS its lines ask for. A redis-server that is missing, or does not come up, ends the
 * test program with a sentence. It does not outlive the thread that started it. */
#ifndef LIVE_REDIS_H
#define LIVE_REDIS_H

#include <stdint.h>

#include "live_process.h"

/* Every write is on the disk before it is answered; a snapshot only when asked for (SAVE, and at SIGTERM). */
#define LIVE_REDIS_APPEND   "appendonly yes\nappendfsync always\n"
#define LIVE_REDIS_SNAPSHOT "save 3600 1000000\n"

/* TLS on the port, nothing else there. Before: live_redis_dir, live_tls_make(&redis.process, "site", "IP:127.0.0.1").
 * The second one wants a certificate of the client, which "client" of live_tls_make is trusted to have. */
#define LIVE_REDIS_TLS        LIVE_REDIS_TLS_PORT "tls-auth-clients no\n"
#define LIVE_REDIS_TLS_MUTUAL LIVE_REDIS_TLS_PORT "tls-auth-clients yes\ntls-ca-cert-file $DIR/client.pem\n"
#define LIVE_REDIS_TLS_PORT   "port 0\ntls-port $PORT\ntls-cert-file $DIR/site.pem\ntls-key-file $DIR/site.key\n"

/* A cluster of its own: give it slots by live_redis_do(&redis, "CLUSTER ADDSLOTSRANGE 0 16383"); it is up when
 * "CLUSTER INFO" says cluster_state:ok, which takes a moment. */
#define LIVE_REDIS_CLUSTER "cluster-enabled yes\ncluster-config-file nodes.conf\n"

struct redisContext;

/* Zeroed: nothing yet. */
struct live_redis {
    struct live_process process; /* pid, port, dir */
    char *reply;                 /* of the last live_redis_do */
    char url[512];
};

/* The directory and the port, before it is started. live_redis_start does it if nobody has. */
void live_redis_dir(struct live_redis *redis);

/* Starts it and returns when it answers PING. Again: on the same port, with the same lines and what is in the
 * directory. */
void live_redis_start(struct live_redis *redis, const char *lines);
void live_redis_again(struct live_redis *redis);

/* SIGKILL or SIGTERM: returns when it is gone. One that is stopped goes, too. */
void live_redis_kill(struct live_redis *redis, int signal_number);

/* SIGSTOP: returns when it has stopped. SIGCONT: when it answers again. */
void live_redis_signal(struct live_redis *redis, int signal_number);

/* Ends it, if it runs, and removes the directory. */
void live_redis_free(struct live_redis *redis);

/* "redis://127.0.0.1:PORT" and what is to follow; "unix://$DIR/redis.sock" and so on; until the next call. Others are
 * the test's to write: redis->process.port, redis->process.dir. */
const char *live_redis_url(struct live_redis *redis, const char *tail);
const char *live_redis_unix_url(struct live_redis *redis, const char *tail);

/* One command, as for hiredis' redisCommand, and its reply as a text until the next one: numbers in decimal, the
 * elements of an array with a space between them, "" for nil, an error with "-" before it. NULL: no reply came (it does
 * not run, or for ten seconds did not answer). */
const char *live_redis_do(struct live_redis *redis, const char *format, ...);

/* The same for a reply that is a number; one that is not ends the test. */
int64_t live_redis_number(struct live_redis *redis, const char *format, ...);

/* A connection as that user, for tests that have many commands; NULL: it does not answer. redisFree is the caller's. */
struct redisContext *live_redis_connect(const struct live_redis *redis);

#endif
