/* test_faults.c - a fleet with a Redis that refuses, sends invalid or late replies or garbage, or redirects.
 *
 * Redis is faked (live_fleet.h), so that each reply is exactly as the test says. The floors of the targets are 0 unless
 * the test sets them, so a token in a target came from an accepted reply. */
#define _GNU_SOURCE
#include "live_fleet.h"

#include "core/gates.h"
#include "fleet/fleet_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A member of a fleet. */
struct member {
    struct bide_target target;
    struct bide_fleet *fleet;
    struct live_reports reports;
};

static void member_join(struct member *m, const char *url, uint32_t per_minute_milli)
{
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->reports.lock, NULL);
    live_fleet_target(&m->target, per_minute_milli);
    m->fleet = live_fleet_open(url, &m->reports);
    live_fleet_join(m->fleet, "payments", &m->target);
}

static struct bide_fleet_view view_of(struct member *m)
{
    return live_fleet_get(m->fleet, &m->target);
}

static int64_t left_milli(struct member *m)
{
    return bide_target_get(&m->target, bide_now()).budget_left_milli;
}

/* ---- errors and garbage ---- */

#define TIMEOUT_LONG "?timeout=20000" /* for busy machines */

static void assert_disconnected_then_recovers(const char *bytes, const char *expected, const char *options)
{
    struct live_fake_redis fake = {.respond = live_fake_reply_text, .text = bytes, .granted_milli = 5000};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, options), 0);
    EVENTUALLY(view_of(&m).failures >= 3);
    EVENTUALLY(live_reports_count(&m.reports) > 0);
    assert_false(view_of(&m).connected);
    assert_true(view_of(&m).disconnected_ns > 0);
    assert_int_equal(left_milli(&m), 0);
    assert_int_equal(live_reports_count(&m.reports), 1);
    if (!live_reports_contain(&m.reports, expected) ||
        !live_reports_contain(&m.reports, "retries go on at 0 a minute for payments"))
        fail_msg("reported for %.20s: %s", bytes, m.reports.text[0]);
    live_fake_change(&fake, live_fake_reply, NULL);
    EVENTUALLY(view_of(&m).connected && left_milli(&m) >= 1000);
    EVENTUALLY(live_reports_contain(&m.reports, "reached again"));
    assert_int_equal(live_reports_count(&m.reports), 2);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

static void every_error_reply_is_reported_and_survived(void **state)
{
    static const char *const refusals[] = {
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "CLUSTERDOWN Hash slot not served",
        "MASTERDOWN Link with MASTER is down",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "NOAUTH Authentication required.",
        "WRONGPASS invalid username-password pair",
        "NOPERM this user has no permissions to run the 'evalsha' command",
        "ASK 3999 127.0.0.1:6381",
        "MOVED 3999",
        "MOVED 3999 nowhere:123456",
        "ERR max number of clients reached",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        char bytes[128];
        snprintf(bytes, sizeof bytes, "-%s\r\n", refusals[i]);
        assert_disconnected_then_recovers(bytes, refusals[i], TIMEOUT_LONG);
    }
}

static unsigned connections_for_three_failures(const char *bytes)
{
    struct live_fake_redis fake = {.respond = live_fake_reply_text, .text = bytes};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    EVENTUALLY(view_of(&m).failures >= 3);
    unsigned connections = live_fake_connections(&fake);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
    return connections;
}

static void connection_is_closed_after_errors_that_would_repeat(void **state)
{
    assert_int_equal(connections_for_three_failures("-BUSY with a script\r\n"), 1);
    assert_true(connections_for_three_failures("-READONLY a replica\r\n") >= 3);
    assert_true(connections_for_three_failures("-NOPERM for you\r\n") >= 3);
    assert_true(connections_for_three_failures("+OK\r\n") >= 3);
}

static void problem_names_the_error_after_which_the_connection_was_closed(void **state)
{
    struct live_fake_redis fake = {.respond = live_fake_reply_text,
                                   .text = "-READONLY You can't write against a read only replica.\r\n"};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    for (unsigned i = 1; i <= 3; i++) {
        EVENTUALLY(live_fake_connections(&fake) > i && view_of(&m).failures >= i);
        assert_non_null(strstr(view_of(&m).problem, "READONLY"));
    }
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

static void garbage_is_survived(void **state)
{
    static const char *const garbage[][2] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"},
        {"*1000000\r\n", ""},
        {"*3\r\n:1\r\n:2\r\n:3\r\n", "something else than"},
        {"*1\r\n*1\r\n:1\r\n", ""},
        {":5\r\n", "something else than"},
        {"+OK\r\n", "something else than"},
        {"$-1\r\n", "something else than"},
        {"\xff\xfe\xfd\xfc\xfb", ""},
        {"", "closed"},
    };
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++)
        assert_disconnected_then_recovers(garbage[i][0], garbage[i][1], TIMEOUT_LONG);
}

static void endless_reply_times_out(void **state)
{
    assert_disconnected_then_recovers("$1073741824\r\n", "in time", "?timeout=200");
    assert_disconnected_then_recovers("*14\r\n:1\r\n", "in time", "?timeout=200");
}

/* ---- invalid replies ---- */

static bool reply_with_one_wrong_number(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                        unsigned n)
{
    const size_t *field = fake->context;
    struct lease_reply reply = live_fake_good_reply(fake, &request->request);
    int64_t number[LEASE_REPLY_FIELD_COUNT];
    memcpy(number, &reply, sizeof number);
    number[*field] = n % 2 == 0 ? -1 : INT64_MAX;
    memcpy(&reply, number, sizeof number);
    return live_fake_write_reply(fd, &reply);
}

static void reply_with_one_number_out_of_range_is_rejected(void **state)
{
    for (size_t field = 0; field < LEASE_REPLY_FIELD_COUNT; field++) {
        struct live_fake_redis fake = {
            .respond = reply_with_one_wrong_number, .context = &field, .granted_milli = 5000};
        struct member m;
        live_fake_start(&fake);
        member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
        EVENTUALLY(view_of(&m).failures >= 2);
        assert_int_equal(left_milli(&m), 0);
        assert_int_equal(view_of(&m).granted_milli, 0);
        EVENTUALLY(live_reports_contain(&m.reports, "wrong number"));
        bide_fleet_close(m.fleet);
        live_fake_free(&fake);
    }
}

static bool grant_more_than_wanted(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                   unsigned n)
{
    struct lease_reply reply = live_fake_good_reply(fake, &request->request);
    reply.granted_milli = request->request.wanted_milli + 1;
    return live_fake_write_reply(fd, &reply);
}

static void grant_above_the_request_is_rejected(void **state)
{
    struct live_fake_redis fake = {.respond = grant_more_than_wanted};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    EVENTUALLY(view_of(&m).failures >= 2);
    assert_int_equal(left_milli(&m), 0);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* ---- late replies ---- */

/* Replies to the first request only after its failure, and then grants. */
static bool reply_late_to_the_first(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                    unsigned number)
{
    struct member *m = fake->context;
    struct lease_reply reply = live_fake_good_reply(fake, &request->request);
    if (number > 1)
        reply.granted_milli = 0;
    else
        EVENTUALLY(__atomic_load_n(&m->fleet, __ATOMIC_ACQUIRE) != NULL && view_of(m).failures > 0);
    return live_fake_write_reply(fd, &reply);
}

static void reply_after_the_timeout_is_never_applied(void **state)
{
    struct member m;
    struct live_fake_redis fake = {.respond = reply_late_to_the_first, .context = &m, .granted_milli = 5000};
    memset(&m, 0, sizeof m);
    pthread_mutex_init(&m.reports.lock, NULL);
    live_fake_start(&fake);
    live_fleet_target(&m.target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_fake_url(&fake, "?timeout=100"), &m.reports);
    live_fleet_join(fleet, "payments", &m.target);
    __atomic_store_n(&m.fleet, fleet, __ATOMIC_RELEASE);
    EVENTUALLY(view_of(&m).exchanges >= 3);
    assert_int_equal(view_of(&m).granted_milli, 0);
    assert_int_equal(left_milli(&m), 0);
    assert_true(live_reports_contain(&m.reports, "in time"));
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* ---- leaving ---- */

/* Replies to the first request only after the member has left. */
static bool reply_after_leaving(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                unsigned number)
{
    const bool *left = fake->context;
    if (number == 1)
        EVENTUALLY(__atomic_load_n(left, __ATOMIC_ACQUIRE));
    return live_fake_reply(fake, fd, request, number);
}

/* The other processes keep the target, so the bucket must still count it: seen_serial is 0. */
static void shared_member_returns_tokens_granted_after_it_left(void **state)
{
    bool left = false;
    struct live_fake_redis fake = {.respond = reply_after_leaving, .context = &left, .granted_milli = 5000};
    struct bide_target target;
    live_fake_start(&fake);
    live_fleet_target(&target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_fake_url(&fake, TIMEOUT_LONG), NULL);
    target.identity |= CORE_SHARED;
    assert_int_equal(bide_fleet_join(fleet, "payments", &target, NULL), BIDE_OK);
    EVENTUALLY(live_fake_requests(&fake) == 1);
    bide_fleet_leave(fleet, &target);
    __atomic_store_n(&left, true, __ATOMIC_RELEASE);
    EVENTUALLY(live_fake_requests(&fake) == 2);
    const struct lease_request *first = &fake.request[0].request, *final = &fake.request[1].request;
    assert_int_equal(first->wanted_milli, 3000);
    assert_int_equal(final->leaving, 1);
    assert_int_equal(final->returned_milli, 3000);
    assert_int_equal(final->seen_serial, 0);
    assert_int_equal(bide_target_get(&target, bide_now()).budget_left_milli, 0);
    bide_fleet_close(fleet);
    live_fake_free(&fake);
}

/* The retry that the member made before Redis replied is repaid. */
static void final_request_returns_the_grant_without_the_spent_advance(void **state)
{
    bool left = false;
    struct live_fake_redis fake = {.respond = reply_after_leaving, .context = &left, .granted_milli = 5000};
    struct bide_target target;
    live_fake_start(&fake);
    live_fleet_target(&target, 1);
    struct bide_fleet *fleet = live_fleet_open(live_fake_url(&fake, TIMEOUT_LONG), NULL);
    live_fleet_join(fleet, "payments", &target);
    assert_true(live_fleet_fail(&target));
    EVENTUALLY(live_fake_requests(&fake) == 1);
    bide_fleet_leave(fleet, &target);
    __atomic_store_n(&left, true, __ATOMIC_RELEASE);
    EVENTUALLY(live_fake_requests(&fake) == 2);
    const struct lease_request *first = &fake.request[0].request, *final = &fake.request[1].request;
    assert_int_equal(final->leaving, 1);
    assert_int_equal(final->returned_milli, first->wanted_milli - 1000);
    bide_fleet_close(fleet);
    live_fake_free(&fake);
}

/* ---- sent at most once ---- */

/* Refuses the first request that reports something, replies to all others. */
static bool refuse_first_report(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                unsigned number)
{
    bool *refused = fake->context;
    if (request->request.firsts == 0 || *refused)
        return live_fake_reply(fake, fd, request, number);
    *refused = true;
    static const char busy[] = "-BUSY Redis is busy running a script.\r\n";
    return live_tcp_write(fd, busy, sizeof busy - 1);
}

static void failed_request_is_not_sent_again(void **state)
{
    bool refused = false;
    struct live_fake_redis fake = {.respond = refuse_first_report, .context = &refused, .granted_milli = 5000};
    struct member m;
    int64_t firsts = 0;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    EVENTUALLY(view_of(&m).exchanges >= 1);
    live_fleet_succeed(&m.target);
    EVENTUALLY(view_of(&m).failures == 1);
    uint64_t before = view_of(&m).exchanges;
    EVENTUALLY(view_of(&m).exchanges >= before + 3);
    bide_fleet_close(m.fleet);
    live_tcp_free(fake.server);
    for (unsigned i = 0; i < fake.requests; i++)
        firsts += fake.request[i].request.firsts;
    assert_int_equal(firsts, 1);
    fake.server = NULL;
    live_fake_free(&fake);
}

static bool reply_noscript(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                           unsigned number)
{
    static const char noscript[] = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    const bool *always = fake->context;
    if (strcmp(request->word, "EVAL") == 0 && !*always)
        return live_fake_reply(fake, fd, request, number);
    return live_tcp_write(fd, noscript, sizeof noscript - 1);
}

/* Each request with EVALSHA is followed by the same request with EVAL. */
static void assert_sent_in_pairs(const struct live_fake_redis *fake, unsigned asks)
{
    for (unsigned i = 0; i + 1 < asks; i += 2) {
        assert_string_equal(fake->request[i].word, "EVALSHA");
        assert_string_equal(fake->request[i + 1].word, "EVAL");
        assert_string_equal(fake->request[i].key, fake->request[i + 1].key);
        assert_memory_equal(&fake->request[i].request, &fake->request[i + 1].request, sizeof fake->request[i].request);
    }
}

static void noscript_resends_the_same_request_with_the_script_text(void **state)
{
    bool always = false;
    struct live_fake_redis fake = {.respond = reply_noscript, .context = &always, .granted_milli = 5000};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    EVENTUALLY(view_of(&m).exchanges >= 3);
    assert_int_equal(view_of(&m).failures, 0);
    assert_int_equal(live_reports_count(&m.reports), 0);
    assert_sent_in_pairs(&fake, 6);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

static void noscript_for_the_script_text_is_a_failure(void **state)
{
    bool always = true;
    struct live_fake_redis fake = {.respond = reply_noscript, .context = &always, .granted_milli = 5000};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    EVENTUALLY(view_of(&m).failures >= 3);
    assert_int_equal(view_of(&m).exchanges, 0);
    assert_sent_in_pairs(&fake, 6);
    EVENTUALLY(live_reports_contain(&m.reports, "NOSCRIPT"));
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* ---- -MOVED ---- */

static bool reply_moved_to_port(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                unsigned number)
{
    char text[64];
    const unsigned *port = fake->context;
    unsigned to = port[strstr(request->key, "{two}") != NULL];
    int length = snprintf(text, sizeof text, "-MOVED 3999 127.0.0.1:%u\r\n", to);
    return live_tcp_write(fd, text, (size_t)length);
}

static void moved_is_followed_and_its_request_is_lost(void **state)
{
    struct live_fake_redis there = {.granted_milli = 5000};
    live_fake_start(&there);
    unsigned port[2] = {live_tcp_port(there.server)};
    struct live_fake_redis here = {.respond = reply_moved_to_port, .context = port};
    struct member m;
    live_fake_start(&here);
    member_join(&m, live_fake_url(&here, TIMEOUT_LONG), 0);
    EVENTUALLY(view_of(&m).exchanges >= 3 && left_milli(&m) >= 1000);
    assert_int_equal(live_fake_requests(&here), 1);
    assert_int_equal(view_of(&m).failures, 1);
    assert_int_equal(live_reports_count(&m.reports), 0);
    bide_fleet_close(m.fleet);
    live_fake_free(&here);
    live_fake_free(&there);
}

static void members_of_one_fleet_may_use_different_nodes(void **state)
{
    struct live_fake_redis one = {.granted_milli = 5000}, two = {.granted_milli = 5000};
    struct bide_target second;
    live_fake_start(&one);
    live_fake_start(&two);
    unsigned port[2] = {live_tcp_port(one.server), live_tcp_port(two.server)};
    struct live_fake_redis here = {.respond = reply_moved_to_port, .context = port};
    struct member m;
    live_fake_start(&here);
    member_join(&m, live_fake_url(&here, TIMEOUT_LONG), 0);
    live_fleet_target(&second, 0);
    live_fleet_join(m.fleet, "two", &second);
    EVENTUALLY(view_of(&m).exchanges >= 3 && live_fleet_get(m.fleet, &second).exchanges >= 3);
    assert_int_equal(live_fake_requests(&here), 2);
    assert_string_equal(one.request[0].key, "bide:{payments}:1");
    assert_string_equal(two.request[0].key, "bide:{two}:1");
    bide_fleet_close(m.fleet);
    live_fake_free(&here);
    live_fake_free(&one);
    live_fake_free(&two);
}

static void unreachable_node_returns_its_members_to_the_url(void **state)
{
    struct live_fake_redis gone = {0};
    live_fake_start(&gone);
    unsigned port[2] = {live_tcp_port(gone.server)};
    live_fake_free(&gone);
    struct live_fake_redis here = {.respond = reply_moved_to_port, .context = port, .granted_milli = 5000};
    struct member m;
    live_fake_start(&here);
    member_join(&m, live_fake_url(&here, TIMEOUT_LONG), 0);
    EVENTUALLY(live_fake_requests(&here) >= 2);
    EVENTUALLY(live_reports_contain(&m.reports, "moved to"));
    live_fake_change(&here, live_fake_reply, NULL);
    EVENTUALLY(view_of(&m).connected && left_milli(&m) >= 1000);
    bide_fleet_close(m.fleet);
    live_fake_free(&here);
}

static bool reply_with_longest_interval(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                        unsigned number)
{
    struct lease_reply reply = live_fake_good_reply(fake, &request->request);
    reply.next_ms = LEASE_INTERVAL_MAX_MS;
    return live_fake_write_reply(fd, &reply);
}

static bool reply_moved_for_payments(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                     unsigned number)
{
    bool moved = strstr(request->key, "{payments}") != NULL;
    return moved ? reply_moved_to_port(fake, fd, request, number)
                 : reply_with_longest_interval(fake, fd, request, number);
}

/* The member leaves in the middle of a turn, after the thread has processed its reply: then no member uses the node's
 * connection, but the final request must still be sent on it. Many idle members make the turns long. */
static void leaving_a_node_during_a_turn_is_safe(void **state)
{
    static struct bide_target idle[400];
    struct live_fake_redis there = {.granted_milli = 5000};
    live_fake_start(&there);
    unsigned port[2] = {live_tcp_port(there.server)};
    struct live_fake_redis here = {.respond = reply_moved_for_payments, .context = port};
    struct member m;
    live_fake_start(&here);
    member_join(&m, live_fake_url(&here, TIMEOUT_LONG), 0);
    for (unsigned i = 0; i < sizeof idle / sizeof *idle; i++) {
        live_fleet_target(&idle[i], 0);
        live_fleet_join(m.fleet, "idle", &idle[i]);
    }
    for (int i = 0; i < 60; i++) {
        for (int64_t until_ns = bide_now() + LIVE_FLEET_WAIT_MAX_NS;
             view_of(&m).exchanges == 0;) /* as early as possible */
            assert_true(bide_now() < until_ns);
        bide_fleet_leave(m.fleet, &m.target);
        live_fleet_join(m.fleet, "payments", &m.target);
    }
    bide_fleet_close(m.fleet);
    live_fake_free(&here);
    live_fake_free(&there);
}

static bool reply_moved_to_text(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                unsigned number)
{
    char text[64];
    int length = snprintf(text, sizeof text, "-MOVED 3999 %s\r\n", (const char *)fake->context);
    return live_tcp_write(fd, text, (size_t)length);
}

/* Redis does so if it does not know its own name: the client knows which host replied. */
static void moved_without_a_host_means_the_replying_host(void **state)
{
    char to_second[32], to_third[16], want[64];
    struct live_fake_redis gone = {0}, second = {.respond = reply_moved_to_text, .context = to_third};
    struct live_fake_redis first = {.respond = reply_moved_to_text, .context = to_second};
    struct bide_problem problem = {0};
    struct bide_fleet_bucket bucket;
    struct member m;
    live_fake_start(&gone);
    snprintf(to_third, sizeof to_third, ":%u", live_tcp_port(gone.server));
    live_fake_free(&gone);
    live_fake_start(&second);
    snprintf(to_second, sizeof to_second, "localhost:%u", live_tcp_port(second.server));
    live_fake_start(&first);
    member_join(&m, live_fake_url(&first, TIMEOUT_LONG), 0);
    snprintf(want, sizeof want, "moved to localhost%s", to_third);
    live_fleet_report_every(0);
    EVENTUALLY(live_reports_contain(&m.reports, want));
    live_fleet_retry_quickly();
    bide_fleet_close(m.fleet);
    assert_int_equal(bide_fleet_read(live_fake_url(&first, TIMEOUT_LONG), "payments", &bucket, &problem),
                     BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, want));
    live_fake_free(&first);
    live_fake_free(&second);
}

/* A password that is part of a Redis error is masked in reports, but not where the error is parsed. */
static void password_inside_a_redis_error_does_not_hide_the_error(void **state)
{
    bool always = false;
    struct live_fake_redis there = {.respond = reply_noscript, .context = &always, .granted_milli = 5000};
    live_fake_start(&there);
    unsigned port[2] = {live_tcp_port(there.server)};
    for (unsigned i = 0; i < 2; i++) {
        struct live_fake_redis here = {.respond = reply_moved_to_port, .context = port};
        struct member m;
        char url[128];
        live_fake_start(&here);
        snprintf(url, sizeof url, "redis://:%s@127.0.0.1:%u" TIMEOUT_LONG, i == 0 ? "127" : "SCRIPT",
                 live_tcp_port(here.server));
        member_join(&m, url, 0);
        EVENTUALLY(view_of(&m).exchanges >= 2);
        assert_int_equal(view_of(&m).failures, 1);
        bide_fleet_close(m.fleet);
        live_fake_free(&here);
    }
    live_fake_free(&there);
}

/* ---- large fleets ---- */

static bool reply_for_a_large_fleet(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                    unsigned number)
{
    const int64_t *members = fake->context;
    struct lease_reply reply = live_fake_good_reply(fake, &request->request);
    reply.members = *members;
    reply.next_ms = LEASE_INTERVAL_MAX_MS;
    return live_fake_write_reply(fd, &reply);
}

static unsigned connections_for_three_exchanges(int64_t members)
{
    struct live_fake_redis fake = {.respond = reply_for_a_large_fleet, .context = &members};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    EVENTUALLY((live_fleet_fail(&m.target), view_of(&m).exchanges >= 3));
    unsigned connections = live_fake_connections(&fake);
    assert_int_equal(view_of(&m).failures, 0);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
    return connections;
}

static void large_idle_fleet_closes_connections_between_exchanges(void **state)
{
    assert_int_equal(connections_for_three_exchanges(10), 1);
    assert_true(connections_for_three_exchanges(10000) >= 3);
}

/* ---- reports ---- */

static void repeated_failures_are_reported_once(void **state)
{
    struct live_fake_redis fake = {.respond = live_fake_reply_text, .text = "-LOADING it\r\n"};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 1500);
    EVENTUALLY(view_of(&m).failures >= 20);
    assert_int_equal(live_reports_count(&m.reports), 1);
    assert_true(live_reports_contain(&m.reports, "retries go on at 1.5 a minute for payments"));
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

static void suppressed_reports_are_counted(void **state)
{
    struct live_fake_redis fake = {.respond = live_fake_reply_text, .text = "-LOADING it\r\n"};
    struct member m;
    live_fake_start(&fake);
    live_fleet_report_every(BIDE_S);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    EVENTUALLY(live_reports_count(&m.reports) >= 2);
    assert_true(live_reports_contain(&m.reports, " more failures since the last report)"));
    assert_true(view_of(&m).failures > 2);
    bide_fleet_close(m.fleet);
    live_fleet_retry_quickly();
    live_fake_free(&fake);
}

static struct member reporting;

static void leave_and_join(void *context, const char *text)
{
    live_reports_add(&reporting.reports, text);
    if (strstr(text, "is a new fleet budget") != NULL)
        return; /* also while the fleet is closed, when the member has left */
    view_of(&reporting);
    bide_fleet_leave(reporting.fleet, &reporting.target);
    live_fleet_join(reporting.fleet, "payments", &reporting.target);
    __atomic_add_fetch((unsigned *)context, 1, __ATOMIC_SEQ_CST);
}

static void report_callback_may_get_leave_and_join(void **state)
{
    struct live_fake_redis fake = {
        .respond = live_fake_reply_text, .text = "-BUSY with a script\r\n", .granted_milli = 5000};
    unsigned rejoined = 0;
    struct bide_fleet_options options = {.report = leave_and_join, .context = &rejoined};
    reporting = (struct member){.reports = LIVE_REPORTS};
    live_fake_start(&fake);
    live_fleet_target(&reporting.target, 0);
    assert_int_equal(bide_fleet_open(&reporting.fleet, live_fake_url(&fake, TIMEOUT_LONG), &options, NULL), BIDE_OK);
    live_fleet_join(reporting.fleet, "payments", &reporting.target);
    EVENTUALLY(__atomic_load_n(&rejoined, __ATOMIC_SEQ_CST) == 1);
    live_fake_change(&fake, live_fake_reply, NULL);
    EVENTUALLY(__atomic_load_n(&rejoined, __ATOMIC_SEQ_CST) == 2); /* between leaving and joining there is no view */
    assert_true(live_reports_contain(&reporting.reports, "reached again"));
    EVENTUALLY(view_of(&reporting).connected);
    assert_int_equal(live_reports_count(&reporting.reports), 2);
    bide_fleet_close(reporting.fleet);
    live_fake_free(&fake);
}

/* The floor starts at a random instant, up to a minute later. Until then the lease end is in the future, but the member
 * is not connected. */
static void failing_member_is_not_connected(void **state)
{
    struct live_fake_redis fake = {.granted_milli = 5000};
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 1);
    EVENTUALLY(view_of(&m).connected);
    live_fake_change(&fake, live_fake_reply_text, "-BUSY with a script\r\n");
    EVENTUALLY(view_of(&m).failures > 0);
    assert_false(view_of(&m).connected);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* The other member had a reply before, which says nothing about now. */
static void leaving_of_the_failing_member_is_not_reported_as_recovery(void **state)
{
    struct live_fake_redis fake = {.respond = reply_with_longest_interval};
    struct bide_target second;
    struct member m;
    live_fake_start(&fake);
    member_join(&m, live_fake_url(&fake, TIMEOUT_LONG), 0);
    EVENTUALLY(view_of(&m).exchanges == 1);
    live_fake_change(&fake, live_fake_reply_text, "-BUSY with a script\r\n");
    live_fleet_target(&second, 0);
    live_fleet_join(m.fleet, "two", &second);
    EVENTUALLY(live_reports_count(&m.reports) == 1);
    bide_fleet_leave(m.fleet, &second);
    EVENTUALLY((live_fleet_fail(&m.target), view_of(&m).failures > 0));
    assert_int_equal(live_reports_count(&m.reports), 1);
    live_fake_change(&fake, live_fake_reply, NULL);
    EVENTUALLY(live_reports_contain(&m.reports, "reached again"));
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* On a shared target. The other process is simulated here. */
static void only_success_of_another_process_is_reported_as_recovery(void **state)
{
    struct live_fake_redis fake = {.respond = live_fake_reply_text, .text = "-BUSY with a script\r\n"};
    struct bide_target second;
    struct member m = {.reports = LIVE_REPORTS};
    live_fake_start(&fake);
    live_fleet_target(&m.target, 1);
    m.fleet = live_fleet_open(live_fake_url(&fake, TIMEOUT_LONG), &m.reports);
    m.target.identity |= CORE_SHARED;
    assert_int_equal(bide_fleet_join(m.fleet, "payments", &m.target, NULL), BIDE_OK);
    EVENTUALLY(live_reports_count(&m.reports) == 1);
    EVENTUALLY((core_lease_claim(&m.target, m.fleet->claimant_id, 0, bide_now()),
                core_lease_claim(&m.target, m.fleet->claimant_id + 1, bide_now() + 60 * BIDE_MINUTE, bide_now())));
    EVENTUALLY(!view_of(&m).exchanger);
    live_fleet_target(&second, 0);
    live_fleet_join(m.fleet, "two", &second);
    EVENTUALLY(live_fleet_get(m.fleet, &second).failures > 0);
    bide_fleet_leave(m.fleet, &second);
    assert_int_equal(live_reports_count(&m.reports), 1);
    assert_false(view_of(&m).connected);
    core_lease_extend(&m.target, bide_now() + 60 * BIDE_MINUTE, bide_now()); /* as a reply does */
    core_lease_memo_set(&m.target, (struct core_lease_memo){.progress = UINT64_C(1) << 1});
    EVENTUALLY(live_reports_contain(&m.reports, "reached again"));
    assert_true(view_of(&m).connected);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* Redis quotes the arguments of an unknown command. */
static void no_report_contains_the_password(void **state)
{
    struct live_fake_redis fake = {.greeting =
                                       "-ERR unknown command 'AUTH', with args beginning with: 'me' 'hush-hush'\r\n"};
    struct member m;
    char url[128];
    live_fake_start(&fake);
    snprintf(url, sizeof url, "redis://me:hush-hush@127.0.0.1:%u", live_tcp_port(fake.server));
    member_join(&m, url, 0);
    EVENTUALLY(view_of(&m).failures >= 2);
    EVENTUALLY(live_reports_count(&m.reports) == 1);
    assert_true(live_reports_contain(&m.reports, "AUTH"));
    assert_false(live_reports_contain(&m.reports, "hush-hush"));
    bide_fleet_close(m.fleet);

    struct bide_problem problem = {0};
    struct bide_fleet_bucket bucket;
    assert_int_equal(bide_fleet_read(url, "payments", &bucket, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, "AUTH"));
    assert_null(strstr(problem.text, "hush-hush"));
    live_fake_free(&fake);
}

int main(void)
{
    live_fleet_retry_quickly();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_reply_is_reported_and_survived),
        cmocka_unit_test(connection_is_closed_after_errors_that_would_repeat),
        cmocka_unit_test(problem_names_the_error_after_which_the_connection_was_closed),
        cmocka_unit_test(garbage_is_survived),
        cmocka_unit_test(endless_reply_times_out),
        cmocka_unit_test(reply_with_one_number_out_of_range_is_rejected),
        cmocka_unit_test(grant_above_the_request_is_rejected),
        cmocka_unit_test(reply_after_the_timeout_is_never_applied),
        cmocka_unit_test(shared_member_returns_tokens_granted_after_it_left),
        cmocka_unit_test(failed_request_is_not_sent_again),
        cmocka_unit_test(noscript_resends_the_same_request_with_the_script_text),
        cmocka_unit_test(noscript_for_the_script_text_is_a_failure),
        cmocka_unit_test(moved_is_followed_and_its_request_is_lost),
        cmocka_unit_test(members_of_one_fleet_may_use_different_nodes),
        cmocka_unit_test(unreachable_node_returns_its_members_to_the_url),
        cmocka_unit_test(final_request_returns_the_grant_without_the_spent_advance),
        cmocka_unit_test(leaving_a_node_during_a_turn_is_safe),
        cmocka_unit_test(moved_without_a_host_means_the_replying_host),
        cmocka_unit_test(password_inside_a_redis_error_does_not_hide_the_error),
        cmocka_unit_test(large_idle_fleet_closes_connections_between_exchanges),
        cmocka_unit_test(repeated_failures_are_reported_once),
        cmocka_unit_test(suppressed_reports_are_counted),
        cmocka_unit_test(report_callback_may_get_leave_and_join),
        cmocka_unit_test(failing_member_is_not_connected),
        cmocka_unit_test(leaving_of_the_failing_member_is_not_reported_as_recovery),
        cmocka_unit_test(only_success_of_another_process_is_reported_as_recovery),
        cmocka_unit_test(no_report_contains_the_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
