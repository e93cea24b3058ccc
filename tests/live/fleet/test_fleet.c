/* test_fleet.c - fleets with a real redis-server: leasing, reporting, sharing; Redis gone, stopped, full; fork; hosts.
 *
 * What a pretended Redis can show better is in test_fleet_faults.c. The way back is short here (live_fleet_hurry), so
 * nothing waits for long. The first test starts processes that start threads, before this one has had any. */
#define _GNU_SOURCE
#include "live_fleet.h"
#include "live_redis.h"
#include "live_tls.h"

#include "fleet/protocol/bucket.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY     "bide:{payments}:1"
#define PATIENT "?timeout=20000" /* a busy machine is not what is tested */
#define QUICK   PATIENT "&per_minute=6000&capacity=1000"

static int64_t left(const struct bide_target *target)
{
    return bide_budget_left_milli(target, bide_now());
}

/* What is stored: numbers with a space after each. All are 0 if it is not there. */
static struct lease_bank bank_of(struct live_redis *redis)
{
    int64_t number[LEASE_BANK_COUNT] = {0};
    struct lease_bank bank;
    char *at = (char *)live_redis_do(redis, "GET %s", KEY);
    assert_non_null(at);
    for (size_t i = 0; i < LEASE_BANK_COUNT && *at != 0; i++)
        number[i] = strtoll(at, &at, 10);
    memcpy(&bank, number, sizeof bank);
    return bank;
}

/* Tokens come sooner to who was refused one. */
static bool has_tokens(struct bide_target *target)
{
    return left(target) >= 1000 || (live_fleet_fail(target), false);
}

static struct bide_fleet_view look(struct bide_fleet *fleet, struct bide_target *target)
{
    return live_fleet_look(fleet, target);
}

/* ---- one target, two processes of a host ---- */

struct worker {
    uint64_t looks, exchanges, exchanger;
};

/* Until it is killed. Its calls keep the exchanges coming each second. */
_Noreturn static void work(struct worker *worker, const char *directory, const char *url)
{
    struct bide_shared_options here = {.directory = directory};
    struct bide_target_config config;
    struct bide_fleet_problem problem;
    struct bide_shared host;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    struct bide_fleet *fleet = live_fleet_open(url, NULL);
    if (bide_shared_open(&host, "payments", &config, &here, bide_now(), NULL) != BIDE_OK ||
        bide_fleet_join(fleet, "payments", host.target, true, &problem) != BIDE_OK)
        _exit(1);
    for (;; poll(NULL, 0, 5)) {
        struct bide_fleet_view view = look(fleet, host.target);
        live_fleet_succeed(host.target);
        __atomic_store_n(&worker->exchanger, view.exchanger, __ATOMIC_SEQ_CST);
        __atomic_store_n(&worker->exchanges, view.exchanges, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&worker->looks, 1, __ATOMIC_SEQ_CST);
    }
}

static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void of_two_processes_on_one_target_one_exchanges_and_the_other_takes_over(void **state)
{
    struct live_redis redis = {0};
    struct worker *worker = mmap(NULL, 2 * sizeof *worker, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char directory[LIVE_DIR_MAX + 8];
    pid_t pid[2];
    live_redis_start(&redis, "");
    snprintf(directory, sizeof directory, "%s/host", redis.process.dir);
    const char *url =
        live_redis_url(&redis, "?per_minute=6000&timeout=3000"); /* the claim lasts longer by twice that */
    for (unsigned i = 0; i < 2; i++)
        if ((pid[i] = fork()) == 0)
            work(&worker[i], directory, url);
    EVENTUALLY(load(&worker[0].exchanges) + load(&worker[1].exchanges) >= 3 && load(&worker[0].looks) > 0 &&
               load(&worker[1].looks) > 0);
    unsigned first = load(&worker[1].exchanger) != 0;
    assert_int_equal(load(&worker[0].exchanger) + load(&worker[1].exchanger), 1);
    assert_int_equal(load(&worker[!first].exchanges), 0);
    kill(pid[first], SIGKILL);
    waitpid(pid[first], NULL, 0);
    EVENTUALLY(load(&worker[!first].exchanges) >= 2);
    assert_int_equal(load(&worker[!first].exchanger), 1);
    kill(pid[!first], SIGKILL);
    waitpid(pid[!first], NULL, 0);
    munmap(worker, 2 * sizeof *worker);
    live_process_run(&redis.process, (const char *const[]){"rm", "-r", "$DIR/host", NULL});
    live_redis_free(&redis);
}

/* ---- leasing ---- */

static void who_joins_gets_tokens_and_who_spends_gets_more(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    assert_true(left(&target) > 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
    live_fleet_join(fleet, "payments", &target);
    assert_true(bide_lease_is_on(&target));
    EVENTUALLY(look(fleet, &target).connected && has_tokens(&target));
    for (unsigned spent = 0; spent < 30; spent += live_fleet_fail(&target))
        poll(NULL, 0, 1); /* more than the target's bucket holds */
    struct bide_fleet_view view = look(fleet, &target);
    assert_true(view.exchanger && view.granted_milli >= 30000);
    assert_int_equal(view.failures, 0);
    EVENTUALLY(bank_of(&redis).spent_milli >= 30000);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void successes_here_pay_for_retries_there(void **state)
{
    struct live_redis redis = {0};
    struct bide_target here, there;
    live_redis_start(&redis, "");
    const char *url = live_redis_url(&redis, PATIENT "&per_minute=0");
    live_fleet_target(&here, 0);
    live_fleet_target(&there, 0);
    struct bide_fleet *one = live_fleet_open(url, NULL), *two = live_fleet_open(url, NULL);
    live_fleet_join(one, "payments", &here);
    live_fleet_join(two, "payments", &there);
    EVENTUALLY(look(two, &there).connected);
    assert_false(live_fleet_fail(&there));
    for (unsigned i = 0; i < 200; i++)
        live_fleet_succeed(&here);
    EVENTUALLY(live_fleet_fail(&there));
    EVENTUALLY(bank_of(&redis).successes == 200);
    assert_int_equal(look(one, &here).earned_milli, 20000);
    assert_true(look(one, &here).granted_milli + look(two, &there).granted_milli <= 20000);
    bide_fleet_close(one);
    bide_fleet_close(two);
    live_redis_free(&redis);
}

static void two_fleets_of_one_name_share_one_bucket(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target[2];
    struct bide_fleet *fleet[2];
    uint64_t granted_milli = 0;
    live_redis_start(&redis, "");
    for (unsigned i = 0; i < 2; i++) {
        live_fleet_target(&target[i], 0);
        fleet[i] = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
        live_fleet_join(fleet[i], "payments", &target[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        EVENTUALLY(live_fleet_fail(&target[i]) && look(fleet[i], &target[i]).members == 2);
    EVENTUALLY((granted_milli = look(fleet[0], &target[0]).granted_milli + look(fleet[1], &target[1]).granted_milli,
                bank_of(&redis).granted_milli == (int64_t)granted_milli));
    assert_true(granted_milli >= 2000);
    bide_fleet_close(fleet[0]);
    bide_fleet_close(fleet[1]);
    live_redis_free(&redis);
}

static void closing_gives_back_what_is_unspent_and_what_was_earned(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, PATIENT "&per_minute=0&capacity=100"), NULL);
    live_fleet_join(fleet, "payments", &target);
    for (unsigned i = 0; i < 200; i++)
        live_fleet_succeed(&target);
    EVENTUALLY(has_tokens(&target));
    bide_fleet_close(fleet);
    assert_int_equal(left(&target), 0);
    assert_false(bide_lease_is_on(&target));
    EVENTUALLY(bank_of(&redis).level_milli == 20000);
    live_fleet_succeed(&target);
    assert_int_equal(left(&target), 100); /* it earns for itself again */
    live_redis_free(&redis);
}

static void who_lives_for_a_moment_reports_all_the_same(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    for (unsigned i = 1; i <= 10; i++) {
        live_fleet_target(&target, 0);
        struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, PATIENT), NULL);
        live_fleet_join(fleet, "payments", &target);
        live_fleet_succeed(&target);
        bide_fleet_close(fleet);
        EVENTUALLY(bank_of(&redis).successes == i);
        if (i % 3 == 0)
            live_redis_do(&redis, "SCRIPT FLUSH");
    }
    live_redis_free(&redis);
}

static void tokens_come_over_tls_too(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    char url[512];
    live_redis_dir(&redis);
    live_tls_make(&redis.process, "site", "IP:127.0.0.1");
    live_redis_start(&redis, LIVE_REDIS_TLS);
    live_fleet_target(&target, 0);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%u%s&ca_file=%s", redis.process.port, QUICK,
             live_tls_path(&redis.process, "site"));
    struct bide_fleet *fleet = live_fleet_open(url, NULL);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(has_tokens(&target));
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void who_leaves_is_left_alone_and_the_others_go_on(void **state)
{
    struct live_redis redis = {0};
    struct bide_target stays, leaves;
    struct bide_fleet_view view;
    live_redis_start(&redis, "");
    live_fleet_target(&stays, 0);
    live_fleet_target(&leaves, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
    live_fleet_join(fleet, "payments", &stays);
    live_fleet_join(fleet, "orders", &leaves);
    EVENTUALLY(has_tokens(&stays) && has_tokens(&leaves));
    bide_fleet_leave(fleet, &leaves);
    assert_false(bide_fleet_get(fleet, &leaves, &view));
    assert_int_equal(left(&leaves), 0);
    memset(&leaves, 0xff, sizeof leaves); /* nobody looks at it any more */
    uint64_t before = look(fleet, &stays).exchanges;
    EVENTUALLY(look(fleet, &stays).exchanges >= before + 2 || (live_fleet_fail(&stays), false));
    bide_fleet_leave(fleet, &leaves); /* unknown: ignored */
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void what_cannot_join_is_refused_with_a_reason(void **state)
{
    struct bide_target target, window;
    struct bide_target_config config;
    struct bide_fleet_problem problem;
    struct bide_fleet *fleet = live_fleet_open("redis://127.0.0.1:1", NULL);
    live_fleet_target(&target, 0);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.ratio_ppm = 100000;
    assert_int_equal(bide_target_init(&window, &config, bide_now(), NULL), BIDE_OK);
    assert_int_equal(bide_fleet_join(fleet, "payments", &window, false, &problem), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "payments: budget.kind"));
    assert_int_equal(bide_fleet_join(fleet, "", &target, false, &problem), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "1 to 127 bytes"));
    assert_int_equal(bide_fleet_join(fleet, "pay\nments", &target, false, &problem), BIDE_ERR_INVALID);
    assert_int_equal(bide_fleet_join(fleet, "payments", &target, false, &problem), BIDE_OK);
    assert_int_equal(bide_fleet_join(fleet, "orders", &target, false, &problem), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "joined already"));
    bide_fleet_close(fleet);
    bide_fleet_close(NULL);
    assert_int_equal(bide_fleet_open(&fleet, "http://127.0.0.1", NULL, &problem), BIDE_ERR_INVALID);
    assert_null(fleet);
}

/* ---- what travels along ---- */

static void a_hold_off_that_one_was_asked_for_is_kept_by_all_until_a_success(void **state)
{
    struct live_redis redis = {0};
    struct bide_target asked, told;
    live_redis_start(&redis, "");
    live_fleet_target(&asked, 0);
    live_fleet_target(&told, 0);
    struct bide_fleet *one = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
    struct bide_fleet *two = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
    live_fleet_join(one, "payments", &asked);
    live_fleet_join(two, "payments", &told);
    EVENTUALLY(look(one, &asked).connected && look(two, &told).connected);
    bide_target_hold_off(&asked, bide_now() + 200 * BIDE_S, bide_now());
    EVENTUALLY(bide_target_hold_off_until(&told, bide_now()) > bide_now() + 100 * BIDE_S);
    live_fleet_succeed(&told);
    assert_int_equal(bide_target_hold_off_until(&told, bide_now()), 0);
    EVENTUALLY(bank_of(&redis).hold_off_until_ms == 0);
    bide_fleet_close(one);
    bide_fleet_close(two);
    live_redis_free(&redis);
}

#define OPINIONS 4u

static void when_most_breakers_are_open_the_others_open_too(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target[OPINIONS];
    struct bide_fleet *fleet[OPINIONS];
    struct bide_target_config config;
    live_redis_start(&redis, "");
    for (unsigned i = 0; i < OPINIONS; i++) {
        live_fleet_target(&target[i], 0);
        bide_target_config_get(&target[i], &config);
        config.breaker.kind = BIDE_BREAKER_BY_TIME;
        assert_int_equal(bide_target_configure(&target[i], &config, bide_now(), NULL), BIDE_OK);
        fleet[i] = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
        live_fleet_join(fleet[i], "payments", &target[i]);
        EVENTUALLY(look(fleet[i], &target[i]).connected);
    }
    for (unsigned i = 1; i < OPINIONS; i++)
        bide_breaker_hold(&target[i], BIDE_HOLD_OPEN);
    EVENTUALLY((live_fleet_succeed(&target[0]), look(fleet[0], &target[0]).openings_followed == 1));
    assert_int_equal(bide_breaker_get(&target[0]).openings_total, 1);
    for (unsigned i = 0; i < OPINIONS; i++)
        bide_fleet_close(fleet[i]);
    live_redis_free(&redis);
}

/* ---- Redis goes and comes ---- */

static void a_redis_that_comes_later_is_found(void **state)
{
    struct live_redis redis = {0};
    struct live_told told = LIVE_TOLD;
    struct bide_target target;
    live_redis_dir(&redis);
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), &told);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(look(fleet, &target).failures >= 3);
    assert_int_equal(live_told_count(&told), 1);
    assert_true(live_told_has(&told, "refused; retries go on at 0 a minute for payments"));
    assert_int_equal(left(&target), 0);
    live_redis_start(&redis, "");
    EVENTUALLY(look(fleet, &target).connected && has_tokens(&target));
    EVENTUALLY(live_told_has(&told, "reached again"));
    assert_int_equal(live_told_count(&told), 2);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void a_redis_that_was_killed_is_found_again(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
    live_fleet_join(fleet, "payments", &target);
    for (unsigned i = 0; i < 3; i++) {
        EVENTUALLY(look(fleet, &target).connected && has_tokens(&target));
        uint64_t failures = look(fleet, &target).failures;
        live_redis_kill(&redis, SIGKILL);
        while (live_fleet_fail(&target))
            continue;
        EVENTUALLY(look(fleet, &target).failures > failures);
        assert_false(live_fleet_fail(&target));
        live_redis_again(&redis);
    }
    EVENTUALLY(live_fleet_fail(&target));
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void while_redis_is_stopped_calls_go_on_at_the_floor(void **state)
{
    struct live_redis redis = {0};
    struct live_told told = LIVE_TOLD;
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 60000); /* one a second */
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, "?timeout=200&per_minute=6000"), &told);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(look(fleet, &target).connected && has_tokens(&target));
    unsigned before = live_told_count(&told); /* a busy machine may have been slow */
    live_redis_signal(&redis, SIGSTOP);
    int64_t stopped_ns = bide_now();
    while (live_fleet_fail(&target))
        continue;
    EVENTUALLY(look(fleet, &target).failures >= 3 && !look(fleet, &target).connected);
    for (unsigned retries = 0; retries < 3; retries++)
        EVENTUALLY(live_fleet_fail(&target));
    int64_t disconnected_ns = look(fleet, &target).disconnected_ns;
    assert_true(disconnected_ns > 0);
    EVENTUALLY(live_told_has(&told, "retries go on at 60 a minute for payments"));
    assert_true(live_told_count(&told) <= before + 1);
    live_redis_signal(&redis, SIGCONT);
    EVENTUALLY(look(fleet, &target).connected);
    print_message("stopped for %lld ms\n", (long long)((bide_now() - stopped_ns) / BIDE_MS));
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static bool has_problem(struct bide_fleet *fleet, struct bide_target *target, const char *text)
{
    struct bide_fleet_view view = look(fleet, target);
    return text[0] == '\0' ? view.problem[0] == '\0' : strstr(view.problem, text) != NULL;
}

static void a_full_or_read_only_redis_is_told_and_survived(void **state)
{
    struct live_redis redis = {0};
    struct live_told told = LIVE_TOLD;
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    live_fleet_tell_every(1);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), &told);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(look(fleet, &target).connected);
    live_redis_do(&redis, "CONFIG SET maxmemory 1");
    EVENTUALLY((live_fleet_fail(&target), live_told_has(&told, "OOM")));
    EVENTUALLY((live_fleet_fail(&target), has_problem(fleet, &target, "OOM")));
    live_redis_do(&redis, "CONFIG SET maxmemory 0");
    EVENTUALLY(look(fleet, &target).connected && has_problem(fleet, &target, ""));
    live_redis_do(&redis, "REPLICAOF 127.0.0.1 1");
    EVENTUALLY((live_fleet_fail(&target), live_told_has(&told, "READONLY")));
    live_redis_do(&redis, "REPLICAOF NO ONE");
    EVENTUALLY(look(fleet, &target).connected && has_tokens(&target));
    bide_fleet_close(fleet);
    live_fleet_hurry();
    live_redis_free(&redis);
}

static void a_redis_that_runs_somebody_elses_script_for_ever_is_survived(void **state)
{
    struct live_redis redis = {0};
    struct live_told told = LIVE_TOLD;
    struct bide_target target;
    live_redis_start(&redis, "lua-time-limit 10\n");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), &told);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(look(fleet, &target).connected);
    redisContext *busy = live_redis_connect(&redis);
    int done = 0;
    redisAppendCommand(busy, "EVAL %s 0", "while true do end");
    while (done == 0)
        redisBufferWrite(busy, &done);
    EVENTUALLY((live_fleet_fail(&target), live_told_has(&told, "BUSY")));
    live_redis_do(&redis, "SCRIPT KILL");
    EVENTUALLY(look(fleet, &target).connected && has_tokens(&target));
    redisFree(busy);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void a_forgotten_script_is_told_again_and_nothing_counted_twice(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
    live_fleet_join(fleet, "payments", &target);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t before = look(fleet, &target).exchanges;
        live_redis_do(&redis, "SCRIPT FLUSH");
        EVENTUALLY((live_fleet_fail(&target), look(fleet, &target).exchanges > before));
    }
    struct bide_fleet_view view;
    EVENTUALLY((view = look(fleet, &target), bank_of(&redis).serial == (int64_t)view.exchanges));
    assert_int_equal(bank_of(&redis).granted_milli, view.granted_milli);
    assert_int_equal(view.failures, 0);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void closing_does_not_wait_for_a_redis_that_does_not_answer(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), NULL); /* 20 s */
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(look(fleet, &target).connected);
    live_redis_signal(&redis, SIGSTOP);
    int64_t before_ns = bide_now();
    bide_fleet_close(fleet);
    assert_true(bide_now() - before_ns < 10 * BIDE_S);
    live_redis_signal(&redis, SIGCONT);
    live_redis_free(&redis);
}

/* ---- fork ---- */

static bool has_a_connection(void)
{
    struct sockaddr_in peer;
    for (int fd = 3; fd < 256; fd++) {
        socklen_t length = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET)
            return true;
    }
    return false;
}

/* In the child. Its exit code says what is wrong; 0: nothing is. */
static int child_of_a_fleet(struct bide_fleet *fleet, struct bide_target *target, struct bide_target *other)
{
    struct bide_fleet_view view;
    struct bide_fleet_problem problem;
    if (left(target) != 0 || live_fleet_fail(target))
        return 1;
    if (bide_lease_collect(target).successes != 0 || has_a_connection())
        return 5;
    if (!bide_fleet_get(fleet, target, &view) || view.exchanger)
        return 2;
    if (bide_fleet_join(fleet, "orders", other, false, &problem) != BIDE_ERR_INVALID)
        return 3;
    bide_fleet_leave(fleet, target);
    if (bide_fleet_get(fleet, target, &view) || bide_lease_is_on(target))
        return 4;
    bide_fleet_close(fleet);
    return 0;
}

static void a_child_has_no_tokens_and_the_parent_keeps_its_own(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target, other;
    int status;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    live_fleet_target(&other, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, QUICK), NULL);
    live_fleet_join(fleet, "payments", &target);
    for (unsigned i = 0; i < 20; i++) {
        EVENTUALLY(has_tokens(&target));
        assert_true(has_a_connection());
        live_fleet_succeed(&target); /* something to be reported once */
        pid_t pid = fork();
        if (pid == 0)
            _exit(child_of_a_fleet(fleet, &target, &other));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(left(&target) >= 1000);
        assert_true(live_fleet_fail(&target));
    }
    assert_int_equal(look(fleet, &target).failures, 0);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

/* ---- reading ---- */

static void what_lies_in_redis_can_be_read(void **state)
{
    struct live_redis redis = {0};
    struct bide_fleet_problem problem = {0};
    struct bide_fleet_bucket bank;
    struct bide_target target;
    char url[128];
    live_redis_start(&redis, "");
    snprintf(url, sizeof url, "%s", live_redis_url(&redis, QUICK));
    assert_int_equal(bide_fleet_read(url, "payments", &bank, &problem), BIDE_OK);
    assert_false(bank.exists);
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(url, NULL);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY((live_fleet_fail(&target), look(fleet, &target).exchanges >= 3));
    assert_int_equal(bide_fleet_read(url, "payments", &bank, &problem), BIDE_OK);
    assert_true(bank.exists && bank.exchanges >= 3);
    assert_int_equal(bank.capacity_milli, 1000000);
    assert_int_equal(bank.per_minute_milli, 6000000);
    assert_int_equal(bank.members, 1);
    assert_true(bank.left_milli > 0 && bank.left_milli <= bank.capacity_milli);
    bide_fleet_close(fleet);

    live_redis_do(&redis, "SET %s nonsense", KEY);
    assert_int_equal(bide_fleet_read(url, "payments", &bank, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, KEY ": that key holds something else"));
    live_redis_do(&redis, "DEL %s", KEY);
    live_redis_do(&redis, "HSET %s some thing", KEY);
    assert_int_equal(bide_fleet_read(url, "payments", &bank, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, "WRONGTYPE"));
    assert_false(bank.exists);
    live_redis_kill(&redis, SIGKILL);
    assert_int_equal(bide_fleet_read(url, "payments", &bank, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, "refused"));
    live_redis_free(&redis);
}

/* ---- secrets ---- */

static void any_name_will_do(void **state)
{
    static const char *const names[] = {"a b", "{payments}", "}{", "100%", "zahlungs-\xc3\xbc\xc3\x9f", "\xff\xfe"};
    struct live_redis redis = {0};
    struct bide_fleet_problem problem;
    struct bide_fleet_bucket bank;
    struct bide_target target[7];
    char long_name[BIDE_TARGET_NAME_MAX + 1];
    memset(long_name, 0xfc, sizeof long_name);
    long_name[BIDE_TARGET_NAME_MAX] = 0;
    live_redis_start(&redis, "");
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, PATIENT), NULL);
    for (unsigned i = 0; i < 7; i++) {
        const char *name = i < 6 ? names[i] : long_name;
        live_fleet_target(&target[i], 0);
        live_fleet_join(fleet, name, &target[i]);
        EVENTUALLY(look(fleet, &target[i]).exchanges > 0);
        assert_int_equal(bide_fleet_read(live_redis_url(&redis, PATIENT), name, &bank, &problem), BIDE_OK);
        assert_true(bank.exists);
        assert_int_equal(live_redis_number(&redis, "DBSIZE"), i + 1);
    }
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void a_wrong_password_is_told_and_not_repeated(void **state)
{
    struct live_redis redis = {0};
    struct live_told told = LIVE_TOLD;
    struct bide_target target;
    char url[128];
    live_redis_start(&redis, "requirepass open-sesame\n");
    live_fleet_target(&target, 0);
    snprintf(url, sizeof url, "redis://:hush-hush@127.0.0.1:%u", redis.process.port);
    struct bide_fleet *fleet = live_fleet_open(url, &told);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(live_told_count(&told) == 1);
    assert_true(live_told_has(&told, "AUTH"));
    assert_false(live_told_has(&told, "hush-hush"));
    bide_fleet_close(fleet);
    snprintf(url, sizeof url, "redis://:open-sesame@127.0.0.1:%u/%s", redis.process.port, QUICK);
    fleet = live_fleet_open(url, &told);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(look(fleet, &target).connected);
    assert_int_equal(live_told_count(&told), 1);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

int main(void)
{
    live_fleet_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_two_processes_on_one_target_one_exchanges_and_the_other_takes_over),
        cmocka_unit_test(who_joins_gets_tokens_and_who_spends_gets_more),
        cmocka_unit_test(successes_here_pay_for_retries_there),
        cmocka_unit_test(two_fleets_of_one_name_share_one_bucket),
        cmocka_unit_test(closing_gives_back_what_is_unspent_and_what_was_earned),
        cmocka_unit_test(who_lives_for_a_moment_reports_all_the_same),
        cmocka_unit_test(tokens_come_over_tls_too),
        cmocka_unit_test(who_leaves_is_left_alone_and_the_others_go_on),
        cmocka_unit_test(what_cannot_join_is_refused_with_a_reason),
        cmocka_unit_test(a_hold_off_that_one_was_asked_for_is_kept_by_all_until_a_success),
        cmocka_unit_test(when_most_breakers_are_open_the_others_open_too),
        cmocka_unit_test(a_redis_that_comes_later_is_found),
        cmocka_unit_test(a_redis_that_was_killed_is_found_again),
        cmocka_unit_test(while_redis_is_stopped_calls_go_on_at_the_floor),
        cmocka_unit_test(a_full_or_read_only_redis_is_told_and_survived),
        cmocka_unit_test(a_redis_that_runs_somebody_elses_script_for_ever_is_survived),
        cmocka_unit_test(a_forgotten_script_is_told_again_and_nothing_counted_twice),
        cmocka_unit_test(closing_does_not_wait_for_a_redis_that_does_not_answer),
        cmocka_unit_test(a_child_has_no_tokens_and_the_parent_keeps_its_own),
        cmocka_unit_test(what_lies_in_redis_can_be_read),
        cmocka_unit_test(any_name_will_do),
        cmocka_unit_test(a_wrong_password_is_told_and_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
