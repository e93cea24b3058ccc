/* Expectations, asked of figures that are made up here. */
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

static struct sim_row_result outcome[ROWS];
static struct sim_batch batch;

static size_t metric(const char *name)
{
    size_t m = sim_metric_find(name, strlen(name));
    if (m == SIZE_MAX)
        fail_msg("no metric %s", name);
    return m;
}

static void set(size_t row, const char *name, double least, double mean, double most)
{
    outcome[row].figure[metric(name)] = (struct sim_figure){mean, 0, least, most, isnan(mean) ? 0 : batch.plan.seeds};
}

/* fifo at two rates, and lifo; one seed. */
static int make(void **state)
{
    static const char *const name[ROWS] = {"fifo", "fifo", "lifo"};
    static const char *const swept[ROWS] = {", clients.rate=140/s", ", clients.rate=150/s", ""};
    size_t metrics = 0;
    while (sim_metric(metrics) != NULL)
        metrics++;
    batch = (struct sim_batch){.plan = {.seeds = 1}, .row = outcome, .rows = ROWS};
    for (size_t r = 0; r < ROWS; r++) {
        snprintf(rows[r].name, sizeof rows[r].name, "%s", name[r]);
        snprintf(rows[r].label, sizeof rows[r].label, "%s%s", name[r], swept[r]);
        outcome[r].figure = calloc(metrics, sizeof(struct sim_figure));
        set(r, "amplification", 1.5, 1.5, 1.5);
        set(r, "calls", 1000, 1000, 1000);
        set(r, "recovers", 1, 1, 1);
        set(r, "latency_p99_ms", 1400, 1400, 1400);
    }
    return 0;
}

static int drop(void **state)
{
    for (size_t r = 0; r < ROWS; r++)
        free(outcome[r].figure);
    return 0;
}

static char said[256];

static bool holds(const char *text)
{
    struct sim_expect expect;
    const char *want = sim_expect_read(&expect, text);
    if (want != NULL)
        fail_msg("%s: want %s", text, want);
    return sim_expect_holds(&expect, &batch, said);
}

static void wrong(const char *text, const char *part)
{
    struct sim_expect expect;
    const char *want = sim_expect_read(&expect, text);
    if (want == NULL)
        fail_msg("%s is taken", text);
    if (strstr(want, part) == NULL)
        fail_msg("%s: want %s, which does not say %s", text, want, part);
}

/* ---- asking ---- */

static void every_comparison_is_exact_at_its_limit(void **state)
{
    static const struct {
        const char *sign;
        bool below, at, above; /* the figure is below the number, ... */
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

static void a_flag_must_be_yes_or_with_an_exclamation_mark_no(void **state)
{
    assert_true(holds("recovers"));
    assert_true(holds("recovers=yes"));
    assert_true(holds("recovers != no"));
    assert_false(holds("!recovers"));
    assert_string_equal(said, "fifo, clients.rate=140/s: recovers is yes; expected no; and 2 more rows");
    set(1, "recovers", 0, 0, 0);
    assert_false(holds("recovers"));
    assert_string_equal(said, "fifo, clients.rate=150/s: recovers is no; expected yes");
    assert_true(holds("lifo: recovers"));
    assert_true(holds("fifo, clients.rate=150/s: !recovers"));
}

static void what_fails_is_told_with_its_row_and_figure(void **state)
{
    set(1, "amplification", 2.01, 2.01, 2.01);
    assert_false(holds("amplification<1.6"));
    assert_string_equal(said, "fifo, clients.rate=150/s: amplification is 2.01; expected < 1.6");
    set(2, "amplification", 3, 3, 3);
    assert_false(holds("amplification<1.6"));
    assert_string_equal(said, "fifo, clients.rate=150/s: amplification is 2.01; expected < 1.6; and 1 more row");
}

static void what_holds_is_told_of_the_row_that_comes_nearest_to_the_limit(void **state)
{
    set(1, "amplification", 2.01, 2.01, 2.01);
    assert_true(holds("amplification<3"));
    assert_string_equal(said, "fifo, clients.rate=150/s: amplification is 2.01; expected < 3");
    assert_true(holds("amplification>1"));
    assert_string_equal(said, "fifo, clients.rate=140/s: amplification is 1.5; expected > 1");
}

static void a_row_is_meant_by_its_name_or_its_label_or_how_it_begins(void **state)
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

static void a_whole_name_goes_before_the_beginning_of_another(void **state)
{
    struct sim_expect expect;
    snprintf(rows[2].name, sizeof rows[2].name, "fifo-fast");
    snprintf(rows[2].label, sizeof rows[2].label, "fifo-fast");
    assert_null(sim_expect_read(&expect, "fifo: recovers"));
    assert_int_equal(sim_expect_rows(&expect, NULL), 2);
    assert_null(sim_expect_read(&expect, "fifo-: recovers"));
    assert_int_equal(sim_expect_rows(&expect, NULL), 1);
}

static void a_name_may_have_a_colon_in_it(void **state)
{
    struct sim_expect expect;
    snprintf(rows[2].name, sizeof rows[2].name, "shop:eu");
    snprintf(rows[2].label, sizeof rows[2].label, "shop:eu");
    assert_null(sim_expect_read(&expect, "shop:eu: calls>=1000"));
    assert_string_equal(expect.row, "shop:eu");
    assert_int_equal(sim_expect_rows(&expect, NULL), 1);
}

static void no_row_of_that_name_is_a_failure(void **state)
{
    assert_false(holds("nobody: recovers"));
    assert_string_equal(said, "there is no row nobody");
}

static void several_seeds_are_asked_for_their_worst(void **state)
{
    batch.plan.seeds = 10;
    for (size_t r = 0; r < ROWS; r++) {
        set(r, "amplification", 1.1, 1.2, 1.5);
        set(r, "recovers", 0, 0.7, 1);
    }
    assert_false(holds("amplification<1.4"));
    assert_string_equal(said, "fifo, clients.rate=140/s: amplification is 1.5 at worst, 1.2 on average of 10 seeds; "
                              "expected < 1.4; and 2 more rows");
    assert_true(holds("amplification<1.6"));
    assert_false(holds("amplification>1.15"));
    assert_true(holds("amplification>1"));
    assert_false(holds("amplification=1.2"));
    assert_false(holds("amplification!=1.3"));
    assert_true(holds("amplification!=1.6"));
    assert_false(holds("lifo: recovers"));
    assert_string_equal(said, "lifo: recovers is no with 3 of 10 seeds; expected yes");
    assert_false(holds("lifo: !recovers"));
    assert_string_equal(said, "lifo: recovers is yes with 7 of 10 seeds; expected no");
}

static void a_value_that_is_not_there_fails_every_question(void **state)
{
    set(0, "recover_s", NAN, NAN, NAN);
    static const char *const all[] = {"recover_s<1", "recover_s>=0", "recover_s=0", "recover_s!=7"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_false(holds(all[i]));
    assert_non_null(strstr(said, "fifo, clients.rate=140/s: recover_s has no value"));
    batch.plan.seeds = 4;
    set(2, "recover_s", 1, 1, 1);
    outcome[2].figure[metric("recover_s")].count = 3;
    assert_false(holds("lifo: recover_s<10"));
    assert_string_equal(said, "lifo: recover_s has no value with 1 of 4 seeds");
}

/* ---- reading ---- */

static void numbers_may_have_units(void **state)
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
            fail_msg("%s: want %s", right[i].text, want);
        if (fabs(expect.number - right[i].number) > 1e-9 * right[i].number)
            fail_msg("%s: %.12g", right[i].text, expect.number);
    }
}

static void mistakes_are_told_with_what_would_be_right(void **state)
{
    wrong("amplfication<1.2", "amplification");
    wrong("xyzzy<1.2", "bide sim metrics");
    wrong("amplification", "in quotes"); /* the shell took the rest */
    wrong("amplification<", "in quotes");
    wrong("amplification<lots", "'amplification<1.2'");
    wrong("amplification<1.2ms", "a number");
    wrong("latency_p99_ms<5kg", "of ms");
    wrong("amplification=<1", "a number");
    wrong("success>=99", "'success>=99%'");
    wrong("success>=100.1%", "from 0 to 1");
    wrong("success>=most", "'success>=99%'");
    wrong("success>=9 9%", "'success>=99%'");
    wrong("latency_p99_ms<5k", "of ms");
    wrong("!amplification", "flag");
    wrong("!recovers=yes", "flag");
    wrong("recovers<1", "'recovers' or '!recovers'");
    wrong("recovers=maybe", "'!recovers'");
    wrong("", "metric");
    wrong("!", "metric");
    wrong("<3", "metric");
    wrong(":recovers", "row");
    wrong("recovers: ", "metric");
    wrong("amplification<nan", "number");
    wrong("amplification<inf", "number");
    wrong("amplification<1e3", "number");
    wrong("amplification<-1", "number");
}

static void texts_longer_than_any_buffer_are_refused_whole(void **state)
{
    char text[2000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    wrong(text, "metric");
    memcpy(text + sizeof text - 10, ":recovers", 10);
    wrong(text, "shorter");
    memset(text, 'a', sizeof text);
    memcpy(text, "calls<", 6);
    text[sizeof text - 1] = '\0';
    wrong(text, "number");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(every_comparison_is_exact_at_its_limit),
        TEST(a_flag_must_be_yes_or_with_an_exclamation_mark_no),
        TEST(what_fails_is_told_with_its_row_and_figure),
        TEST(what_holds_is_told_of_the_row_that_comes_nearest_to_the_limit),
        TEST(a_row_is_meant_by_its_name_or_its_label_or_how_it_begins),
        TEST(a_whole_name_goes_before_the_beginning_of_another),
        TEST(a_name_may_have_a_colon_in_it),
        TEST(no_row_of_that_name_is_a_failure),
        TEST(several_seeds_are_asked_for_their_worst),
        TEST(a_value_that_is_not_there_fails_every_question),
        TEST(numbers_may_have_units),
        TEST(mistakes_are_told_with_what_would_be_right),
        TEST(texts_longer_than_any_buffer_are_refused_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
