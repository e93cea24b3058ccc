/* test_fleet_script.c - the script inside a real Redis and its model in C answer the same, to the digit; and whatever
 * is wrong is told before anything is written.
 *
 * Time is Redis' own, and nobody can tell the script another one. So the tests that need to move time run its text with
 * the one line replaced that asks for it: two keys say the time instead. BIDE_TEST_SEED repeats a run. */
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

#define KEY       "bide:{pay}:1"
#define YEAR_MS   (INT64_C(365) * 86400000)
#define FIRST_MS  INT64_C(1700000000123)
#define INSTANCES 40u
#define BATCH     100u /* asks on the way at once: the model says what they will be told */
#define ROUNDS    60u
#define LIMIT_NS  (60 * BIDE_S) /* for whatever is waited for */

static struct live_redis redis, other;
static redisContext *context;
static uint64_t chance;
static uint64_t drawn;

static int open_redis(void **state)
{
    const char *given = getenv("BIDE_TEST_SEED");
    chance = given ? strtoull(given, NULL, 10) : bide_seed();
    drawn = 0;
    print_message("BIDE_TEST_SEED=%" PRIu64 "\n", chance);
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
    uint64_t x = chance + 0x9e3779b97f4a7c15u * ++drawn;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % below;
}

/* As many small ones as large ones. */
static int64_t draw_to(int64_t most)
{
    int64_t number = (int64_t)draw(UINT64_C(1) << draw(54));
    return draw(40) == 0 || number > most ? most : number;
}

/* ---- the script, with and without its own time ---- */

static char *replaced(const char *text, const char *what, const char *by)
{
    const char *at = strstr(text, what);
    char *made = malloc(strlen(text) + strlen(by) + 1);
    assert_non_null(at);
    assert_null(strstr(at + 1, what));
    assert_non_null(made);
    memcpy(made, text, (size_t)(at - text));
    snprintf(made + (at - text), strlen(at) + strlen(by) + 1, "%s%s", by, at + strlen(what));
    return made;
}

static void load(const char *text, char sha1[41])
{
    snprintf(sha1, 41, "%s", live_redis_do(&redis, "SCRIPT LOAD %s", text));
    assert_int_equal(strlen(sha1), 40);
}

static void load_with_time_told(char sha1[41])
{
    char *text = replaced(fleet_script, "redis.call('TIME')", "redis.call('MGET', 'now_s', 'now_us')");
    load(text, sha1);
    free(text);
}

static void load_as_it_is(void)
{
    char sha1[41];
    load(fleet_script, sha1);
    assert_string_equal(sha1, fleet_script_sha1);
}

static void append_exchange(const char *sha1, const char *key, const struct lease_ask *ask)
{
    char digits[LEASE_ASK_COUNT][24];
    const char *word[4 + LEASE_ASK_COUNT] = {"EVALSHA", sha1, "1", key};
    int64_t number[LEASE_ASK_COUNT];
    memcpy(number, ask, sizeof number);
    for (size_t i = 0; i < LEASE_ASK_COUNT; i++) {
        snprintf(digits[i], sizeof digits[i], "%" PRId64, number[i]);
        word[4 + i] = digits[i];
    }
    assert_int_equal(redisAppendCommandArgv(context, 4 + LEASE_ASK_COUNT, word, NULL), REDIS_OK);
}

static redisReply *next_reply(void)
{
    void *reply = NULL;
    assert_int_equal(redisGetReply(context, &reply), REDIS_OK);
    return reply;
}

static struct lease_answer next_answer(void)
{
    struct lease_answer answer;
    int64_t number[LEASE_ANSWER_COUNT];
    redisReply *reply = next_reply();
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, LEASE_ANSWER_COUNT);
    for (size_t i = 0; i < LEASE_ANSWER_COUNT; i++) {
        assert_int_equal(reply->element[i]->type, REDIS_REPLY_INTEGER);
        number[i] = reply->element[i]->integer;
    }
    freeReplyObject(reply);
    memcpy(&answer, number, sizeof answer);
    return answer;
}

static struct lease_answer exchange(const struct lease_ask *ask)
{
    append_exchange(fleet_script_sha1, KEY, ask);
    return next_answer();
}

/* What is stored, as who only looks gets it. */
static struct lease_bank stored(const char *key)
{
    struct lease_bank bank;
    int64_t number[LEASE_BANK_COUNT];
    redisReply *reply = redisCommand(context, "EVAL %s 1 %s", FLEET_SCRIPT_LOOK, key);
    assert_non_null(reply);
    assert_int_equal(reply->elements, LEASE_BANK_COUNT);
    for (size_t i = 0; i < LEASE_BANK_COUNT; i++)
        number[i] = reply->element[i]->integer;
    freeReplyObject(reply);
    memcpy(&bank, number, sizeof bank);
    return bank;
}

/* ---- random asks ---- */

/* A world: who is there and what they were told, the model, and its time. */
struct world {
    bool sane;  /* instances as they should be; or anything that is in range */
    bool crowd; /* nobody has been there before */
    int64_t now_ms;
    struct lease_bank bank;
    struct lease_answer told[INSTANCES];
    char key[32];
};

static int64_t time_passes(struct world *world)
{
    uint64_t kind = draw(world->sane ? 150 : 30);
    if (world->crowd)
        return (int64_t)draw(3);
    if (kind == 0)
        return draw(2) ? -(int64_t)draw(30000) : (int64_t)draw(60000);
    if (kind == 1)
        return draw(2) ? -(int64_t)draw(2000000) : (int64_t)draw(8000000);
    if (kind == 2)
        return draw(2) ? -YEAR_MS : YEAR_MS;
    return (int64_t)draw(draw(4) ? 60 : 3000) - (draw(10) == 0);
}

static struct lease_ask any_ask(void)
{
    struct lease_ask ask;
#define ANY(field, most) ask.field = draw(3) ? draw_to(most) : 0;
    LEASE_ASK_LIST(ANY)
#undef ANY
    return ask;
}

static struct lease_ask sane_ask(const struct lease_answer *told)
{
    return (struct lease_ask){.capacity_milli = draw(50) ? 100000 : 5000,
                              .per_minute_milli = draw(50) ? 60000 : 7777,
                              .unit_milli = draw(3) ? 1000 : 2500,
                              .give_milli = draw(4) ? 0 : (int64_t)draw(3000),
                              .earned_milli = draw(2) ? 0 : (int64_t)draw(5000),
                              .want_milli = draw(2) ? 0 : (int64_t)draw(20000),
                              .firsts = (int64_t)draw(100),
                              .successes = (int64_t)draw(100),
                              .spent_milli = (int64_t)draw(4000),
                              .hold_off_ms = draw(20) ? 0 : (int64_t)draw(10000),
                              .hold_off_over = draw(20) ? 0 : told->hold_off_number,
                              .breaker = (int64_t)draw(3),
                              .open_permille = draw(10) ? 500 : 0,
                              .seen = told->serial,
                              .leaving = draw(100) == 0,
                              .mark = told->mark};
}

/* Mostly what was seen; sometimes more than that, which says that the bank was put back. */
static struct lease_ask next_ask(struct world *world, const struct lease_answer *told)
{
    if (world->sane)
        return sane_ask(told);
    struct lease_ask ask = any_ask();
    if (draw(20))
        ask.seen = draw(5) ? told->serial : 0;
    else if (draw(50))
        ask.seen = world->bank.serial + (world->bank.serial < LEASE_COUNT_MAX - 5 ? (int64_t)draw(5) : 0);
    return ask;
}

static void send(struct world *world, const char *sha1, const struct lease_ask *ask)
{
    char seconds[24], microseconds[24];
    snprintf(seconds, sizeof seconds, "%" PRId64, world->now_ms / 1000);
    snprintf(microseconds, sizeof microseconds, "%" PRId64, world->now_ms % 1000 * 1000 + (int64_t)draw(1000));
    redisAppendCommand(context, "MSET now_s %s now_us %s", seconds, microseconds);
    append_exchange(sha1, world->key, ask);
}

static void assert_same_answer(const struct lease_answer *model, const struct lease_answer *script, uint64_t step)
{
#define SAME(field, most)                                                                                              \
    if (model->field != script->field)                                                                                 \
        fail_msg("ask %" PRIu64 ": %s is %" PRId64 " in C and %" PRId64 " in Redis", step, #field, model->field,       \
                 script->field);
    LEASE_ANSWER_LIST(SAME)
#undef SAME
}

static void assert_same_bank(const struct lease_bank *model, const struct lease_bank *script)
{
#define SAME(name, field, most)                                                                                        \
    if (model->field != script->field)                                                                                 \
        fail_msg("%s is %" PRId64 " in C and %" PRId64 " in Redis", name, model->field, script->field);
    LEASE_BANK_LIST(SAME)
#undef SAME
}

/* A batch to Redis, and the same to the model, which is quicker and knows the answers first. */
static void play_batch(struct world *world, const char *sha1, uint64_t step)
{
    struct lease_answer model[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        struct lease_answer *told = &world->told[draw(INSTANCES)];
        struct lease_ask ask = next_ask(world, told);
        int64_t then_ms = world->now_ms + time_passes(world);
        world->now_ms = then_ms < 0 ? 0 : then_ms;
        assert_null(lease_ask_check(&ask));
        send(world, sha1, &ask);
        lease_bank_exchange(&world->bank, &ask, world->now_ms, &model[i]);
        assert_null(lease_answer_check(&model[i], &ask));
        assert_null(lease_bank_check(&world->bank));
        *told = ask.leaving || world->crowd ? (struct lease_answer){0} : model[i];
    }
    for (size_t i = 0; i < BATCH; i++) {
        freeReplyObject(next_reply());
        struct lease_answer script = next_answer();
        assert_same_answer(&model[i], &script, step + i);
    }
    struct lease_bank there = stored(world->key);
    assert_same_bank(&world->bank, &there);
}

static void play(struct world world)
{
    char sha1[41];
    snprintf(world.key, sizeof world.key, "bide:{world}:1");
    load_with_time_told(sha1);
    for (uint64_t round = 0; round < ROUNDS; round++)
        play_batch(&world, sha1, round * BATCH);
    print_message("%u asks, %" PRId64 " instances\n", ROUNDS * BATCH, world.bank.now.all + world.bank.last.all);
}

static void a_fleet_gets_the_same_answers_from_redis_as_from_the_model(void **state)
{
    play((struct world){.sane = true, .now_ms = FIRST_MS});
}

static void a_crowd_gets_the_same_answers_from_both(void **state)
{
    play((struct world){.sane = true, .crowd = true, .now_ms = FIRST_MS});
}

static void asks_of_any_numbers_get_the_same_answers_from_both(void **state)
{
    play((struct world){.now_ms = FIRST_MS});
}

static void the_first_moments_of_time_are_no_exception(void **state)
{
    play((struct world){0});
}

static void the_last_serial_number_is_the_same_in_both(void **state)
{
    char sha1[41];
    struct world world = {.now_ms = FIRST_MS, .key = "bide:{last}:1"};
    load_with_time_told(sha1);
    for (uint64_t i = 0; i < 5; i++) {
        struct lease_ask ask = {.capacity_milli = LEASE_MILLI_MAX, .seen = LEASE_COUNT_MAX - (i < 2 ? 2 : 0)};
        struct lease_answer model;
        send(&world, sha1, &ask);
        lease_bank_exchange(&world.bank, &ask, world.now_ms, &model);
        freeReplyObject(next_reply());
        struct lease_answer script = next_answer();
        assert_same_answer(&model, &script, i);
        assert_null(lease_answer_check(&model, &ask));
    }
    assert_int_equal(world.bank.serial, LEASE_COUNT_MAX);
}

/* ---- as it is ---- */

static const struct lease_ask plain = {.capacity_milli = 100000, .per_minute_milli = 60000, .unit_milli = 1000};

static int64_t redis_time_ms(void)
{
    redisReply *reply = redisCommand(context, "TIME");
    int64_t ms = strtoll(reply->element[0]->str, NULL, 10) * 1000 + strtoll(reply->element[1]->str, NULL, 10) / 1000;
    freeReplyObject(reply);
    return ms;
}

static void the_time_is_that_of_redis(void **state)
{
    load_as_it_is();
    int64_t before_ms = redis_time_ms();
    exchange(&plain);
    int64_t after_ms = redis_time_ms();
    struct lease_bank bank = stored(KEY);
    assert_in_range(bank.stamp_ms, before_ms, after_ms);
    assert_int_equal(bank.level_milli, 0);
}

static void what_is_stored_expires_a_day_after_the_last_exchange(void **state)
{
    load_as_it_is();
    exchange(&plain);
    assert_in_range(live_redis_number(&redis, "PTTL %s", KEY), LEASE_MS_MAX - 60000, LEASE_MS_MAX);
    live_redis_do(&redis, "PEXPIRE %s 1000000", KEY);
    exchange(&plain);
    assert_in_range(live_redis_number(&redis, "PTTL %s", KEY), LEASE_MS_MAX - 60000, LEASE_MS_MAX);
}

static void who_only_looks_finds_nothing_before_the_first_exchange(void **state)
{
    assert_string_equal(live_redis_do(&redis, "EVAL %s 1 %s", FLEET_SCRIPT_LOOK, KEY), "");
    assert_int_equal(live_redis_number(&redis, "EXISTS %s", KEY), 0);
}

/* ---- what is wrong is told before anything is written ---- */

/* What is under the key, whatever its type. */
static const char *fingerprint(struct live_redis *at)
{
    return live_redis_do(at, "EVAL %s 1 %s", "return redis.sha1hex(redis.call('DUMP', KEYS[1]) or '')", KEY);
}

/* The error, and that it changed nothing. */
static void assert_refused(struct live_redis *at, const char *error, const char *format, ...)
{
    va_list arguments;
    char before[41];
    snprintf(before, sizeof before, "%s", fingerprint(at));
    assert_int_equal(strlen(before), 40);
    redisContext *there = live_redis_connect(at);
    assert_non_null(there);
    va_start(arguments, format);
    redisReply *reply = redisvCommand(there, format, arguments);
    va_end(arguments);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    if (!strstr(reply->str, error))
        fail_msg("\"%s\" does not say \"%s\"", reply->str, error);
    freeReplyObject(reply);
    redisFree(there);
    assert_string_equal(fingerprint(at), before);
}

#define ZEROS(rest) "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0" rest /* fifteen */

static void a_script_that_is_not_loaded_is_an_error_and_nothing_else(void **state)
{
    assert_refused(&redis, "NOSCRIPT", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
    assert_int_equal(live_redis_number(&redis, "EXISTS %s", KEY), 0);
    load_as_it_is();
    exchange(&plain);
    live_redis_do(&redis, "SCRIPT FLUSH");
    assert_refused(&redis, "NOSCRIPT", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
}

static void a_wrong_number_of_arguments_is_refused(void **state)
{
    load_as_it_is();
    const char *want = "BIDE want 1 key and 16 numbers, not";
    assert_refused(&redis, want, "EVALSHA %s 1 %s", fleet_script_sha1, KEY);
    assert_refused(&redis, want, "EVALSHA %s 1 %s " ZEROS(""), fleet_script_sha1, KEY);
    assert_refused(&redis, want, "EVALSHA %s 1 %s " ZEROS(" 0 1700000000000"), fleet_script_sha1, KEY);
    assert_refused(&redis, want, "EVALSHA %s 0 " ZEROS(" 0"), fleet_script_sha1);
    assert_refused(&redis, want, "EVALSHA %s 2 %s b " ZEROS(" 0"), fleet_script_sha1, KEY);
}

static void what_is_no_whole_number_is_refused_and_named(void **state)
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
    load_as_it_is();
    exchange(&plain);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_refused(&redis, "BIDE argument 16 is \"", "EVALSHA %s 1 %s " ZEROS(" %s"), fleet_script_sha1, KEY,
                       wrong[i]);
        assert_refused(&redis, ": want a whole number, 0 to 7", "EVALSHA %s 1 %s " ZEROS(" %s"), fleet_script_sha1, KEY,
                       wrong[i]);
    }
    assert_string_equal(live_redis_do(&redis, "PING"), "PONG");
}

static void every_argument_has_its_range(void **state)
{
    int64_t number[LEASE_ASK_COUNT];
    load_as_it_is();
    for (size_t i = 0; i < LEASE_ASK_COUNT; i++) {
        struct lease_ask ask = {0};
        size_t at = 0;
#define EDGE(field, most) number[at++] = (most) + 1;
        LEASE_ASK_LIST(EDGE)
#undef EDGE
        for (at = 0; at < LEASE_ASK_COUNT; at++)
            number[at] = at == i ? number[at] : 0;
        memcpy(&ask, number, sizeof ask);
        append_exchange(fleet_script_sha1, KEY, &ask);
        redisReply *reply = next_reply();
        char want[64];
        snprintf(want, sizeof want, "BIDE argument %zu is \"%" PRId64 "\"", i + 1, number[i]);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        assert_memory_equal(reply->str, want, strlen(want));
        freeReplyObject(reply);
        number[i]--;
        memcpy(&ask, number, sizeof ask);
        exchange(&ask);
        live_redis_do(&redis, "DEL %s", KEY);
    }
}

static void a_key_that_holds_something_else_is_refused(void **state)
{
    static const char *const garbage[] = {"",
                                          "1 2 3 ",
                                          ZEROS(" 0 0 0 0 0 0 0 0 0 0 0"),
                                          ZEROS(" 0 0 0 0 0 0 0 0 0 0 0 0 "),
                                          ZEROS(" 0 0 0 0 0 0 0 0 0 0 -1 "),
                                          ZEROS(" 0 0 0 0 0 0 0 0 0 0 268435456 "),
                                          "9007199254740992 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ",
                                          ZEROS(" 0 0 0 0 0 0 0 0 0 0 1e3 "),
                                          ZEROS(" 0 0 0 0 2 0 0 0 0 0 0 ")};
    load_as_it_is();
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        live_redis_do(&redis, "SET %s %s", KEY, garbage[i]);
        assert_refused(&redis, "BIDE this key holds no bank of ours", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1,
                       KEY);
    }
    live_redis_do(&redis, "DEL %s", KEY);
    live_redis_do(&redis, "HSET %s serial 1", KEY);
    assert_refused(&redis, "WRONGTYPE", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
    live_redis_do(&redis, "DEL %s", KEY);
    exchange(&plain);
}

static void a_redis_without_memory_says_so_and_changes_nothing(void **state)
{
    load_as_it_is();
    exchange(&plain);
    live_redis_do(&redis, "CONFIG SET maxmemory-policy noeviction");
    live_redis_do(&redis, "CONFIG SET maxmemory 1mb");
    assert_refused(&redis, "OOM", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
    live_redis_do(&redis, "CONFIG SET maxmemory 0");
    assert_int_equal(exchange(&plain).serial, 2);
}

/* Until a replica has what its master has. */
static void await_copy(void)
{
    int64_t until_ns = bide_now() + LIMIT_NS;
    for (;;) {
        const char *here = live_redis_do(&redis, "GET %s", KEY), *there = live_redis_do(&other, "GET %s", KEY);
        if (here && there && strcmp(here, there) == 0)
            return;
        assert_true(bide_now() < until_ns);
        poll(NULL, 0, 5);
    }
}

static void a_replica_refuses_to_exchange_and_lets_look(void **state)
{
    char lines[64];
    load_as_it_is();
    exchange(&plain);
    snprintf(lines, sizeof lines, "replicaof 127.0.0.1 %u\n", redis.process.port);
    live_redis_start(&other, lines);
    await_copy();
    assert_int_equal(exchange(&plain).serial, 2);
    await_copy(); /* what is written goes there, not what asked the time */
    live_redis_do(&other, "SCRIPT LOAD %s", fleet_script);
    assert_refused(&other, "READONLY", "EVALSHA %s 1 %s " ZEROS(" 0"), fleet_script_sha1, KEY);
    assert_int_equal(strncmp(live_redis_do(&other, "EVAL %s 1 %s", FLEET_SCRIPT_LOOK, KEY), "2 ", 2), 0);
}

static void a_redis_that_forgot_everything_goes_on_from_what_was_seen_and_empty(void **state)
{
    struct lease_ask rich = plain;
    rich.earned_milli = 50000;
    load_as_it_is();
    exchange(&rich);
    struct lease_answer before = exchange(&plain);
    assert_in_range(before.level_milli, 50000, 100000);
    redisFree(context);
    live_redis_kill(&redis, SIGKILL);
    live_redis_again(&redis);
    context = live_redis_connect(&redis);
    assert_non_null(context);
    load_as_it_is();
    struct lease_ask after = plain;
    after.seen = before.serial;
    struct lease_answer answer = exchange(&after);
    assert_true(answer.serial > before.serial);
    assert_int_equal(answer.level_milli, 0);
}

#define WITH_REDIS(test) cmocka_unit_test_setup_teardown(test, open_redis, close_redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_REDIS(a_fleet_gets_the_same_answers_from_redis_as_from_the_model),
        WITH_REDIS(a_crowd_gets_the_same_answers_from_both),
        WITH_REDIS(asks_of_any_numbers_get_the_same_answers_from_both),
        WITH_REDIS(the_first_moments_of_time_are_no_exception),
        WITH_REDIS(the_last_serial_number_is_the_same_in_both),
        WITH_REDIS(the_time_is_that_of_redis),
        WITH_REDIS(what_is_stored_expires_a_day_after_the_last_exchange),
        WITH_REDIS(who_only_looks_finds_nothing_before_the_first_exchange),
        WITH_REDIS(a_script_that_is_not_loaded_is_an_error_and_nothing_else),
        WITH_REDIS(a_wrong_number_of_arguments_is_refused),
        WITH_REDIS(what_is_no_whole_number_is_refused_and_named),
        WITH_REDIS(every_argument_has_its_range),
        WITH_REDIS(a_key_that_holds_something_else_is_refused),
        WITH_REDIS(a_redis_without_memory_says_so_and_changes_nothing),
        WITH_REDIS(a_replica_refuses_to_exchange_and_lets_look),
        WITH_REDIS(a_redis_that_forgot_everything_goes_on_from_what_was_seen_and_empty),
    };
    return cmocka_run_group_tests_name("the script inside Redis", tests, NULL, NULL);
}
