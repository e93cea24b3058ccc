/* redis.c - a Redis command that is repeated when, and only when, that is safe.
 *
 *     ./redis /run/redis.sock INCR visits
 *     cc redis.c $(pkg-config --cflags --libs bide hiredis)
 *
 * GET changes nothing and SET can be repeated; INCR cannot. INCR is repeated only if it certainly did not run: the
 * connection could not be made, or Redis refused the command (LOADING, BUSY, OOM and others). If the connection breaks
 * after the command was sent, INCR may have run. */
#include <bide/bide.h>

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <strings.h>

struct command {
    const char *socket;
    int count;
    const char **words;
};

static enum bide_safety safety_of(const char *command)
{
    if (strcasecmp(command, "GET") == 0)
        return BIDE_SAFE;
    return strcasecmp(command, "SET") == 0 ? BIDE_IDEMPOTENT : BIDE_UNSAFE;
}

static struct bide_outcome outcome_of(const redisReply *reply)
{
    if (reply == NULL) /* sent, perhaps run, and the connection broke */
        return (struct bide_outcome){.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_FRESH};
    if (reply->type != REDIS_REPLY_ERROR)
        return (struct bide_outcome){.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    fprintf(stderr, "%s\n", reply->str);
    return bide_classify_redis((struct bide_text){reply->str, reply->len});
}

/* A program would keep the connection, and open another after BIDE_FLAG_FRESH. */
static struct bide_outcome run_command(void *context, const struct bide_verdict *start)
{
    const struct command *c = context;
    struct bide_outcome outcome = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    redisContext *db = redisConnectUnix(c->socket);
    (void)start; /* a program passes start->attempt_deadline_ns to redisSetTimeout */
    if (db != NULL && db->err == 0) {
        redisReply *reply = redisCommandArgv(db, c->count, c->words, NULL);
        outcome = outcome_of(reply);
        if (outcome.kind == BIDE_KIND_OK && reply->type == REDIS_REPLY_INTEGER)
            printf("%lld\n", reply->integer);
        else if (outcome.kind == BIDE_KIND_OK && reply->str != NULL)
            printf("%s\n", reply->str);
        freeReplyObject(reply);
    }
    redisFree(db);
    return outcome;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: redis SOCKET COMMAND [ARGUMENT...]\n");
        return 2;
    }
    struct command command = {argv[1], argc - 2, (const char **)argv + 2};
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = 10;
    struct bide_job job = {
        .policy = &policy, .request = {.safety = safety_of(argv[2])}, .attempt = run_command, .context = &command};
    struct bide_verdict end = bide_run(&job);
    fprintf(stderr, "%s after %u attempts: %s\n", bide_action_label(end.action), end.attempt,
            bide_reason_label(end.reason));
    return end.action == BIDE_ACTION_DONE ? 0 : 1;
}
