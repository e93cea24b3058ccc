/* test_fleet.c - fleets with a real redis-server: leasing, reporting, shared targets; Redis gone, stopped, full; fork.
 *
 * Cases that a fake Redis shows better are in test_faults.c. Backoff is short here (live_fleet_retry_quickly), so
 * nothing waits for long. The first test forks processes that start threads, before this process has any. */
#define _GNU_SOURCE
#include "live_fleet.h"
#include "live_redis.h"
#include "live_tls.h"

#include "core/lease.h"
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

#define KEY                      "bide:{payments}:1"
#define TIMEOUT_LONG             "?timeout=20000" /* for busy machines */
#define TIMEOUT_LONG_FAST_REFILL TIMEOUT_LONG "&per_minute=6000&capacity=1000"

static int64_t left_milli(const struct bide_target *target)
{
    return bide_target_get(target, bide_now()).budget_left_milli;
}

/* Returns the stored bucket: numbers with a space after each. All zeros if the key does not exist. */
static struct lease_bucket stored_bucket(struct live_redis *redis)
{
    int64_t number[LEASE_BUCKET_FIELD_COUNT] = {0};
    struct lease_bucket bucket;
    char *at = (char *)live_redis_do(redis, "GET %s", KEY);
    assert_non_null(at);
    for (size_t i = 0; i < LEASE_BUCKET_FIELD_COUNT && *at != 0; i++)
        number[i] = strtoll(at, &at, 10);
    memcpy(&bucket, number, sizeof bucket);
    return bucket;
}

/* A member gets tokens sooner after a refused retry. */
static bool has_tokens(struct bide_target *target)
{
    return left_milli(target) >= 1000 || (live_fleet_fail(target), false);
}

static struct bide_fleet_view view_of(struct bide_fleet *fleet, struct bide_target *target)
{
    return live_fleet_get(fleet, target);
}

/* ---- a shared target of two processes ---- */

struct worker {
    uint64_t iterations, exchanges, exchanger;
};

/* Runs until killed. Its calls keep exchanges coming every second. */
_Noreturn static void worker_run(struct worker *worker, const char *directory, const char *url)
{
    struct bide_shared_options here = {.directory = directory};
    struct bide_target_config config;
    struct bide_problem problem;
    struct bide_shared host;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    struct bide_fleet *fleet = live_fleet_open(url, NULL);
    if (bide_shared_open(&host, "payments", &config, &here, bide_now(), NULL) != BIDE_OK ||
        bide_fleet_join(fleet, "payments", host.target, &problem) != BIDE_OK)
        _exit(1);
    for (;; poll(NULL, 0, 5)) {
        struct bide_fleet_view view = view_of(fleet, host.target);
        live_fleet_succeed(host.target);
        __atomic_store_n(&worker->exchanger, view.exchanger, __ATOMIC_SEQ_CST);
        __atomic_store_n(&worker->exchanges, view.exchanges, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&worker->iterations, 1, __ATOMIC_SEQ_CST);
    }
}

static uint64_t load_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void one_of_two_processes_exchanges_and_the_other_takes_over(void **state)
{
    struct live_redis redis = {0};
    struct worker *worker = mmap(NULL, 2 * sizeof *worker, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char directory[LIVE_DIR_MAX + 8];
    pid_t pid[2];
    live_redis_start(&redis, "");
    snprintf(directory, sizeof directory, "%s/host", redis.process.dir);
    const char *url = live_redis_url(&redis, "?per_minute=6000&timeout=3000"); /* the claim lasts twice that longer */
    for (unsigned i = 0; i < 2; i++)
        if ((pid[i] = fork()) == 0)
            worker_run(&worker[i], directory, url);
    EVENTUALLY(load_word(&worker[0].exchanges) + load_word(&worker[1].exchanges) >= 3 &&
               load_word(&worker[0].iterations) > 0 && load_word(&worker[1].iterations) > 0);
    unsigned first = load_word(&worker[1].exchanger) != 0;
    assert_int_equal(load_word(&worker[0].exchanger) + load_word(&worker[1].exchanger), 1);
    assert_int_equal(load_word(&worker[!first].exchanges), 0);
    kill(pid[first], SIGKILL);
    waitpid(pid[first], NULL, 0);
    EVENTUALLY(load_word(&worker[!first].exchanges) >= 2);
    assert_int_equal(load_word(&worker[!first].exchanger), 1);
    kill(pid[!first], SIGKILL);
    waitpid(pid[!first], NULL, 0);
    munmap(worker, 2 * sizeof *worker);
    live_process_run(&redis.process, (const char *const[]){"rm", "-r", "$DIR/host", NULL});
    live_redis_free(&redis);
}

/* ---- leasing ---- */

static void member_is_granted_tokens_and_more_as_it_spends(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    assert_true(left_milli(&target) > 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), NULL);
    live_fleet_join(fleet, "payments", &target);
    assert_true(core_lease_is_on(&target));
    EVENTUALLY(view_of(fleet, &target).connected && has_tokens(&target));
    for (unsigned spent = 0; spent < 30; spent += live_fleet_fail(&target))
        poll(NULL, 0, 1); /* more than the target's bucket holds */
    struct bide_fleet_view view = view_of(fleet, &target);
    assert_true(view.exchanger && view.granted_milli >= 30000);
    assert_int_equal(view.failures, 0);
    EVENTUALLY(stored_bucket(&redis).spent_milli >= 30000);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void successes_of_one_member_pay_for_retries_of_another(void **state)
{
    struct live_redis redis = {0};
    struct bide_target here, there;
    live_redis_start(&redis, "");
    const char *url = live_redis_url(&redis, TIMEOUT_LONG "&per_minute=0");
    live_fleet_target(&here, 0);
    live_fleet_target(&there, 0);
    struct bide_fleet *one = live_fleet_open(url, NULL), *two = live_fleet_open(url, NULL);
    live_fleet_join(one, "payments", &here);
    live_fleet_join(two, "payments", &there);
    EVENTUALLY(view_of(two, &there).connected);
    EVENTUALLY(!live_fleet_fail(&there)); /* its initial retry is spent */
    for (unsigned i = 0; i < 200; i++)
        live_fleet_succeed(&here);
    EVENTUALLY(live_fleet_fail(&there));
    EVENTUALLY(stored_bucket(&redis).successes == 200);
    assert_int_equal(view_of(one, &here).earned_milli, 20000);
    assert_true(view_of(one, &here).granted_milli + view_of(two, &there).granted_milli <= 22000);
    bide_fleet_close(one);
    bide_fleet_close(two);
    live_redis_free(&redis);
}

static void first_failure_of_each_member_of_a_new_fleet_is_retried(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target[3];
    struct bide_fleet *fleet[3];
    live_redis_start(&redis, "");
    for (unsigned i = 0; i < 3; i++) {
        live_fleet_target(&target[i], 0);
        fleet[i] = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG "&per_minute=0"), NULL);
        live_fleet_join(fleet[i], "payments", &target[i]);
        EVENTUALLY(view_of(fleet[i], &target[i]).connected);
        assert_true(live_fleet_fail(&target[i]));
        assert_false(live_fleet_fail(&target[i]));
    }
    assert_int_equal(stored_bucket(&redis).initial_milli, 3000);
    for (unsigned i = 0; i < 3; i++)
        bide_fleet_close(fleet[i]);
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
        fleet[i] = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), NULL);
        live_fleet_join(fleet[i], "payments", &target[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        EVENTUALLY(live_fleet_fail(&target[i]) && view_of(fleet[i], &target[i]).members == 2);
    EVENTUALLY(
        (granted_milli = view_of(fleet[0], &target[0]).granted_milli + view_of(fleet[1], &target[1]).granted_milli,
         stored_bucket(&redis).granted_milli == (int64_t)granted_milli));
    assert_true(granted_milli >= 2000);
    bide_fleet_close(fleet[0]);
    bide_fleet_close(fleet[1]);
    live_redis_free(&redis);
}

static void closing_returns_unspent_and_earned_tokens(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG "&per_minute=0&capacity=100"), NULL);
    live_fleet_join(fleet, "payments", &target);
    for (unsigned i = 0; i < 200; i++)
        live_fleet_succeed(&target);
    EVENTUALLY(has_tokens(&target));
    bide_fleet_close(fleet);
    assert_int_equal(left_milli(&target), 0);
    assert_false(core_lease_is_on(&target));
    EVENTUALLY(stored_bucket(&redis).level_milli == 21000); /* with the initial retry */
    live_fleet_succeed(&target);
    assert_int_equal(left_milli(&target), 100); /* it earns for itself again */
    live_redis_free(&redis);
}

static void short_lived_process_still_reports(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    for (unsigned i = 1; i <= 10; i++) {
        live_fleet_target(&target, 0);
        struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG), NULL);
        live_fleet_join(fleet, "payments", &target);
        live_fleet_succeed(&target);
        bide_fleet_close(fleet);
        EVENTUALLY(stored_bucket(&redis).successes == i);
        if (i % 3 == 0)
            live_redis_do(&redis, "SCRIPT FLUSH");
    }
    live_redis_free(&redis);
}

/* Opens a fleet that reports a FIFO in place of a TLS file, forks, and closes it. */
static void expect_fifo_to_be_refused(const char *url)
{
    struct bide_target target;
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(url, NULL);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(strstr(view_of(fleet, &target).problem, "fifo: is not a regular file") != NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    bide_fleet_close(fleet);
}

static void tls_file_that_would_block_delays_neither_fork_nor_close(void **state)
{
    struct live_redis redis = {0};
    char url[640], fifo[512];
    live_redis_dir(&redis);
    live_tls_make(&redis.process, "site", "IP:127.0.0.1");
    live_redis_start(&redis, LIVE_REDIS_TLS);
    live_process_run(&redis.process, (const char *const[]){"mkfifo", "fifo", NULL});
    snprintf(fifo, sizeof fifo, "%s/fifo", redis.process.dir);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%u/?ca_file=%s", redis.process.port, fifo);
    expect_fifo_to_be_refused(url);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%u/", redis.process.port);
    assert_int_equal(setenv("SSL_CERT_FILE", fifo, 1), 0);
    expect_fifo_to_be_refused(url);
    unsetenv("SSL_CERT_FILE");
    live_redis_free(&redis);
}

/* As OpenSSL does by default: the authorities of a URL without ca_file. */
static void authorities_are_loaded_from_ssl_cert_file(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    char url[512];
    live_redis_dir(&redis);
    live_tls_make(&redis.process, "site", "IP:127.0.0.1");
    live_redis_start(&redis, LIVE_REDIS_TLS);
    live_fleet_target(&target, 0);
    assert_int_equal(setenv("SSL_CERT_FILE", live_tls_path(&redis.process, "site"), 1), 0);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%u%s", redis.process.port, TIMEOUT_LONG_FAST_REFILL);
    struct bide_fleet *fleet = live_fleet_open(url, NULL);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(has_tokens(&target));
    bide_fleet_close(fleet);
    unsetenv("SSL_CERT_FILE");
    live_redis_free(&redis);
}

static void tokens_are_leased_over_tls(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    char url[512];
    live_redis_dir(&redis);
    live_tls_make(&redis.process, "site", "IP:127.0.0.1");
    live_redis_start(&redis, LIVE_REDIS_TLS);
    live_fleet_target(&target, 0);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%u%s&ca_file=%s", redis.process.port, TIMEOUT_LONG_FAST_REFILL,
             live_tls_path(&redis.process, "site"));
    struct bide_fleet *fleet = live_fleet_open(url, NULL);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(has_tokens(&target));
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void leaving_member_is_not_touched_again_and_others_continue(void **state)
{
    struct live_redis redis = {0};
    struct bide_target stays, leaves;
    struct bide_fleet_view view;
    live_redis_start(&redis, "");
    live_fleet_target(&stays, 0);
    live_fleet_target(&leaves, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), NULL);
    live_fleet_join(fleet, "payments", &stays);
    live_fleet_join(fleet, "orders", &leaves);
    EVENTUALLY(has_tokens(&stays) && has_tokens(&leaves));
    bide_fleet_leave(fleet, &leaves);
    assert_false(bide_fleet_get(fleet, &leaves, &view));
    assert_int_equal(left_milli(&leaves), 0);
    memset(&leaves, 0xff, sizeof leaves); /* the fleet must not touch it any more */
    uint64_t before = view_of(fleet, &stays).exchanges;
    EVENTUALLY(view_of(fleet, &stays).exchanges >= before + 2 || (live_fleet_fail(&stays), false));
    bide_fleet_leave(fleet, &leaves); /* unknown: ignored */
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void invalid_join_is_refused_with_a_reason(void **state)
{
    struct bide_target target, window;
    struct bide_target_config config;
    struct bide_problem problem;
    struct bide_fleet *fleet = live_fleet_open("redis://127.0.0.1:1", NULL);
    live_fleet_target(&target, 0);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.ratio_ppm = 100000;
    assert_int_equal(bide_target_init(&window, &config, bide_now(), NULL), BIDE_OK);
    assert_int_equal(bide_fleet_join(fleet, "payments", &window, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.kind");
    assert_non_null(strstr(problem.text, "budget.kind is 1; must be"));
    assert_int_equal(bide_fleet_join(fleet, "", &target, &problem), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "1 to 127 bytes"));
    assert_int_equal(bide_fleet_join(fleet, "pay\nments", &target, &problem), BIDE_ERR_INVALID);
    assert_int_equal(bide_fleet_join(fleet, "payments", &target, &problem), BIDE_OK);
    assert_int_equal(bide_fleet_join(fleet, "orders", &target, &problem), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "joined already"));
    bide_fleet_close(fleet);
    bide_fleet_close(NULL);
    assert_int_equal(bide_fleet_open(&fleet, "http://127.0.0.1", NULL, &problem), BIDE_ERR_INVALID);
    assert_null(fleet);
}

/* ---- Redis fails and returns ---- */

static void redis_started_later_is_found(void **state)
{
    struct live_redis redis = {0};
    struct live_reports reports = LIVE_REPORTS;
    struct bide_target target;
    live_redis_dir(&redis);
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), &reports);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(view_of(fleet, &target).failures >= 3);
    assert_int_equal(live_reports_count(&reports), 1);
    assert_true(live_reports_contain(&reports, "refused; retries go on at 0 a minute for payments"));
    assert_int_equal(left_milli(&target), 0);
    live_redis_start(&redis, "");
    EVENTUALLY(view_of(fleet, &target).connected && has_tokens(&target));
    EVENTUALLY(live_reports_contain(&reports, "reached again"));
    assert_true(live_reports_contain(&reports, "payments is a new fleet budget: it starts empty"));
    assert_int_equal(live_reports_count(&reports), 2);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void first_failure_without_redis_is_retried_once_at_once(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_dir(&redis);
    live_fleet_target(&target, 1000);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), NULL);
    live_fleet_join(fleet, "payments", &target);
    assert_false(view_of(fleet, &target).connected);
    assert_true(live_fleet_fail(&target));
    assert_false(live_fleet_fail(&target));
    EVENTUALLY(view_of(fleet, &target).failures > 0 && view_of(fleet, &target).disconnected_ns > 0);
    assert_false(view_of(fleet, &target).connected); /* although the end of the lease delays the floor */
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void killed_redis_is_found_again(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), NULL);
    live_fleet_join(fleet, "payments", &target);
    for (unsigned i = 0; i < 3; i++) {
        EVENTUALLY(view_of(fleet, &target).connected && has_tokens(&target));
        uint64_t failures = view_of(fleet, &target).failures;
        live_redis_kill(&redis, SIGKILL);
        while (live_fleet_fail(&target))
            continue;
        EVENTUALLY(view_of(fleet, &target).failures > failures);
        assert_false(live_fleet_fail(&target));
        live_redis_again(&redis);
    }
    EVENTUALLY(live_fleet_fail(&target));
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void calls_continue_at_the_floor_while_redis_is_stopped(void **state)
{
    struct live_redis redis = {0};
    struct live_reports reports = LIVE_REPORTS;
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 60000); /* a retry per second */
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, "?timeout=200&per_minute=6000"), &reports);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(view_of(fleet, &target).connected && has_tokens(&target));
    unsigned before = live_reports_count(&reports); /* a busy machine may have been slow */
    live_redis_signal(&redis, SIGSTOP);
    int64_t stopped_ns = bide_now();
    while (live_fleet_fail(&target))
        continue;
    EVENTUALLY(view_of(fleet, &target).failures >= 3 && !view_of(fleet, &target).connected);
    for (unsigned retries = 0; retries < 3; retries++)
        EVENTUALLY(live_fleet_fail(&target));
    int64_t disconnected_ns = view_of(fleet, &target).disconnected_ns;
    assert_true(disconnected_ns > 0);
    EVENTUALLY(live_reports_contain(&reports, "retries go on at 60 a minute for payments"));
    assert_true(live_reports_count(&reports) <= before + 1);
    live_redis_signal(&redis, SIGCONT);
    EVENTUALLY(view_of(fleet, &target).connected);
    print_message("stopped for %lld ms\n", (long long)((bide_now() - stopped_ns) / BIDE_MS));
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static bool has_problem(struct bide_fleet *fleet, struct bide_target *target, const char *text)
{
    struct bide_fleet_view view = view_of(fleet, target);
    return text[0] == '\0' ? view.problem[0] == '\0' : strstr(view.problem, text) != NULL;
}

static void full_or_read_only_redis_is_reported_and_survived(void **state)
{
    struct live_redis redis = {0};
    struct live_reports reports = LIVE_REPORTS;
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    live_fleet_report_every(1);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), &reports);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(view_of(fleet, &target).connected);
    live_redis_do(&redis, "CONFIG SET maxmemory 1");
    EVENTUALLY((live_fleet_fail(&target), live_reports_contain(&reports, "OOM")));
    EVENTUALLY((live_fleet_fail(&target), has_problem(fleet, &target, "OOM")));
    live_redis_do(&redis, "CONFIG SET maxmemory 0");
    EVENTUALLY(view_of(fleet, &target).connected && has_problem(fleet, &target, ""));
    live_redis_do(&redis, "REPLICAOF 127.0.0.1 1");
    EVENTUALLY((live_fleet_fail(&target), live_reports_contain(&reports, "READONLY")));
    live_redis_do(&redis, "REPLICAOF NO ONE");
    EVENTUALLY(view_of(fleet, &target).connected && has_tokens(&target));
    bide_fleet_close(fleet);
    live_fleet_retry_quickly();
    live_redis_free(&redis);
}

static void redis_busy_with_an_endless_script_is_survived(void **state)
{
    struct live_redis redis = {0};
    struct live_reports reports = LIVE_REPORTS;
    struct bide_target target;
    live_redis_start(&redis, "lua-time-limit 10\n");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), &reports);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(view_of(fleet, &target).connected);
    redisContext *busy = live_redis_connect(&redis);
    int done = 0;
    redisAppendCommand(busy, "EVAL %s 0", "while true do end");
    while (done == 0)
        redisBufferWrite(busy, &done);
    EVENTUALLY((live_fleet_fail(&target), live_reports_contain(&reports, "BUSY")));
    live_redis_do(&redis, "SCRIPT KILL");
    EVENTUALLY(view_of(fleet, &target).connected && has_tokens(&target));
    redisFree(busy);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void flushed_script_is_sent_again_and_nothing_counts_twice(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), NULL);
    live_fleet_join(fleet, "payments", &target);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t before = view_of(fleet, &target).exchanges;
        live_redis_do(&redis, "SCRIPT FLUSH");
        EVENTUALLY((live_fleet_fail(&target), view_of(fleet, &target).exchanges > before));
    }
    struct bide_fleet_view view;
    EVENTUALLY((view = view_of(fleet, &target), stored_bucket(&redis).serial == (int64_t)view.exchanges));
    assert_int_equal(stored_bucket(&redis).granted_milli, view.granted_milli);
    assert_int_equal(view.failures, 0);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void closing_does_not_wait_for_a_stopped_redis(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet =
        live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), NULL); /* timeout 20 s */
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(view_of(fleet, &target).connected);
    live_redis_signal(&redis, SIGSTOP);
    int64_t before_ns = bide_now();
    bide_fleet_close(fleet);
    assert_true(bide_now() - before_ns < 10 * BIDE_S);
    live_redis_signal(&redis, SIGCONT);
    live_redis_free(&redis);
}

/* ---- fork ---- */

static bool has_tcp_connection(void)
{
    struct sockaddr_in peer;
    for (int fd = 3; fd < 256; fd++) {
        socklen_t length = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET)
            return true;
    }
    return false;
}

/* Runs in the child. The result is its exit code; 0: all is right. */
static int check_forked_child(struct bide_fleet *fleet, struct bide_target *target, struct bide_target *other)
{
    struct bide_fleet_view view;
    struct bide_problem problem;
    if (left_milli(target) != 0 || live_fleet_fail(target))
        return 1;
    if (core_lease_collect(target).successes != 0 || has_tcp_connection())
        return 5;
    if (!bide_fleet_get(fleet, target, &view) || view.exchanger)
        return 2;
    if (bide_fleet_join(fleet, "orders", other, &problem) != BIDE_ERR_INVALID)
        return 3;
    bide_fleet_leave(fleet, target);
    if (bide_fleet_get(fleet, target, &view) || core_lease_is_on(target))
        return 4;
    bide_fleet_close(fleet);
    return 0;
}

static void forked_child_has_no_tokens_and_the_parent_keeps_its_own(void **state)
{
    struct live_redis redis = {0};
    struct bide_target target, other;
    int status;
    live_redis_start(&redis, "");
    live_fleet_target(&target, 0);
    live_fleet_target(&other, 0);
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL), NULL);
    live_fleet_join(fleet, "payments", &target);
    for (unsigned i = 0; i < 20; i++) {
        EVENTUALLY(has_tokens(&target));
        assert_true(has_tcp_connection());
        live_fleet_succeed(&target); /* something to be reported once */
        pid_t pid = fork();
        if (pid == 0)
            _exit(check_forked_child(fleet, &target, &other));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(left_milli(&target) >= 1000);
        assert_true(live_fleet_fail(&target));
    }
    assert_int_equal(view_of(fleet, &target).failures, 0);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

/* ---- reading ---- */

static void stored_bucket_can_be_read(void **state)
{
    struct live_redis redis = {0};
    struct bide_problem problem = {0};
    struct bide_fleet_bucket bucket;
    struct bide_target target;
    char url[128];
    live_redis_start(&redis, "");
    snprintf(url, sizeof url, "%s", live_redis_url(&redis, TIMEOUT_LONG_FAST_REFILL));
    assert_int_equal(bide_fleet_read(url, "payments", &bucket, &problem), BIDE_OK);
    assert_false(bucket.exists);
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(url, NULL);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY((live_fleet_fail(&target), view_of(fleet, &target).exchanges >= 3));
    assert_int_equal(bide_fleet_read(url, "payments", &bucket, &problem), BIDE_OK);
    assert_true(bucket.exists && bucket.exchanges >= 3);
    assert_int_equal(bucket.capacity_milli, 1000000);
    assert_int_equal(bucket.per_minute_milli, 6000000);
    assert_int_equal(bucket.members, 1);
    assert_true(bucket.left_milli > 0 && bucket.left_milli <= bucket.capacity_milli);
    bide_fleet_close(fleet);

    live_redis_do(&redis, "SET %s nonsense", KEY);
    assert_int_equal(bide_fleet_read(url, "payments", &bucket, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, KEY ": the key holds something else"));
    live_redis_do(&redis, "DEL %s", KEY);
    live_redis_do(&redis, "HSET %s some thing", KEY);
    assert_int_equal(bide_fleet_read(url, "payments", &bucket, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, "WRONGTYPE"));
    assert_false(bucket.exists);
    live_redis_kill(&redis, SIGKILL);
    assert_int_equal(bide_fleet_read(url, "payments", &bucket, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, "refused"));
    live_redis_free(&redis);
}

/* ---- names and passwords ---- */

static void any_target_name_works(void **state)
{
    static const char *const names[] = {"a b", "{payments}", "}{", "100%", "zahlungs-\xc3\xbc\xc3\x9f", "\xff\xfe"};
    struct live_redis redis = {0};
    struct bide_problem problem;
    struct bide_fleet_bucket bucket;
    struct bide_target target[7];
    char long_name[BIDE_TARGET_NAME_MAX + 1];
    memset(long_name, 0xfc, sizeof long_name);
    long_name[BIDE_TARGET_NAME_MAX] = 0;
    live_redis_start(&redis, "");
    struct bide_fleet *fleet = live_fleet_open(live_redis_url(&redis, TIMEOUT_LONG), NULL);
    for (unsigned i = 0; i < 7; i++) {
        const char *name = i < 6 ? names[i] : long_name;
        live_fleet_target(&target[i], 0);
        live_fleet_join(fleet, name, &target[i]);
        EVENTUALLY(view_of(fleet, &target[i]).exchanges > 0);
        assert_int_equal(bide_fleet_read(live_redis_url(&redis, TIMEOUT_LONG), name, &bucket, &problem), BIDE_OK);
        assert_true(bucket.exists);
        assert_int_equal(live_redis_number(&redis, "DBSIZE"), i + 1);
    }
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

static void wrong_password_is_reported_without_repeating_it(void **state)
{
    struct live_redis redis = {0};
    struct live_reports reports = LIVE_REPORTS;
    struct bide_target target;
    char url[128];
    live_redis_start(&redis, "requirepass open-sesame\n");
    live_fleet_target(&target, 0);
    snprintf(url, sizeof url, "redis://:hush-hush@127.0.0.1:%u", redis.process.port);
    struct bide_fleet *fleet = live_fleet_open(url, &reports);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(live_reports_count(&reports) == 1);
    assert_true(live_reports_contain(&reports, "AUTH"));
    assert_false(live_reports_contain(&reports, "hush-hush"));
    bide_fleet_close(fleet);
    snprintf(url, sizeof url, "redis://:open-sesame@127.0.0.1:%u/%s", redis.process.port, TIMEOUT_LONG_FAST_REFILL);
    fleet = live_fleet_open(url, &reports);
    live_fleet_join(fleet, "payments", &target);
    EVENTUALLY(view_of(fleet, &target).connected);
    assert_int_equal(live_reports_count(&reports), 1);
    bide_fleet_close(fleet);
    live_redis_free(&redis);
}

int main(void)
{
    live_fleet_retry_quickly();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_two_processes_exchanges_and_the_other_takes_over),
        cmocka_unit_test(member_is_granted_tokens_and_more_as_it_spends),
        cmocka_unit_test(successes_of_one_member_pay_for_retries_of_another),
        cmocka_unit_test(first_failure_of_each_member_of_a_new_fleet_is_retried),
        cmocka_unit_test(two_fleets_of_one_name_share_one_bucket),
        cmocka_unit_test(closing_returns_unspent_and_earned_tokens),
        cmocka_unit_test(short_lived_process_still_reports),
        cmocka_unit_test(tls_file_that_would_block_delays_neither_fork_nor_close),
        cmocka_unit_test(authorities_are_loaded_from_ssl_cert_file),
        cmocka_unit_test(tokens_are_leased_over_tls),
        cmocka_unit_test(leaving_member_is_not_touched_again_and_others_continue),
        cmocka_unit_test(invalid_join_is_refused_with_a_reason),
        cmocka_unit_test(redis_started_later_is_found),
        cmocka_unit_test(first_failure_without_redis_is_retried_once_at_once),
        cmocka_unit_test(killed_redis_is_found_again),
        cmocka_unit_test(calls_continue_at_the_floor_while_redis_is_stopped),
        cmocka_unit_test(full_or_read_only_redis_is_reported_and_survived),
        cmocka_unit_test(redis_busy_with_an_endless_script_is_survived),
        cmocka_unit_test(flushed_script_is_sent_again_and_nothing_counts_twice),
        cmocka_unit_test(closing_does_not_wait_for_a_stopped_redis),
        cmocka_unit_test(forked_child_has_no_tokens_and_the_parent_keeps_its_own),
        cmocka_unit_test(stored_bucket_can_be_read),
        cmocka_unit_test(any_target_name_works),
        cmocka_unit_test(wrong_password_is_reported_without_repeating_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
