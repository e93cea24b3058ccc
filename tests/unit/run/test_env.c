/* test_env.c - environment variables of the command (app/run/env.c). */
#define _GNU_SOURCE
#include "run/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Returns the variable of the next child, NULL if it is missing. A variable must not occur twice. */
static const char *found(struct run_env_vars *vars, const char *name)
{
    const char *value = NULL;
    char **list = run_env_build(vars);
    for (assert_non_null(list); *list != NULL; list++)
        if (strncmp(*list, name, strlen(name)) == 0 && (*list)[strlen(name)] == '=') {
            assert_null(value);
            value = *list + strlen(name) + 1;
        }
    return value;
}

static void traceparent_is_that_of_the_attempt_or_inherited(void **state)
{
    static const char own[] = "00-00000000000000010000000000000002-0000000000000003-01";
    struct run_env env = {.attempt = 1, .attempts_max = 4, .last_status = -1, .deadline_ns = BIDE_NEVER};
    struct run_env_vars vars = {0};
    (void)state;
    setenv("TRACEPARENT", "outer", 1);
    assert_true(run_env_write(&vars, &env));
    assert_string_equal(found(&vars, "TRACEPARENT"), "outer");
    env.trace = (struct bide_trace){.trace_hi = 1, .trace_lo = 2, .parent = 3, .flags = BIDE_TRACE_SAMPLED};
    assert_true(run_env_write(&vars, &env));
    assert_string_equal(found(&vars, "TRACEPARENT"), own);
    unsetenv("TRACEPARENT");
    run_env_free(&vars);
}

static void env_write_removes_variables_of_earlier_attempt(void **state)
{
    struct run_env first = {.attempt = 2,
                            .attempts_max = 4,
                            .last_status = 7,
                            .target = "db",
                            .deadline_ns = 3 * BIDE_S,
                            .now_ns = BIDE_S,
                            .hint_pipe = 77};
    struct run_env second = {.attempt = 1, .attempts_max = 1, .last_status = -1, .deadline_ns = BIDE_NEVER};
    struct run_env_vars vars = {0};
    setenv("BIDE_ATTEMPT", "9", 1);
    setenv("BIDE_LAST_STATUS", "9", 1);
    setenv("BIDE_TARGET", "outer", 1);
    assert_string_equal(found(&vars, "BIDE_TARGET"), "outer");
    assert_true(run_env_write(&vars, &first));
    assert_string_equal(found(&vars, "BIDE_ATTEMPT"), "2");
    assert_string_equal(found(&vars, "BIDE_ATTEMPTS"), "4");
    assert_string_equal(found(&vars, "BIDE_LAST_STATUS"), "7");
    assert_string_equal(found(&vars, "BIDE_TARGET"), "db");
    assert_string_equal(found(&vars, "BIDE_DEADLINE_MS"), "2000");
    assert_string_equal(found(&vars, "BIDE_HINT_FD"), "3");
    assert_string_equal(found(&vars, "BIDE_HINT_PIPE"), "77");
    assert_true(run_env_write(&vars, &second));
    assert_null(found(&vars, "BIDE_LAST_STATUS"));
    assert_null(found(&vars, "BIDE_TARGET"));
    assert_null(found(&vars, "BIDE_DEADLINE_MS"));
    run_env_free(&vars);
}

static void env_write_leaves_own_environment_unchanged(void **state)
{
    struct run_env env = {.attempt = 2, .attempts_max = 4, .last_status = 7, .target = "db", .deadline_ns = 3 * BIDE_S};
    struct run_env_vars vars = {0};
    setenv("BIDE_ATTEMPT", "9", 1);
    unsetenv("BIDE_ATTEMPTS");
    char **before = environ;
    assert_true(run_env_write(&vars, &env));
    assert_string_equal(found(&vars, "BIDE_ATTEMPT"), "2");
    assert_ptr_equal(environ, before);
    assert_string_equal(getenv("BIDE_ATTEMPT"), "9");
    assert_null(getenv("BIDE_ATTEMPTS"));
    run_env_free(&vars);
}

static void env_set_accepts_longest_target_name_and_rejects_longer(void **state)
{
    struct run_env_vars vars = {0};
    char name[256];
    memset(name, 'n', sizeof name);
    name[127] = '\0';
    assert_true(run_env_set(&vars, RUN_ENV_TARGET, name));
    assert_string_equal(found(&vars, "BIDE_TARGET"), name);
    name[127] = 'n';
    name[255] = '\0';
    assert_false(run_env_set(&vars, RUN_ENV_TARGET, name));
    run_env_free(&vars);
}

static void env_key_is_generated_once_and_outer_key_is_kept(void **state)
{
    struct run_env_vars vars = {0}, inner = {0};
    unsetenv("BIDE_IDEMPOTENCY_KEY");
    assert_true(run_env_make_key(&vars));
    const char *key = found(&vars, "BIDE_IDEMPOTENCY_KEY");
    assert_int_equal(strlen(key), 36);
    assert_int_equal(strspn(key, "0123456789abcdef-"), 36);
    setenv("BIDE_IDEMPOTENCY_KEY", key, 1);
    assert_true(run_env_make_key(&inner));
    assert_string_equal(found(&inner, "BIDE_IDEMPOTENCY_KEY"), key);
    run_env_free(&vars);
    run_env_free(&inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traceparent_is_that_of_the_attempt_or_inherited),
        cmocka_unit_test(env_write_removes_variables_of_earlier_attempt),
        cmocka_unit_test(env_write_leaves_own_environment_unchanged),
        cmocka_unit_test(env_set_accepts_longest_target_name_and_rejects_longer),
        cmocka_unit_test(env_key_is_generated_once_and_outer_key_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
