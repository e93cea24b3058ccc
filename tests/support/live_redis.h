/* live_redis.h - for live tests: a real redis-server, with its own directory and port.
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
 * the port. They come last, so they override our own lines. LIVE_REDIS_* are such lines, to be concatenated.
 *
 * The server also listens at $DIR/redis.sock, where our own user has all permissions: so commands of the test work with
 * any users, passwords or TLS in its lines. If redis-server is missing or does not start, the test program ends with an
 * error. The server does not outlive the thread that started it. */
#ifndef LIVE_REDIS_H
#define LIVE_REDIS_H

#include <stdint.h>

#include "live_process.h"

/* APPEND: every write is on disk before its reply. SNAPSHOT: written only on request (SAVE, and at SIGTERM). */
#define LIVE_REDIS_APPEND   "appendonly yes\nappendfsync always\n"
#define LIVE_REDIS_SNAPSHOT "save 3600 1000000\n"

/* TLS on the port, and nothing else. Call live_redis_dir and live_tls_make(&redis.process, "site", "IP:127.0.0.1")
 * before. MUTUAL requires a client certificate, and trusts "client" of live_tls_make. */
#define LIVE_REDIS_TLS        LIVE_REDIS_TLS_PORT "tls-auth-clients no\n"
#define LIVE_REDIS_TLS_MUTUAL LIVE_REDIS_TLS_PORT "tls-auth-clients yes\ntls-ca-cert-file $DIR/client.pem\n"
#define LIVE_REDIS_TLS_PORT   "port 0\ntls-port $PORT\ntls-cert-file $DIR/site.pem\ntls-key-file $DIR/site.key\n"

/* A cluster of a single node: assign slots with live_redis_do(&redis, "CLUSTER ADDSLOTSRANGE 0 16383"); it is up when
 * "CLUSTER INFO" contains cluster_state:ok, which takes a moment. */
#define LIVE_REDIS_CLUSTER "cluster-enabled yes\ncluster-config-file nodes.conf\n"

struct redisContext;

/* Zeroed: not started. */
struct live_redis {
    struct live_process process; /* pid, port, dir */
    char *reply;                 /* of the last live_redis_do */
    char url[512];
};

/* Chooses directory and port, before the start. live_redis_start does it otherwise. */
void live_redis_dir(struct live_redis *redis);

/* Starts the server and returns when it replies to PING. _again: on the same port, with the same configuration and
 * directory. */
void live_redis_start(struct live_redis *redis, const char *lines);
void live_redis_again(struct live_redis *redis);

/* Sends SIGKILL or SIGTERM and waits for the end, also of a stopped server. */
void live_redis_kill(struct live_redis *redis, int signal_number);

/* Sends SIGSTOP and waits until the server has stopped, or SIGCONT and waits until it replies. */
void live_redis_signal(struct live_redis *redis, int signal_number);

/* Ends the server, if it runs, and removes the directory. */
void live_redis_free(struct live_redis *redis);

/* Return "redis://127.0.0.1:PORT" and "unix://$DIR/redis.sock", followed by `tail`; valid until the next call. Tests
 * build other URLs from redis->process.port and redis->process.dir. */
const char *live_redis_url(struct live_redis *redis, const char *tail);
const char *live_redis_unix_url(struct live_redis *redis, const char *tail);

/* Sends a command, as redisCommand of hiredis does, and returns its reply as a text, valid until the next call:
 * integers in decimal, array elements separated by spaces, "" for nil, errors with "-" in front. NULL: no reply (not
 * running, or none within ten seconds). */
const char *live_redis_do(struct live_redis *redis, const char *format, ...);

/* The same for a reply that is an integer; any other reply ends the test. */
int64_t live_redis_number(struct live_redis *redis, const char *format, ...);

/* Opens a connection as that user, for tests with many commands; NULL: no reply. The caller calls redisFree. */
struct redisContext *live_redis_connect(const struct live_redis *redis);

#endif
