/* test_votes.c - failures over libcurl that are no evidence against the server: a deadline that is shorter than the
 * server usually takes, no descriptor for the socket, a name that does not resolve. The breaker stays closed for a
 * patient caller. A server that hangs is noticed. */
#include "live_call.h"

#include <bide/breaker.h>
#include <bide/clock.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define IMPATIENT 20u
#define LABEL_64  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NO_NAME   "http://" LABEL_64 ".invalid/" /* a label may have 63 bytes: no resolver is contacted */

/* A breaker that opens at the tenth consecutive failure, and calls of one attempt. */
static void votes_open(struct live_call *c, const char *script)
{
    struct bide_target_config config;
    live_call_open(c, script, 1);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = IMPATIENT / 2;
    config.breaker.open_ns = config.breaker.open_max_ns = BIDE_MINUTE;
    assert_int_equal(bide_target_init(&c->target, &config, bide_now(), NULL), BIDE_OK);
}

static enum bide_breaker_state breaker_state(const struct live_call *c)
{
    return bide_target_get(&c->target, bide_now()).breaker.state;
}

/* Performs a call that the deadline cuts. */
static void perform_impatient(struct live_call *c, const char *path, int64_t limit_ns)
{
    c->options.deadline_ns = bide_now() + limit_ns;
    assert_int_equal(live_call_perform(c, path), CURLE_OPERATION_TIMEDOUT);
    c->options.deadline_ns = 0;
}

static void impatient_callers_do_not_open_the_breaker_of_a_slow_server(void **state)
{
    struct live_call c;
    votes_open(&c, "/slow delay=400ms 200 body=fine");
    assert_int_equal(live_call_perform(&c, "/slow"), CURLE_OK);
    for (uint32_t i = 0; i < IMPATIENT; i++)
        perform_impatient(&c, "/slow", 5 * BIDE_MS);
    assert_int_equal(breaker_state(&c), BIDE_BREAKER_CLOSED);
    assert_int_equal(live_call_perform(&c, "/slow"), CURLE_OK);
    live_call_close(&c);
}

/* The same before any success: nothing is known about the server yet. */
static void impatient_callers_do_not_open_the_breaker_of_an_unknown_server(void **state)
{
    struct live_call c;
    votes_open(&c, "/slow delay=400ms 200 body=fine");
    for (uint32_t i = 0; i < IMPATIENT; i++)
        perform_impatient(&c, "/slow", 5 * BIDE_MS);
    assert_int_equal(breaker_state(&c), BIDE_BREAKER_CLOSED);
    assert_int_equal(live_call_perform(&c, "/slow"), CURLE_OK);
    live_call_close(&c);
}

/* The first success includes the connection, and a busy machine may delay it: the limit is a multiple of it. */
static void impatient_callers_notice_a_server_that_hangs(void **state)
{
    struct live_call c;
    votes_open(&c, "/fast 200 body=fine\n/hangs delay=never");
    int64_t before_ns = bide_now();
    assert_int_equal(live_call_perform(&c, "/fast"), CURLE_OK);
    int64_t limit_ns = 2 * (bide_now() - before_ns) + 10 * BIDE_MS;
    for (uint32_t i = 0; i < IMPATIENT / 2; i++)
        perform_impatient(&c, "/hangs", limit_ns);
    assert_int_equal(breaker_state(&c), BIDE_BREAKER_OPEN);
    live_call_close(&c);
}

static void use_up_descriptors(void)
{
    struct rlimit limit = {64, 64};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(2);
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}

/* In a child, which exits with 0 if the calls failed as expected and cast no vote. First a refused connection, whose
 * errno libcurl keeps: it must not be taken for that of the next attempt. */
static void fail_without_descriptors(struct live_call *c, const char *refused)
{
    if (live_call_perform_url(c, refused) != CURLE_COULDNT_CONNECT)
        _exit(3);
    use_up_descriptors();
    for (uint32_t i = 0; i < IMPATIENT; i++)
        if (live_call_perform(c, "/a") != CURLE_COULDNT_CONNECT ||
            c->result.attempt[0].evidence != BIDE_EVIDENCE_NOT_SENT)
            _exit(4);
    _exit(breaker_state(c) == BIDE_BREAKER_CLOSED ? 0 : 5);
}

static void a_process_without_descriptors_does_not_open_the_breaker(void **state)
{
    struct live_call c;
    struct live_trap refuser;
    int status = -1;
    votes_open(&c, "/a 200 body=fine");
    live_refuser_open(&refuser);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        fail_without_descriptors(&c, refuser.url);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    live_trap_close(&refuser);
    live_call_close(&c);
}

static void a_refused_connection_votes(void **state)
{
    struct live_call c;
    struct live_trap refuser;
    votes_open(&c, "");
    live_refuser_open(&refuser);
    for (uint32_t i = 0; i < IMPATIENT / 2; i++)
        assert_int_equal(live_call_perform_url(&c, refuser.url), CURLE_COULDNT_CONNECT);
    assert_int_equal(breaker_state(&c), BIDE_BREAKER_OPEN);
    live_trap_close(&refuser);
    live_call_close(&c);
}

static void a_name_that_does_not_resolve_does_not_open_the_breaker(void **state)
{
    struct live_call c;
    votes_open(&c, "");
    for (uint32_t i = 0; i < IMPATIENT; i++)
        assert_int_equal(live_call_perform_url(&c, NO_NAME), CURLE_COULDNT_RESOLVE_HOST);
    curl_easy_setopt(c.easy, CURLOPT_PROXY, NO_NAME);
    for (uint32_t i = 0; i < IMPATIENT; i++)
        assert_int_equal(live_call_perform_url(&c, "http://127.0.0.1/"), CURLE_COULDNT_RESOLVE_PROXY);
    assert_int_equal(breaker_state(&c), BIDE_BREAKER_CLOSED);
    live_call_close(&c);
}

static void a_call_without_a_target_meets_no_breaker(void **state)
{
    struct live_call c;
    votes_open(&c, "");
    assert_int_equal(bide_targets_new(&c.options.targets, 10, NULL, NULL), BIDE_OK);
    for (uint32_t i = 0; i < 2 * IMPATIENT; i++) {
        curl_easy_setopt(c.easy, CURLOPT_URL, "http://127.0.0.1:1/");
        assert_int_equal(bide_curl_perform(c.easy, BIDE_NO_TARGET, &c.options, &c.result), CURLE_COULDNT_CONNECT);
    }
    assert_int_equal(bide_targets_view_get(c.options.targets).held, 0);
    bide_targets_free(c.options.targets);
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impatient_callers_do_not_open_the_breaker_of_a_slow_server),
        cmocka_unit_test(impatient_callers_do_not_open_the_breaker_of_an_unknown_server),
        cmocka_unit_test(impatient_callers_notice_a_server_that_hangs),
        cmocka_unit_test(a_process_without_descriptors_does_not_open_the_breaker),
        cmocka_unit_test(a_refused_connection_votes),
        cmocka_unit_test(a_name_that_does_not_resolve_does_not_open_the_breaker),
        cmocka_unit_test(a_call_without_a_target_meets_no_breaker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
