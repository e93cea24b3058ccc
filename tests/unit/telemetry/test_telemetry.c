/* test_telemetry.c - the numbers of the process: counts of its meters, state of its targets, requests of its servers;
 * and the texts of errors. */
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "core/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static char text[1 << 20];

static bool has_line(const char *line)
{
    size_t length = strlen(line);
    assert_true(bide_telemetry_write(text, sizeof text) < sizeof text);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at += length)
        if ((at == text || at[-1] == '\n') && at[length] == '\n')
            return true;
    return false;
}

static bool has_series(const char *series)
{
    assert_true(bide_telemetry_write(text, sizeof text) < sizeof text);
    return strstr(text, series) != NULL;
}

static struct bide_outcome attempt_by_number(void *context, const struct bide_verdict *start)
{
    const int *failures = context;
    return bide_classify_http((int)start->attempt <= *failures ? 503 : 200, NULL);
}

static void call(const char *name, int failures)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.backoff = BIDE_BACKOFF_NONE;
    struct bide_job job = {.name = name,
                           .policy = &policy,
                           .request.safety = BIDE_SAFE,
                           .attempt = attempt_by_number,
                           .context = &failures};
    assert_int_equal(bide_run(&job).action, BIDE_ACTION_DONE);
}

static int start(void **state)
{
    (void)state;
    return bide_telemetry_start(NULL, NULL) == BIDE_OK ? 0 : 1;
}

static int stop(void **state)
{
    (void)state;
    bide_telemetry_stop();
    return 0;
}

/* ---- writing ---- */

static void the_text_has_counts_and_state_of_each_target(void **state)
{
    (void)state;
    call("inventory", 0);
    call("inventory", 1);
    assert_true(has_line("bide_calls_total{target=\"inventory\",result=\"first\"} 1"));
    assert_true(has_line("bide_calls_total{target=\"inventory\",result=\"rescued\"} 1"));
    assert_true(has_line("bide_attempts_total{target=\"inventory\",attempt=\"1\"} 2"));
    assert_true(has_line("bide_outcomes_total{target=\"inventory\",attempt=\"1\",kind=\"transient\"} 1"));
    assert_true(has_line("bide_breaker_state{target=\"inventory\",state=\"closed\"} 1"));
    assert_true(has_line("bide_budget_capacity_tokens{target=\"inventory\"} 10"));
    assert_true(has_line("bide_fleet_lease_active{target=\"inventory\"} 0"));
    assert_true(has_line("bide_build_info{version=\"" BIDE_VERSION "\"} 1"));
}

static void the_length_without_a_buffer_is_that_of_the_text(void **state)
{
    char small[8];
    (void)state;
    call("inventory", 0);
    size_t length = bide_telemetry_write(NULL, 0);
    assert_int_equal(bide_telemetry_write(text, sizeof text), length);
    assert_int_equal(strlen(text), length);
    assert_int_equal(bide_telemetry_write(small, sizeof small), length);
    assert_string_equal(small, "# HELP ");
}

static void state_is_read_in_the_table_of_the_options(void **state)
{
    struct bide_targets *table = NULL;
    struct bide_target_config config;
    (void)state;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.capacity_milli = 77000;
    config.budget.initial_milli = BIDE_FULL;
    assert_int_equal(bide_targets_new(&table, 4, &config, NULL), BIDE_OK);
    bide_telemetry_stop();
    assert_int_equal(bide_telemetry_start(&(struct bide_telemetry_options){.targets = table}, NULL), BIDE_OK);
    call("ledger", 0);
    assert_false(has_series("bide_budget_tokens{target=\"ledger\"}")); /* its target is in the default table */
    struct bide_target *target = bide_targets_get(table, "ledger", bide_now());
    assert_true(has_line("bide_budget_tokens{target=\"ledger\"} 77"));
    bide_target_hold_off(target, bide_now() + 3600 * BIDE_S, bide_now());
    bide_breaker_hold(target, BIDE_HOLD_OPEN);
    assert_true(has_line("bide_breaker_state{target=\"ledger\",state=\"held_open\"} 1"));
    assert_false(has_line("bide_hold_off_remaining_seconds{target=\"ledger\"} 0"));
    bide_telemetry_stop();
    bide_targets_free(table); /* is not read any more */
    assert_false(has_series("bide_budget_tokens{target=\"ledger\"}"));
    assert_true(has_line("bide_calls_total{target=\"ledger\",result=\"first\"} 1"));
    assert_int_equal(bide_telemetry_start(NULL, NULL), BIDE_OK);
}

static void a_lease_is_active_until_it_ends(void **state)
{
    (void)state;
    call("leased", 0);
    struct bide_target *target = bide_targets_find(bide_targets_default(), "leased");
    assert_non_null(target);
    assert_int_equal(core_lease_begin(target, bide_now(), NULL), BIDE_OK);
    assert_true(has_line("bide_fleet_lease_active{target=\"leased\"} 0")); /* no reply of the fleet yet */
    core_lease_extend(target, bide_now() + 3600 * BIDE_S, bide_now());
    assert_true(has_line("bide_fleet_lease_active{target=\"leased\"} 1"));
    assert_int_equal(core_lease_end(target, bide_now()), BIDE_OK);
    assert_true(has_line("bide_fleet_lease_active{target=\"leased\"} 0"));
}

static void calls_without_a_target_have_counts_but_no_state(void **state)
{
    int failures = 0;
    struct bide_job job = {.name = "lonely",
                           .target = BIDE_NO_TARGET,
                           .request.safety = BIDE_SAFE,
                           .attempt = attempt_by_number,
                           .context = &failures};
    (void)state;
    assert_int_equal(bide_run(&job).action, BIDE_ACTION_DONE);
    assert_true(has_line("bide_calls_total{target=\"lonely\",result=\"first\"} 1"));
    assert_true(has_line("bide_breaker_openings_total{target=\"lonely\"} 0"));
    assert_false(has_series("bide_breaker_state{target=\"lonely\""));
}

/* ---- inbound requests ---- */

static void count_requests(struct bide_inbound_ratio *ratio, unsigned first, unsigned retries)
{
    static const struct bide_layer retry = {.attempt = 2, .left_ns = BIDE_NEVER};
    for (unsigned i = 0; i < first; i++)
        bide_inbound_ratio_count(ratio, NULL, bide_now());
    for (unsigned i = 0; i < retries; i++)
        bide_inbound_ratio_count(ratio, &retry, bide_now());
}

static void requests_of_a_server_are_exported_as_the_sum_of_its_ratios(void **state)
{
    struct bide_inbound_ratio one, two;
    (void)state;
    assert_int_equal(bide_inbound_ratio_init(&one, NULL, NULL), BIDE_OK);
    assert_int_equal(bide_inbound_ratio_init(&two, NULL, NULL), BIDE_OK);
    assert_int_equal(bide_telemetry_inbound("checkout", &one, NULL), BIDE_OK);
    assert_int_equal(bide_telemetry_inbound("checkout", &one, NULL), BIDE_OK); /* once */
    assert_true(has_line("bide_inbound_requests_total{target=\"checkout\",attempt=\"2_or_more\"} 0"));
    count_requests(&one, 5, 2);
    assert_true(has_line("bide_inbound_requests_total{target=\"checkout\",attempt=\"1\"} 5"));
    assert_int_equal(bide_telemetry_inbound("checkout", &two, NULL), BIDE_OK);
    count_requests(&two, 30, 40);
    assert_true(has_line("bide_inbound_requests_total{target=\"checkout\",attempt=\"1\"} 35"));
    assert_true(has_line("bide_inbound_requests_total{target=\"checkout\",attempt=\"2_or_more\"} 42"));
    assert_int_equal(bide_telemetry_inbound("checkout", NULL, NULL), BIDE_OK);
    assert_false(has_series("bide_inbound_requests_total"));
}

static void a_ratio_too_many_is_an_error_and_changes_nothing(void **state)
{
    static struct bide_inbound_ratio ratios[BIDE_TELEMETRY_INBOUND_MAX + 1];
    struct bide_problem problem;
    char name[32];
    (void)state;
    for (size_t i = 0; i < COUNT(ratios); i++)
        assert_int_equal(bide_inbound_ratio_init(&ratios[i], NULL, NULL), BIDE_OK);
    for (unsigned i = 0; i < BIDE_TELEMETRY_INBOUND_MAX; i++) {
        snprintf(name, sizeof name, "server-%u", i);
        assert_int_equal(bide_telemetry_inbound(name, &ratios[i], NULL), BIDE_OK);
    }
    assert_int_equal(bide_telemetry_inbound("more", &ratios[BIDE_TELEMETRY_INBOUND_MAX], &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.text,
                        "inbound ratio \"more\": 64 are registered already, and there is room for no more");
    assert_int_equal(bide_telemetry_inbound("other", &ratios[0], &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.text, "this inbound ratio is registered already, with the name \"server-0\"");
    assert_int_equal(bide_telemetry_inbound("", &ratios[0], &problem), BIDE_ERR_INVALID);
    assert_false(has_series("\"more\""));
    assert_true(has_series("\"server-63\""));
    for (unsigned i = 0; i < BIDE_TELEMETRY_INBOUND_MAX; i++) {
        snprintf(name, sizeof name, "server-%u", i);
        assert_int_equal(bide_telemetry_inbound(name, NULL, NULL), BIDE_OK);
    }
    assert_false(has_series("bide_inbound_requests_total"));
}

/* ---- errors ---- */

static void errors_of_start_name_the_field_and_what_is_right(void **state)
{
    static const struct bide_listener other = {0};
    struct bide_problem problem;
    (void)state;
    assert_int_equal(bide_telemetry_start(NULL, &problem), BIDE_ERR_BUSY);
    assert_string_equal(problem.text, "telemetry runs already in this process");
    assert_null(problem.field);
    bide_telemetry_stop();
    assert_int_equal(bide_telemetry_start(&(struct bide_telemetry_options){.targets_max = 100001}, &problem),
                     BIDE_ERR_INVALID);
    assert_string_equal(problem.text, "targets_max is 100001; must be 1 to 100000 (0: 128)");
    assert_string_equal(problem.field, "targets_max");
    assert_int_equal(problem.value, 100001);
    assert_int_equal(bide_telemetry_start(&(struct bide_telemetry_options){.reserved_[0] = 7}, &problem),
                     BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "reserved_");
    assert_int_equal(bide_listen(&other), BIDE_OK);
    assert_int_equal(bide_telemetry_start(NULL, &problem), BIDE_ERR_BUSY);
    assert_string_equal(problem.text,
                        "the process has another listener: call bide_listen(NULL) before telemetry starts");
    assert_int_equal(bide_listen(NULL), BIDE_OK);
    assert_int_equal(bide_telemetry_start(NULL, &problem), BIDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_has_counts_and_state_of_each_target),
        cmocka_unit_test(the_length_without_a_buffer_is_that_of_the_text),
        cmocka_unit_test(state_is_read_in_the_table_of_the_options),
        cmocka_unit_test(a_lease_is_active_until_it_ends),
        cmocka_unit_test(calls_without_a_target_have_counts_but_no_state),
        cmocka_unit_test(requests_of_a_server_are_exported_as_the_sum_of_its_ratios),
        cmocka_unit_test(a_ratio_too_many_is_an_error_and_changes_nothing),
        cmocka_unit_test(errors_of_start_name_the_field_and_what_is_right),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
