/* test_script.c - the script inside a real Redis and its twin in C give the same replies, to the digit; and errors are
 * returned before anything is written.
 *
 * The script uses Redis' time, and no argument can change it. So tests that need to move time replace the line that
 * reads it: two keys hold the time instead. */
#include <bide/bide.h>

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/protocol/bucket.h"
#include "fleet/script.h"
#include "live_redis.h"
#include "seed.h"

#define KEY      "bide:{pay}:1"
#define YEAR_MS  (INT64_C(365) * 86400000)
#define FIRST_MS INT64_C(1700000000123)
#define MEMBERS  40u
#define BATCH    100u /* requests pipelined: the twin predicts their replies */
#define ROUNDS   60u
#define LIMIT_NS (60 * BIDE_S) /* for anything awaited */

static struct live_redis redis, other;
static redisContext *context;
static uint64_t seed;
static uint64_t draws;

static int open_redis(void **state)
{
    live_redis_start(&redis, "");
    context = live_redis_connect(&redis);
    return context ? 0 : -1;
}

static int close_redis(void **state)
{
    if (context)
        redisFree(context);
    context = NULL;
    live_redis_free(&redis);
    live_redis_free(&other);
    return 0;
}

static uint64_t draw(uint64_t below)
{
    uint64_t x = seed + 0x9e3779b97f4a7c15u * ++draws;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % below;
}

/* As many small numbers as large numbers. */
static int64_t draw_up_to(int64_t most)
{
    int64_t number = (int64_t)draw(UINT64_C(1) << draw(54));
    return draw(40) == 0 || number > most ? most : number;
}

/* ---- the script, with and without Redis' time ---- */

static char *text_replaced(const char *text, const char *pattern, const char *replacement)
{
    const char *at = strstr(text, pattern);
    char *result = malloc(strlen(text) + strlen(replacement) + 1);
    assert_non_null(at);
    assert_null(strstr(at + 1, pattern));
    assert_non_null(result);
    memcpy(result, text, (size_t)(at - text));
    snprintf(result + (at - text), strlen(at) + strlen(replacement) + 1, "%s%s", replacement, at + strlen(pattern));
    return result;
}

static void load_script(const char *text, char sha1[41])
{
    snprintf(sha1, 41, "%s", live_redis_do(&redis, "SCRIPT LOAD %s", text));
    assert_int_equal(strlen(sha1), 40);
}

static void load_with_test_time(char sha1[41])
{
    char *text = text_replaced(fleet_script, "redis.call('TIME')", "redis.call('MGET', 'now_s', 'now_us')");
    load_script(text, sha1);
    free(text);
}

static void load_unchanged(void)
{
    char sha1[41];
    load_script(fleet_script, sha1);
    assert_string_equal(sha1, fleet_script_sha1);
}

static void append_exchange(const char *sha1, const char *key, const struct lease_request *request)
{
    char digits[LEASE_REQUEST_FIELD_COUNT][24];
    const char *word[4 + LEASE_REQUEST_FIELD_COUNT] = {"EVALSHA", sha1, "1", key};
    int64_t number[LEASE_REQUEST_FIELD_COUNT];
    memcpy(number, request, sizeof number);
    for (size_t i = 0; i < LEASE_REQUEST_FIELD_COUNT; i++) {
        snprintf(digits[i], sizeof digits[i], "%" PRId64, number[i]);
        word[4 + i] = digits[i];
    }
    assert_int_equal(redisAppendCommandArgv(context, 4 + LEASE_REQUEST_FIELD_COUNT, word, NULL), REDIS_OK);
}

static redisReply *next_reply(void)
{
    void *redis_reply = NULL;
    assert_int_equal(redisGetReply(context, &redis_reply), REDIS_OK);
    return redis_reply;
}

static struct lease_reply next_lease_reply(void)
{
    struct lease_reply reply;
    int64_t number[LEASE_REPLY_FIELD_COUNT];
    redisReply *redis_reply = next_reply();
    if (redis_reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", redis_reply->str);
    assert_int_equal(redis_reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(redis_reply->elements, LEASE_REPLY_FIELD_COUNT);
    for (size_t i = 0; i < LEASE_REPLY_FIELD_COUNT; i++) {
        assert_int_equal(redis_reply->element[i]->type, REDIS_REPLY_INTEGER);
        number[i] = redis_reply->element[i]->integer;
    }
    freeReplyObject(redis_reply);
    memcpy(&reply, number, sizeof reply);
    return reply;
}

static struct lease_reply exchange(const struct lease_request *request)
{
    append_exchange(fleet_script_sha1, KEY, request);
    return next_lease_reply();
}

/* Reads the stored bucket, as bide_fleet_read does. */
static struct lease_bucket read_stored(const char *key)
{
    struct lease_bucket bucket;
    int64_t number[LEASE_BUCKET_FIELD_COUNT];
    redisReply *redis_reply = redisCommand(context, "EVAL %s 1 %s", FLEET_SCRIPT_READ, key);
    assert_non_null(redis_reply);
    assert_int_equal(redis_reply->elements, LEASE_BUCKET_FIELD_COUNT);
    for (size_t i = 0; i < LEASE_BUCKET_FIELD_COUNT; i++)
        number[i] = redis_reply->element[i]->integer;
    freeReplyObject(redis_reply);
    memcpy(&bucket, number, sizeof bucket);
    return bucket;
}

/* ---- random requests ---- */

/* A world: the members with their last replies, the bucket of the twin, and its time. */
struct world {
    bool realistic; /* requests like those of real members; otherwise any numbers in range */
    bool all_new;   /* every request is from a new member */
    int64_t now_ms;
    struct lease_bucket bucket;
    struct lease_reply last_reply[MEMBERS];
    char key[32];
};

static int64_t elapsed_ms(struct world *world)
{
    uint64_t kind = draw(world->realistic ? 150 : 30);
    if (world->all_new)
        return (int64_t)draw(3);
    if (kind == 0)
        return draw(2) ? -(int64_t)draw(30000) : (int64_t)draw(60000);
    if (kind == 1)
        return draw(2) ? -(int64_t)draw(2000000) : (int64_t)draw(8000000);
    if (kind == 2)
        return draw(2) ? -YEAR_MS : YEAR_MS;
    return (int64_t)draw(draw(4) ? 60 : 3000) - (draw(10) == 0);
}

static struct lease_request random_request(void)
{
    struct lease_request request;
#define ANY(field, most) request.field = draw(3) ? draw_up_to(most) : 0;
    LEASE_REQUEST_FIELDS(ANY)
#undef ANY
    return request;
}

static struct lease_request sane_request(const struct lease_reply *last_reply)
{
    return (struct lease_request){.capacity_milli = draw(50) ? 100000 : 5000,
                                  .per_minute_milli = draw(50) ? 60000 : 7777,
                                  .unit_milli = draw(3) ? 1000 : 2500,
                                  .returned_milli = draw(4) ? 0 : (int64_t)draw(3000),
                                  .earned_milli = draw(2) ? 0 : (int64_t)draw(5000),
                                  .wanted_milli = draw(2) ? 0 : (int64_t)draw(20000),
                                  .firsts = (int64_t)draw(100),
                                  .successes = (int64_t)draw(100),
                                  .spent_milli = (int64_t)draw(4000),
                                  .seen_serial = last_reply->serial,
                                  .leaving = draw(100) == 0,
                                  .was_wanting = (int64_t)draw(2)};
}

/* Mostly the serial seen; sometimes a higher serial, which proves a rollback of Redis. */
static struct lease_request next_request(struct world *world, const struct lease_reply *last_reply)
{
    if (world->realistic)
        return sane_request(last_reply);
    struct lease_request request = random_request();
    if (draw(20))
        request.seen_serial = draw(5) ? last_reply->serial : 0;
    else if (draw(50))
        request.seen_serial =
            world->bucket.serial + (world->bucket.serial < LEASE_COUNT_MAX - 5 ? (int64_t)draw(5) : 0);
    return request;
}

static void send_exchange(struct world *world, const char *sha1, const struct lease_request *request)
{
    char seconds[24], microseconds[24];
    snprintf(seconds, sizeof seconds, "%" PRId64, world->now_ms / 1000);
    snprintf(microseconds, sizeof microseconds, "%" PRId64, world->now_ms % 1000 * 1000 + (int64_t)draw(1000));
    redisAppendCommand(context, "MSET now_s %s now_us %s", seconds, microseconds);
    append_exchange(sha1, world->key, request);
}

static void assert_same_reply(const struct lease_reply *model, const struct lease_reply *script, uint64_t step)
{
#define SAME(field, most)                                                                                              \
    if (model->field != script->field)                                                                                 \
        fail_msg("request %" PRIu64 ": %s is %" PRId64 " in C and %" PRId64 " in Redis", step, #field, model->field,   \
                 script->field);
    LEASE_REPLY_FIELDS(SAME)
#undef SAME
}

static void assert_same_bucket(const struct lease_bucket *model, const struct lease_bucket *script)
{
#define SAME(name, field, most)                                                                                        \
    if (model->field != script->field)                                                                                 \
        fail_msg("%s is %" PRId64 " in C and %" PRId64 " in Redis", name, model->field, script->field);
    LEASE_BUCKET_FIELDS(SAME)
#undef SAME
}

/* Sends a batch to Redis and to the twin, which is quicker and knows the replies first. */
static void run_batch(struct world *world, const char *sha1, uint64_t step)
{
    struct lease_reply model[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        struct lease_reply *last_reply = &world->last_reply[draw(MEMBERS)];
        struct lease_request request = next_request(world, last_reply);
        int64_t then_ms = world->now_ms + elapsed_ms(world);
        world->now_ms = then_ms < 0 ? 0 : then_ms;
        assert_null(lease_request_check(&request));
        send_exchange(world, sha1, &request);
        lease_bucket_serve(&world->bucket, &request, world->now_ms, &model[i]);
        assert_null(lease_reply_check(&model[i], &request));
        assert_null(lease_bucket_check(&world->bucket));
        *last_reply = request.leaving || world->all_new ? (struct lease_reply){0} : model[i];
    }
    for (size_t i = 0; i < BATCH; i++) {
        freeReplyObject(next_reply());
        struct lease_reply script = next_lease_reply();
        assert_same_reply(&model[i], &script, step + i);
    }
    struct lease_bucket stored = read_stored(world->key);
    assert_same_bucket(&world->bucket, &stored);
}

static struct world first_world; /* of each seed */

static void run_world_from(uint64_t from)
{
    char sha1[41];
    struct world world = first_world;
    seed = from;
    draws = 0;
    snprintf(world.key, sizeof world.key, "bide:{world}:1");
    freeReplyObject(redisCommand(context, "DEL %s", world.key));
    load_with_test_time(sha1);
    for (uint64_t round = 0; round < ROUNDS; round++)
        run_batch(&world, sha1, round * BATCH);
    print_message("%u requests, %" PRId64 " members\n", ROUNDS * BATCH,
                  world.bucket.this_window.all + world.bucket.last_window.all);
}

static void run_world(struct world world)
{
    first_world = world;
    seed_each(1, run_world_from);
}

static void fleet_gets_the_same_replies_from_redis_and_from_c(void **state)
{
    run_world((struct world){.realistic = true, .now_ms = FIRST_MS});
}

static void new_members_get_the_same_replies_from_both(void **state)
{
    run_world((struct world){.realistic = true, .all_new = true, .now_ms = FIRST_MS});
}

static void random_requests_get_the_same_replies_from_both(void **state)
{
    run_world((struct world){.now_ms = FIRST_MS});
}

static void times_near_zero_get_the_same_replies_from_both(void **state)
{
    run_world((struct world){0});
}

static void largest_serial_is_the_same_in_both(void **state)
{
    char sha1[41];
    struct world world = {.now_ms = FIRST_MS, .key = "bide:{last}:1"};
    load_with_test_time(sha1);
    for (uint64_t i = 0; i < 5; i++) {
        struct lease_request request = {.capacity_milli = LEASE_MILLI_MAX,
                                        .seen_serial = LEASE_COUNT_MAX - (i < 2 ? 2 : 0)};
        struct lease_reply model;
        send_exchange(&world, sha1, &request);
        lease_bucket_serve(&world.bucket, &request, world.now_ms, &model);
        freeReplyObject(next_reply());
        struct lease_reply script = next_lease_reply();
        assert_same_reply(&model, &script, i);
        assert_null(lease_reply_check(&model, &request));
    }
    assert_int_equal(world.bucket.serial, LEASE_COUNT_MAX);
}

/* ---- the unchanged script ---- */

static const struct lease_request plain_request = {
    .capacity_milli = 100000, .per_minute_milli = 60000, .unit_milli = 1000};

static int64_t redis_time_ms(void)
{
    redisReply *redis_reply = redisCommand(context, "TIME");
    int64_t ms =
        strtoll(redis_reply->element[0]->str, NULL, 10) * 1000 + strtoll(redis_reply->element[1]->str, NULL, 10) / 1000;
    freeReplyObject(redis_reply);
    return ms;
}

static void script_uses_the_time_of_redis(void **state)
{
    load_unchanged();
    int64_t before_ms = redis_time_ms();
    exchange(&plain_request);
    int64_t after_ms = redis_time_ms();
    struct lease_bucket bucket = read_stored(KEY);
    assert_in_range(bucket.refilled_ms, before_ms, after_ms);
    assert_int_equal(bucket.level_milli, bucket.initial_milli);
}

static void key_expires_a_day_after_the_last_exchange(void **state)
{
    load_unchanged();
    exchange(&plain_request);
    assert_in_range(live_redis_number(&redis, "PTTL %s", KEY), LEASE_MS_MAX - 60000, LEASE_MS_MAX);
    live_redis_do(&redis, "PEXPIRE %s 1000000", KEY);
    exchange(&plain_request);
    assert_in_range(live_redis_number(&redis, "PTTL %s", KEY), LEASE_MS_MAX - 60000, LEASE_MS_MAX);
}

static void reading_finds_nothing_before_the_first_exchange(void **state)
{
    assert_string_equal(live_redis_do(&redis, "EVAL %s 1 %s", FLEET_SCRIPT_READ, KEY), "");
    assert_int_equal(live_redis_number(&redis, "EXISTS %s", KEY), 0);
}

/* ---- errors before anything is written ---- */

/* Identifies the value of the key, of any type. */
static const char *fingerprint(struct live_redis *at)
{
    return live_redis_do(at, "EVAL %s 1 %s", "return redis.sha1hex(redis.call('DUMP', KEYS[1]) or '')", KEY);
}

/* Asserts that the command fails with this error and changes nothing. */
static void assert_refused(struct live_redis *at, const char *error, const char *format, ...)
{
    va_list arguments;
    char before[41];
    snprintf(before, sizeof before, "%s", fingerprint(at));
    assert_int_equal(strlen(before), 40);
    redisContext *stored = live_redis_connect(at);
    assert_non_null(stored);
    va_start(arguments, format);
    redisReply *redis_reply = redisvCommand(stored, format, arguments);
    va_end(arguments);
    assert_non_null(redis_reply);
    assert_int_equal(redis_reply->type, REDIS_REPLY_ERROR);
    if (!strstr(redis_reply->str, error))
        fail_msg("\"%s\" does not say \"%s\"", redis_reply->str, error);
    freeReplyObject(redis_reply);
    redisFree(stored);
    assert_string_equal(fingerprint(at), before);
}

#define ZEROS(rest) "0 0 0 0 0 0 0 0 0 0 0" rest /* eleven */

static void unloaded_script_is_an_error_and_changes_nothing(void **state)
{
    assert_refused(&redis, "NOSCRIPT", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
    assert_int_equal(live_redis_number(&redis, "EXISTS %s", KEY), 0);
    load_unchanged();
    exchange(&plain_request);
    live_redis_do(&redis, "SCRIPT FLUSH");
    assert_refused(&redis, "NOSCRIPT", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
}

static void wrong_number_of_arguments_is_refused(void **state)
{
    load_unchanged();
    const char *want = "BIDE needs 1 key and 12 numbers, got";
    assert_refused(&redis, want, "EVALSHA %s 1 %s", fleet_script_sha1, KEY);
    assert_refused(&redis, want, "EVALSHA %s 1 %s " ZEROS(""), fleet_script_sha1, KEY);
    assert_refused(&redis, want, "EVALSHA %s 1 %s " ZEROS(" 0 1700000000000"), fleet_script_sha1, KEY);
    assert_refused(&redis, want, "EVALSHA %s 0 " ZEROS(" 0"), fleet_script_sha1);
    assert_refused(&redis, want, "EVALSHA %s 2 %s b " ZEROS(" 0"), fleet_script_sha1, KEY);
}

static void argument_that_is_no_integer_is_refused_and_named(void **state)
{
    static const char *const wrong[] = {"-1",
                                        "8",
                                        "1.5",
                                        "1e0",
                                        "0x1",
                                        "",
                                        "one",
                                        " 1",
                                        "1 ",
                                        "+1",
                                        "1\r1",
                                        "nan",
                                        "inf",
                                        "-0",
                                        "1\n-OK1",
                                        "0 0",
                                        "999999999999999999999"};
    load_unchanged();
    exchange(&plain_request);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_refused(&redis, "BIDE argument 12 is \"", "EVALSHA %s 1 %s " ZEROS(" %s"), fleet_script_sha1, KEY,
                       wrong[i]);
        assert_refused(&redis, ": must be an integer, 0 to 1", "EVALSHA %s 1 %s " ZEROS(" %s"), fleet_script_sha1, KEY,
                       wrong[i]);
    }
    assert_string_equal(live_redis_do(&redis, "PING"), "PONG");
}

static void every_argument_has_a_range(void **state)
{
    int64_t number[LEASE_REQUEST_FIELD_COUNT];
    load_unchanged();
    for (size_t i = 0; i < LEASE_REQUEST_FIELD_COUNT; i++) {
        struct lease_request request = {0};
        size_t at = 0;
#define EDGE(field, most) number[at++] = (most) + 1;
        LEASE_REQUEST_FIELDS(EDGE)
#undef EDGE
        for (at = 0; at < LEASE_REQUEST_FIELD_COUNT; at++)
            number[at] = at == i ? number[at] : 0;
        memcpy(&request, number, sizeof request);
        append_exchange(fleet_script_sha1, KEY, &request);
        redisReply *redis_reply = next_reply();
        char want[64];
        snprintf(want, sizeof want, "BIDE argument %zu is \"%" PRId64 "\"", i + 1, number[i]);
        assert_int_equal(redis_reply->type, REDIS_REPLY_ERROR);
        assert_memory_equal(redis_reply->str, want, strlen(want));
        freeReplyObject(redis_reply);
        number[i]--;
        memcpy(&request, number, sizeof request);
        exchange(&request);
        live_redis_do(&redis, "DEL %s", KEY);
    }
}

static void key_with_another_value_is_refused(void **state)
{
    static const char *const garbage[] = {"",
                                          "1 2 3 ",
                                          ZEROS(" 0 0 0 0 0 0 0"),
                                          ZEROS(" 0 0 0 0 0 0 0 0 "),
                                          ZEROS(" 0 0 0 0 0 0 -1 "),
                                          ZEROS(" 0 0 0 0 0 0 268435456 "),
                                          "9007199254740992 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ",
                                          ZEROS(" 0 0 0 0 0 0 1e3 ")};
    load_unchanged();
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        live_redis_do(&redis, "SET %s %s", KEY, garbage[i]);
        assert_refused(&redis, "BIDE this key does not hold a fleet bucket", "EVALSHA %s 1 %s " ZEROS(" 0"),
                       fleet_script_sha1, KEY);
    }
    live_redis_do(&redis, "DEL %s", KEY);
    live_redis_do(&redis, "HSET %s serial 1", KEY);
    assert_refused(&redis, "WRONGTYPE", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
    live_redis_do(&redis, "DEL %s", KEY);
    exchange(&plain_request);
}

static void redis_out_of_memory_changes_nothing(void **state)
{
    load_unchanged();
    exchange(&plain_request);
    live_redis_do(&redis, "CONFIG SET maxmemory-policy noeviction");
    live_redis_do(&redis, "CONFIG SET maxmemory 1mb");
    assert_refused(&redis, "OOM", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
    live_redis_do(&redis, "CONFIG SET maxmemory 0");
    assert_int_equal(exchange(&plain_request).serial, 2);
}

/* Waits until the replica has its master's value. */
static void await_copy(void)
{
    int64_t until_ns = bide_now() + LIMIT_NS;
    for (;;) {
        const char *here = live_redis_do(&redis, "GET %s", KEY), *stored = live_redis_do(&other, "GET %s", KEY);
        if (here && stored && strcmp(here, stored) == 0)
            return;
        assert_true(bide_now() < until_ns);
        poll(NULL, 0, 5);
    }
}

static void replica_refuses_exchanges_and_allows_reading(void **state)
{
    char lines[64];
    load_unchanged();
    exchange(&plain_request);
    snprintf(lines, sizeof lines, "replicaof 127.0.0.1 %u\n", redis.process.port);
    live_redis_start(&other, lines);
    await_copy();
    assert_int_equal(exchange(&plain_request).serial, 2);
    await_copy(); /* the value is replicated, not the script, which reads the time */
    live_redis_do(&other, "SCRIPT LOAD %s", fleet_script);
    assert_refused(&other, "READONLY", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
    assert_int_equal(strncmp(live_redis_do(&other, "EVAL %s 1 %s", FLEET_SCRIPT_READ, KEY), "2 ", 2), 0);
}

static void redis_that_lost_its_data_continues_serials_with_an_empty_bucket(void **state)
{
    struct lease_request rich = plain_request;
    rich.earned_milli = 50000;
    load_unchanged();
    exchange(&rich);
    struct lease_reply before = exchange(&plain_request);
    assert_in_range(before.level_milli, 50000, 100000);
    redisFree(context);
    live_redis_kill(&redis, SIGKILL);
    live_redis_again(&redis);
    context = live_redis_connect(&redis);
    assert_non_null(context);
    load_unchanged();
    struct lease_request after = plain_request;
    after.seen_serial = before.serial;
    struct lease_reply reply = exchange(&after);
    assert_true(reply.serial > before.serial);
    assert_int_equal(reply.level_milli, 0);
}

#define WITH_REDIS(test) cmocka_unit_test_setup_teardown(test, open_redis, close_redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_REDIS(fleet_gets_the_same_replies_from_redis_and_from_c),
        WITH_REDIS(new_members_get_the_same_replies_from_both),
        WITH_REDIS(random_requests_get_the_same_replies_from_both),
        WITH_REDIS(times_near_zero_get_the_same_replies_from_both),
        WITH_REDIS(largest_serial_is_the_same_in_both),
        WITH_REDIS(script_uses_the_time_of_redis),
        WITH_REDIS(key_expires_a_day_after_the_last_exchange),
        WITH_REDIS(reading_finds_nothing_before_the_first_exchange),
        WITH_REDIS(unloaded_script_is_an_error_and_changes_nothing),
        WITH_REDIS(wrong_number_of_arguments_is_refused),
        WITH_REDIS(argument_that_is_no_integer_is_refused_and_named),
        WITH_REDIS(every_argument_has_a_range),
        WITH_REDIS(key_with_another_value_is_refused),
        WITH_REDIS(redis_out_of_memory_changes_nothing),
        WITH_REDIS(replica_refuses_exchanges_and_allows_reading),
        WITH_REDIS(redis_that_lost_its_data_continues_serials_with_an_empty_bucket),
    };
    return cmocka_run_group_tests_name("the script inside Redis", tests, NULL, NULL);
}
