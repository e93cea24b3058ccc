/* test_demo.c - the demo without its sockets: arrivals, metrics, and their output. */
#define _GNU_SOURCE
#include "demo/panels.h"
#include "demo/summary.h"

#include "chaos/script.h"

#include <inttypes.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "xml_text.h"

#define CALLS 1000u

/* ---- helpers ---- */

static struct demo_scenario scenario_of(uint32_t rate, int64_t length_ns)
{
    struct demo_scenario s = {.seed = 7, .rate = rate, .length_ns = length_ns};
    demo_scenario_outage(&s);
    assert_null(demo_scenario_complete(&s));
    return s;
}

/* A run of ten seconds at 100 calls a second, down from 2 s to 4 s; a function of time decides which calls fail. */
static struct demo_scenario test_scenario(void)
{
    struct demo_scenario s = scenario_of(100, 10 * BIDE_S);
    s.down_ns = 2 * BIDE_S;
    s.up_ns = 4 * BIDE_S;
    return s;
}

static struct demo_call calls[CALLS];
static struct demo_request requests[2 * CALLS];

/* One request per call, served after 50 ms if ok, else rejected at once. */
static struct demo_record record_of(bool (*ok)(int64_t at_ns))
{
    for (uint32_t i = 0; i < CALLS; i++) {
        int64_t at_ns = i * 10 * BIDE_MS, end_ns = at_ns + (ok(at_ns) ? 50 * BIDE_MS : BIDE_MS);
        calls[i] = (struct demo_call){.begin_ns = at_ns,
                                      .end_ns = end_ns,
                                      .attempts = 1,
                                      .reason = ok(at_ns) ? BIDE_REASON_SUCCEEDED : BIDE_REASON_BUDGET_EMPTY};
        requests[i] =
            (struct demo_request){.at_ns = at_ns, .end_ns = end_ns, .status = ok(at_ns) ? 200 : 503, .is_first = true};
    }
    return (struct demo_record){.call = calls, .calls = CALLS, .request = requests, .requests = CALLS};
}

static bool until_down(int64_t at_ns)
{
    return at_ns < 2 * BIDE_S || at_ns >= 4 * BIDE_S;
}

static bool one_second_longer(int64_t at_ns)
{
    return at_ns < 2 * BIDE_S || at_ns >= 5 * BIDE_S;
}

static bool back_and_down_again(int64_t at_ns)
{
    return until_down(at_ns) && (at_ns < 6 * BIDE_S || at_ns >= 7 * BIDE_S);
}

static bool never_again(int64_t at_ns)
{
    return at_ns < 2 * BIDE_S;
}

static bool mostly(int64_t at_ns)
{
    return until_down(at_ns) && at_ns / (10 * BIDE_MS) % 20 != 0; /* 95 % */
}

static bool hardly(int64_t at_ns)
{
    return until_down(at_ns) && at_ns / (10 * BIDE_MS) % 5 != 0; /* 80 % */
}

static struct demo_counters count_run(bool (*ok)(int64_t at_ns))
{
    struct demo_scenario s = test_scenario();
    struct demo_record record = record_of(ok);
    struct demo_counters t;
    assert_true(demo_counters_compute(&t, &s, &record));
    return t;
}

static int64_t count_recovery(bool (*ok)(int64_t at_ns))
{
    struct demo_counters t = count_run(ok);
    int64_t recovery_ns = t.recovery_ns;
    demo_counters_free(&t);
    return recovery_ns;
}

/* ---- the scenario ---- */

static void same_seed_gives_the_same_calls(void **state)
{
    struct demo_scenario s = scenario_of(200, 18 * BIDE_S), other = s;
    other.seed = 8;
    uint32_t differ = 0;
    for (uint32_t i = 0; i < demo_call_count(&s); i++) {
        struct demo_scenario again = scenario_of(200, 18 * BIDE_S);
        assert_int_equal(demo_call_start_ns(&s, i), demo_call_start_ns(&again, i));
        differ += demo_call_start_ns(&s, i) != demo_call_start_ns(&other, i);
    }
    assert_true(differ > demo_call_count(&s) / 2);
}

static void each_call_starts_in_its_own_slot(void **state)
{
    struct demo_scenario s = scenario_of(150, 5 * BIDE_S);
    assert_int_equal(demo_call_count(&s), 750);
    for (uint32_t i = 0; i < demo_call_count(&s); i++) {
        int64_t at_ns = demo_call_start_ns(&s, i);
        assert_true(at_ns >= i * BIDE_S / 150 && at_ns <= (i + 1) * BIDE_S / 150);
        assert_true(at_ns < s.length_ns);
    }
}

static void call_seed_is_never_zero(void **state)
{
    struct demo_scenario s = scenario_of(1000, 18 * BIDE_S);
    for (uint32_t i = 0; i < demo_call_count(&s); i++)
        assert_true(demo_call_seed(&s, i) != 0);
}

static void server_capacity_is_a_quarter_above_the_rate(void **state)
{
    for (uint32_t rate = DEMO_RATE_MIN; rate <= DEMO_RATE_MAX; rate++) {
        struct demo_scenario s = scenario_of(rate, 10 * BIDE_S);
        assert_in_range(demo_capacity_per_s(&s), rate * 119 / 100, rate * 131 / 100);
        assert_int_equal(s.queue, demo_capacity_per_s(&s) * 4);
        assert_true(demo_scenario_descriptors(&s) > 4u * s.queue);
    }
}

static void server_script_is_valid(void **state)
{
    for (uint32_t rate = DEMO_RATE_MIN; rate <= DEMO_RATE_MAX; rate += 99) {
        struct demo_scenario s = scenario_of(rate, 7777 * BIDE_MS);
        struct chaos_script script;
        struct chaos_error error;
        char text[DEMO_SCRIPT_SIZE];
        assert_int_equal(chaos_script_read(&script, demo_script(text, &s), 1, &error), BIDE_OK);
        assert_int_equal(script.line[0].capacity, s.capacity);
        assert_int_equal(script.line[0].queue, s.queue);
        assert_int_equal(script.line[0].service_ns, s.service_ns);
        assert_int_equal(script.line[0].outage[0].when.min_ns, s.down_ns);
        assert_int_equal(script.line[0].outage[0].when.max_ns, s.up_ns);
        chaos_script_free(&script);
    }
}

static void invalid_scenarios_are_refused_with_a_description(void **state)
{
    struct demo_scenario s = scenario_of(200, 18 * BIDE_S), wrong;
    wrong = s, wrong.rate = 0;
    assert_non_null(demo_scenario_complete(&wrong));
    wrong = s, wrong.rate = DEMO_RATE_MAX + 1;
    assert_non_null(demo_scenario_complete(&wrong));
    wrong = s, wrong.length_ns = BIDE_S;
    assert_non_null(demo_scenario_complete(&wrong));
    wrong = s, wrong.up_ns = wrong.down_ns;
    assert_non_null(demo_scenario_complete(&wrong));
    wrong = s, wrong.up_ns = wrong.length_ns;
    assert_non_null(demo_scenario_complete(&wrong));
}

static void default_outage_fits_into_every_length(void **state)
{
    for (int64_t length_ns = DEMO_LENGTH_MIN_NS; length_ns <= DEMO_LENGTH_MAX_NS; length_ns += 777 * BIDE_MS) {
        struct demo_scenario s = scenario_of(10, length_ns);
        assert_true(s.down_ns > 0 && s.down_ns < s.up_ns && s.up_ns <= length_ns - BIDE_S);
    }
    struct demo_scenario s = scenario_of(200, DEMO_LENGTH_NS);
    assert_int_equal(s.down_ns, 5 * BIDE_S);
    assert_int_equal(s.up_ns, 9 * BIDE_S);
}

static void naive_client_has_no_gates_and_no_deadline(void **state)
{
    for (unsigned preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        struct bide_policy other;
        struct demo_client client;
        bide_policy_init(&other, (enum bide_preset)preset);
        demo_client_init_naive(&client, &other);
        assert_int_equal(bide_policy_check(&client.policy, NULL), BIDE_OK);
        assert_int_equal(bide_target_config_check(&client.target, NULL), BIDE_OK);
        assert_int_equal(client.policy.attempts_max, 10);
        assert_int_equal(client.policy.jitter, BIDE_JITTER_NONE);
        assert_int_equal(client.policy.backoff, BIDE_BACKOFF_FIXED);
        assert_int_equal(client.policy.base_ns, 500 * BIDE_MS);
        assert_int_equal(client.policy.call_timeout_ns, BIDE_NEVER);
        assert_int_equal(client.policy.attempt_timeout_ns, other.attempt_timeout_ns);
        assert_int_equal(client.target.budget.kind, BIDE_BUDGET_NONE);
        assert_int_equal(client.target.breaker.kind, BIDE_BREAKER_OFF);
        assert_int_equal(client.target.hold_off_max_ns, 0);
        assert_int_equal(client.target.in_flight_max, 0);
        assert_int_equal(client.target.throttle_k_milli, 0);
    }
}

static void client_summary_names_the_policy(void **state)
{
    struct demo_client client = {.name = "x"}, naive;
    char text[DEMO_SUMMARY_SIZE];
    bide_policy_init(&client.policy, BIDE_PRESET_INTERACTIVE);
    bide_target_config_init(&client.target, BIDE_PRESET_INTERACTIVE);
    demo_client_init_naive(&naive, &client.policy);
    assert_string_equal(demo_client_summary(text, &client),
                        "3 attempts, full jitter 100ms..2s, 2s an attempt, budget, breaker");
    assert_string_equal(demo_client_summary(text, &naive),
                        "10 attempts, 500ms apart, no jitter, 2s an attempt, no budget, no breaker");
}

/* ---- counting ---- */

static void every_call_and_every_request_is_counted_once(void **state)
{
    struct demo_counters t = count_run(until_down);
    uint64_t began = 0, came = 0, succeeded = 0, ended = 0;
    for (size_t i = 0; i < t.intervals; i++) {
        began += t.interval[i].began;
        came += t.interval[i].requests;
        succeeded += t.interval[i].succeeded;
    }
    for (size_t i = 0; i < BIDE_REASON_COUNT; i++)
        ended += t.ended[i];
    assert_int_equal(began, CALLS);
    assert_int_equal(came, CALLS);
    assert_int_equal(ended, CALLS);
    assert_int_equal(succeeded, 800);
    assert_int_equal(t.ended[BIDE_REASON_SUCCEEDED], 800);
    assert_int_equal(demo_gave_up(&t), 200);
    assert_int_equal(t.served, 800);
    assert_int_equal(t.wasted, 0);
    assert_int_equal(t.after_calls, 600);
    assert_int_equal(t.after_ok, 600);
    assert_int_equal(t.median_ns, 50 * BIDE_MS);
    demo_counters_free(&t);
}

static void amplification_is_requests_per_first_attempt(void **state)
{
    struct demo_scenario s = test_scenario();
    struct demo_record record = record_of(until_down);
    struct demo_counters t;
    for (uint32_t i = 0; i < 500; i++)
        requests[CALLS + i] = (struct demo_request){.at_ns = 3 * BIDE_S, .end_ns = 3 * BIDE_S, .status = 503};
    record.requests = CALLS + 500;
    assert_true(demo_counters_compute(&t, &s, &record));
    assert_true(demo_amplification(&t) == 1.5);
    assert_int_equal(t.peak, 510);
    assert_int_equal(t.peak_interval, 30);
    demo_counters_free(&t);
}

static void response_to_a_caller_that_left_is_wasted(void **state)
{
    struct demo_scenario s = test_scenario();
    struct demo_record record = record_of(until_down);
    struct demo_counters t;
    for (uint32_t i = 0; i < 100; i++)
        calls[i].reason = BIDE_REASON_ATTEMPTS_SPENT; /* served, but the caller had left */
    assert_true(demo_counters_compute(&t, &s, &record));
    assert_int_equal(t.wasted, 100);
    demo_counters_free(&t);
}

static void events_after_the_end_are_in_the_last_interval(void **state)
{
    struct demo_scenario s = test_scenario();
    struct demo_call call = {.begin_ns = -5, .end_ns = 99 * BIDE_S, .attempts = 1, .reason = BIDE_REASON_SUCCEEDED};
    struct demo_record record = {.call = &call, .calls = 1, .request = requests, .requests = 0};
    struct demo_counters t;
    assert_true(demo_counters_compute(&t, &s, &record));
    assert_int_equal(t.interval[0].began, 1);
    assert_int_equal(t.interval[t.intervals - 1].succeeded, 1);
    assert_true(demo_amplification(&t) == 1);
    demo_counters_free(&t);
    demo_counters_free(&t);
    demo_counters_free(NULL);
    demo_record_free(NULL);
}

static void recovery_is_immediate_when_all_calls_after_the_outage_succeed(void **state)
{
    assert_int_equal(count_recovery(until_down), 0);
}

static void slow_return_of_the_server_counts_as_recovery_time(void **state)
{
    int64_t recovery_ns = count_recovery(one_second_longer);
    assert_in_range(recovery_ns, 900 * BIDE_MS, BIDE_S + 100 * BIDE_MS);
}

static void second_failure_delays_the_recovery(void **state)
{
    int64_t recovery_ns = count_recovery(back_and_down_again);
    assert_in_range(recovery_ns, 2900 * BIDE_MS, 3 * BIDE_S + 100 * BIDE_MS);
}

static void permanent_failure_is_not_a_recovery(void **state)
{
    assert_int_equal(count_recovery(never_again), DEMO_NOT_RECOVERED);
}

static void recovery_needs_ninety_percent(void **state)
{
    assert_int_equal(count_recovery(mostly), 0);
    assert_int_equal(count_recovery(hardly), DEMO_NOT_RECOVERED);
}

static void late_successes_do_not_count_as_recovery(void **state)
{
    struct demo_scenario s = test_scenario();
    struct demo_record record = record_of(until_down);
    struct demo_counters t;
    for (uint32_t i = 0; i < CALLS; i++)
        if (calls[i].begin_ns >= s.up_ns && calls[i].begin_ns < 7 * BIDE_S)
            calls[i].end_ns = calls[i].begin_ns + DEMO_IN_TIME_NS + 1;
    assert_true(demo_counters_compute(&t, &s, &record));
    assert_in_range(t.recovery_ns, 2900 * BIDE_MS, 3 * BIDE_S + 100 * BIDE_MS);
    demo_counters_free(&t);
}

/* ---- output ---- */

struct test_result {
    struct demo_scenario scenario;
    struct demo_client client[2];
    struct demo_result result;
};

static void test_result_init(struct test_result *test_result, const char *name)
{
    *test_result = (struct test_result){.scenario = test_scenario()};
    test_result->client[1].name = name;
    bide_policy_init(&test_result->client[1].policy, BIDE_PRESET_INTERACTIVE);
    bide_target_config_init(&test_result->client[1].target, BIDE_PRESET_INTERACTIVE);
    demo_client_init_naive(&test_result->client[0], &test_result->client[1].policy);
    test_result->result =
        (struct demo_result){.scenario = &test_result->scenario, .policy = name, .options = name, .made_s = 1700000000};
    test_result->result.side[0] = (struct demo_side_result){&test_result->client[0], count_run(never_again), 0};
    test_result->result.side[1] = (struct demo_side_result){&test_result->client[1], count_run(until_down), 0};
}

static void test_result_free(struct test_result *test_result)
{
    demo_counters_free(&test_result->result.side[0].counters);
    demo_counters_free(&test_result->result.side[1].counters);
}

static bool write_report(FILE *out, const struct demo_result *result)
{
    return demo_report(out, result);
}

static bool write_table(FILE *out, const struct demo_result *result)
{
    demo_table(out, result);
    return true;
}

static bool write_json(FILE *out, const struct demo_result *result)
{
    demo_json(out, result);
    return true;
}

/* Returns the output, to be freed. */
static char *write_to_text(bool (*write)(FILE *out, const struct demo_result *result), const struct demo_result *result)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_true(write(out, result));
    fclose(out);
    return text;
}

/* Returns the width of the widest line, in characters, and the number of lines. */
static size_t widest_line(const char *text, size_t *lines)
{
    size_t most = 0, width = 0;
    for (*lines = 0; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80 && *text != '\n';
        if (*text != '\n')
            continue;
        most = width > most ? width : most;
        width = 0;
        ++*lines;
    }
    return most;
}

static void opened_breaker_is_reported_with_its_cost(void **state)
{
    static const char note[] = "bide's breaker opened and rejected 6 calls: it is open for 5s at first,";
    struct test_result test_result;
    size_t lines;
    test_result_init(&test_result, "bide");
    test_result.client[1].target.breaker.open_ns = 5 * BIDE_S;
    test_result.client[1].target.breaker.ramp_ns = 10 * BIDE_S;
    char *calm = write_to_text(write_report, &test_result.result),
         *calm_table = write_to_text(write_table, &test_result.result);
    test_result.result.side[1].counters.ended[BIDE_REASON_BREAKER_OPEN] = 3;
    test_result.result.side[1].counters.ended[BIDE_REASON_BREAKER_PROBING] = 2;
    test_result.result.side[1].counters.ended[BIDE_REASON_BREAKER_RAMPING] = 1;
    char *page = write_to_text(write_report, &test_result.result),
         *text = write_to_text(write_table, &test_result.result);
    assert_null(strstr(calm, "rejected"));
    assert_null(strstr(calm_table, "rejected"));
    assert_non_null(strstr(calm, "too short to open"));
    assert_non_null(
        strstr(page, "breaker opened and rejected 6 calls: it is open for 5s at first, then ramps up over 10s."));
    assert_null(strstr(page, "too short to open"));
    assert_non_null(strstr(text, note));
    assert_true(widest_line(text, &lines) <= 80);
    free(calm);
    free(calm_table);
    free(page);
    free(text);
    test_result_free(&test_result);
}

static void naive_loop_with_more_successes_is_reported(void **state)
{
    struct test_result test_result;
    size_t lines;
    test_result_init(&test_result, "bide");
    test_result.result.side[0].counters.ended[BIDE_REASON_SUCCEEDED] =
        test_result.result.side[1].counters.ended[BIDE_REASON_SUCCEEDED] + 1;
    char *page = write_to_text(write_report, &test_result.result),
         *text = write_to_text(write_table, &test_result.result);
    assert_non_null(strstr(page, "More calls of the naive loop succeeded"));
    assert_non_null(strstr(text, "More calls of the naive loop succeeded"));
    assert_true(widest_line(text, &lines) <= 80);
    free(page);
    free(text);
    test_result_free(&test_result);
}

static void missing_recovery_is_reported_with_the_observed_time(void **state)
{
    struct test_result test_result;
    test_result_init(&test_result, "bide");
    test_result.result.side[0].counters.recovery_ns = DEMO_NOT_RECOVERED;
    test_result.scenario.up_ns = test_result.scenario.length_ns - 2500 * BIDE_MS;
    char *text = write_to_text(write_table, &test_result.result);
    assert_non_null(strstr(text, "not within 2.5 s"));
    free(text);
    test_result_free(&test_result);
}

static void page_is_well_formed_for_any_policy_name(void **state)
{
    struct test_result test_result;
    test_result_init(&test_result, "</pre><script>alert(\"x\")</script>&\xff");
    char *page = write_to_text(write_report, &test_result.result);
    const char *wrong = xml_wrong(page);
    if (wrong)
        fail_msg("not well-formed: %.80s", wrong);
    assert_null(strstr(page, "<script"));
    assert_int_equal(strncmp(page, DEMO_REPORT_MARK, strlen(DEMO_REPORT_MARK)), 0);
    free(page);
    test_result_free(&test_result);
}

static void page_is_self_contained(void **state)
{
    struct test_result test_result;
    test_result_init(&test_result, "interactive");
    char *page = write_to_text(write_report, &test_result.result);
    assert_null(strstr(page, "src="));
    assert_null(strstr(page, "href="));
    assert_null(strstr(page, "url("));
    assert_null(strstr(page, "@import"));
    assert_null(strstr(page, "nan"));
    assert_non_null(strstr(page, "--seed 7 --rate 100"));
    assert_non_null(strstr(page, "not within 6 s"));
    assert_non_null(strstr(page, "2023-11-14 22:13 UTC"));
    free(page);
    test_result_free(&test_result);
}

static void table_fits_eighty_columns(void **state)
{
    struct test_result test_result;
    size_t lines;
    test_result_init(&test_result, "a name that is really much longer than any column of a table can be");
    char *text = write_to_text(write_table, &test_result.result);
    assert_true(widest_line(text, &lines) <= 80);
    assert_non_null(strstr(text, "not within 6 s"));
    assert_non_null(strstr(text, "800 (80.0 %)"));
    free(text);
    test_result_free(&test_result);
}

static void json_is_valid_and_its_sums_agree(void **state)
{
    struct test_result test_result;
    test_result_init(&test_result, "quote\" and \\ and \n and \xff");
    char *text = write_to_text(write_json, &test_result.result);
    json_t *all = json_loads(text, 0, NULL);
    assert_non_null(all);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(all, "sides"), 0), "recovery_ms")));
    json_t *side = json_array_get(json_object_get(all, "sides"), 1), *value;
    size_t i;
    json_int_t sum = 0;
    json_array_foreach(json_object_get(side, "requests_by_interval"), i, value) sum += json_integer_value(value);
    assert_int_equal(sum, json_integer_value(json_object_get(side, "requests")));
    assert_int_equal(json_integer_value(json_object_get(side, "recovery_ms")), 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(side, "gave_up"), "budget_empty")), 200);
    json_decref(all);
    free(text);
    test_result_free(&test_result);
}

static char *draw_panels(struct cli_term term, const struct demo_panel panel[2])
{
    struct demo_scenario s = test_scenario();
    char *text = NULL;
    size_t length = 0;
    term.out = open_memstream(&text, &length);
    demo_panels(&term, &s, panel);
    fclose(term.out);
    return text;
}

static void panels_stay_within_every_width(void **state)
{
    uint32_t came[100];
    for (size_t i = 0; i < 100; i++)
        came[i] = (uint32_t)(i * 3);
    const struct demo_panel panel[2] = {{"one", "a, b, c", came, 100},
                                        {"other\xc3\xa9", "long, longer, longest", came, 50}};
    for (unsigned width = DEMO_PANELS_WIDTH_MIN; width < 300; width++) {
        size_t lines;
        char *text = draw_panels((struct cli_term){.width = width, .utf8 = true}, panel);
        assert_true(widest_line(text, &lines) <= width);
        assert_int_equal(lines, DEMO_PANELS_LINES);
        assert_null(strstr(text, " \n"));
        free(text);
    }
}

static void panels_without_utf8_are_ascii(void **state)
{
    uint32_t came[100] = {0, 5, 100, 30};
    const struct demo_panel panel[2] = {{"one", "words", came, 4}, {"other", "words", came, 0}};
    char *text = draw_panels((struct cli_term){.width = 80}, panel);
    for (size_t i = 0; text[i] != '\0'; i++)
        assert_true((unsigned char)text[i] < 0x80 && text[i] != '\033');
    assert_non_null(strchr(text, '@'));
    assert_non_null(strstr(text, "xxxx"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_the_same_calls),
        cmocka_unit_test(each_call_starts_in_its_own_slot),
        cmocka_unit_test(call_seed_is_never_zero),
        cmocka_unit_test(server_capacity_is_a_quarter_above_the_rate),
        cmocka_unit_test(server_script_is_valid),
        cmocka_unit_test(invalid_scenarios_are_refused_with_a_description),
        cmocka_unit_test(default_outage_fits_into_every_length),
        cmocka_unit_test(naive_client_has_no_gates_and_no_deadline),
        cmocka_unit_test(client_summary_names_the_policy),
        cmocka_unit_test(every_call_and_every_request_is_counted_once),
        cmocka_unit_test(amplification_is_requests_per_first_attempt),
        cmocka_unit_test(response_to_a_caller_that_left_is_wasted),
        cmocka_unit_test(events_after_the_end_are_in_the_last_interval),
        cmocka_unit_test(recovery_is_immediate_when_all_calls_after_the_outage_succeed),
        cmocka_unit_test(slow_return_of_the_server_counts_as_recovery_time),
        cmocka_unit_test(second_failure_delays_the_recovery),
        cmocka_unit_test(permanent_failure_is_not_a_recovery),
        cmocka_unit_test(recovery_needs_ninety_percent),
        cmocka_unit_test(late_successes_do_not_count_as_recovery),
        cmocka_unit_test(opened_breaker_is_reported_with_its_cost),
        cmocka_unit_test(naive_loop_with_more_successes_is_reported),
        cmocka_unit_test(missing_recovery_is_reported_with_the_observed_time),
        cmocka_unit_test(page_is_well_formed_for_any_policy_name),
        cmocka_unit_test(page_is_self_contained),
        cmocka_unit_test(table_fits_eighty_columns),
        cmocka_unit_test(json_is_valid_and_its_sums_agree),
        cmocka_unit_test(panels_stay_within_every_width),
        cmocka_unit_test(panels_without_utf8_are_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
