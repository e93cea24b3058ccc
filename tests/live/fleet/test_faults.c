/* test_fleet_faults.c - a fleet whose Redis refuses, lies, talks nonsense, answers late or points elsewhere.
 *
 * The other side is pretended (live_fleet.h), so that each answer is exactly what the test says. The floors of the
 * targets are nothing unless said otherwise: whatever token is there came from an answer that was believed. */
#define _GNU_SOURCE
#include "live_fleet.h"

#include "fleet/fleet_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* One member of a fleet. */
struct member {
    struct bide_target target;
    struct bide_fleet *fleet;
    struct live_told told;
};

static void join(struct member *m, const char *url, uint32_t per_minute_milli)
{
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->told.lock, NULL);
    live_fleet_target(&m->target, per_minute_milli);
    m->fleet = live_fleet_open(url, &m->told);
    live_fleet_join(m->fleet, "payments", &m->target);
}

static struct bide_fleet_view look(struct member *m)
{
    return live_fleet_look(m->fleet, &m->target);
}

static int64_t left(struct member *m)
{
    return bide_budget_left_milli(&m->target, bide_now());
}

/* ---- what is not an answer ---- */

#define PATIENT "?timeout=20000" /* a busy machine is not what is tested */

static void assert_goes_on_alone(const char *bytes, const char *said, const char *options)
{
    struct live_fake fake = {.say = live_fake_text, .text = bytes, .granted_milli = 5000};
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, options), 0);
    EVENTUALLY(look(&m).failures >= 3);
    EVENTUALLY(live_told_count(&m.told) > 0);
    assert_false(look(&m).connected);
    assert_true(look(&m).disconnected_ns > 0);
    assert_int_equal(left(&m), 0);
    assert_int_equal(live_told_count(&m.told), 1);
    if (!live_told_has(&m.told, said) || !live_told_has(&m.told, "retries go on at 0 a minute for payments"))
        fail_msg("told of %.20s: %s", bytes, m.told.text[0]);
    live_fake_change(&fake, live_fake_answer, NULL);
    EVENTUALLY(look(&m).connected && left(&m) >= 1000);
    EVENTUALLY(live_told_has(&m.told, "reached again"));
    assert_int_equal(live_told_count(&m.told), 2);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

static void every_refusal_is_told_by_its_words_and_survived(void **state)
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
        assert_goes_on_alone(bytes, refusals[i], PATIENT);
    }
}

static unsigned connections_for_three_failures(const char *bytes)
{
    struct live_fake fake = {.say = live_fake_text, .text = bytes};
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 0);
    EVENTUALLY(look(&m).failures >= 3);
    unsigned connections = live_fake_connections(&fake);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
    return connections;
}

static void a_connection_is_given_up_where_its_next_answer_would_be_no_better(void **state)
{
    assert_int_equal(connections_for_three_failures("-BUSY with a script\r\n"), 1);
    assert_true(connections_for_three_failures("-READONLY a replica\r\n") >= 3);
    assert_true(connections_for_three_failures("-NOPERM for you\r\n") >= 3);
    assert_true(connections_for_three_failures("+OK\r\n") >= 3);
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
        assert_goes_on_alone(garbage[i][0], garbage[i][1], PATIENT);
}

static void a_reply_that_never_ends_is_late(void **state)
{
    assert_goes_on_alone("$1073741824\r\n", "in time", "?timeout=200");
    assert_goes_on_alone("*14\r\n:1\r\n", "in time", "?timeout=200");
}

/* ---- lies ---- */

static bool answer_with_one_wrong_number(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned n)
{
    const size_t *field = fake->context;
    struct lease_answer answer = live_fake_good(fake, &ask->ask);
    int64_t number[LEASE_ANSWER_COUNT];
    memcpy(number, &answer, sizeof number);
    number[*field] = n % 2 == 0 ? -1 : INT64_MAX;
    memcpy(&answer, number, sizeof number);
    return live_fake_write(fd, &answer);
}

static void an_answer_with_one_number_out_of_range_is_not_believed(void **state)
{
    for (size_t field = 0; field < LEASE_ANSWER_COUNT; field++) {
        struct live_fake fake = {.say = answer_with_one_wrong_number, .context = &field, .granted_milli = 5000};
        struct member m;
        live_fake_start(&fake);
        join(&m, live_fake_url(&fake, PATIENT), 0);
        EVENTUALLY(look(&m).failures >= 2);
        assert_int_equal(left(&m), 0);
        assert_int_equal(look(&m).granted_milli, 0);
        EVENTUALLY(live_told_has(&m.told, "wrong number"));
        bide_fleet_close(m.fleet);
        live_fake_free(&fake);
    }
}

static bool grant_more_than_wanted(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned n)
{
    struct lease_answer answer = live_fake_good(fake, &ask->ask);
    answer.granted_milli = ask->ask.want_milli + 1;
    return live_fake_write(fd, &answer);
}

static void more_than_was_wanted_is_not_taken(void **state)
{
    struct live_fake fake = {.say = grant_more_than_wanted};
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 0);
    EVENTUALLY(look(&m).failures >= 2);
    assert_int_equal(left(&m), 0);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* ---- late ---- */

/* Says nothing to the first ask until there is a failure, and then grants. */
static bool answer_the_first_late(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    struct member *m = fake->context;
    struct lease_answer answer = live_fake_good(fake, &ask->ask);
    if (number > 1)
        answer.granted_milli = 0;
    else
        EVENTUALLY(__atomic_load_n(&m->fleet, __ATOMIC_ACQUIRE) != NULL && look(m).failures > 0);
    return live_fake_write(fd, &answer);
}

static void an_answer_after_the_timeout_is_never_applied(void **state)
{
    struct member m;
    struct live_fake fake = {.say = answer_the_first_late, .context = &m, .granted_milli = 5000};
    memset(&m, 0, sizeof m);
    pthread_mutex_init(&m.told.lock, NULL);
    live_fake_start(&fake);
    live_fleet_target(&m.target, 0);
    struct bide_fleet *fleet = live_fleet_open(live_fake_url(&fake, "?timeout=100"), &m.told);
    live_fleet_join(fleet, "payments", &m.target);
    __atomic_store_n(&m.fleet, fleet, __ATOMIC_RELEASE);
    EVENTUALLY(look(&m).exchanges >= 3);
    assert_int_equal(look(&m).granted_milli, 0);
    assert_int_equal(left(&m), 0);
    assert_true(live_told_has(&m.told, "in time"));
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* ---- said once ---- */

/* The first ask that reports something is refused, all others are answered. */
static bool refuse_the_first_report(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    bool *refused = fake->context;
    if (ask->ask.firsts == 0 || *refused)
        return live_fake_answer(fake, fd, ask, number);
    *refused = true;
    static const char busy[] = "-BUSY Redis is busy running a script.\r\n";
    return live_tcp_write(fd, busy, sizeof busy - 1);
}

static void what_was_asked_in_vain_is_spent_and_not_said_again(void **state)
{
    bool refused = false;
    struct live_fake fake = {.say = refuse_the_first_report, .context = &refused, .granted_milli = 5000};
    struct member m;
    int64_t firsts = 0;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 0);
    EVENTUALLY(look(&m).exchanges >= 1);
    live_fleet_succeed(&m.target);
    EVENTUALLY(look(&m).failures == 1);
    uint64_t before = look(&m).exchanges;
    EVENTUALLY(look(&m).exchanges >= before + 3);
    bide_fleet_close(m.fleet);
    live_tcp_free(fake.server);
    for (unsigned i = 0; i < fake.asks; i++)
        firsts += fake.ask[i].ask.firsts;
    assert_int_equal(firsts, 1);
    fake.server = NULL;
    live_fake_free(&fake);
}

static bool forget_the_script(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    static const char noscript[] = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    const bool *always = fake->context;
    if (strcmp(ask->word, "EVAL") == 0 && !*always)
        return live_fake_answer(fake, fd, ask, number);
    return live_tcp_write(fd, noscript, sizeof noscript - 1);
}

/* Every ask with EVALSHA is followed by the same one with EVAL. */
static void assert_said_in_pairs(const struct live_fake *fake, unsigned asks)
{
    for (unsigned i = 0; i + 1 < asks; i += 2) {
        assert_string_equal(fake->ask[i].word, "EVALSHA");
        assert_string_equal(fake->ask[i + 1].word, "EVAL");
        assert_string_equal(fake->ask[i].key, fake->ask[i + 1].key);
        assert_memory_equal(&fake->ask[i].ask, &fake->ask[i + 1].ask, sizeof fake->ask[i].ask);
    }
}

static void noscript_is_answered_by_the_same_ask_with_the_text(void **state)
{
    bool always = false;
    struct live_fake fake = {.say = forget_the_script, .context = &always, .granted_milli = 5000};
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 0);
    EVENTUALLY(look(&m).exchanges >= 3);
    assert_int_equal(look(&m).failures, 0);
    assert_int_equal(live_told_count(&m.told), 0);
    assert_said_in_pairs(&fake, 6);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

static void noscript_to_the_text_itself_is_a_failure(void **state)
{
    bool always = true;
    struct live_fake fake = {.say = forget_the_script, .context = &always, .granted_milli = 5000};
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 0);
    EVENTUALLY(look(&m).failures >= 3);
    assert_int_equal(look(&m).exchanges, 0);
    assert_said_in_pairs(&fake, 6);
    EVENTUALLY(live_told_has(&m.told, "NOSCRIPT"));
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* ---- elsewhere ---- */

static bool point_to_context(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    char text[64];
    const unsigned *port = fake->context;
    unsigned to = port[strstr(ask->key, "{two}") != NULL];
    int length = snprintf(text, sizeof text, "-MOVED 3999 127.0.0.1:%u\r\n", to);
    return live_tcp_write(fd, text, (size_t)length);
}

static void moved_is_followed_and_that_ask_is_spent(void **state)
{
    struct live_fake there = {.granted_milli = 5000};
    live_fake_start(&there);
    unsigned port[2] = {live_tcp_port(there.server)};
    struct live_fake here = {.say = point_to_context, .context = port};
    struct member m;
    live_fake_start(&here);
    join(&m, live_fake_url(&here, PATIENT), 0);
    EVENTUALLY(look(&m).exchanges >= 3 && left(&m) >= 1000);
    assert_int_equal(live_fake_asks(&here), 1);
    assert_int_equal(look(&m).failures, 1);
    assert_int_equal(live_told_count(&m.told), 0);
    bide_fleet_close(m.fleet);
    live_fake_free(&here);
    live_fake_free(&there);
}

static void members_of_one_fleet_may_live_on_different_nodes(void **state)
{
    struct live_fake one = {.granted_milli = 5000}, two = {.granted_milli = 5000};
    struct bide_target second;
    live_fake_start(&one);
    live_fake_start(&two);
    unsigned port[2] = {live_tcp_port(one.server), live_tcp_port(two.server)};
    struct live_fake here = {.say = point_to_context, .context = port};
    struct member m;
    live_fake_start(&here);
    join(&m, live_fake_url(&here, PATIENT), 0);
    live_fleet_target(&second, 0);
    live_fleet_join(m.fleet, "two", &second);
    EVENTUALLY(look(&m).exchanges >= 3 && live_fleet_look(m.fleet, &second).exchanges >= 3);
    assert_int_equal(live_fake_asks(&here), 2);
    assert_string_equal(one.ask[0].key, "bide:{payments}:1");
    assert_string_equal(two.ask[0].key, "bide:{two}:1");
    bide_fleet_close(m.fleet);
    live_fake_free(&here);
    live_fake_free(&one);
    live_fake_free(&two);
}

static void a_node_that_cannot_be_reached_leads_back_to_the_url(void **state)
{
    struct live_fake gone = {0};
    live_fake_start(&gone);
    unsigned port[2] = {live_tcp_port(gone.server)};
    live_fake_free(&gone);
    struct live_fake here = {.say = point_to_context, .context = port, .granted_milli = 5000};
    struct member m;
    live_fake_start(&here);
    join(&m, live_fake_url(&here, PATIENT), 0);
    EVENTUALLY(live_fake_asks(&here) >= 2);
    EVENTUALLY(live_told_has(&m.told, "moved to"));
    live_fake_change(&here, live_fake_answer, NULL);
    EVENTUALLY(look(&m).connected && left(&m) >= 1000);
    bide_fleet_close(m.fleet);
    live_fake_free(&here);
}

static bool answer_for_long(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    struct lease_answer answer = live_fake_good(fake, &ask->ask);
    answer.next_ms = LEASE_SLOWEST_MS;
    return live_fake_write(fd, &answer);
}

static bool point_payments_to_context(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    bool moved = strstr(ask->key, "{payments}") != NULL;
    return moved ? point_to_context(fake, fd, ask, number) : answer_for_long(fake, fd, ask, number);
}

/* The thread is in the middle of a turn when the member that it has just answered leaves: the node's connection is
 * nobody's then, but for the last words. Many others, with nothing to say, make its turns long. */
static void who_leaves_a_node_at_the_worst_moment_harms_nobody(void **state)
{
    static struct bide_target idle[400];
    struct live_fake there = {.granted_milli = 5000};
    live_fake_start(&there);
    unsigned port[2] = {live_tcp_port(there.server)};
    struct live_fake here = {.say = point_payments_to_context, .context = port};
    struct member m;
    live_fake_start(&here);
    join(&m, live_fake_url(&here, PATIENT), 0);
    for (unsigned i = 0; i < sizeof idle / sizeof *idle; i++) {
        live_fleet_target(&idle[i], 0);
        live_fleet_join(m.fleet, "idle", &idle[i]);
    }
    for (int i = 0; i < 60; i++) {
        for (int64_t until_ns = bide_now() + LIVE_FLEET_MOST; look(&m).exchanges == 0;) /* as closely as can be */
            assert_true(bide_now() < until_ns);
        bide_fleet_leave(m.fleet, &m.target);
        live_fleet_join(m.fleet, "payments", &m.target);
    }
    bide_fleet_close(m.fleet);
    live_fake_free(&here);
    live_fake_free(&there);
}

static bool point_to_text(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    char text[64];
    int length = snprintf(text, sizeof text, "-MOVED 3999 %s\r\n", (const char *)fake->context);
    return live_tcp_write(fd, text, (size_t)length);
}

/* Redis says so if it does not know its own name: whoever hears it knows. */
static void moved_without_a_host_is_moved_on_the_host_that_says_it(void **state)
{
    char to_second[32], to_third[16], want[64];
    struct live_fake gone = {0}, second = {.say = point_to_text, .context = to_third};
    struct live_fake first = {.say = point_to_text, .context = to_second};
    struct bide_fleet_problem problem = {0};
    struct bide_fleet_bucket bank;
    struct member m;
    live_fake_start(&gone);
    snprintf(to_third, sizeof to_third, ":%u", live_tcp_port(gone.server));
    live_fake_free(&gone);
    live_fake_start(&second);
    snprintf(to_second, sizeof to_second, "localhost:%u", live_tcp_port(second.server));
    live_fake_start(&first);
    join(&m, live_fake_url(&first, PATIENT), 0);
    snprintf(want, sizeof want, "moved to localhost%s", to_third);
    live_fleet_tell_every(0);
    EVENTUALLY(live_told_has(&m.told, want));
    live_fleet_hurry();
    bide_fleet_close(m.fleet);
    assert_int_equal(bide_fleet_read(live_fake_url(&first, PATIENT), "payments", &bank, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, want));
    live_fake_free(&first);
    live_fake_free(&second);
}

/* A password that is a piece of what Redis says is hidden where it is told, not where it is read. */
static void a_password_that_is_a_common_word_is_in_nobodys_way(void **state)
{
    bool always = false;
    struct live_fake there = {.say = forget_the_script, .context = &always, .granted_milli = 5000};
    live_fake_start(&there);
    unsigned port[2] = {live_tcp_port(there.server)};
    for (unsigned i = 0; i < 2; i++) {
        struct live_fake here = {.say = point_to_context, .context = port};
        struct member m;
        char url[128];
        live_fake_start(&here);
        snprintf(url, sizeof url, "redis://:%s@127.0.0.1:%u" PATIENT, i == 0 ? "127" : "SCRIPT",
                 live_tcp_port(here.server));
        join(&m, url, 0);
        EVENTUALLY(look(&m).exchanges >= 2);
        assert_int_equal(look(&m).failures, 1);
        bide_fleet_close(m.fleet);
        live_fake_free(&here);
    }
    live_fake_free(&there);
}

/* ---- crowds ---- */

static bool answer_for_a_crowd(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    const int64_t *instances = fake->context;
    struct lease_answer answer = live_fake_good(fake, &ask->ask);
    answer.instances = *instances;
    answer.next_ms = LEASE_SLOWEST_MS;
    return live_fake_write(fd, &answer);
}

static unsigned connections_for_three_exchanges(int64_t instances)
{
    struct live_fake fake = {.say = answer_for_a_crowd, .context = &instances};
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 0);
    EVENTUALLY((live_fleet_fail(&m.target), look(&m).exchanges >= 3));
    unsigned connections = live_fake_connections(&fake);
    assert_int_equal(look(&m).failures, 0);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
    return connections;
}

static void in_a_crowd_connections_are_closed_between_exchanges_that_are_far_apart(void **state)
{
    assert_int_equal(connections_for_three_exchanges(10), 1);
    assert_true(connections_for_three_exchanges(10000) >= 3);
}

/* ---- telling ---- */

static void many_failures_are_told_once(void **state)
{
    struct live_fake fake = {.say = live_fake_text, .text = "-LOADING it\r\n"};
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 1500);
    EVENTUALLY(look(&m).failures >= 20);
    assert_int_equal(live_told_count(&m.told), 1);
    assert_true(live_told_has(&m.told, "retries go on at 1.5 a minute for payments"));
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

static void what_was_not_told_is_counted(void **state)
{
    struct live_fake fake = {.say = live_fake_text, .text = "-LOADING it\r\n"};
    struct member m;
    live_fake_start(&fake);
    live_fleet_tell_every(BIDE_S);
    join(&m, live_fake_url(&fake, PATIENT), 0);
    EVENTUALLY(live_told_count(&m.told) >= 2);
    assert_true(live_told_has(&m.told, " more since the last time this was told)"));
    assert_true(look(&m).failures > 2);
    bide_fleet_close(m.fleet);
    live_fleet_hurry();
    live_fake_free(&fake);
}

static struct member telling;

static void leave_and_join(void *context, const char *text)
{
    live_told_tell(&telling.told, text);
    look(&telling);
    bide_fleet_leave(telling.fleet, &telling.target);
    live_fleet_join(telling.fleet, "payments", &telling.target);
    __atomic_store_n((bool *)context, true, __ATOMIC_SEQ_CST);
}

static void who_is_told_may_look_leave_and_join(void **state)
{
    struct live_fake fake = {.say = live_fake_text, .text = "-BUSY with a script\r\n", .granted_milli = 5000};
    bool done = false;
    struct bide_fleet_options options = {.report = leave_and_join, .context = &done};
    telling = (struct member){.told = LIVE_TOLD};
    live_fake_start(&fake);
    live_fleet_target(&telling.target, 0);
    assert_int_equal(bide_fleet_open(&telling.fleet, live_fake_url(&fake, PATIENT), &options, NULL), BIDE_OK);
    live_fleet_join(telling.fleet, "payments", &telling.target);
    EVENTUALLY(__atomic_load_n(&done, __ATOMIC_SEQ_CST));
    live_fake_change(&fake, live_fake_answer, NULL);
    EVENTUALLY(live_told_has(&telling.told, "reached again"));
    EVENTUALLY(live_told_count(&telling.told) == 2 && look(&telling).connected);
    bide_fleet_close(telling.fleet);
    live_fake_free(&fake);
}

/* A floor begins at a drawn time, up to a minute later: that is no reason to look connected. */
static void who_fails_does_not_look_connected(void **state)
{
    struct live_fake fake = {.granted_milli = 5000};
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 1);
    EVENTUALLY(look(&m).connected);
    live_fake_change(&fake, live_fake_text, "-BUSY with a script\r\n");
    EVENTUALLY(look(&m).failures > 0);
    assert_false(look(&m).connected);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* The other one was answered before, but that says nothing of now. */
static void that_who_failed_has_left_is_not_told_as_reached_again(void **state)
{
    struct live_fake fake = {.say = answer_for_long};
    struct bide_target second;
    struct member m;
    live_fake_start(&fake);
    join(&m, live_fake_url(&fake, PATIENT), 0);
    EVENTUALLY(look(&m).exchanges == 1);
    live_fake_change(&fake, live_fake_text, "-BUSY with a script\r\n");
    live_fleet_target(&second, 0);
    live_fleet_join(m.fleet, "two", &second);
    EVENTUALLY(live_told_count(&m.told) == 1);
    bide_fleet_leave(m.fleet, &second);
    EVENTUALLY((live_fleet_fail(&m.target), look(&m).failures > 0));
    assert_int_equal(live_told_count(&m.told), 1);
    live_fake_change(&fake, live_fake_answer, NULL);
    EVENTUALLY(live_told_has(&m.told, "reached again"));
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* Of a target that processes share. The other process is pretended here. */
static void that_another_process_tries_is_not_told_as_reached_again_but_its_success_is(void **state)
{
    struct live_fake fake = {.say = live_fake_text, .text = "-BUSY with a script\r\n"};
    struct bide_target second;
    struct member m = {.told = LIVE_TOLD};
    live_fake_start(&fake);
    live_fleet_target(&m.target, 1);
    m.fleet = live_fleet_open(live_fake_url(&fake, PATIENT), &m.told);
    assert_int_equal(bide_fleet_join(m.fleet, "payments", &m.target, true, NULL), BIDE_OK);
    EVENTUALLY(live_told_count(&m.told) == 1);
    EVENTUALLY((bide_lease_claim(&m.target, m.fleet->who, 0, bide_now()),
                bide_lease_claim(&m.target, m.fleet->who + 1, bide_now() + 60 * BIDE_MINUTE, bide_now())));
    EVENTUALLY(!look(&m).exchanger);
    live_fleet_target(&second, 0);
    live_fleet_join(m.fleet, "two", &second);
    EVENTUALLY(live_fleet_look(m.fleet, &second).failures > 0);
    bide_fleet_leave(m.fleet, &second);
    assert_int_equal(live_told_count(&m.told), 1);
    assert_false(look(&m).connected);
    bide_lease_extend(&m.target, bide_now() + 60 * BIDE_MINUTE, bide_now());
    EVENTUALLY(live_told_has(&m.told, "reached again"));
    assert_true(look(&m).connected);
    bide_fleet_close(m.fleet);
    live_fake_free(&fake);
}

/* Redis says what it was sent, if it does not know the command. */
static void no_text_has_the_password(void **state)
{
    struct live_fake fake = {.greeting = "-ERR unknown command 'AUTH', with args beginning with: 'me' 'hush-hush'\r\n"};
    struct member m;
    char url[128];
    live_fake_start(&fake);
    snprintf(url, sizeof url, "redis://me:hush-hush@127.0.0.1:%u", live_tcp_port(fake.server));
    join(&m, url, 0);
    EVENTUALLY(look(&m).failures >= 2);
    EVENTUALLY(live_told_count(&m.told) == 1);
    assert_true(live_told_has(&m.told, "AUTH"));
    assert_false(live_told_has(&m.told, "hush-hush"));
    bide_fleet_close(m.fleet);

    struct bide_fleet_problem problem = {0};
    struct bide_fleet_bucket bank;
    assert_int_equal(bide_fleet_read(url, "payments", &bank, &problem), BIDE_ERR_SYSTEM);
    assert_non_null(strstr(problem.text, "AUTH"));
    assert_null(strstr(problem.text, "hush-hush"));
    live_fake_free(&fake);
}

int main(void)
{
    live_fleet_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refusal_is_told_by_its_words_and_survived),
        cmocka_unit_test(a_connection_is_given_up_where_its_next_answer_would_be_no_better),
        cmocka_unit_test(garbage_is_survived),
        cmocka_unit_test(a_reply_that_never_ends_is_late),
        cmocka_unit_test(an_answer_with_one_number_out_of_range_is_not_believed),
        cmocka_unit_test(more_than_was_wanted_is_not_taken),
        cmocka_unit_test(an_answer_after_the_timeout_is_never_applied),
        cmocka_unit_test(what_was_asked_in_vain_is_spent_and_not_said_again),
        cmocka_unit_test(noscript_is_answered_by_the_same_ask_with_the_text),
        cmocka_unit_test(noscript_to_the_text_itself_is_a_failure),
        cmocka_unit_test(moved_is_followed_and_that_ask_is_spent),
        cmocka_unit_test(members_of_one_fleet_may_live_on_different_nodes),
        cmocka_unit_test(a_node_that_cannot_be_reached_leads_back_to_the_url),
        cmocka_unit_test(who_leaves_a_node_at_the_worst_moment_harms_nobody),
        cmocka_unit_test(moved_without_a_host_is_moved_on_the_host_that_says_it),
        cmocka_unit_test(a_password_that_is_a_common_word_is_in_nobodys_way),
        cmocka_unit_test(in_a_crowd_connections_are_closed_between_exchanges_that_are_far_apart),
        cmocka_unit_test(many_failures_are_told_once),
        cmocka_unit_test(what_was_not_told_is_counted),
        cmocka_unit_test(who_is_told_may_look_leave_and_join),
        cmocka_unit_test(who_fails_does_not_look_connected),
        cmocka_unit_test(that_who_failed_has_left_is_not_told_as_reached_again),
        cmocka_unit_test(that_another_process_tries_is_not_told_as_reached_again_but_its_success_is),
        cmocka_unit_test(no_text_has_the_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
