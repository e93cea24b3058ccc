/* read_bucket.c - bide_fleet_read: reads the stored bucket of a target, for `bide budget show --fleet`. Blocking,
 * read-only.
 *
 * Two commands are pipelined: the stored numbers, and Redis' time, without which they cannot be brought up to date. The
 * C twin of the script (protocol/bucket.c) computes the present state from them. In a cluster, -MOVED is followed. */
#include <bide/clock.h>

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/saturate.h"
#include "fleet/protocol/bucket.h"
#include "fleet_internal.h"
#include "problem.h"
#include "script.h"

#define MOVED_MAX 4u /* redirections followed */

enum { COMMAND_BUCKET = 0, COMMAND_TIME, COMMAND_COUNT };

struct bucket_read {
    struct fleet_url url;
    struct fleet_connection *connection;
    char key[FLEET_KEY_MAX];
    int64_t deadline_ns;
    struct fleet_redis_reply reply[COMMAND_COUNT];
    struct bide_problem *problem;
};

static enum bide_err read_fail(struct bucket_read *reading, const char *problem)
{
    return fleet_problem_set(reading->problem, BIDE_ERR_SYSTEM, 0, "%.160s: %.160s: %s", reading->url.redacted,
                             reading->key, problem);
}

/* ---- over the connection ---- */

static enum bide_err read_fail_connection(struct bucket_read *reading)
{
    const char *problem = fleet_connection_problem(reading->connection);
    if (problem[0] == 0)
        return read_fail(reading, "no reply in time");
    return fleet_problem_set(reading->problem, BIDE_ERR_SYSTEM, 0, "%s", problem); /* the text names the endpoint */
}

/* Waits until the connection can make progress, and steps it. */
static void read_step(struct bucket_read *reading)
{
    struct pollfd ready = {0};
    ready.fd = fleet_connection_fd(reading->connection, &ready.events);
    int64_t left_ns = core_min(fleet_connection_deadline_ns(reading->connection), reading->deadline_ns) - bide_now();
    poll(&ready, 1, (int)(core_max(left_ns + BIDE_MS - 1, 0) / BIDE_MS));
    fleet_connection_step(reading->connection, bide_now());
}

static bool read_send(struct bucket_read *reading, int count, const char *const *argument)
{
    return fleet_connection_send(reading->connection, count, argument, NULL, reading->deadline_ns);
}

static bool read_send_commands(struct bucket_read *reading)
{
    return read_send(reading, 4, (const char *const[]){"EVAL", FLEET_SCRIPT_READ, "1", reading->key}) &&
           read_send(reading, 1, (const char *const[]){"TIME"});
}

static enum bide_err read_from_endpoint(struct bucket_read *reading, const char *endpoint)
{
    fleet_connection_open(reading->connection, endpoint, reading->deadline_ns);
    while (fleet_connection_state(reading->connection) == FLEET_CONNECTION_OPENING && bide_now() < reading->deadline_ns)
        read_step(reading);
    if (fleet_connection_state(reading->connection) != FLEET_CONNECTION_READY || !read_send_commands(reading))
        return read_fail_connection(reading);
    for (unsigned received = 0; received < COMMAND_COUNT;) {
        if (fleet_connection_next_reply(reading->connection, &reading->reply[received]))
            received++;
        else if (fleet_connection_state(reading->connection) != FLEET_CONNECTION_READY ||
                 bide_now() >= reading->deadline_ns)
            return read_fail_connection(reading);
        else
            read_step(reading);
    }
    return BIDE_OK;
}

static enum bide_err read_follow_moved(struct bucket_read *reading)
{
    char endpoint[FLEET_ENDPOINT_MAX];
    struct fleet_endpoint current = reading->url.endpoint, moved;
    enum bide_err err = read_from_endpoint(reading, NULL);
    for (unsigned i = 0; err == BIDE_OK && reading->reply[COMMAND_BUCKET].kind == FLEET_REPLY_ERROR && i < MOVED_MAX;
         i++) {
        if (!fleet_moved_endpoint(&current, reading->reply[COMMAND_BUCKET].error, &moved))
            break;
        snprintf(endpoint, sizeof endpoint, "%s:%s", moved.host, moved.port);
        current = moved;
        fleet_connection_close(reading->connection);
        err = read_from_endpoint(reading, endpoint);
    }
    return err;
}

/* ---- interpreting the replies ---- */

/* Returns NULL if both replies have the right shape, otherwise the problem. */
static const char *read_check_replies(struct bucket_read *reading, char text[FLEET_REPLY_ERROR_MAX + 32])
{
    static const size_t values[COMMAND_COUNT] = {LEASE_BUCKET_FIELD_COUNT, 2};
    for (unsigned i = 0; i < COMMAND_COUNT; i++) {
        const struct fleet_redis_reply *reply = &reading->reply[i];
        if (reply->kind == FLEET_REPLY_ERROR) {
            snprintf(text, FLEET_REPLY_ERROR_MAX + 32, "the server replied \"%s\"", reply->error);
            return text;
        }
        if (reply->kind != FLEET_REPLY_VALUES || reply->values != values[i])
            return i == COMMAND_BUCKET ? "the key holds something else" : "the reply to TIME is not two numbers";
    }
    return NULL;
}

static enum bide_err read_fill_bucket(struct bucket_read *reading, struct bide_fleet_bucket *bucket)
{
    const struct fleet_redis_reply *time = &reading->reply[COMMAND_TIME];
    struct lease_bucket stored;
    char text[96];
    memcpy(&stored, reading->reply[COMMAND_BUCKET].value, sizeof stored);
    const char *field = lease_bucket_check(&stored);
    if (field != NULL) {
        snprintf(text, sizeof text, "the key holds something else (%s is out of range)", field);
        return read_fail(reading, text);
    }
    if (time->value[0] < 0 || time->value[0] > LEASE_COUNT_MAX / 2000 || time->value[1] < 0 ||
        time->value[1] >= 1000000)
        return read_fail(reading, "the time of the server is out of range");
    int64_t now_ms = time->value[0] * 1000 + time->value[1] / 1000;
    assert(now_ms <= LEASE_COUNT_MAX - LEASE_MS_MAX);
    struct lease_bucket_view view = lease_bucket_get(&stored, now_ms);
    *bucket = (struct bide_fleet_bucket){
        .exists = true,
        .capacity_milli = stored.capacity_milli,
        .per_minute_milli = stored.per_minute_milli,
        .left_milli = view.level_milli,
        .members = (uint64_t)view.count.all,
        .wanting = (uint64_t)view.count.wanting,
        .exchanges = (uint64_t)stored.serial,
        .firsts = (uint64_t)stored.firsts,
        .successes = (uint64_t)stored.successes,
        .spent_milli = (uint64_t)stored.spent_milli,
        .granted_milli = (uint64_t)stored.granted_milli,
        .age_ms = core_max(0, now_ms - stored.refilled_ms),
    };
    return BIDE_OK;
}

static enum bide_err read_interpret(struct bucket_read *reading, struct bide_fleet_bucket *bucket)
{
    char text[FLEET_REPLY_ERROR_MAX + 32];
    if (reading->reply[COMMAND_BUCKET].kind == FLEET_REPLY_VALUES && reading->reply[COMMAND_BUCKET].values == 0)
        return BIDE_OK; /* no exchange yet, or the key has expired */
    const char *problem = read_check_replies(reading, text);
    return problem != NULL ? read_fail(reading, problem) : read_fill_bucket(reading, bucket);
}

enum bide_err bide_fleet_read(const char *url, const char *name, struct bide_fleet_bucket *bucket,
                              struct bide_problem *problem)
{
    struct bucket_read reading = {.problem = problem};
    *bucket = (struct bide_fleet_bucket){0};
    enum bide_err err = fleet_url_parse(&reading.url, url, problem);
    if (err != BIDE_OK)
        goto out;
    err = bide_targets_name_check(name, problem);
    if (err != BIDE_OK)
        goto out;
    fleet_key_format(&reading.url, name, reading.key);
    reading.deadline_ns = core_sum(bide_now(), reading.url.terms.timeout_ns);
    reading.connection = fleet_connection_new(&reading.url);
    err = reading.connection != NULL ? read_follow_moved(&reading) : BIDE_ERR_NOMEM;
    if (err == BIDE_ERR_NOMEM)
        read_fail(&reading, "out of memory");
    else if (err == BIDE_OK)
        err = read_interpret(&reading, bucket);
out:
    fleet_connection_free(reading.connection);
    fleet_url_free(&reading.url);
    return err;
}
