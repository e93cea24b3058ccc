/* test_metric.c - metrics by name: every name is unique, and values match the result. */
#define _GNU_SOURCE
#include "sim/result.h"

#include "sim/number.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sim_result result; /* large: contains the histogram */

static int setup(void **state)
{
    (void)state;
    result = (struct sim_result){.budget_low_milli = -1, .budget_end_milli = -1, .recover_ns = -1};
    return 0;
}

static double value_of(const char *name)
{
    size_t metric = sim_metric_find(name, strlen(name));
    if (metric == SIZE_MAX)
        fail_msg("no metric is called %s", name);
    return sim_metric_value(&result, metric);
}

static void expect_is(const char *name, double want)
{
    double value = value_of(name);
    if (isnan(want) ? !isnan(value) : !(fabs(value - want) < 1e-12 * (1 + fabs(want))))
        fail_msg("%s is %.17g, not %.17g", name, value, want);
}

static void expect_text(double value, const char *want)
{
    char text[SIM_NUMBER_SIZE];
    assert_string_equal(sim_number(text, value), want);
}

/* ---- names ---- */

static void every_metric_is_found_by_its_exact_name(void **state)
{
    const struct sim_metric *metric;
    size_t count = 0;
    for (; (metric = sim_metric(count)) != NULL; count++) {
        size_t length = strlen(metric->name);
        assert_int_equal(sim_metric_find(metric->name, length), count);
        assert_int_not_equal(sim_metric_find(metric->name, length - 1), count);
        assert_true(metric->about[0] != '\0' && strlen(metric->about) < 110 && strchr(metric->about, '\n') == NULL);
        for (size_t i = 0; i < length; i++)
            assert_true(islower((unsigned char)metric->name[i]) || isdigit((unsigned char)metric->name[i]) ||
                        metric->name[i] == '_');
    }
    assert_true(count > 80);
    assert_true(isnan(sim_metric_value(&result, count)));
    assert_int_equal(sim_metric_find("", 0), SIZE_MAX);
}

static void name_of_a_time_metric_ends_with_its_unit(void **state)
{
    const struct sim_metric *metric;
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++) {
        size_t length = strlen(metric->name);
        bool ms = length > 3 && strcmp(metric->name + length - 3, "_ms") == 0;
        bool s = length > 2 && strcmp(metric->name + length - 2, "_s") == 0;
        assert_int_equal(ms, strcmp(metric->unit, "ms") == 0);
        assert_int_equal(s, strcmp(metric->unit, "s") == 0);
        assert_int_equal(metric->flag, strcmp(metric->name, "recovers") == 0);
    }
}

static void misspelt_metric_name_gets_a_suggestion(void **state)
{
    assert_string_equal(sim_metric_suggest("amplificaton", 12), "amplification");
    assert_string_equal(sim_metric_suggest("latency-p99-ms", 14), "latency_p99_ms");
    assert_string_equal(sim_metric_suggest("peak_served_5ms", 15), "peak_served_1ms");
    assert_null(sim_metric_suggest("weather", 7));
}

/* ---- values ---- */

static void count_metrics_equal_the_result(void **state)
{
    result.calls = 1000;
    result.attempts = 1500;
    result.retries = 450;
    result.hedges = 50;
    result.arrivals = UINT64_C(9007199254740991); /* 2^53 - 1 */
    result.wasted = 7;
    result.unfinished = 3;
    result.events = 12345;
    expect_is("calls", 1000);
    expect_is("attempts", 1500);
    expect_is("retries", 450);
    expect_is("hedges", 50);
    expect_is("arrivals", 9007199254740991.0);
    expect_is("wasted", 7);
    expect_is("unfinished", 3);
    expect_is("events", 12345);
    expect_is("hedge_share", 0.05);
}

static void amplification_is_arrivals_per_call(void **state)
{
    result.calls = 200;
    result.attempts = 999; /* not used by amplification */
    result.first_arrivals = 100;
    result.arrivals = 500;
    result.succeeded = 150;
    result.gave_up = 50;
    result.users = 10;
    result.users_succeeded = 4;
    expect_is("amplification", 2.5);
    expect_is("success", 0.75);
    expect_is("error", 0.25);
    expect_is("users_success", 0.4);
}

static void shares_are_undefined_without_calls(void **state)
{
    expect_is("amplification", NAN);
    expect_is("success", NAN);
    expect_is("error", NAN);
    expect_is("users_success", NAN);
    expect_is("hedge_share", NAN);
    expect_is("latency_p99_ms", NAN);
    expect_is("latency_mean_ms", NAN);
    expect_is("peak_served_50ms", 0);
    expect_is("peak_served_50ms_at_ms", NAN);
    expect_is("budget_low", NAN);
}

static void recovery_is_undefined_without_a_disturbance(void **state)
{
    expect_is("recovers", NAN);
    expect_is("recover_s", NAN);
    result.disturbed = true;
    expect_is("recovers", 0);
    expect_is("recover_s", NAN);
    result.recovers = true;
    result.recover_ns = 1500 * BIDE_MS;
    expect_is("recovers", 1);
    expect_is("recover_s", 1.5);
}

static void time_metrics_use_the_unit_of_their_name(void **state)
{
    result.ended_ns = 2500 * BIDE_MS;
    for (int i = 1; i <= 4; i++)
        sim_histogram_add(&result.latency, i * BIDE_MS);
    expect_is("duration_s", 2.5);
    expect_is("latency_mean_ms", 2.5);
    expect_is("latency_max_ms", 4);
    double median = value_of("latency_p50_ms");
    assert_true(median > 1.98 && median < 2.02);
    assert_true(value_of("latency_p99_ms") > 3.98);
}

static void every_bin_width_has_peak_metrics(void **state)
{
    static const char *const widths[SIM_BIN_WIDTHS] = {"1ms", "10ms", "50ms", "1s"};
    char name[64];
    for (unsigned i = 0; i < SIM_BIN_WIDTHS; i++) {
        result.peak[i].arrivals = (struct sim_peak){100 + i, (int64_t)i * BIDE_S};
        result.peak[i].retries = (struct sim_peak){200 + i, 1};
        result.peak[i].served = (struct sim_peak){300 + i, 1};
        result.peak[i].probes = (struct sim_peak){400 + i, 1};
    }
    for (unsigned i = 0; i < SIM_BIN_WIDTHS; i++) {
        static const char *const kinds[] = {"arrivals", "retries", "served", "probes"};
        for (unsigned kind = 0; kind < 4; kind++) {
            snprintf(name, sizeof name, "peak_%s_%s", kinds[kind], widths[i]);
            expect_is(name, (kind + 1) * 100 + i);
        }
        snprintf(name, sizeof name, "peak_arrivals_%s_at_ms", widths[i]);
        expect_is(name, i * 1000.0);
    }
}

static void every_reason_that_ends_a_call_has_a_metric(void **state)
{
    char name[96];
    for (unsigned reason = 0; reason < BIDE_REASON_COUNT; reason++)
        result.reason[reason] = 10 + reason;
    result.gave_up = 5;
    expect_is("gave_up", 5);
    for (unsigned reason = 0; reason < BIDE_REASON_COUNT; reason++) {
        snprintf(name, sizeof name, "gave_up_%s", bide_reason_label((enum bide_reason)reason));
        if (reason > BIDE_REASON_SUCCEEDED)
            expect_is(name, 10 + reason);
        else
            assert_int_equal(sim_metric_find(name, strlen(name)), SIZE_MAX);
    }
}

static void every_gate_has_a_metric(void **state)
{
    char name[96];
    for (unsigned gate = 0; gate < BIDE_GATE_COUNT; gate++)
        result.refused_by[gate] = 70 + gate;
    for (unsigned gate = 0; gate < BIDE_GATE_COUNT; gate++) {
        snprintf(name, sizeof name, "refused_by_%s", bide_gate_label((enum bide_gate)(1u << gate)));
        expect_is(name, 70 + gate);
    }
}

static void empty_budget_differs_from_no_budget(void **state)
{
    result.budget_low_milli = 0;
    result.budget_end_milli = 9250;
    expect_is("budget_low", 0);
    expect_is("budget_end", 9.25);
}

/* ---- numbers ---- */

static void integers_have_all_digits(void **state)
{
    expect_text(0, "0");
    expect_text(7, "7");
    expect_text(1000000, "1000000");
    expect_text(9007199254740991.0, "9007199254740991");
    expect_text(-12, "-12");
}

static void other_numbers_have_six_significant_digits(void **state)
{
    expect_text(0.5, "0.5");
    expect_text(1.0 / 3, "0.333333");
    expect_text(2.0 / 3, "0.666667");
    expect_text(1.999999999, "2");
    expect_text(1234.56789, "1234.57");
    expect_text(99999.96, "100000");
    expect_text(1234567.5, "1234568"); /* digits before the point are never dropped */
    expect_text(0.000123456789, "0.000123457");
    expect_text(-0.25, "-0.25");
    expect_text(1e-30, "0");
}

static void nan_is_an_empty_text(void **state)
{
    expect_text(NAN, "");
    expect_text(INFINITY, "9e18");
    expect_text(-INFINITY, "-9e18");
}

static void fixed_numbers_have_the_requested_decimals(void **state)
{
    char text[SIM_NUMBER_SIZE];
    assert_string_equal(sim_number_fixed(text, 2, 3), "2.000");
    assert_string_equal(sim_number_fixed(text, 0.9996, 3), "1.000");
    assert_string_equal(sim_number_fixed(text, 12345678, 0), "12345678");
    assert_string_equal(sim_number_fixed(text, -0.001, 2), "0.00");
    assert_string_equal(sim_number_fixed(text, NAN, 2), "");
}

static void decimal_point_is_independent_of_the_locale(void **state)
{
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    for (size_t i = 0; i < 3; i++) {
        setlocale(LC_ALL, locales[i]); /* if installed on this machine */
        expect_text(1.5, "1.5");
    }
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_metric_is_found_by_its_exact_name, setup),
        cmocka_unit_test_setup(name_of_a_time_metric_ends_with_its_unit, setup),
        cmocka_unit_test_setup(misspelt_metric_name_gets_a_suggestion, setup),
        cmocka_unit_test_setup(count_metrics_equal_the_result, setup),
        cmocka_unit_test_setup(amplification_is_arrivals_per_call, setup),
        cmocka_unit_test_setup(shares_are_undefined_without_calls, setup),
        cmocka_unit_test_setup(recovery_is_undefined_without_a_disturbance, setup),
        cmocka_unit_test_setup(time_metrics_use_the_unit_of_their_name, setup),
        cmocka_unit_test_setup(every_bin_width_has_peak_metrics, setup),
        cmocka_unit_test_setup(every_reason_that_ends_a_call_has_a_metric, setup),
        cmocka_unit_test_setup(every_gate_has_a_metric, setup),
        cmocka_unit_test_setup(empty_budget_differs_from_no_budget, setup),
        cmocka_unit_test(integers_have_all_digits),
        cmocka_unit_test(other_numbers_have_six_significant_digits),
        cmocka_unit_test(nan_is_an_empty_text),
        cmocka_unit_test(fixed_numbers_have_the_requested_decimals),
        cmocka_unit_test(decimal_point_is_independent_of_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
