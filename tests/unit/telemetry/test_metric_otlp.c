/* test_metric_otlp.c - a request with metrics has the numbers of the text for Prometheus, under the names of the
 * table. */
#include <bide/bide.h>

#include "telemetry/meters.h"
#include "telemetry/metric_otlp.h"
#include "telemetry/span.h"

#include "otlp_metric_compare.h"

#define START INT64_C(1700000000000000001)
#define NOW   INT64_C(1700000060000000002)

static unsigned char bytes[4 << 20];
static char text[4 << 20];
static struct otlp_metrics metrics;

static int end(void **state)
{
    (void)state;
    free(metrics.point);
    metrics = (struct otlp_metrics){0};
    return 0;
}

static void encode(const struct telemetry_numbers *numbers)
{
    struct telemetry_proto proto = {.bytes = bytes, .size = sizeof bytes, .at = sizeof bytes, .floor = 256};
    const struct telemetry_metric_times times = {.start_ns = START, .now_ns = NOW};
    unsigned char resource[64];
    struct telemetry_proto encoded = {.bytes = resource, .size = sizeof resource, .at = sizeof resource};
    telemetry_attribute_write(&encoded, 1, "service.name", (struct bide_text){"shop", 4});
    assert_true(telemetry_metric_otlp_write(&proto, numbers, &times));
    telemetry_request_finish(&proto, (struct bide_text){(char *)resource + encoded.at, sizeof resource - encoded.at});
    otlp_metrics_decode(&metrics, bytes + proto.at, proto.size - proto.at);
    assert_false(metrics.is_malformed);
}

static const struct otlp_point *find(const char *name, const char *attributes)
{
    const struct otlp_point *point = otlp_find(&metrics, name, attributes);
    if (point == NULL)
        fail_msg("no %s with%s", name, attributes);
    return point;
}

/* ---- numbers ---- */

static uint64_t next_number;

static void fill(void *at, size_t size)
{
    for (size_t i = 0; i < size / sizeof(uint64_t); i++)
        ((uint64_t *)at)[i] = ++next_number;
}

/* A target with a different number everywhere, in a state in which every series exists. */
static struct telemetry_target full_target(const char *name)
{
    struct telemetry_target target = {.name = name, .has_state = true, .has_lease = true, .capacity_milli = 10500};
    fill(&target.meter, sizeof target.meter);
    for (size_t i = 0; i < BIDE_METER_ATTEMPT_COUNT; i++) /* those that ended have started */
        target.meter.attempts[i] += 1000000;
    target.meter.waits_ended = 7;
    target.openings = 3;
    target.now_ns = BIDE_S;
    target.state.hold_off_until_ns = 2 * BIDE_S + 1500;
    target.state.budget_left_milli = 2250;
    target.state.breaker.state = BIDE_BREAKER_OPEN;
    return target;
}

static struct telemetry_process full_process(void)
{
    static const struct telemetry_inbound inbound = {.name = "checkout", .first = 11, .retry = 4};
    struct telemetry_process process = {.inbound = &inbound, .inbound_count = 1};
    fill(process.dropped, sizeof process.dropped);
    return process;
}

/* Asserts that a point is what the table says, and in the text. Returns how many lines of the text that are. */
static size_t assert_point_equals(const struct otlp_point *point)
{
    const struct telemetry_metric *row = otlp_row(point->metric.name);
    assert_string_equal(point->metric.unit, row->unit);
    assert_string_equal(point->metric.description, row->help);
    assert_true(point->time_ns == NOW && point->start_ns == (row->type == TELEMETRY_GAUGE ? 0 : START));
    assert_int_equal(point->metric.type, row->type == TELEMETRY_COUNTER ? 7 : row->type == TELEMETRY_GAUGE ? 5 : 9);
    assert_int_equal(point->metric.temporality, row->type == TELEMETRY_GAUGE ? 0 : 2);
    assert_int_equal(point->metric.is_monotonic, row->type == TELEMETRY_COUNTER);
    if (row->type != TELEMETRY_HISTOGRAM)
        assert_true(point->has_int == (row->scale == 1) && point->has_double == (row->scale != 1));
    return otlp_assert_in_text(point, text);
}

static void every_point_is_a_sample_of_prometheus_and_none_is_missing(void **state)
{
    (void)state;
    struct telemetry_process process = full_process();
    const struct telemetry_target targets[] = {full_target("a"), full_target("b"), full_target(TELEMETRY_OTHER)};
    const struct telemetry_numbers numbers = {.targets = targets, .count = 3, .process = &process};
    size_t found = 0, wanted = 0;
    encode(&numbers);
    assert_true(telemetry_prometheus_write_all(text, sizeof text, &numbers) < sizeof text);
    for (size_t i = 0; i < metrics.count; i++)
        found += assert_point_equals(&metrics.point[i]);
    for (const char *line = text; line[0] != '\0'; line = strchr(line, '\n') + 1)
        wanted += line[0] != '#';
    assert_int_equal(found, wanted);
    assert_int_equal(metrics.metrics, telemetry_metric_count()); /* each once */
}

/* ---- single values ---- */

static void values_have_their_unit(void **state)
{
    (void)state;
    struct telemetry_target target = full_target("a");
    target.meter.wait_us = 1500000;
    encode(&(struct telemetry_numbers){.targets = &target, .count = 1});
    assert_true(find("bide.wait", "\nbide.target=a\n")->as_double == 1.5);
    assert_true(find("bide.budget.tokens", "\nbide.target=a\n")->as_double == 2.25);
    assert_true(find("bide.hold_off.remaining", "\nbide.target=a\n")->as_double == 1.000002);
    assert_int_equal(find("bide.breaker.openings", "\nbide.target=a\n")->as_int, 3);
    assert_int_equal(find("bide.breaker.state", "\nbide.target=a\nstate=open\n")->as_int, 1);
    assert_int_equal(find("bide.breaker.state", "\nbide.target=a\nstate=closed\n")->as_int, 0);
}

static void a_bucket_counts_only_its_own_durations(void **state)
{
    (void)state;
    struct telemetry_target target = {.name = "a"};
    target.meter.call_ok.count[0] = 5;
    target.meter.call_ok.count[1] = 2;
    target.meter.call_ok.count[BIDE_METER_BINS - 1] = 1;
    target.meter.call_ok.sum_us = 301000250;
    encode(&(struct telemetry_numbers){.targets = &target, .count = 1});
    const struct otlp_point *point = find("bide.call.duration", "\nbide.target=a\nresult=ok\n");
    assert_true(point->counts[0] == 5 && point->counts[1] == 2 && point->counts[2] == 0);
    assert_int_equal(point->counts[BIDE_METER_BINS - 1], 1);
    assert_int_equal(point->count, 8);
    assert_true(point->bounds[0] == 0.001 && point->bounds[1] == 0.0025 && point->bounds[18] == 300);
    assert_true(point->as_double == 301.00025);
}

static void further_names_are_marked_as_an_overflow(void **state)
{
    (void)state;
    struct telemetry_target targets[] = {{.name = TELEMETRY_OTHER}, {.name = "a"}};
    encode(&(struct telemetry_numbers){.targets = targets, .count = 2});
    find("bide.attempts", "\nbide.target=_other\notel.metric.overflow=true\nattempt=1\n");
    find("bide.attempts", "\nbide.target=a\nattempt=1\n");
}

static void a_name_that_is_not_utf8_is_replaced(void **state)
{
    (void)state;
    struct telemetry_target target = {.name = "a\xff\xc3("};
    encode(&(struct telemetry_numbers){.targets = &target, .count = 1});
    find("bide.attempts", "\nbide.target=a\xef\xbf\xbd\xef\xbf\xbd(\nattempt=hedge\n");
}

static void the_request_names_the_service_and_this_library(void **state)
{
    (void)state;
    struct telemetry_process process = full_process();
    encode(&(struct telemetry_numbers){.process = &process});
    assert_string_equal(metrics.resource, "\nservice.name=shop\n");
    assert_string_equal(metrics.scope, "bide");
    assert_string_equal(metrics.version, BIDE_VERSION);
    assert_int_equal(find("bide.build_info", "\nversion=" BIDE_VERSION "\n")->as_int, 1);
    assert_int_equal(find("bide.inbound.requests", "\nbide.target=checkout\nattempt=2_or_more\n")->as_int, 4);
}

static void a_full_buffer_fails_and_keeps_what_it_had(void **state)
{
    (void)state;
    struct telemetry_target target = full_target("a");
    const struct telemetry_numbers numbers = {.targets = &target, .count = 1};
    const struct telemetry_metric_times times = {.start_ns = START, .now_ns = NOW};
    struct telemetry_proto whole = {.bytes = bytes, .size = sizeof bytes, .at = sizeof bytes};
    assert_true(telemetry_metric_otlp_write(&whole, &numbers, &times));
    size_t length = whole.size - whole.at;
    for (size_t size = 0; size <= length; size += size + 32 < length && size > 64 ? 31 : 1) {
        unsigned char *tight = malloc(size + 1);
        assert_non_null(tight);
        tight[size] = 42;
        struct telemetry_proto proto = {.bytes = tight, .size = size + 1, .at = size};
        assert_true(telemetry_metric_otlp_write(&proto, &numbers, &times) == (size == length));
        assert_true(proto.failed == (size < length) && proto.at == (size < length ? size : 0));
        assert_int_equal(tight[size], 42);
        free(tight);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_point_is_a_sample_of_prometheus_and_none_is_missing, end),
        cmocka_unit_test_teardown(values_have_their_unit, end),
        cmocka_unit_test_teardown(a_bucket_counts_only_its_own_durations, end),
        cmocka_unit_test_teardown(further_names_are_marked_as_an_overflow, end),
        cmocka_unit_test_teardown(a_name_that_is_not_utf8_is_replaced, end),
        cmocka_unit_test_teardown(the_request_names_the_service_and_this_library, end),
        cmocka_unit_test_teardown(a_full_buffer_fails_and_keeps_what_it_had, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
