/* test_run_env.c - what one bide tells the command, and the next bide, in its environment (app/run/env.c). */
#define _GNU_SOURCE
#include "run/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void an_outer_attempt_and_its_deadline_are_heard(void **state)
{
    struct bide_request request = {.safety = BIDE_SAFE};
    setenv("BIDE_ATTEMPT", "3", 1);
    setenv("BIDE_DEADLINE_MS", "1500", 1);
    assert_null(run_env_read(&request, BIDE_S));
    assert_int_equal(request.inbound.attempt, 3);
    assert_int_equal(request.deadline_ns, BIDE_S + 1500 * BIDE_MS);
}

static void what_makes_no_sense_is_named_and_ignored(void **state)
{
    static const char *const senseless[] = {"", "0", "-1", "+1", " 1", "1x", "4294967296", "99999999999999999999"};
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
        struct bide_request request = {.safety = BIDE_SAFE};
        unsetenv("BIDE_DEADLINE_MS");
        setenv("BIDE_ATTEMPT", senseless[i], 1);
        assert_string_equal(run_env_read(&request, BIDE_S), "BIDE_ATTEMPT");
        assert_int_equal(request.inbound.attempt, 0);
        assert_int_equal(request.deadline_ns, 0);
    }
    unsetenv("BIDE_ATTEMPT");
    struct bide_request request = {.safety = BIDE_SAFE};
    setenv("BIDE_DEADLINE_MS", "9223372036854775807", 1);
    assert_string_equal(run_env_read(&request, BIDE_S), "BIDE_DEADLINE_MS");
    assert_int_equal(request.deadline_ns, 0);
}

/* As the next child would find it; NULL: not there. More than once is never right. */
static const char *found(struct run_env_own *own, const char *name)
{
    const char *value = NULL;
    char **list = run_env_list(own);
    for (assert_non_null(list); *list != NULL; list++)
        if (strncmp(*list, name, strlen(name)) == 0 && (*list)[strlen(name)] == '=') {
            assert_null(value);
            value = *list + strlen(name) + 1;
        }
    return value;
}

static void what_does_not_hold_any_more_is_not_left_behind(void **state)
{
    struct run_env first = {.attempt = 2,
                            .attempts_max = 4,
                            .last_status = 7,
                            .target = "db",
                            .deadline_ns = 3 * BIDE_S,
                            .now_ns = BIDE_S,
                            .offers_hint_fd = true};
    struct run_env second = {.attempt = 1, .attempts_max = 1, .last_status = -1, .deadline_ns = BIDE_NEVER};
    struct run_env_own own = {0};
    setenv("BIDE_ATTEMPT", "9", 1);
    setenv("BIDE_LAST_STATUS", "9", 1);
    setenv("BIDE_TARGET", "outer", 1);
    assert_string_equal(found(&own, "BIDE_TARGET"), "outer");
    assert_true(run_env_write(&own, &first));
    assert_string_equal(found(&own, "BIDE_ATTEMPT"), "2");
    assert_string_equal(found(&own, "BIDE_ATTEMPTS"), "4");
    assert_string_equal(found(&own, "BIDE_LAST_STATUS"), "7");
    assert_string_equal(found(&own, "BIDE_TARGET"), "db");
    assert_string_equal(found(&own, "BIDE_DEADLINE_MS"), "2000");
    assert_string_equal(found(&own, "BIDE_HINT_FD"), "3");
    assert_true(run_env_write(&own, &second));
    assert_null(found(&own, "BIDE_LAST_STATUS"));
    assert_null(found(&own, "BIDE_TARGET"));
    assert_null(found(&own, "BIDE_DEADLINE_MS"));
    run_env_free(&own);
}

static void nothing_is_written_into_the_environment_of_bide_itself(void **state)
{
    struct run_env env = {.attempt = 2, .attempts_max = 4, .last_status = 7, .target = "db", .deadline_ns = 3 * BIDE_S};
    struct run_env_own own = {0};
    setenv("BIDE_ATTEMPT", "9", 1);
    unsetenv("BIDE_ATTEMPTS");
    char **before = environ;
    assert_true(run_env_write(&own, &env));
    assert_string_equal(found(&own, "BIDE_ATTEMPT"), "2");
    assert_ptr_equal(environ, before);
    assert_string_equal(getenv("BIDE_ATTEMPT"), "9");
    assert_null(getenv("BIDE_ATTEMPTS"));
    run_env_free(&own);
}

static void a_name_that_does_not_fit_is_refused_and_the_longest_there_is_fits(void **state)
{
    struct run_env_own own = {0};
    char name[256];
    memset(name, 'n', sizeof name);
    name[127] = '\0';
    assert_true(run_env_set(&own, RUN_ENV_TARGET, name));
    assert_string_equal(found(&own, "BIDE_TARGET"), name);
    name[127] = 'n';
    name[255] = '\0';
    assert_false(run_env_set(&own, RUN_ENV_TARGET, name));
    run_env_free(&own);
}

static void the_key_is_drawn_once_and_an_outer_one_is_kept(void **state)
{
    struct run_env_own own = {0}, inner = {0};
    unsetenv("BIDE_IDEMPOTENCY_KEY");
    assert_true(run_env_key(&own));
    const char *key = found(&own, "BIDE_IDEMPOTENCY_KEY");
    assert_int_equal(strlen(key), 32);
    assert_int_equal(strspn(key, "0123456789abcdef"), 32);
    setenv("BIDE_IDEMPOTENCY_KEY", key, 1);
    assert_true(run_env_key(&inner));
    assert_string_equal(found(&inner, "BIDE_IDEMPOTENCY_KEY"), key);
    run_env_free(&own);
    run_env_free(&inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outer_attempt_and_its_deadline_are_heard),
        cmocka_unit_test(what_makes_no_sense_is_named_and_ignored),
        cmocka_unit_test(what_does_not_hold_any_more_is_not_left_behind),
        cmocka_unit_test(nothing_is_written_into_the_environment_of_bide_itself),
        cmocka_unit_test(a_name_that_does_not_fit_is_refused_and_the_longest_there_is_fits),
        cmocka_unit_test(the_key_is_drawn_once_and_an_outer_one_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
