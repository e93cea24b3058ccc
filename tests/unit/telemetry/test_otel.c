/* test_otel.c - the variables OTEL_*: what each does, its default, and what is refused in which words. */
#include "telemetry/otel.h"
#include "telemetry/protobuf.h"

#include "otlp_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The environment: names and values in turn, then NULL. */
static const char *get(void *context, const char *name)
{
    const char *const *variables = context;
    for (; *variables != NULL; variables += 2)
        if (strcmp(variables[0], name) == 0)
            return variables[1];
    return NULL;
}

static struct telemetry_otel otel;
static struct bide_problem problem;
static const char *instance;
static bool spans_only;

static enum bide_err read_with(const char *otlp, const char *const *variables)
{
    struct telemetry_environment environment = {
        .get = get, .context = (void *)(uintptr_t)variables, .program = "shop", .instance = instance};
    telemetry_otel_free(&otel);
    return telemetry_otel_read(&otel, &(struct bide_telemetry_options){.otlp = otlp, .otlp_spans_only = spans_only},
                               &environment, &problem);
}

#define READ(...) read_with("", (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL, NULL})

static int end(void **state)
{
    (void)state;
    telemetry_otel_free(&otel);
    instance = NULL;
    spans_only = false;
    return 0;
}

/* The resource as lines "key=value". */
static const char *resource(void)
{
    static struct otlp_request request;
    struct otlp_cursor c = {otel.resource, otel.resource + otel.resource_length};
    struct otlp_field field;
    request = (struct otlp_request){0};
    while (otlp_next(&c, &field, &request.is_malformed))
        otlp_attribute(request.resource, field.bytes, &request.is_malformed);
    assert_false(request.is_malformed);
    return request.resource;
}

static void without_variables_there_are_defaults(void **state)
{
    (void)state;
    assert_int_equal(READ(), BIDE_OK);
    assert_string_equal(otel.traces.endpoint, "http://localhost:4318/v1/traces");
    assert_string_equal(otel.metrics.endpoint, "http://localhost:4318/v1/metrics");
    assert_true(otel.traces.is_on && otel.metrics.is_on);
    assert_true(otel.interval_ns == 60 * BIDE_S && otel.metrics.timeout_ns == 10 * BIDE_S &&
                otel.metrics.export_ns == 30 * BIDE_S);
    assert_true(otel.traces.timeout_ns == 10 * BIDE_S && otel.traces.export_ns == 30 * BIDE_S &&
                otel.delay_ns == 5 * BIDE_S);
    assert_int_equal(otel.batch_max, 512);
    assert_int_equal(otel.queue_max, TELEMETRY_QUEUE_DEFAULT);
    assert_true(otel.sampler.parent_based && otel.sampler.limit == TELEMETRY_SAMPLER_ALL);
    assert_true(otel.value_max == SIZE_MAX && otel.traces.headers[0] == NULL && otel.traces.certificate == NULL);
    assert_string_equal(resource(), "\nservice.name=unknown_service:shop\ntelemetry.sdk.name=bide\n"
                                    "telemetry.sdk.language=c\ntelemetry.sdk.version=" BIDE_VERSION "\n");
}

static void an_empty_variable_counts_as_not_set(void **state)
{
    (void)state;
    assert_int_equal(READ("OTEL_EXPORTER_OTLP_ENDPOINT", "", "OTEL_BSP_SCHEDULE_DELAY", ""), BIDE_OK);
    assert_string_equal(otel.traces.endpoint, "http://localhost:4318/v1/traces");
}

static void a_base_endpoint_gets_the_path_and_that_of_traces_does_not(void **state)
{
    (void)state;
    assert_int_equal(READ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example/otlp/"), BIDE_OK);
    assert_string_equal(otel.traces.endpoint, "https://c.example/otlp/v1/traces");
    assert_int_equal(READ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                          "http://d.example/x?y"),
                     BIDE_OK);
    assert_string_equal(otel.traces.endpoint, "http://d.example/x?y");
    const char *const set[] = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://d.example", NULL, NULL};
    assert_int_equal(read_with("http://127.0.0.1:99", set), BIDE_OK);
    assert_string_equal(otel.traces.endpoint, "http://127.0.0.1:99/v1/traces"); /* the option precedes */
    assert_string_equal(otel.metrics.endpoint, "http://127.0.0.1:99/v1/metrics");
}

static void a_malformed_endpoint_is_refused_without_its_password(void **state)
{
    static const char *const bad[] = {"collector:4318",         "ftp://user:secret@c", "http://",
                                      "http://user:secret@c d", "http://c?q",          "http:/c"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(READ("OTEL_EXPORTER_OTLP_ENDPOINT", bad[i]), BIDE_ERR_INVALID);
        assert_non_null(strstr(problem.text, "OTEL_EXPORTER_OTLP_ENDPOINT"));
        assert_null(strstr(problem.text, "secret"));
    }
    const char *const none[] = {NULL, NULL};
    assert_int_equal(read_with("nonsense", none), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "otlp"));
}

static void headers_are_decoded_and_never_in_a_problem(void **state)
{
    (void)state;
    assert_int_equal(READ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k%20ey%2C1, x = y ,empty="), BIDE_OK);
    assert_string_equal(otel.traces.headers[0], "api-key: k ey,1");
    assert_string_equal(otel.traces.headers[1], "x: y");
    assert_string_equal(otel.traces.headers[2], "empty;");
    assert_null(otel.traces.headers[3]);
    assert_int_equal(READ("OTEL_EXPORTER_OTLP_HEADERS", "a=b", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "c=d"), BIDE_OK);
    assert_string_equal(otel.traces.headers[0], "c: d");
    static const char *const bad[] = {"secret",  "a=%0d%0asecret", "a=%zz",    "a b=secret",
                                      "=secret", "a=%4",           "a:=secret"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(READ("OTEL_EXPORTER_OTLP_HEADERS", bad[i]), BIDE_ERR_INVALID);
        assert_non_null(strstr(problem.text, "OTEL_EXPORTER_OTLP_HEADERS"));
        assert_null(strstr(problem.text, "secret"));
    }
}

static void a_service_name_that_is_too_long_is_named(void **state)
{
    static char name[70001];
    (void)state;
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(READ("OTEL_SERVICE_NAME", name), BIDE_ERR_INVALID);
    assert_string_equal(problem.text, "OTEL_SERVICE_NAME: must have at most 1024 bytes");
}

static void the_service_has_its_name_and_attributes(void **state)
{
    (void)state;
    assert_int_equal(READ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,host.name=h%3D1,telemetry.sdk.name=x"), BIDE_OK);
    assert_true(otlp_has(resource(), "service.name=a") && otlp_has(resource(), "host.name=h=1"));
    assert_true(otlp_has(resource(), "telemetry.sdk.name=bide"));
    assert_int_equal(READ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a", "OTEL_SERVICE_NAME", "b"), BIDE_OK);
    assert_true(otlp_has(resource(), "service.name=b") && !otlp_has(resource(), "service.name=a"));
    assert_int_equal(READ("OTEL_RESOURCE_ATTRIBUTES", "a=%ff"), BIDE_OK); /* becomes U+FFFD */
    assert_true(otlp_has(resource(), "a=\xef\xbf\xbd"));
    assert_int_equal(READ("OTEL_RESOURCE_ATTRIBUTES", "a=1,service.name=x,a=%32,b=1,service.name=y"), BIDE_OK);
    assert_true(otlp_has(resource(), "a=2") && otlp_has(resource(), "service.name=y")); /* the last of equal keys */
    assert_false(otlp_has(resource(), "a=1") || otlp_has(resource(), "service.name=x"));
    assert_int_equal(READ("OTEL_RESOURCE_ATTRIBUTES", "novalue"), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "OTEL_RESOURCE_ATTRIBUTES is \"novalue\"; must be a list"));
}

static void each_sampler_is_understood(void **state)
{
    static const struct {
        const char *name, *argument;
        bool parent_based;
        uint64_t limit;
    } rows[] = {
        {"always_on", NULL, false, TELEMETRY_SAMPLER_ALL},
        {"always_off", NULL, false, 0},
        {"traceidratio", "0.25", false, TELEMETRY_SAMPLER_ALL / 4},
        {"traceidratio", NULL, false, TELEMETRY_SAMPLER_ALL},
        {"parentbased_always_on", NULL, true, TELEMETRY_SAMPLER_ALL},
        {"parentbased_always_off", NULL, true, 0},
        {"parentbased_traceidratio", "0", true, 0},
        {"parentbased_traceidratio", "1.0", true, TELEMETRY_SAMPLER_ALL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(READ("OTEL_TRACES_SAMPLER", rows[i].name, "OTEL_TRACES_SAMPLER_ARG",
                              rows[i].argument != NULL ? rows[i].argument : ""),
                         BIDE_OK);
        assert_int_equal(otel.sampler.parent_based, rows[i].parent_based);
        uint64_t limit = otel.sampler.limit, want = rows[i].limit;
        assert_true((limit > want ? limit - want : want - limit) < TELEMETRY_SAMPLER_ALL / 1000000);
    }
}

static void what_is_not_implemented_is_refused_with_the_variable_and_what_is(void **state)
{
    static const char *const rows[][3] = {
        {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"},
        {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "http/protobuf"},
        {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "none"},
        {"OTEL_TRACES_SAMPLER", "jaeger_remote", "parentbased_"},
        {"OTEL_TRACES_SAMPLER", "parentbased_", "always_on"},
        {"OTEL_TRACES_EXPORTER", "zipkin", "otlp or none"},
        {"OTEL_SDK_DISABLED", "yes", "true or false"},
        {"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"},
        {"OTEL_EXPORTER_OTLP_TIMEOUT", "0", "milliseconds"},
        {"OTEL_METRICS_EXPORTER", "prometheus", "otlp or none"},
        {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json", "http/protobuf"},
        {"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "gzip", "none"},
        {"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "1s", "milliseconds"},
        {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", "cumulative"},
        {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "lowmemory", "cumulative"},
        {"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "base2_exponential_bucket_histogram",
         "explicit_bucket_histogram"},
        {"OTEL_METRIC_EXPORT_INTERVAL", "0", "milliseconds"},
        {"OTEL_METRIC_EXPORT_TIMEOUT", "x", "milliseconds"},
        {"OTEL_BSP_SCHEDULE_DELAY", "-1", "milliseconds"},
        {"OTEL_BSP_EXPORT_TIMEOUT", "99999999999", "milliseconds"},
        {"OTEL_BSP_MAX_QUEUE_SIZE", "0", "1 to 1000000"},
        {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "many", "1 to 65536"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char begin[128];
        assert_int_equal(READ(rows[i][0], rows[i][1]), BIDE_ERR_INVALID);
        snprintf(begin, sizeof begin, "%s is \"%s\"; must be ", rows[i][0], rows[i][1]);
        assert_memory_equal(problem.text, begin, strlen(begin));
        assert_non_null(strstr(problem.text, rows[i][2]));
    }
    assert_int_equal(READ("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "1.5"), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "OTEL_TRACES_SAMPLER_ARG is \"1.5\""));
}

static void limits_and_times_are_read(void **state)
{
    (void)state;
    assert_int_equal(READ("OTEL_BSP_MAX_QUEUE_SIZE", "100", "OTEL_BSP_SCHEDULE_DELAY", "20", "OTEL_BSP_EXPORT_TIMEOUT",
                          "3000", "OTEL_EXPORTER_OTLP_TIMEOUT", "500", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "700",
                          "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "9", "OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
                     BIDE_OK);
    assert_true(otel.queue_max == 100 && otel.batch_max == 100); /* no batch exceeds the queue */
    assert_true(otel.delay_ns == 20 * BIDE_MS && otel.traces.export_ns == 3 * BIDE_S &&
                otel.traces.timeout_ns == 700 * BIDE_MS);
    assert_int_equal(otel.value_max, 9);
    assert_string_equal(otel.traces.certificate, "/ca.pem");
}

static void a_disabled_sdk_reads_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(READ("OTEL_SDK_DISABLED", "TRUE", "OTEL_BSP_MAX_QUEUE_SIZE", "0"), BIDE_OK);
    assert_false(otel.traces.is_on || otel.metrics.is_on);
}

static void a_signal_without_exporter_reads_none_of_its_variables(void **state)
{
    (void)state;
    assert_int_equal(READ("OTEL_TRACES_EXPORTER", "none", "OTEL_BSP_MAX_QUEUE_SIZE", "0",
                          "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
                     BIDE_OK);
    assert_true(!otel.traces.is_on && otel.metrics.is_on && otel.resource_length > 0);
    assert_int_equal(READ("OTEL_METRICS_EXPORTER", "none", "OTEL_METRIC_EXPORT_INTERVAL", "0",
                          "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
                     BIDE_OK);
    assert_true(otel.traces.is_on && !otel.metrics.is_on && otel.resource_length > 0);
    assert_int_equal(READ("OTEL_METRICS_EXPORTER", "none", "OTEL_TRACES_EXPORTER", "none"), BIDE_OK);
    assert_false(otel.traces.is_on || otel.metrics.is_on);
    spans_only = true;
    assert_int_equal(READ("OTEL_METRICS_EXPORTER", "nonsense"), BIDE_OK);
    assert_true(otel.traces.is_on && !otel.metrics.is_on);
}

static void variables_of_metrics_are_not_those_of_traces(void **state)
{
    (void)state;
    assert_int_equal(
        READ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m.example/x", "OTEL_EXPORTER_OTLP_HEADERS", "a=b",
             "OTEL_EXPORTER_OTLP_METRICS_HEADERS", "c=d", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "700",
             "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", "/m.pem", "OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE",
             "/c.pem", "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", "/k.pem", "OTEL_METRIC_EXPORT_INTERVAL", "1500",
             "OTEL_METRIC_EXPORT_TIMEOUT", "800", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Cumulative"),
        BIDE_OK);
    assert_string_equal(otel.metrics.endpoint, "http://m.example/x");
    assert_string_equal(otel.traces.endpoint, "http://localhost:4318/v1/traces");
    assert_string_equal(otel.metrics.headers[0], "c: d");
    assert_string_equal(otel.traces.headers[0], "a: b");
    assert_true(otel.metrics.timeout_ns == 700 * BIDE_MS && otel.traces.timeout_ns == 10 * BIDE_S);
    assert_true(otel.metrics.export_ns == 800 * BIDE_MS && otel.traces.export_ns == 30 * BIDE_S);
    assert_true(otel.interval_ns == 1500 * BIDE_MS);
    assert_string_equal(otel.metrics.certificate, "/m.pem");
    assert_string_equal(otel.metrics.client_certificate, "/c.pem");
    assert_string_equal(otel.metrics.client_key, "/k.pem");
    assert_null(otel.traces.certificate);
}

static void a_process_has_an_instance_unless_one_is_given(void **state)
{
    (void)state;
    instance = "7d4f7ee2-0001-4000-8000-000000000001";
    assert_int_equal(READ(), BIDE_OK);
    assert_true(otlp_has(resource(), "service.instance.id=7d4f7ee2-0001-4000-8000-000000000001"));
    assert_int_equal(READ("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=pod-1"), BIDE_OK);
    assert_true(otlp_has(resource(), "service.instance.id=pod-1"));
    assert_null(strstr(resource(), "7d4f7ee2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(without_variables_there_are_defaults, end),
        cmocka_unit_test_teardown(an_empty_variable_counts_as_not_set, end),
        cmocka_unit_test_teardown(a_base_endpoint_gets_the_path_and_that_of_traces_does_not, end),
        cmocka_unit_test_teardown(a_malformed_endpoint_is_refused_without_its_password, end),
        cmocka_unit_test_teardown(headers_are_decoded_and_never_in_a_problem, end),
        cmocka_unit_test_teardown(the_service_has_its_name_and_attributes, end),
        cmocka_unit_test_teardown(a_service_name_that_is_too_long_is_named, end),
        cmocka_unit_test_teardown(each_sampler_is_understood, end),
        cmocka_unit_test_teardown(what_is_not_implemented_is_refused_with_the_variable_and_what_is, end),
        cmocka_unit_test_teardown(limits_and_times_are_read, end),
        cmocka_unit_test_teardown(a_disabled_sdk_reads_nothing_else, end),
        cmocka_unit_test_teardown(a_signal_without_exporter_reads_none_of_its_variables, end),
        cmocka_unit_test_teardown(variables_of_metrics_are_not_those_of_traces, end),
        cmocka_unit_test_teardown(a_process_has_an_instance_unless_one_is_given, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
