/* test_memory.c - the n-th allocation fails, once or with all later ones, for every n: each call ends, with or without
 * an error; nothing crashes or (address sanitizer) leaks; the target's gates lose nothing.
 *
 * malloc, calloc and realloc are this program's own, libcurl uses them as well. They fail only in the thread that armed
 * the fault. */
#define _GNU_SOURCE
#include "live_chaos.h"

#include "core/gates.h"

#include <bide/clock.h>
#include <bide/multi.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- malloc ---- */

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer)
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *at, size_t size);

struct fault {
    bool armed;
    bool fail_forever;
    unsigned at;   /* the allocation that fails, from 1 */
    unsigned seen; /* allocations since it was armed */
};

static _Thread_local struct fault fault;

/* Called before the sanitizers are initialized. */
#define UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

UNSANITIZED static bool allocation_fails(void)
{
    if (!fault.armed)
        return false;
    fault.seen++;
    if (fault.seen != fault.at && !(fault.fail_forever && fault.seen > fault.at))
        return false;
    errno = ENOMEM;
    return true;
}

UNSANITIZED void *malloc(size_t size)
{
    return allocation_fails() ? NULL : REAL(malloc)(size);
}

UNSANITIZED void *calloc(size_t count, size_t size)
{
    return allocation_fails() ? NULL : REAL(calloc)(count, size);
}

UNSANITIZED void *realloc(void *at, size_t size)
{
    return allocation_fails() ? NULL : REAL(realloc)(at, size);
}

/* ---- one call ---- */

#define BODY_MAX 8192u

struct test_call {
    struct live_server server;
    struct bide_target target;
    struct bide_policy policy;
    struct bide_curl_options options;
    struct bide_curl_result result;
    struct curl_slist *headers;
    CURL *easy;
    char body[BODY_MAX];
    size_t length;
    bool started; /* the start succeeded */
    unsigned done;
    CURLcode code;
    bool never_ended;
};

/* A sink that allocates nothing. */
static size_t write_flat(char *at, size_t size, size_t count, void *context)
{
    struct test_call *p = context;
    if (size * count > BODY_MAX - p->length)
        return 0;
    memcpy(p->body + p->length, at, size * count);
    p->length += size * count;
    return size * count;
}

static size_t ignore_head(char *at, size_t size, size_t count, void *context)
{
    (void)at, (void)context;
    return size * count;
}

/* A retry costs a token, and in-flight attempts are limited: a charge that a call does not return is missed by the
 * next. */
static void target_with_all_gates(struct bide_target *target, uint32_t in_flight)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.hold_off_max_ns = 0;
    config.in_flight_max = in_flight;
    config.budget.kind = BIDE_BUDGET_TOKENS;
    config.budget.capacity_milli = 10000;
    config.budget.initial_milli = BIDE_FULL;
    config.budget.cost_milli = config.budget.cost_throttled_milli = config.budget.cost_timeout_milli = 1000;
    config.budget.earn_success_milli = config.budget.earn_first_milli = config.budget.refill_per_minute_milli = 0;
    config.budget.refund_permille = 0;
    assert_int_equal(bide_target_init(target, &config, bide_now(), NULL), BIDE_OK);
}

/* A server script and the expected body. */
struct scenario {
    const char *name;
    const char *script;
    size_t length; /* of the body on success */
    bool resume;
    uint32_t hedges;
    const char *post;
};

static const struct scenario scenarios[] = {
    {.name = "flaky", .script = "/ 503 | 200", .length = 3},
    {.name = "problem details",
     .script = "/ 503 type=application/problem+json body=\"{\\\"title\\\":\\\"x\\\",\\\"retry_after\\\":0.001}\" | 200",
     .length = 3},
    {.name = "post", .script = "/ 503 | reset | 200", .length = 3, .post = "amount=1"},
    {.name = "resumed",
     .script = "/ bytes=4000 etag=v1 ranges reset=half | bytes=4000 etag=v1 ranges",
     .length = 4000,
     .resume = true},
};

static const struct scenario hedged = {.name = "hedged", .script = "/ delay=10ms | 200", .length = 3, .hedges = 1};

static void test_call_init(struct test_call *p, const struct scenario *s)
{
    memset(p, 0, sizeof *p);
    live_server_start(&p->server, s->script);
    p->policy = live_policy(4);
    p->policy.hedges_max = s->hedges;
    p->policy.hedge_delay_ns = BIDE_MS;
    target_with_all_gates(&p->target, s->hedges + 1);
    p->headers = curl_slist_append(NULL, "X-Mine: yes");
    p->easy = curl_easy_init();
    curl_easy_setopt(p->easy, CURLOPT_URL, live_server_url(&p->server, "/"));
    curl_easy_setopt(p->easy, CURLOPT_POST, s->post ? 1L : 0L);
    p->options = (struct bide_curl_options){0};
    p->options.policy = &p->policy;
    p->options.write = write_flat;
    p->options.write_data = p;
    p->options.header = ignore_head;
    p->options.headers = p->headers;
    p->options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_TRACE;
    p->options.resume = s->resume;
    if (s->post)
        p->options.body =
            (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = s->post, .length = (int64_t)strlen(s->post)};
    else
        p->options.body.kind = BIDE_CURL_BODY_REPEATABLE; /* none */
    if (!s->post)
        curl_easy_setopt(p->easy, CURLOPT_HTTPGET, 1L);
}

static void test_call_free(struct test_call *p)
{
    curl_easy_cleanup(p->easy);
    curl_slist_free_all(p->headers);
    live_server_free(&p->server);
}

/* ---- the drivers ---- */

static void perform_easy(struct test_call *p)
{
    p->code = bide_curl_perform(p->easy, &p->target, &p->options, &p->result);
    p->started = true;
    p->done = 1;
}

static void on_done(void *context, const struct bide_multi_end *end)
{
    struct test_call *p = context;
    p->done++;
    p->code = end->code;
}

static void perform_multi(struct test_call *p)
{
    struct bide_multi *multi = NULL;
    struct bide_multi_job job = {.easy = p->easy,
                                 .target = &p->target,
                                 .options = &p->options,
                                 .result = &p->result,
                                 .done = on_done,
                                 .context = p};
    p->code = CURLE_OUT_OF_MEMORY;
    if (bide_multi_new(&multi) != BIDE_OK)
        return;
    p->started = bide_multi_start(multi, &job, NULL, NULL) == BIDE_OK;
    int64_t until_ns = bide_now() + 30 * BIDE_S;
    while (bide_multi_poll(multi, until_ns) > 0 && bide_now() < until_ns)
        continue;
    p->never_ended = bide_multi_running_get(multi) > 0;
    bide_multi_free(multi);
}

typedef void perform_function(struct test_call *p);

/* ---- invariants ---- */

static bool is_whole(const struct test_call *p, const struct scenario *s)
{
    if (p->length != s->length)
        return false;
    for (size_t i = 0; s->resume && i < p->length; i++)
        if (p->body[i] != chaos_pattern(i))
            return false;
    return s->resume || memcmp(p->body, "ok\n", 3) == 0;
}

static void check_end(const struct test_call *p, const struct scenario *s)
{
    assert_false(p->never_ended);
    assert_int_equal(p->done, p->started ? 1 : 0);
    if (!p->started)
        return;
    if (p->result.verdict.action == BIDE_ACTION_DONE) {
        assert_int_equal(p->code, CURLE_OK);
        assert_true(is_whole(p, s));
    } else if (p->code == CURLE_OK) { /* a failure with a response */
        assert_int_equal(p->result.verdict.action, BIDE_ACTION_GIVE_UP);
        assert_true(p->result.status >= 400);
    }
}

/* A retry costs a token, unless a local failure stopped it before it was sent. */
static int64_t retries_paid(const struct bide_curl_result *r)
{
    int64_t paid = 0;
    for (uint32_t i = 1; i < r->attempts; i++)
        paid += !(r->attempt[i].kind == BIDE_KIND_CANCELLED && r->attempt[i].evidence == BIDE_EVIDENCE_NOT_SENT);
    return paid;
}

/* No token is lost and no in-flight slot is held. */
static void check_target(struct test_call *p)
{
    int64_t spent = 10 - bide_target_get(&p->target, bide_now()).budget_left_milli / 1000;
    if (spent != retries_paid(&p->result))
        print_message("%d tokens for %u attempts, code %d, %s\n", (int)spent, p->result.attempts, p->code,
                      bide_reason_label(p->result.verdict.reason));
    assert_int_equal(spent, retries_paid(&p->result));
    bide_budget_add_milli(&p->target, spent * 1000, bide_now());
    assert_true(core_target_is_evictable(&p->target, bide_now()));
}

/* The same handle, target and options, without a fault. */
static void check_next_call(struct test_call *p, const struct scenario *s, perform_function *perform)
{
    p->length = 0;
    p->done = 0;
    perform(p);
    assert_int_equal(p->code, CURLE_OK);
    assert_int_equal(p->done, 1);
    assert_int_equal(p->result.verdict.action, BIDE_ACTION_DONE);
    assert_true(is_whole(p, s));
}

/* Returns false if there are fewer than `at` allocations. */
static bool fail_allocation(const struct scenario *s, perform_function *perform, unsigned at, bool fail_forever)
{
    struct test_call p;
    test_call_init(&p, s);
    fault = (struct fault){.armed = true, .fail_forever = fail_forever, .at = at};
    perform(&p);
    fault.armed = false;
    check_end(&p, s);
    check_target(&p);
    if (fault.seen < at)
        assert_int_equal(p.result.verdict.action, BIDE_ACTION_DONE);
    check_next_call(&p, s, perform);
    test_call_free(&p);
    return fault.seen >= at;
}

static void fail_each_allocation(const struct scenario *s, perform_function *perform)
{
    for (unsigned fail_forever = 0; fail_forever <= 1; fail_forever++) {
        unsigned at = 1;
        while (fail_allocation(s, perform, at, fail_forever))
            at++;
        print_message("%s, %s: %u allocations\n", s->name, fail_forever ? "all from the n-th" : "only the n-th",
                      at - 1);
        assert_true(at > 5);
    }
}

static void an_easy_call_ends_cleanly_whichever_allocation_fails(void **state)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        fail_each_allocation(&scenarios[i], perform_easy);
}

static void a_multi_call_ends_cleanly_whichever_allocation_fails(void **state)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        fail_each_allocation(&scenarios[i], perform_multi);
}

static void a_hedged_call_ends_cleanly_whichever_allocation_fails(void **state)
{
    fail_each_allocation(&hedged, perform_multi);
}

/* ---- the number of allocations ---- */

static void perform_bare(struct test_call *p)
{
    curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, write_flat);
    curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, p);
    p->code = curl_easy_perform(p->easy);
}

/* Returns the fewest allocations of several calls on a kept-alive connection: libcurl's number may depend on the
 * network. */
static unsigned allocations(struct test_call *p, perform_function *perform)
{
    unsigned fewest = UINT32_MAX;
    for (int i = 0; i < 10; i++) {
        p->length = 0;
        fault = (struct fault){.armed = true};
        perform(p);
        fault.armed = false;
        assert_int_equal(p->code, CURLE_OK);
        fewest = fault.seen < fewest ? fault.seen : fewest;
    }
    return fewest;
}

static void a_success_allocates_no_more_than_bare_libcurl(void **state)
{
    static const struct scenario plain = {.name = "plain", .script = "/ 200", .length = 3};
    struct test_call p;
    test_call_init(&p, &plain);
    p.options.header = NULL;
    p.options.headers = NULL;
    p.options.inject = 0;
    perform_bare(&p); /* connects */
    unsigned alone = allocations(&p, perform_bare);
    print_message("bare libcurl: %u allocations\n", alone);
    assert_true(alone > 0);
    assert_int_equal(allocations(&p, perform_easy), alone);
    test_call_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_success_allocates_no_more_than_bare_libcurl),
        cmocka_unit_test(an_easy_call_ends_cleanly_whichever_allocation_fails),
        cmocka_unit_test(a_multi_call_ends_cleanly_whichever_allocation_fails),
        cmocka_unit_test(a_hedged_call_ends_cleanly_whichever_allocation_fails),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failures;
}
