/* live_redis.c - a real redis-server as a child of the test, and blocking hiredis to inspect it. */
#include "live_redis.h"

#include <bide/bide.h>

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#define START_MAX_NS (60 * BIDE_S) /* a healthy server needs a fraction of a second */
#define REPLY_S      10

/* The user "live" is ours. Lines of the test follow, and win. */
static const char conf[] = "bind 127.0.0.1\nport $PORT\nunixsocket $DIR/redis.sock\nunixsocketperm 700\n"
                           "dir $DIR\ndaemonize no\nsave \"\"\nappendonly no\n"
                           "user live on >live ~* &* +@all\n";

static void fail_with_output(const struct live_redis *redis, const char *reason)
{
    char *output = live_process_read(&redis->process, "output");
    fprintf(stderr, "live_redis: redis-server in %s: %s\n%s", redis->process.dir, reason, output);
    abort();
}

/* ---- starting and stopping ---- */

void live_redis_dir(struct live_redis *redis)
{
    if (redis->process.dir[0] == '\0')
        live_process_dir(&redis->process);
}

void live_redis_start(struct live_redis *redis, const char *lines)
{
    char *text;
    if (asprintf(&text, "%s%s\n", conf, lines) < 0)
        abort();
    live_redis_dir(redis);
    live_process_write(&redis->process, "redis.conf", text);
    free(text);
    live_redis_again(redis);
}

/* Redis accepts connections before it has loaded its data. Until then it replies -LOADING; a replica without a copy
 * replies -MASTERDOWN, which is enough for us. */
static void await_pong(struct live_redis *redis)
{
    int64_t until_ns = bide_now() + START_MAX_NS;
    for (;;) {
        const char *reply = live_redis_do(redis, "PING");
        if (reply && (strcmp(reply, "PONG") == 0 || strncmp(reply, "-MASTERDOWN", 11) == 0))
            return;
        if (waitpid(redis->process.pid, NULL, WNOHANG) == redis->process.pid)
            fail_with_output(redis, "went away while it started");
        if (bide_now() > until_ns)
            fail_with_output(redis, reply ? reply : "does not answer PING");
        poll(NULL, 0, 1);
    }
}

void live_redis_again(struct live_redis *redis)
{
    live_process_start(&redis->process, (const char *const[]){"redis-server", "$DIR/redis.conf", NULL});
    await_pong(redis);
}

void live_redis_kill(struct live_redis *redis, int signal_number)
{
    if (redis->process.pid == 0)
        return;
    kill(redis->process.pid, signal_number);
    kill(redis->process.pid, SIGCONT); /* a stopped process would keep SIGTERM pending */
    live_process_end(&redis->process, signal_number);
}

void live_redis_signal(struct live_redis *redis, int signal_number)
{
    int status;
    kill(redis->process.pid, signal_number);
    if (signal_number == SIGSTOP)
        while (waitpid(redis->process.pid, &status, WUNTRACED) < 0 && errno == EINTR)
            continue;
    if (signal_number == SIGCONT)
        await_pong(redis);
}

void live_redis_free(struct live_redis *redis)
{
    live_redis_kill(redis, SIGKILL);
    live_process_free(&redis->process);
    free(redis->reply);
    *redis = (struct live_redis){0};
}

const char *live_redis_url(struct live_redis *redis, const char *tail)
{
    snprintf(redis->url, sizeof redis->url, "redis://127.0.0.1:%u%s", redis->process.port, tail);
    return redis->url;
}

const char *live_redis_unix_url(struct live_redis *redis, const char *tail)
{
    snprintf(redis->url, sizeof redis->url, "unix://%s/redis.sock%s", redis->process.dir, tail);
    return redis->url;
}

/* ---- commands ---- */

struct redisContext *live_redis_connect(const struct live_redis *redis)
{
    char path[LIVE_DIR_MAX + 16];
    struct timeval most = {.tv_sec = REPLY_S};
    snprintf(path, sizeof path, "%s/redis.sock", redis->process.dir);
    redisContext *context = redisConnectUnixWithTimeout(path, most);
    redisReply *reply = NULL;
    if (context && context->err == 0 && redisSetTimeout(context, most) == REDIS_OK)
        reply = redisCommand(context, "AUTH live live");
    bool answered = reply != NULL; /* also -LOADING: the next command gets the same error */
    if (reply)
        freeReplyObject(reply);
    if (answered)
        return context;
    redisFree(context);
    return NULL;
}

static void write_reply(FILE *out, const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER: fprintf(out, "%lld", reply->integer); break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < reply->elements; i++) {
            fputs(i > 0 ? " " : "", out);
            write_reply(out, reply->element[i]);
        }
        break;
    case REDIS_REPLY_ERROR:
        fputc('-', out);
        fwrite(reply->str, 1, reply->len, out);
        break;
    case REDIS_REPLY_NIL: break;
    default: fwrite(reply->str, 1, reply->len, out); break;
    }
}

static const char *store_reply(struct live_redis *redis, const redisReply *reply)
{
    size_t length;
    free(redis->reply);
    redis->reply = NULL;
    if (!reply)
        return NULL;
    FILE *out = open_memstream(&redis->reply, &length);
    write_reply(out, reply);
    fclose(out);
    return redis->reply;
}

static const char *command(struct live_redis *redis, const char *format, va_list arguments)
{
    redisContext *context = live_redis_connect(redis);
    redisReply *reply = context ? redisvCommand(context, format, arguments) : NULL;
    const char *text = store_reply(redis, reply);
    if (reply)
        freeReplyObject(reply);
    if (context)
        redisFree(context);
    return text;
}

const char *live_redis_do(struct live_redis *redis, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = command(redis, format, arguments);
    va_end(arguments);
    return text;
}

int64_t live_redis_number(struct live_redis *redis, const char *format, ...)
{
    va_list arguments;
    char *end = NULL;
    va_start(arguments, format);
    const char *text = command(redis, format, arguments);
    va_end(arguments);
    int64_t number = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end != '\0')
        fail_with_output(redis, text ? text : "no reply");
    return number;
}
