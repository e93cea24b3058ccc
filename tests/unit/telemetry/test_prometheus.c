/* test_prometheus.c - the text for Prometheus has every number exactly, and every series that rate() needs. */
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "telemetry/metric.h"
#include "text/utf8.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define T0           (1000 * BIDE_S)

static char text[1 << 20];

static void write_numbers(const struct telemetry_numbers *numbers)
{
    size_t length = telemetry_prometheus_write_all(text, sizeof text, numbers);
    assert_true(length < sizeof text);
    assert_int_equal(strlen(text), length);
}

static void write_target(const struct telemetry_target *target)
{
    write_numbers(&(struct telemetry_numbers){.targets = target, .count = 1});
}

/* Returns the number of lines that equal this one. */
static unsigned count_line(const char *line)
{
    unsigned count = 0;
    size_t length = strlen(line);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at += length)
        count += (at == text || at[-1] == '\n') && at[length] == '\n';
    return count;
}

static void assert_line(const char *line)
{
    if (count_line(line) != 1)
        fail_msg("%u lines equal\n%s\nin\n%.20000s", count_line(line), line, text);
}

/* Returns the number of lines that begin so. */
static unsigned count_prefix(const char *prefix)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, prefix)) != NULL; at++)
        count += at == text || at[-1] == '\n';
    return count;
}

static unsigned count_lines(void)
{
    unsigned count = 0;
    for (const char *at = text; *at != '\0'; at++)
        count += *at == '\n';
    return count;
}

static struct telemetry_target target_named(const char *name)
{
    return (struct telemetry_target){
        .name = name, .has_state = true, .capacity_milli = 10000, .now_ns = T0, .state = {.budget_left_milli = 9500}};
}

/* ---- the table ---- */

/* Prometheus makes the name of a metric from OTLP: dots become underscores, then come the unit and, for a counter,
 * "total". So both ways give one series. */
static void names_in_otlp_become_the_names_in_prometheus(void **state)
{
    (void)state;
    for (size_t i = 0; i < telemetry_metric_count(); i++) {
        const struct telemetry_metric *metric = telemetry_metric_at(i);
        char name[128];
        snprintf(name, sizeof name, "%s%s%s", metric->otlp_name, strcmp(metric->unit, "s") == 0 ? "_seconds" : "",
                 metric->type == TELEMETRY_COUNTER ? "_total" : "");
        for (char *at = name; *at != '\0'; at++)
            *at = *at == '.' ? '_' : *at;
        assert_string_equal(metric->name, name);
    }
}

static void every_row_is_complete_and_its_name_is_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < telemetry_metric_count(); i++) {
        const struct telemetry_metric *metric = telemetry_metric_at(i);
        assert_true(strncmp(metric->otlp_name, "bide.", 5) == 0);
        assert_true(strlen(metric->help) > 10 && strlen(metric->note) > 10);
        assert_true(isupper((unsigned char)metric->help[0]) || isdigit((unsigned char)metric->help[0]));
        assert_null(strpbrk(metric->help, "\\\n.|"));
        assert_true(strcmp(metric->unit, "s") == 0 || metric->unit[0] == '{');
        assert_true(metric->scale == 1 || metric->scale == 1000 || metric->scale == 1000000);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(metric->name, telemetry_metric_at(j)->name);
    }
}

/* ---- series ---- */

static void series_that_rate_needs_exist_as_zero_from_the_first_call(void **state)
{
    struct telemetry_target target = target_named("a");
    char line[128];
    (void)state;
    write_target(&target);
    for (unsigned i = 0; i < BIDE_METER_ATTEMPT_COUNT; i++) {
        const char *attempt = bide_meter_attempt_label((enum bide_meter_attempt)i);
        snprintf(line, sizeof line, "bide_attempts_total{target=\"a\",attempt=\"%s\"} 0", attempt);
        assert_line(line);
        snprintf(line, sizeof line, "bide_outcomes_total{target=\"a\",attempt=\"%s\",kind=\"transient\"} 0", attempt);
        assert_line(line);
    }
    for (unsigned i = 0; i < BIDE_METER_RESULT_COUNT; i++) {
        snprintf(line, sizeof line, "bide_calls_total{target=\"a\",result=\"%s\"} 0",
                 bide_meter_result_label((enum bide_meter_result)i));
        assert_line(line);
    }
    for (unsigned i = 0; i < BIDE_GATE_COUNT; i++)
        for (int observe = 0; observe < 2; observe++) {
            snprintf(line, sizeof line, "bide_refusals_total{target=\"a\",gate=\"%s\",mode=\"%s\"} 0",
                     bide_gate_label((enum bide_gate)(1u << i)), observe ? "observe" : "enforce");
            assert_line(line);
        }
    assert_line("bide_breaker_openings_total{target=\"a\"} 0");
    assert_line("bide_call_duration_seconds_count{target=\"a\",result=\"ok\"} 0");
}

/* Every reason of a refusal, and every other reason but those of starts, waits and success. */
static void give_ups_exist_for_each_reason_with_which_a_call_can_give_up(void **state)
{
    static const enum bide_reason others[] = {
        BIDE_REASON_NOTHING,   BIDE_REASON_FIRST_ATTEMPT, BIDE_REASON_RETRY,     BIDE_REASON_HEDGE,
        BIDE_REASON_BACKOFF,   BIDE_REASON_SERVER_HINT,   BIDE_REASON_HOLD_OFF,  BIDE_REASON_CONFLICT,
        BIDE_REASON_LATE_WAKE, BIDE_REASON_SUCCEEDED,     BIDE_REASON_LAST_WAIT,
    };
    struct telemetry_target target = target_named("a");
    (void)state;
    write_target(&target);
    for (unsigned reason = 0; reason < BIDE_REASON_COUNT; reason++) {
        bool is_other = false;
        char line[128];
        for (size_t i = 0; i < COUNT(others); i++)
            is_other |= (unsigned)others[i] == reason;
        snprintf(line, sizeof line, "bide_give_ups_total{target=\"a\",reason=\"%s\"} 0",
                 bide_reason_label((enum bide_reason)reason));
        assert_int_equal(count_line(line), is_other ? 0 : 1);
    }
}

static void a_target_without_trouble_has_about_135_lines(void **state)
{
    struct telemetry_target targets[2] = {target_named("a"), target_named("b")};
    (void)state;
    write_target(targets);
    unsigned one = count_lines();
    write_numbers(&(struct telemetry_numbers){.targets = targets, .count = 2});
    assert_in_range(count_lines() - one, 125, 145);
}

static void every_number_of_the_meter_is_in_the_text(void **state)
{
    struct telemetry_target target = target_named("a");
    struct bide_meter_view *m = &target.meter;
    (void)state;
    m->attempts[BIDE_METER_ATTEMPT_4_OR_MORE] = 11;
    m->attempts[BIDE_METER_HEDGE] = 12;
    m->outcomes[BIDE_METER_HEDGE][BIDE_KIND_CANCELLED] = 3;
    m->outcomes[BIDE_METER_ATTEMPT_4_OR_MORE][BIDE_KIND_CONFLICT] = 4;
    m->calls[BIDE_METER_RESCUED] = UINT64_MAX;
    m->give_ups[BIDE_REASON_NO_TARGET] = 5;
    m->refusals[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)][BIDE_METER_ENFORCE] = 6;
    m->refusals[BIDE_GATE_INDEX(BIDE_GATE_KEY)][BIDE_METER_OBSERVE] = 7;
    m->waits[BIDE_REASON_BACKOFF] = 8;
    m->waits[BIDE_REASON_LAST_WAIT] = 9;
    m->waits_ended = 2;
    m->wait_us = 1500001;
    write_target(&target);
    assert_line("bide_attempts_total{target=\"a\",attempt=\"4_or_more\"} 11");
    assert_line("bide_attempts_total{target=\"a\",attempt=\"hedge\"} 12");
    assert_line("bide_outcomes_total{target=\"a\",attempt=\"hedge\",kind=\"cancelled\"} 3");
    assert_line("bide_outcomes_total{target=\"a\",attempt=\"4_or_more\",kind=\"conflict\"} 4");
    assert_line("bide_calls_total{target=\"a\",result=\"rescued\"} 18446744073709551615");
    assert_line("bide_give_ups_total{target=\"a\",reason=\"no_target\"} 5");
    assert_line("bide_refusals_total{target=\"a\",gate=\"budget\",mode=\"enforce\"} 6");
    assert_line("bide_refusals_total{target=\"a\",gate=\"key\",mode=\"observe\"} 7");
    assert_line("bide_waits_total{target=\"a\",reason=\"last_wait\"} 9");
    assert_line("bide_wait_seconds_total{target=\"a\"} 1.500001");
    assert_line("bide_calls_waiting{target=\"a\"} 15");
    assert_line("bide_attempts_in_flight{target=\"a\"} 16");
}

static void seconds_are_exact_and_without_trailing_zeros(void **state)
{
    static const struct {
        uint64_t us;
        const char *seconds;
    } table[] = {
        {0, "0"},
        {1, "0.000001"},
        {10, "0.00001"},
        {100000, "0.1"},
        {999999, "0.999999"},
        {1000000, "1"},
        {1020000, "1.02"},
        {UINT64_MAX, "18446744073709.551615"},
    };
    struct telemetry_target target = target_named("a");
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char line[128];
        target.meter.wait_us = table[i].us;
        snprintf(line, sizeof line, "bide_wait_seconds_total{target=\"a\"} %s", table[i].seconds);
        write_target(&target);
        assert_line(line);
    }
}

/* ---- histograms ---- */

static void a_histogram_is_cumulative_and_its_count_is_the_last_bin(void **state)
{
    struct telemetry_target target = target_named("a");
    (void)state;
    for (unsigned i = 0; i < BIDE_METER_BINS; i++)
        target.meter.call_failed.count[i] = i + 1;
    target.meter.call_failed.sum_us = 2500000;
    write_target(&target);
    assert_line("bide_call_duration_seconds_bucket{target=\"a\",result=\"failed\",le=\"0.001\"} 1");
    assert_line("bide_call_duration_seconds_bucket{target=\"a\",result=\"failed\",le=\"0.0025\"} 3");
    assert_line("bide_call_duration_seconds_bucket{target=\"a\",result=\"failed\",le=\"0.075\"} 28");
    assert_line("bide_call_duration_seconds_bucket{target=\"a\",result=\"failed\",le=\"7.5\"} 120");
    assert_line("bide_call_duration_seconds_bucket{target=\"a\",result=\"failed\",le=\"300\"} 190");
    assert_line("bide_call_duration_seconds_bucket{target=\"a\",result=\"failed\",le=\"+Inf\"} 210");
    assert_line("bide_call_duration_seconds_sum{target=\"a\",result=\"failed\"} 2.5");
    assert_line("bide_call_duration_seconds_count{target=\"a\",result=\"failed\"} 210");
}

static void histograms_of_failures_begin_with_the_first_failure(void **state)
{
    struct telemetry_target target = target_named("a");
    (void)state;
    write_target(&target);
    assert_int_equal(count_prefix("bide_attempt_duration_seconds_count"), 1);
    assert_int_equal(count_prefix("bide_call_duration_seconds_count"), 1);
    target.meter.attempt_failed.count[BIDE_METER_BINS - 1] = 1;
    target.meter.attempt_cancelled.count[0] = 1;
    write_target(&target);
    assert_line("bide_attempt_duration_seconds_count{target=\"a\",result=\"failed\"} 1");
    assert_line("bide_attempt_duration_seconds_count{target=\"a\",result=\"cancelled\"} 1");
    assert_int_equal(count_prefix("bide_call_duration_seconds_count"), 1);
}

/* ---- gauges ---- */

static void the_state_of_the_gates_is_shown(void **state)
{
    struct telemetry_target target = target_named("a");
    (void)state;
    target.has_lease = true;
    target.openings = 3;
    target.state.breaker.state = BIDE_BREAKER_HALF_OPEN;
    target.state.hold_off_until_ns = T0 + 1;
    write_target(&target);
    assert_line("bide_budget_tokens{target=\"a\"} 9.5");
    assert_line("bide_budget_capacity_tokens{target=\"a\"} 10");
    assert_line("bide_fleet_lease_active{target=\"a\"} 1");
    assert_line("bide_breaker_openings_total{target=\"a\"} 3");
    assert_line("bide_breaker_state{target=\"a\",state=\"closed\"} 0");
    assert_line("bide_breaker_state{target=\"a\",state=\"open\"} 0");
    assert_line("bide_breaker_state{target=\"a\",state=\"half_open\"} 1");
    assert_line("bide_breaker_state{target=\"a\",state=\"held_closed\"} 0");
    assert_line("bide_breaker_state{target=\"a\",state=\"held_open\"} 0");
    assert_line("bide_hold_off_remaining_seconds{target=\"a\"} 0.000001");
    target.now_ns = T0 + 1;
    write_target(&target);
    assert_line("bide_hold_off_remaining_seconds{target=\"a\"} 0");
}

static void unknown_state_is_left_out(void **state)
{
    static const char *const gauges[] = {"bide_budget_", "bide_fleet_", "bide_breaker_state", "bide_hold_off_"};
    struct telemetry_target target = {.name = "a", .openings = 3, .state = {.hold_off_until_ns = BIDE_NEVER}};
    (void)state;
    write_target(&target);
    for (size_t i = 0; i < COUNT(gauges); i++)
        assert_int_equal(count_prefix(gauges[i]), 0);
    assert_line("bide_breaker_openings_total{target=\"a\"} 0");
    assert_line("bide_attempts_in_flight{target=\"a\"} 0");
}

static void a_budget_without_limit_has_no_tokens(void **state)
{
    struct telemetry_target target = target_named("a");
    (void)state;
    target.capacity_milli = 0;
    target.state.budget_left_milli = INT64_MAX;
    write_target(&target);
    assert_int_equal(count_prefix("bide_budget_"), 0);
    target.state.budget_left_milli = 3000; /* the retries that a window allows */
    write_target(&target);
    assert_line("bide_budget_tokens{target=\"a\"} 3");
    assert_int_equal(count_prefix("bide_budget_"), 1);
}

/* A process that was killed leaves more starts than ends, or, half way through an event, the reverse. */
static void shared_meters_show_nothing_in_flight(void **state)
{
    struct telemetry_target target = target_named("a");
    (void)state;
    target.is_shared = true;
    target.meter.waits_ended = 1;
    target.meter.outcomes[0][BIDE_KIND_OK] = 1;
    write_target(&target);
    assert_int_equal(count_prefix("bide_calls_waiting"), 0);
    assert_int_equal(count_prefix("bide_attempts_in_flight"), 0);
}

/* ---- names ---- */

static void names_of_targets_are_escaped_and_always_utf_8(void **state)
{
    static const struct {
        const char *name;
        const char *label;
    } table[] = {
        {"a\"b\\c\nd", "a\\\"b\\\\c\\nd"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xff", "\xef\xbf\xbd"},
        {"a\xc3", "a\xef\xbf\xbd"},                                               /* cut off */
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* overlong */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* surrogate */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* above U+10FFFF */
        {"{x}", "{x}"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct telemetry_target target = target_named(table[i].name);
        char line[256];
        write_target(&target);
        snprintf(line, sizeof line, "bide_calls_total{target=\"%s\",result=\"first\"} 0", table[i].label);
        assert_line(line);
        assert_true(text_utf8_is_valid(text, strlen(text)));
    }
}

/* ---- the process ---- */

static void metrics_of_the_process_have_their_labels(void **state)
{
    struct telemetry_inbound inbound[] = {{.name = "checkout", .first = 7, .retry = 2}, {.name = "search"}};
    struct telemetry_process process = {.inbound = inbound, .inbound_count = 2};
    (void)state;
    process.dropped[TELEMETRY_SPANS][TELEMETRY_RING_FULL] = 4;
    write_numbers(&(struct telemetry_numbers){.process = &process});
    assert_line("bide_inbound_requests_total{target=\"checkout\",attempt=\"1\"} 7");
    assert_line("bide_inbound_requests_total{target=\"checkout\",attempt=\"2_or_more\"} 2");
    assert_line("bide_inbound_requests_total{target=\"search\",attempt=\"2_or_more\"} 0");
    assert_line("bide_telemetry_dropped_total{signal=\"spans\",cause=\"ring_full\"} 4");
    assert_line("bide_telemetry_dropped_total{signal=\"logs\",cause=\"write_error\"} 0");
    assert_line("bide_build_info{version=\"" BIDE_VERSION "\"} 1");
    assert_int_equal(count_prefix("bide_telemetry_dropped_total"), TELEMETRY_SIGNAL_COUNT * TELEMETRY_CAUSE_COUNT);
}

static void shared_meters_have_no_metrics_of_a_process(void **state)
{
    struct telemetry_target target = target_named("a");
    (void)state;
    telemetry_prometheus_write(text, sizeof text, &target, 1);
    assert_int_equal(count_prefix("bide_attempts_total"), BIDE_METER_ATTEMPT_COUNT);
    assert_int_equal(count_prefix("bide_build_info"), 0);
    assert_int_equal(count_prefix("bide_telemetry_dropped_total"), 0);
    assert_int_equal(count_prefix("# TYPE bide_build_info"), 0);
}

static void losses_are_counted_by_signal_and_cause(void **state)
{
    (void)state;
    telemetry_dropped_add(TELEMETRY_LOGS, TELEMETRY_BLOCKED, 2);
    telemetry_dropped_add(TELEMETRY_LOGS, TELEMETRY_BLOCKED, 3);
    assert_int_equal(telemetry_dropped_get(TELEMETRY_LOGS, TELEMETRY_BLOCKED), 5);
    assert_int_equal(telemetry_dropped_get(TELEMETRY_SPANS, TELEMETRY_BLOCKED), 0);
    assert_string_equal(telemetry_signal_label(TELEMETRY_METRICS), "metrics");
    assert_string_equal(telemetry_cause_label(TELEMETRY_EXPORT_FAILED), "export_failed");
}

/* ---- the text ---- */

/* Returns the length of the name of the metric at the front of a line. */
static size_t name_length(const char *line)
{
    return strcspn(line, "{ ");
}

/* Text format: each metric has a HELP and a TYPE, and its samples follow them in one group. */
static void samples_of_a_metric_are_one_group_beneath_its_head(void **state)
{
    struct telemetry_target targets[3] = {target_named("a"), target_named("b"), target_named("c")};
    const struct telemetry_process process = {0};
    const char *type = "";
    (void)state;
    write_numbers(&(struct telemetry_numbers){.targets = targets, .count = 3, .process = &process});
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "# TYPE ", 7) == 0)
            type = line + 7;
        else if (line[0] != '#')
            assert_true(strncmp(line, type, name_length(type)) == 0);
    }
    for (size_t i = 0; i < telemetry_metric_count(); i++) {
        char head[128];
        snprintf(head, sizeof head, "# TYPE %s ", telemetry_metric_at(i)->name);
        assert_int_equal(count_prefix(head), strstr(head, "inbound") != NULL ? 0 : 1);
    }
}

/* The memory has exactly the size, so that the address sanitizer notices one byte more. */
static void a_buffer_that_is_too_small_gets_the_beginning(void **state)
{
    struct telemetry_target target = target_named("a");
    (void)state;
    write_target(&target);
    size_t length = strlen(text);
    assert_int_equal(telemetry_prometheus_write(NULL, 0, &target, 1), length);
    for (size_t size = 1; size <= length + 1; size += size < 300 ? 1 : 997) {
        char *small = malloc(size);
        assert_non_null(small);
        assert_int_equal(telemetry_prometheus_write(small, size, &target, 1), length);
        assert_int_equal(strlen(small), size - 1);
        assert_memory_equal(small, text, size - 1);
        free(small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_in_otlp_become_the_names_in_prometheus),
        cmocka_unit_test(every_row_is_complete_and_its_name_is_unique),
        cmocka_unit_test(series_that_rate_needs_exist_as_zero_from_the_first_call),
        cmocka_unit_test(give_ups_exist_for_each_reason_with_which_a_call_can_give_up),
        cmocka_unit_test(a_target_without_trouble_has_about_135_lines),
        cmocka_unit_test(every_number_of_the_meter_is_in_the_text),
        cmocka_unit_test(seconds_are_exact_and_without_trailing_zeros),
        cmocka_unit_test(a_histogram_is_cumulative_and_its_count_is_the_last_bin),
        cmocka_unit_test(histograms_of_failures_begin_with_the_first_failure),
        cmocka_unit_test(the_state_of_the_gates_is_shown),
        cmocka_unit_test(unknown_state_is_left_out),
        cmocka_unit_test(a_budget_without_limit_has_no_tokens),
        cmocka_unit_test(shared_meters_show_nothing_in_flight),
        cmocka_unit_test(names_of_targets_are_escaped_and_always_utf_8),
        cmocka_unit_test(metrics_of_the_process_have_their_labels),
        cmocka_unit_test(shared_meters_have_no_metrics_of_a_process),
        cmocka_unit_test(losses_are_counted_by_signal_and_cause),
        cmocka_unit_test(samples_of_a_metric_are_one_group_beneath_its_head),
        cmocka_unit_test(a_buffer_that_is_too_small_gets_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
