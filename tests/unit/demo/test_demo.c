/* test_demo.c - the demo without its sockets: which calls come when, what is counted, and how that is shown. */
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
    assert_null(demo_scenario_settle(&s));
    return s;
}

/* A run of ten seconds at 100 calls a second, down from 2 s to 4 s: who fails is told by a function of time. */
static struct demo_scenario told_scenario(void)
{
    struct demo_scenario s = scenario_of(100, 10 * BIDE_S);
    s.down_ns = 2 * BIDE_S;
    s.up_ns = 4 * BIDE_S;
    return s;
}

static struct demo_call calls[CALLS];
static struct demo_request requests[2 * CALLS];

/* One request for each call, served after 50 ms if ok, else refused at once. */
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

static struct demo_tally tally_of(bool (*ok)(int64_t at_ns))
{
    struct demo_scenario s = told_scenario();
    struct demo_record record = record_of(ok);
    struct demo_tally t;
    assert_true(demo_tally(&t, &s, &record));
    return t;
}

static int64_t recovery_of(bool (*ok)(int64_t at_ns))
{
    struct demo_tally t = tally_of(ok);
    int64_t recovery_ns = t.recovery_ns;
    demo_tally_free(&t);
    return recovery_ns;
}

/* ---- the scenario ---- */

static void the_same_seed_gives_the_same_calls(void **state)
{
    struct demo_scenario s = scenario_of(200, 18 * BIDE_S), other = s;
    other.seed = 8;
    uint32_t differ = 0;
    for (uint32_t i = 0; i < demo_calls(&s); i++) {
        struct demo_scenario again = scenario_of(200, 18 * BIDE_S);
        assert_int_equal(demo_call_ns(&s, i), demo_call_ns(&again, i));
        differ += demo_call_ns(&s, i) != demo_call_ns(&other, i);
    }
    assert_true(differ > demo_calls(&s) / 2);
}

static void each_call_begins_in_its_own_slot(void **state)
{
    struct demo_scenario s = scenario_of(150, 5 * BIDE_S);
    assert_int_equal(demo_calls(&s), 750);
    for (uint32_t i = 0; i < demo_calls(&s); i++) {
        int64_t at_ns = demo_call_ns(&s, i);
        assert_true(at_ns >= i * BIDE_S / 150 && at_ns <= (i + 1) * BIDE_S / 150);
        assert_true(at_ns < s.length_ns);
    }
}

static void a_call_never_has_the_seed_that_means_draw_one(void **state)
{
    struct demo_scenario s = scenario_of(1000, 18 * BIDE_S);
    for (uint32_t i = 0; i < demo_calls(&s); i++)
        assert_true(demo_call_seed(&s, i) != 0);
}

static void the_server_can_do_a_quarter_more_than_is_asked_of_it(void **state)
{
    for (uint32_t rate = DEMO_RATE_MIN; rate <= DEMO_RATE_MAX; rate++) {
        struct demo_scenario s = scenario_of(rate, 10 * BIDE_S);
        assert_in_range(demo_capacity_per_s(&s), rate * 119 / 100, rate * 131 / 100);
        assert_int_equal(s.queue, demo_capacity_per_s(&s) * 4);
        assert_true(demo_scenario_descriptors(&s) > 4u * s.queue);
    }
}

static void its_script_is_one_that_chaos_understands(void **state)
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

static void what_makes_no_sense_is_refused_with_what_would(void **state)
{
    struct demo_scenario s = scenario_of(200, 18 * BIDE_S), wrong;
    wrong = s, wrong.rate = 0;
    assert_non_null(demo_scenario_settle(&wrong));
    wrong = s, wrong.rate = DEMO_RATE_MAX + 1;
    assert_non_null(demo_scenario_settle(&wrong));
    wrong = s, wrong.length_ns = BIDE_S;
    assert_non_null(demo_scenario_settle(&wrong));
    wrong = s, wrong.up_ns = wrong.down_ns;
    assert_non_null(demo_scenario_settle(&wrong));
    wrong = s, wrong.up_ns = wrong.length_ns;
    assert_non_null(demo_scenario_settle(&wrong));
}

static void the_outage_fits_into_every_length(void **state)
{
    for (int64_t length_ns = DEMO_LENGTH_MIN_NS; length_ns <= DEMO_LENGTH_MAX_NS; length_ns += 777 * BIDE_MS) {
        struct demo_scenario s = scenario_of(10, length_ns);
        assert_true(s.down_ns > 0 && s.down_ns < s.up_ns && s.up_ns <= length_ns - BIDE_S);
    }
    struct demo_scenario s = scenario_of(200, DEMO_LENGTH_NS);
    assert_int_equal(s.down_ns, 5 * BIDE_S);
    assert_int_equal(s.up_ns, 9 * BIDE_S);
}

static void the_naive_loop_has_nothing_that_holds_it_back(void **state)
{
    for (unsigned preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        struct bide_policy other;
        struct demo_plan plan;
        bide_policy_init(&other, (enum bide_preset)preset);
        demo_naive(&plan, &other);
        assert_int_equal(bide_policy_check(&plan.policy, NULL), BIDE_OK);
        assert_int_equal(bide_target_config_check(&plan.target, NULL), BIDE_OK);
        assert_int_equal(plan.policy.attempts_max, 10);
        assert_int_equal(plan.policy.jitter, BIDE_JITTER_NONE);
        assert_int_equal(plan.policy.backoff, BIDE_BACKOFF_FIXED);
        assert_int_equal(plan.policy.base_ns, 500 * BIDE_MS);
        assert_int_equal(plan.policy.deadline_ns, BIDE_NEVER);
        assert_int_equal(plan.policy.attempt_timeout_ns, other.attempt_timeout_ns);
        assert_int_equal(plan.target.budget.kind, BIDE_BUDGET_NONE);
        assert_int_equal(plan.target.breaker.kind, BIDE_BREAKER_OFF);
        assert_int_equal(plan.target.hold_off_max_ns, 0);
        assert_int_equal(plan.target.in_flight_max, 0);
        assert_int_equal(plan.target.throttle_k_milli, 0);
    }
}

static void a_plan_is_told_in_words(void **state)
{
    struct demo_plan plan = {.name = "x"}, naive;
    char text[DEMO_WORDS_SIZE];
    bide_policy_init(&plan.policy, BIDE_PRESET_INTERACTIVE);
    bide_target_config_init(&plan.target, BIDE_PRESET_INTERACTIVE);
    demo_naive(&naive, &plan.policy);
    assert_string_equal(demo_plan_words(text, &plan),
                        "3 attempts, full jitter 100ms..2s, 2s an attempt, budget, breaker");
    assert_string_equal(demo_plan_words(text, &naive),
                        "10 attempts, 500ms apart, no jitter, 2s an attempt, no budget, no breaker");
}

/* ---- counting ---- */

static void every_call_and_every_request_is_counted_once(void **state)
{
    struct demo_tally t = tally_of(until_down);
    uint64_t began = 0, came = 0, succeeded = 0, ended = 0;
    for (size_t i = 0; i < t.buckets; i++) {
        began += t.bucket[i].began;
        came += t.bucket[i].requests;
        succeeded += t.bucket[i].succeeded;
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
    assert_int_equal(t.for_nobody, 0);
    assert_int_equal(t.after_calls, 600);
    assert_int_equal(t.after_ok, 600);
    assert_int_equal(t.median_ns, 50 * BIDE_MS);
    demo_tally_free(&t);
}

static void amplification_is_requests_for_each_first_try(void **state)
{
    struct demo_scenario s = told_scenario();
    struct demo_record record = record_of(until_down);
    struct demo_tally t;
    for (uint32_t i = 0; i < 500; i++)
        requests[CALLS + i] = (struct demo_request){.at_ns = 3 * BIDE_S, .end_ns = 3 * BIDE_S, .status = 503};
    record.requests = CALLS + 500;
    assert_true(demo_tally(&t, &s, &record));
    assert_true(demo_amplification(&t) == 1.5);
    assert_int_equal(t.peak, 510);
    assert_int_equal(t.peak_bucket, 30);
    demo_tally_free(&t);
}

static void an_answer_to_a_caller_that_has_left_is_for_nobody(void **state)
{
    struct demo_scenario s = told_scenario();
    struct demo_record record = record_of(until_down);
    struct demo_tally t;
    for (uint32_t i = 0; i < 100; i++)
        calls[i].reason = BIDE_REASON_ATTEMPTS_SPENT; /* the server served it, and nobody knows */
    assert_true(demo_tally(&t, &s, &record));
    assert_int_equal(t.for_nobody, 100);
    demo_tally_free(&t);
}

static void what_happens_after_the_end_is_in_the_last_bucket(void **state)
{
    struct demo_scenario s = told_scenario();
    struct demo_call call = {.begin_ns = -5, .end_ns = 99 * BIDE_S, .attempts = 1, .reason = BIDE_REASON_SUCCEEDED};
    struct demo_record record = {.call = &call, .calls = 1, .request = requests, .requests = 0};
    struct demo_tally t;
    assert_true(demo_tally(&t, &s, &record));
    assert_int_equal(t.bucket[0].began, 1);
    assert_int_equal(t.bucket[t.buckets - 1].succeeded, 1);
    assert_true(demo_amplification(&t) == 1);
    demo_tally_free(&t);
    demo_tally_free(&t);
    demo_tally_free(NULL);
    demo_record_free(NULL);
}

static void recovery_is_at_once_when_all_calls_after_the_outage_succeed(void **state)
{
    assert_int_equal(recovery_of(until_down), 0);
}

static void a_server_that_is_slow_to_return_is_charged_for_it(void **state)
{
    int64_t recovery_ns = recovery_of(one_second_longer);
    assert_in_range(recovery_ns, 900 * BIDE_MS, BIDE_S + 100 * BIDE_MS);
}

static void a_server_that_falls_again_has_recovered_only_after_that(void **state)
{
    int64_t recovery_ns = recovery_of(back_and_down_again);
    assert_in_range(recovery_ns, 2900 * BIDE_MS, 3 * BIDE_S + 100 * BIDE_MS);
}

static void who_never_succeeds_again_has_not_recovered(void **state)
{
    assert_int_equal(recovery_of(never_again), DEMO_NOT_RECOVERED);
}

static void nine_in_ten_are_enough_and_eight_are_not(void **state)
{
    assert_int_equal(recovery_of(mostly), 0);
    assert_int_equal(recovery_of(hardly), DEMO_NOT_RECOVERED);
}

static void who_succeeds_too_late_has_not_recovered(void **state)
{
    struct demo_scenario s = told_scenario();
    struct demo_record record = record_of(until_down);
    struct demo_tally t;
    for (uint32_t i = 0; i < CALLS; i++)
        if (calls[i].begin_ns >= s.up_ns && calls[i].begin_ns < 7 * BIDE_S)
            calls[i].end_ns = calls[i].begin_ns + DEMO_IN_TIME_NS + 1;
    assert_true(demo_tally(&t, &s, &record));
    assert_in_range(t.recovery_ns, 2900 * BIDE_MS, 3 * BIDE_S + 100 * BIDE_MS);
    demo_tally_free(&t);
}

/* ---- showing ---- */

struct shown {
    struct demo_scenario scenario;
    struct demo_plan plan[2];
    struct demo_result result;
};

static void open_shown(struct shown *shown, const char *name)
{
    *shown = (struct shown){.scenario = told_scenario()};
    shown->plan[1].name = name;
    bide_policy_init(&shown->plan[1].policy, BIDE_PRESET_INTERACTIVE);
    bide_target_config_init(&shown->plan[1].target, BIDE_PRESET_INTERACTIVE);
    demo_naive(&shown->plan[0], &shown->plan[1].policy);
    shown->result =
        (struct demo_result){.scenario = &shown->scenario, .policy = name, .options = name, .made_s = 1700000000};
    shown->result.side[0] = (struct demo_side_result){&shown->plan[0], tally_of(never_again), 0};
    shown->result.side[1] = (struct demo_side_result){&shown->plan[1], tally_of(until_down), 0};
}

static void close_shown(struct shown *shown)
{
    demo_tally_free(&shown->result.side[0].tally);
    demo_tally_free(&shown->result.side[1].tally);
}

static bool report(FILE *out, const struct demo_result *result)
{
    return demo_report(out, result);
}

static bool table(FILE *out, const struct demo_result *result)
{
    demo_table(out, result);
    return true;
}

static bool json(FILE *out, const struct demo_result *result)
{
    demo_json(out, result);
    return true;
}

/* What it writes, to be freed. */
static char *written(bool (*write)(FILE *out, const struct demo_result *result), const struct demo_result *result)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_true(write(out, result));
    fclose(out);
    return text;
}

/* The widest line, in characters, and how many lines there are. */
static size_t widest(const char *text, size_t *lines)
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

static void a_breaker_that_opened_is_told_with_what_it_costs(void **state)
{
    static const char note[] = "bide's breaker opened and refused 6 calls: it is open for 5s at first,";
    struct shown shown;
    size_t lines;
    open_shown(&shown, "bide");
    shown.plan[1].target.breaker.open_ns = 5 * BIDE_S;
    shown.plan[1].target.breaker.ramp_ns = 10 * BIDE_S;
    char *calm = written(report, &shown.result), *quiet = written(table, &shown.result);
    shown.result.side[1].tally.ended[BIDE_REASON_BREAKER_OPEN] = 3;
    shown.result.side[1].tally.ended[BIDE_REASON_BREAKER_PROBING] = 2;
    shown.result.side[1].tally.ended[BIDE_REASON_BREAKER_RAMPING] = 1;
    char *page = written(report, &shown.result), *text = written(table, &shown.result);
    assert_null(strstr(calm, "refused"));
    assert_null(strstr(quiet, "refused"));
    assert_non_null(strstr(calm, "too short to open"));
    assert_non_null(
        strstr(page, "breaker opened and refused 6 calls: it is open for 5s at first, then a ramp of 10s."));
    assert_null(strstr(page, "too short to open"));
    assert_non_null(strstr(text, note));
    assert_true(widest(text, &lines) <= 80);
    free(calm);
    free(quiet);
    free(page);
    free(text);
    close_shown(&shown);
}

static void a_naive_loop_that_had_more_success_is_told(void **state)
{
    struct shown shown;
    size_t lines;
    open_shown(&shown, "bide");
    shown.result.side[0].tally.ended[BIDE_REASON_SUCCEEDED] =
        shown.result.side[1].tally.ended[BIDE_REASON_SUCCEEDED] + 1;
    char *page = written(report, &shown.result), *text = written(table, &shown.result);
    assert_non_null(strstr(page, "More calls of the naive loop succeeded"));
    assert_non_null(strstr(text, "More calls of the naive loop succeeded"));
    assert_true(widest(text, &lines) <= 80);
    free(page);
    free(text);
    close_shown(&shown);
}

static void who_has_not_recovered_is_told_how_long_was_looked(void **state)
{
    struct shown shown;
    open_shown(&shown, "bide");
    shown.result.side[0].tally.recovery_ns = DEMO_NOT_RECOVERED;
    shown.scenario.up_ns = shown.scenario.length_ns - 2500 * BIDE_MS;
    char *text = written(table, &shown.result);
    assert_non_null(strstr(text, "not within 2.5 s"));
    free(text);
    close_shown(&shown);
}

static void the_page_is_well_formed_whatever_the_policy_is_called(void **state)
{
    struct shown shown;
    open_shown(&shown, "</pre><script>alert(\"x\")</script>&\xff");
    char *page = written(report, &shown.result);
    const char *wrong = xml_wrong(page);
    if (wrong)
        fail_msg("not well-formed: %.80s", wrong);
    assert_null(strstr(page, "<script"));
    assert_int_equal(strncmp(page, DEMO_REPORT_MARK, strlen(DEMO_REPORT_MARK)), 0);
    free(page);
    close_shown(&shown);
}

static void the_page_needs_nothing_beside_it(void **state)
{
    struct shown shown;
    open_shown(&shown, "interactive");
    char *page = written(report, &shown.result);
    assert_null(strstr(page, "src="));
    assert_null(strstr(page, "href="));
    assert_null(strstr(page, "url("));
    assert_null(strstr(page, "@import"));
    assert_null(strstr(page, "nan"));
    assert_non_null(strstr(page, "--seed 7 --rate 100"));
    assert_non_null(strstr(page, "not within 6 s"));
    assert_non_null(strstr(page, "2023-11-14 22:13 UTC"));
    free(page);
    close_shown(&shown);
}

static void the_table_fits_eighty_columns(void **state)
{
    struct shown shown;
    size_t lines;
    open_shown(&shown, "a name that is really much longer than any column of a table can be");
    char *text = written(table, &shown.result);
    assert_true(widest(text, &lines) <= 80);
    assert_non_null(strstr(text, "not within 6 s"));
    assert_non_null(strstr(text, "800 (80.0 %)"));
    free(text);
    close_shown(&shown);
}

static void the_json_is_json_and_its_sums_agree(void **state)
{
    struct shown shown;
    open_shown(&shown, "quote\" and \\ and \n and \xff");
    char *text = written(json, &shown.result);
    json_t *all = json_loads(text, 0, NULL);
    assert_non_null(all);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(all, "sides"), 0), "recovery_ms")));
    json_t *side = json_array_get(json_object_get(all, "sides"), 1), *value;
    size_t i;
    json_int_t sum = 0;
    json_array_foreach(json_object_get(side, "requests_by_bucket"), i, value) sum += json_integer_value(value);
    assert_int_equal(sum, json_integer_value(json_object_get(side, "requests")));
    assert_int_equal(json_integer_value(json_object_get(side, "recovery_ms")), 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(side, "gave_up"), "budget_empty")), 200);
    json_decref(all);
    free(text);
    close_shown(&shown);
}

static char *view_of(const struct demo_look *look, const struct demo_panel panel[2])
{
    struct demo_scenario s = told_scenario();
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    demo_view(out, look, &s, panel);
    fclose(out);
    return text;
}

static void the_view_stays_within_its_width_at_every_width(void **state)
{
    uint32_t came[100];
    for (size_t i = 0; i < 100; i++)
        came[i] = (uint32_t)(i * 3);
    const struct demo_panel panel[2] = {{"one", "a, b, c", came, 100},
                                        {"other\xc3\xa9", "long, longer, longest", came, 50}};
    for (unsigned width = DEMO_VIEW_WIDTH_MIN; width < 300; width++) {
        size_t lines;
        char *text = view_of(&(struct demo_look){width, true, false, false}, panel);
        assert_true(widest(text, &lines) <= width);
        assert_int_equal(lines, DEMO_VIEW_LINES);
        assert_null(strstr(text, " \n"));
        free(text);
    }
}

static void without_utf8_the_view_is_ascii(void **state)
{
    uint32_t came[100] = {0, 5, 100, 30};
    const struct demo_panel panel[2] = {{"one", "words", came, 4}, {"other", "words", came, 0}};
    char *text = view_of(&(struct demo_look){80, false, false, false}, panel);
    for (size_t i = 0; text[i] != '\0'; i++)
        assert_true((unsigned char)text[i] < 0x80 && text[i] != '\033');
    assert_non_null(strchr(text, '#'));
    assert_non_null(strstr(text, "xxxx"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_calls),
        cmocka_unit_test(each_call_begins_in_its_own_slot),
        cmocka_unit_test(a_call_never_has_the_seed_that_means_draw_one),
        cmocka_unit_test(the_server_can_do_a_quarter_more_than_is_asked_of_it),
        cmocka_unit_test(its_script_is_one_that_chaos_understands),
        cmocka_unit_test(what_makes_no_sense_is_refused_with_what_would),
        cmocka_unit_test(the_outage_fits_into_every_length),
        cmocka_unit_test(the_naive_loop_has_nothing_that_holds_it_back),
        cmocka_unit_test(a_plan_is_told_in_words),
        cmocka_unit_test(every_call_and_every_request_is_counted_once),
        cmocka_unit_test(amplification_is_requests_for_each_first_try),
        cmocka_unit_test(an_answer_to_a_caller_that_has_left_is_for_nobody),
        cmocka_unit_test(what_happens_after_the_end_is_in_the_last_bucket),
        cmocka_unit_test(recovery_is_at_once_when_all_calls_after_the_outage_succeed),
        cmocka_unit_test(a_server_that_is_slow_to_return_is_charged_for_it),
        cmocka_unit_test(a_server_that_falls_again_has_recovered_only_after_that),
        cmocka_unit_test(who_never_succeeds_again_has_not_recovered),
        cmocka_unit_test(nine_in_ten_are_enough_and_eight_are_not),
        cmocka_unit_test(who_succeeds_too_late_has_not_recovered),
        cmocka_unit_test(a_breaker_that_opened_is_told_with_what_it_costs),
        cmocka_unit_test(a_naive_loop_that_had_more_success_is_told),
        cmocka_unit_test(who_has_not_recovered_is_told_how_long_was_looked),
        cmocka_unit_test(the_page_is_well_formed_whatever_the_policy_is_called),
        cmocka_unit_test(the_page_needs_nothing_beside_it),
        cmocka_unit_test(the_table_fits_eighty_columns),
        cmocka_unit_test(the_json_is_json_and_its_sums_agree),
        cmocka_unit_test(the_view_stays_within_its_width_at_every_width),
        cmocka_unit_test(without_utf8_the_view_is_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
