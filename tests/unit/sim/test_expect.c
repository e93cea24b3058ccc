/* test_expect.c - expectations, checked against made-up metrics. */
#include "sim/expect.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 3u

static struct sim_row rows[ROWS];
static size_t row_count = ROWS;

size_t sim_scenario_rows(const struct sim_scenario *scenario)
{
    (void)scenario;
    return row_count;
}

const struct sim_row *sim_scenario_row(const struct sim_scenario *scenario, size_t row)
{
    (void)scenario;
    return &rows[row];
}

static struct sim_row_result row_result[ROWS];
static struct sim_batch batch;

static size_t metric(const char *name)
{
    size_t m = sim_metric_find(name, strlen(name));
    if (m == SIZE_MAX)
        fail_msg("no metric %s", name);
    return m;
}

static void set_figure(size_t row, const char *name, double min, double mean, double max)
{
    row_result[row].figure[metric(name)] = (struct sim_figure){mean, 0, min, max, isnan(mean) ? 0 : batch.plan.seeds};
}

/* Rows: fifo at two rates, and lifo; a single seed. */
static int setup(void **state)
{
    static const char *const name[ROWS] = {"fifo", "fifo", "lifo"};
    static const char *const swept[ROWS] = {", clients.rate=140/s", ", clients.rate=150/s", ""};
    size_t metrics = 0;
    while (sim_metric(metrics) != NULL)
        metrics++;
    batch = (struct sim_batch){.plan = {.seeds = 1}, .row = row_result, .rows = ROWS};
    for (size_t r = 0; r < ROWS; r++) {
        snprintf(rows[r].name, sizeof rows[r].name, "%s", name[r]);
        snprintf(rows[r].label, sizeof rows[r].label, "%s%s", name[r], swept[r]);
        row_result[r].figure = calloc(metrics, sizeof(struct sim_figure));
        set_figure(r, "amplification", 1.5, 1.5, 1.5);
        set_figure(r, "calls", 1000, 1000, 1000);
        set_figure(r, "recovers", 1, 1, 1);
        set_figure(r, "latency_p99_ms", 1400, 1400, 1400);
    }
    return 0;
}

static int teardown(void **state)
{
    for (size_t r = 0; r < ROWS; r++)
        free(row_result[r].figure);
    return 0;
}

static char report[256];

static bool holds(const char *text)
{
    struct sim_expect expect;
    const char *want = sim_expect_read(&expect, text);
    if (want != NULL)
        fail_msg("%s: must be %s", text, want);
    return sim_expect_holds(&expect, &batch, report);
}

static void assert_rejected(const char *text, const char *part)
{
    struct sim_expect expect;
    const char *want = sim_expect_read(&expect, text);
    if (want == NULL)
        fail_msg("%s is taken", text);
    if (strstr(want, part) == NULL)
        fail_msg("%s: must be %s, which does not say %s", text, want, part);
}

/* ---- checking ---- */

static void comparisons_are_exact_at_the_limit(void **state)
{
    static const struct {
        const char *sign;
        bool below, at, above; /* result if the metric is below, at or above the number */
    } truth[] = {
        {"<", true, false, false}, {"<=", true, true, false},  {">", false, false, true}, {">=", false, true, true},
        {"=", false, true, false}, {"==", false, true, false}, {"!=", true, false, true},
    };
    char text[64];
    for (size_t i = 0; i < sizeof truth / sizeof *truth; i++) {
        snprintf(text, sizeof text, "amplification%s1.6", truth[i].sign);
        assert_int_equal(holds(text), truth[i].below);
        snprintf(text, sizeof text, " amplification %s 1.5 ", truth[i].sign);
        assert_int_equal(holds(text), truth[i].at);
        snprintf(text, sizeof text, "amplification %s1.4", truth[i].sign);
        assert_int_equal(holds(text), truth[i].above);
    }
}

static void flag_must_be_yes_or_no_with_exclamation_mark(void **state)
{
    assert_true(holds("recovers"));
    assert_true(holds("recovers=yes"));
    assert_true(holds("recovers != no"));
    assert_false(holds("!recovers"));
    assert_string_equal(report, "fifo, clients.rate=140/s: recovers is yes; expected no; and 2 more rows");
    set_figure(1, "recovers", 0, 0, 0);
    assert_false(holds("recovers"));
    assert_string_equal(report, "fifo, clients.rate=150/s: recovers is no; expected yes");
    assert_true(holds("lifo: recovers"));
    assert_true(holds("fifo, clients.rate=150/s: !recovers"));
}

static void failed_expectation_reports_row_and_value(void **state)
{
    set_figure(1, "amplification", 2.01, 2.01, 2.01);
    assert_false(holds("amplification<1.6"));
    assert_string_equal(report, "fifo, clients.rate=150/s: amplification is 2.01; expected < 1.6");
    set_figure(2, "amplification", 3, 3, 3);
    assert_false(holds("amplification<1.6"));
    assert_string_equal(report, "fifo, clients.rate=150/s: amplification is 2.01; expected < 1.6; and 1 more row");
}

static void met_expectation_reports_the_row_nearest_to_the_limit(void **state)
{
    set_figure(1, "amplification", 2.01, 2.01, 2.01);
    assert_true(holds("amplification<3"));
    assert_string_equal(report, "fifo, clients.rate=150/s: amplification is 2.01; expected < 3");
    assert_true(holds("amplification>1"));
    assert_string_equal(report, "fifo, clients.rate=140/s: amplification is 1.5; expected > 1");
}

static void row_is_selected_by_name_label_or_label_prefix(void **state)
{
    struct sim_expect expect;
    static const struct {
        const char *row;
        size_t count;
    } meant[] = {{"fifo", 2}, {"lifo", 1}, {"fifo, clients.rate=150/s", 1}, {"fi", 2}, {"lifo, ", 0}, {"none", 0}};
    char text[64];
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        snprintf(text, sizeof text, "%s: recovers", meant[i].row);
        assert_null(sim_expect_read(&expect, text));
        assert_int_equal(sim_expect_rows(&expect, NULL), meant[i].count);
    }
    assert_null(sim_expect_read(&expect, "recovers"));
    assert_int_equal(sim_expect_rows(&expect, NULL), 3);
}

static void exact_row_name_is_preferred_to_a_prefix(void **state)
{
    struct sim_expect expect;
    snprintf(rows[2].name, sizeof rows[2].name, "fifo-fast");
    snprintf(rows[2].label, sizeof rows[2].label, "fifo-fast");
    assert_null(sim_expect_read(&expect, "fifo: recovers"));
    assert_int_equal(sim_expect_rows(&expect, NULL), 2);
    assert_null(sim_expect_read(&expect, "fifo-: recovers"));
    assert_int_equal(sim_expect_rows(&expect, NULL), 1);
}

static void row_name_may_contain_a_colon(void **state)
{
    struct sim_expect expect;
    snprintf(rows[2].name, sizeof rows[2].name, "shop:eu");
    snprintf(rows[2].label, sizeof rows[2].label, "shop:eu");
    assert_null(sim_expect_read(&expect, "shop:eu: calls>=1000"));
    assert_string_equal(expect.row, "shop:eu");
    assert_int_equal(sim_expect_rows(&expect, NULL), 1);
}

static void expectation_fails_for_unknown_row(void **state)
{
    assert_false(holds("nobody: recovers"));
    assert_string_equal(report, "there is no row nobody");
}

static void worst_seed_decides_the_expectation(void **state)
{
    batch.plan.seeds = 10;
    for (size_t r = 0; r < ROWS; r++) {
        set_figure(r, "amplification", 1.1, 1.2, 1.5);
        set_figure(r, "recovers", 0, 0.7, 1);
    }
    assert_false(holds("amplification<1.4"));
    assert_string_equal(report, "fifo, clients.rate=140/s: amplification is 1.5 at worst, 1.2 on average of 10 seeds; "
                                "expected < 1.4; and 2 more rows");
    assert_true(holds("amplification<1.6"));
    assert_false(holds("amplification>1.15"));
    assert_true(holds("amplification>1"));
    assert_false(holds("amplification=1.2"));
    assert_false(holds("amplification!=1.3"));
    assert_true(holds("amplification!=1.6"));
    assert_false(holds("lifo: recovers"));
    assert_string_equal(report, "lifo: recovers is no with 3 of 10 seeds; expected yes");
    assert_false(holds("lifo: !recovers"));
    assert_string_equal(report, "lifo: recovers is yes with 7 of 10 seeds; expected no");
}

static void missing_value_fails_every_expectation(void **state)
{
    set_figure(0, "recover_s", NAN, NAN, NAN);
    static const char *const all[] = {"recover_s<1", "recover_s>=0", "recover_s=0", "recover_s!=7"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_false(holds(all[i]));
    assert_non_null(strstr(report, "fifo, clients.rate=140/s: recover_s has no value"));
    batch.plan.seeds = 4;
    set_figure(2, "recover_s", 1, 1, 1);
    row_result[2].figure[metric("recover_s")].count = 3;
    assert_false(holds("lifo: recover_s<10"));
    assert_string_equal(report, "lifo: recover_s has no value with 1 of 4 seeds");
}

/* ---- reading ---- */

static void expected_numbers_may_have_units(void **state)
{
    struct sim_expect expect;
    static const struct {
        const char *text;
        double number;
    } right[] = {
        {"latency_p99_ms<1500", 1500},
        {"latency_p99_ms<1.5s", 1500},
        {"latency_p99_ms<250us", 0.25},
        {"recover_s<=2m", 120},
        {"recover_s<0.5", 0.5},
        {"success>=99.5%", 0.995},
        {"goodput>200/s", 200},
        {"amplification<0.000001", 1e-6},
        {"calls>=25000000", 25e6},
        {"success >= 99 %", 0.99},
        {"latency_p99_ms<1.5 s", 1500},
        {"calls<300k", 300e3},
        {"calls > 2.5 M", 2.5e6},
        {"success<=1", 1},
        {"error<100%", 1},
        {"amplification<120%", 1.2},
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        const char *want = sim_expect_read(&expect, right[i].text);
        if (want != NULL)
            fail_msg("%s: must be %s", right[i].text, want);
        if (fabs(expect.number - right[i].number) > 1e-9 * right[i].number)
            fail_msg("%s: %.12g", right[i].text, expect.number);
    }
}

static void invalid_expectations_describe_the_valid_form(void **state)
{
    assert_rejected("amplfication<1.2", "amplification");
    assert_rejected("xyzzy<1.2", "bide sim metrics");
    assert_rejected("amplification", "in quotes"); /* the shell has removed the rest */
    assert_rejected("amplification<", "in quotes");
    assert_rejected("amplification<lots", "'amplification<1.2'");
    assert_rejected("amplification<1.2ms", "a number");
    assert_rejected("latency_p99_ms<5kg", "of ms");
    assert_rejected("amplification=<1", "a number");
    assert_rejected("success>=99", "'success>=99%'");
    assert_rejected("success>=100.1%", "from 0 to 1");
    assert_rejected("success>=most", "'success>=99%'");
    assert_rejected("success>=9 9%", "'success>=99%'");
    assert_rejected("latency_p99_ms<5k", "of ms");
    assert_rejected("!amplification", "flag");
    assert_rejected("!recovers=yes", "flag");
    assert_rejected("recovers<1", "'recovers' or '!recovers'");
    assert_rejected("recovers=maybe", "'!recovers'");
    assert_rejected("", "metric");
    assert_rejected("!", "metric");
    assert_rejected("<3", "metric");
    assert_rejected(":recovers", "row");
    assert_rejected("recovers: ", "metric");
    assert_rejected("amplification<nan", "number");
    assert_rejected("amplification<inf", "number");
    assert_rejected("amplification<1e3", "number");
    assert_rejected("amplification<-1", "number");
}

static void overlong_expectations_are_rejected(void **state)
{
    char text[2000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_rejected(text, "metric");
    memcpy(text + sizeof text - 10, ":recovers", 10);
    assert_rejected(text, "shorter");
    memset(text, 'a', sizeof text);
    memcpy(text, "calls<", 6);
    text[sizeof text - 1] = '\0';
    assert_rejected(text, "number");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(comparisons_are_exact_at_the_limit),
        TEST(flag_must_be_yes_or_no_with_exclamation_mark),
        TEST(failed_expectation_reports_row_and_value),
        TEST(met_expectation_reports_the_row_nearest_to_the_limit),
        TEST(row_is_selected_by_name_label_or_label_prefix),
        TEST(exact_row_name_is_preferred_to_a_prefix),
        TEST(row_name_may_contain_a_colon),
        TEST(expectation_fails_for_unknown_row),
        TEST(worst_seed_decides_the_expectation),
        TEST(missing_value_fails_every_expectation),
        TEST(expected_numbers_may_have_units),
        TEST(invalid_expectations_describe_the_valid_form),
        TEST(overlong_expectations_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
