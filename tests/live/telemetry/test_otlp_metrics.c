/* test_otlp_metrics.c - metrics reach a collector with the numbers of the text for Prometheus, and a collector that
 * fails loses no count: each request is received or counted as lost, and the next has newer numbers.
 *
 * Nothing here waits for a time: a test waits until the collector has received something, or ends telemetry, after
 * which every request is accounted for. */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "live_tcp.h"
#include "otlp_metric_compare.h"
#include "telemetry/dropped.h"

#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD        16384u
#define SHARDS      2100u /* target names of the last tests: a request has 512 at most, and four are sent at once */
#define LONG_SHARDS 200u  /* and long ones, of which half would be too long for a request */
#define ALL_SHARDS  (SHARDS + LONG_SHARDS)

/* ---- the collector ---- */

static struct {
    struct live_tcp *tcp;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_silent;
    int status;
    unsigned failures; /* so many requests are first answered with 503 */
    const char *answer;
    unsigned traces, metrics; /* requests */
    unsigned accepted;        /* of those with metrics */
    char head[HEAD];          /* of the last with metrics */
    struct otlp_metrics last; /* with metrics */
    bool is_malformed;
    uint64_t first_ns;                       /* instant of the first request, and what all requests of it have: */
    unsigned first_requests, shards, builds; /* ... */
} collector = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const char *head_field(const char *head, const char *name)
{
    for (const char *line = strchr(head, '\n'); line != NULL; line = strchr(line + 1, '\n'))
        if (strncasecmp(line + 1, name, strlen(name)) == 0)
            return line + 1 + strlen(name);
    return "";
}

static void metrics_clear(struct otlp_metrics *metrics)
{
    free(metrics->point);
    *metrics = (struct otlp_metrics){0};
}

/* Counts each target once: a request is sent again if its response is late. */
static void collector_count_shard(const struct otlp_point *point)
{
    static bool seen[ALL_SHARDS];
    const char *name = strcmp(point->metric.name, "bide.wait") == 0 ? strstr(point->attributes, "=shard-") : NULL;
    unsigned number = name != NULL ? (unsigned)strtoul(name + strlen("=shard-"), NULL, 10) : ALL_SHARDS;
    if (number >= ALL_SHARDS || (seen[number] && collector.shards > 0))
        return;
    if (collector.shards == 0)
        memset(seen, 0, sizeof seen);
    seen[number] = true;
    collector.shards++;
}

static void collector_count_shards(void)
{
    const struct otlp_metrics *all = &collector.last;
    collector.first_requests++;
    for (size_t i = 0; i < all->count; i++) {
        collector.builds += strcmp(all->point[i].metric.name, "bide.build_info") == 0;
        collector_count_shard(&all->point[i]);
    }
}

/* Under the lock. */
static void collector_keep(const char *head, const char *body, size_t length, int status)
{
    metrics_clear(&collector.last);
    otlp_metrics_decode(&collector.last, body, length);
    collector.is_malformed = collector.is_malformed || collector.last.is_malformed || collector.last.count == 0;
    uint64_t time_ns = collector.last.count > 0 ? collector.last.point[0].time_ns : 0;
    if (collector.metrics == 0)
        collector.first_ns = time_ns;
    if (time_ns == collector.first_ns)
        collector_count_shards();
    collector.metrics++;
    collector.accepted += status == 200;
    snprintf(collector.head, HEAD, "%s", head);
}

/* Counts a request. Returns the status of its response. */
static int collector_count(const char *head, const char *body, size_t length)
{
    pthread_mutex_lock(&collector.lock);
    int status = collector.failures > 0 ? 503 : collector.status;
    collector.failures -= collector.failures > 0;
    if (strncmp(head, "POST /v1/metrics ", 17) == 0)
        collector_keep(head, body, length, status);
    else
        collector.traces++;
    pthread_cond_broadcast(&collector.changed);
    pthread_mutex_unlock(&collector.lock);
    return status;
}

/* Returns when the client has closed the connection. */
static void wait_for_close(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        ;
}

static bool collector_answer(int fd, int status)
{
    char response[256];
    if (collector.is_silent) {
        wait_for_close(fd);
        return false;
    }
    int n = snprintf(response, sizeof response, "HTTP/1.1 %d A\r\nContent-Length: %zu\r\n\r\n%s", status,
                     strlen(collector.answer), collector.answer);
    return live_tcp_write(fd, response, (size_t)n);
}

static void collect(void *context, int fd, unsigned number)
{
    char head[HEAD];
    (void)context;
    (void)number;
    while (live_tcp_read_head(fd, head, sizeof head)) {
        size_t length = strtoul(head_field(head, "Content-Length:"), NULL, 10);
        char *body = malloc(length + 1);
        bool whole = live_tcp_read(fd, body, length);
        int status = whole ? collector_count(head, body, length) : 0;
        free(body);
        if (!whole || !collector_answer(fd, status))
            return;
    }
}

static unsigned metric_requests(void)
{
    pthread_mutex_lock(&collector.lock);
    unsigned count = collector.metrics;
    pthread_mutex_unlock(&collector.lock);
    return count;
}

static void wait_for_metrics(unsigned requests)
{
    pthread_mutex_lock(&collector.lock);
    while (collector.metrics < requests)
        pthread_cond_wait(&collector.changed, &collector.lock);
    pthread_mutex_unlock(&collector.lock);
}

static void wait_for_accepted(unsigned requests)
{
    pthread_mutex_lock(&collector.lock);
    while (collector.accepted < requests)
        pthread_cond_wait(&collector.changed, &collector.lock);
    pthread_mutex_unlock(&collector.lock);
}

static void wait_for_traces(void)
{
    pthread_mutex_lock(&collector.lock);
    while (collector.traces == 0)
        pthread_cond_wait(&collector.changed, &collector.lock);
    pthread_mutex_unlock(&collector.lock);
}

/* ---- telemetry ---- */

static uint64_t lost_before[TELEMETRY_CAUSE_COUNT];

static uint64_t lost(enum telemetry_cause cause)
{
    return telemetry_dropped_get(TELEMETRY_METRICS, cause) - lost_before[cause];
}

static uint64_t lost_in_all(void)
{
    uint64_t all = 0;
    for (enum telemetry_cause cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
        all += lost(cause);
    return all;
}

static void start_with(bool spans_only)
{
    char url[64];
    struct bide_problem problem;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", live_tcp_port(collector.tcp));
    for (enum telemetry_cause cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
        lost_before[cause] = telemetry_dropped_get(TELEMETRY_METRICS, cause);
    enum bide_err err = bide_telemetry_start(
        &(struct bide_telemetry_options){.otlp = url, .otlp_spans_only = spans_only, .targets_max = ALL_SHARDS + 10},
        &problem);
    if (err != BIDE_OK)
        print_error("%s\n", problem.text);
    assert_int_equal(err, BIDE_OK);
}

static void start(void)
{
    start_with(false);
}

/* Ends telemetry and the collector: then all counts are final. */
static void stop(void)
{
    bide_telemetry_stop();
    live_tcp_free(collector.tcp);
    collector.tcp = NULL;
}

static int begin(void **state)
{
    (void)state;
    collector.is_silent = collector.is_malformed = false;
    collector.status = 200;
    collector.failures = 0;
    collector.answer = "";
    collector.first_requests = collector.shards = collector.builds = 0;
    collector.traces = collector.metrics = collector.accepted = 0;
    collector.tcp = live_tcp_new(collect, NULL);
    setenv("OTEL_METRIC_EXPORT_INTERVAL", "10", 1);
    setenv("OTEL_METRIC_EXPORT_TIMEOUT", "30000", 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "10", 1);
    unsetenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS");
    unsetenv("OTEL_METRICS_EXPORTER");
    unsetenv("OTEL_TRACES_EXPORTER");
    return 0;
}

static int end(void **state)
{
    (void)state;
    stop();
    metrics_clear(&collector.last);
    return 0;
}

static struct bide_outcome attempt_by_number(void *context, const struct bide_verdict *start)
{
    const uint32_t *failures = context;
    return bide_classify_http(start->attempt <= *failures ? 503 : 200, NULL);
}

static void call(const char *name, uint32_t failures)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.backoff = BIDE_BACKOFF_NONE;
    struct bide_job job = {.name = name,
                           .policy = &policy,
                           .request.safety = BIDE_SAFE,
                           .attempt = attempt_by_number,
                           .context = &failures};
    bide_run(&job);
}

/* ---- a collector that works ---- */

/* The second request after the last call was read after it. */
static void the_collector_has_the_numbers_of_the_text(void **state)
{
    static char text[1 << 22];
    size_t found = 0, lines = 0;
    (void)state;
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    start();
    for (uint32_t i = 0; i < 12; i++)
        call(i % 2 == 0 ? "inventory" : "not utf-8: \xff", i / 2);
    wait_for_accepted(metric_requests() + 2);
    assert_true(bide_telemetry_write(text, sizeof text) < sizeof text);
    pthread_mutex_lock(&collector.lock);
    for (size_t i = 0; i < collector.last.count; i++) { /* a gauge may have changed meanwhile */
        const struct otlp_point *point = &collector.last.point[i];
        found += point->metric.type == 5 ? 1 : otlp_assert_in_text(point, text);
    }
    pthread_mutex_unlock(&collector.lock);
    for (const char *line = text; line[0] != '\0'; line = strchr(line, '\n') + 1)
        lines += line[0] != '#';
    assert_int_equal(found, lines);
    stop();
    assert_false(collector.is_malformed);
    assert_int_equal(lost_in_all(), lost(TELEMETRY_SHUTDOWN)); /* one that ran at the stop */
}

static void a_request_has_the_headers_and_resource_of_its_signal(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "api-key=m1", 1);
    start();
    wait_for_metrics(1);
    stop();
    assert_non_null(strstr(collector.head, "Content-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(collector.head, "User-Agent: bide-OTLP-Exporter-C/" BIDE_VERSION "\r\n"));
    assert_non_null(strstr(collector.head, "api-key: m1\r\n"));
    assert_true(otlp_has(collector.last.resource, "telemetry.sdk.name=bide"));
    assert_true(otlp_has(collector.last.resource, "service.instance.id="));
    assert_string_equal(collector.last.scope, "bide");
}

/* A stop may be too short on a busy machine: one of many is not. */
static void the_stop_sends_a_last_export(void **state)
{
    (void)state;
    setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000", 1);
    for (unsigned i = 1; i <= 50 && metric_requests() == 0; i++) {
        start();
        call("last", 0);
        bide_telemetry_stop();
        assert_true(metric_requests() + lost(TELEMETRY_SHUTDOWN) > 0);
    }
    stop();
    const struct otlp_point *point = otlp_find(&collector.last, "bide.calls", "\nbide.target=last\nresult=first\n");
    assert_non_null(point);
    assert_true(point->as_int > 0);
}

/* Returns a point of the last request that begins at the start of the process. */
static struct otlp_point some_counter(void)
{
    pthread_mutex_lock(&collector.lock);
    const struct otlp_point *found =
        otlp_find(&collector.last, "bide.telemetry.dropped", "\nsignal=spans\ncause=ring_full\n");
    struct otlp_point point = found != NULL ? *found : (struct otlp_point){.start_ns = 0};
    pthread_mutex_unlock(&collector.lock);
    return point;
}

static void sums_begin_once_although_telemetry_starts_again(void **state)
{
    (void)state;
    start();
    wait_for_metrics(1);
    struct otlp_point before = some_counter();
    bide_telemetry_stop();
    start();
    wait_for_metrics(metric_requests() + 2);
    struct otlp_point after = some_counter();
    assert_true(before.start_ns > 0 && before.start_ns == after.start_ns);
    assert_true(before.time_ns >= before.start_ns && after.time_ns > before.time_ns);
}

/* ---- one signal without the other ---- */

static void without_traces_only_metrics_are_sent(void **state)
{
    (void)state;
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    start();
    call("inventory", 0);
    wait_for_metrics(3);
    stop();
    assert_int_equal(collector.traces, 0);
}

static void without_metrics_only_spans_are_sent(void **state)
{
    (void)state;
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    start();
    call("inventory", 0);
    wait_for_traces();
    stop();
    assert_int_equal(collector.metrics, 0);
    assert_int_equal(lost_in_all(), 0);
}

static void a_program_may_export_spans_only(void **state)
{
    (void)state;
    start_with(true);
    call("inventory", 0);
    wait_for_traces();
    stop();
    assert_int_equal(collector.metrics, 0);
}

/* ---- a collector that fails ---- */

static void a_503_is_retried(void **state)
{
    (void)state;
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    collector.failures = 2;
    start();
    wait_for_accepted(1);
    stop();
    assert_int_equal(lost(TELEMETRY_EXPORT_FAILED) + lost(TELEMETRY_REJECTED), 0);
}

/* Waits until the collector has answered some requests; each is lost for that cause, or by the stop. */
static void expect_loss(enum telemetry_cause cause)
{
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    start();
    wait_for_metrics(3);
    stop();
    assert_true(lost(cause) >= 2);
    assert_true(lost(cause) <= collector.metrics);
    assert_true(lost_in_all() >= collector.metrics);
    assert_int_equal(lost(cause) + lost(TELEMETRY_SHUTDOWN), lost_in_all());
}

static void a_400_is_counted_and_the_next_export_is_sent(void **state)
{
    (void)state;
    collector.status = 400;
    expect_loss(TELEMETRY_REJECTED);
}

static void a_500_is_counted_and_the_next_export_is_sent(void **state)
{
    (void)state;
    collector.status = 500;
    expect_loss(TELEMETRY_EXPORT_FAILED);
}

static void a_partial_success_is_counted_as_one_rejected_request(void **state)
{
    (void)state;
    collector.answer = "\x0a\x0a\x08\x05\x12\x06 no !!"; /* partial_success {rejected_data_points: 5, error_message} */
    expect_loss(TELEMETRY_REJECTED);
}

static void a_silent_collector_delays_no_stop(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100000", 1);
    collector.is_silent = true;
    int64_t before_ns = bide_now();
    start();
    wait_for_metrics(1);
    stop();
    unsetenv("OTEL_EXPORTER_OTLP_TIMEOUT");
    assert_true(bide_now() - before_ns < 30 * BIDE_S);
    assert_int_equal(lost(TELEMETRY_SHUTDOWN), 2); /* the one that ran, and the last */
    assert_int_equal(lost_in_all(), 2);
}

static void an_absent_collector_is_counted(void **state)
{
    char url[64];
    (void)state;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", live_tcp_port(collector.tcp));
    live_tcp_free(collector.tcp);
    collector.tcp = NULL;
    for (enum telemetry_cause cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
        lost_before[cause] = telemetry_dropped_get(TELEMETRY_METRICS, cause);
    setenv("OTEL_METRIC_EXPORT_TIMEOUT", "50", 1);
    assert_int_equal(bide_telemetry_start(&(struct bide_telemetry_options){.otlp = url}, NULL), BIDE_OK);
    bide_telemetry_stop();
    assert_true(lost_in_all() >= 1);
    assert_int_equal(lost(TELEMETRY_EXPORT_FAILED) + lost(TELEMETRY_SHUTDOWN), lost_in_all());
}

/* ---- processes ---- */

/* Returns the service.instance.id of the last request. */
static void instance(char id[64])
{
    pthread_mutex_lock(&collector.lock);
    const char *at = strstr(collector.last.resource, "\nservice.instance.id=");
    snprintf(id, 64, "%.36s", at != NULL ? at + 21 : "");
    pthread_mutex_unlock(&collector.lock);
}

/* Until it is killed; the alarm ends a child whose parent has failed. */
static void child_exports(void)
{
    alarm(60);
    start();
    for (;;)
        pause();
}

/* The thread sanitizer allows no new thread in a child of a process with threads. */
static void a_forked_child_that_starts_telemetry_is_another_instance(void **state)
{
    char of_parent[64], again[64], of_child[64];
    (void)state;
#ifdef __SANITIZE_THREAD__
    return;
#endif
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    start();
    wait_for_metrics(1);
    instance(of_parent);
    bide_telemetry_stop();
    start();
    wait_for_metrics(metric_requests() + 2);
    instance(again);
    bide_telemetry_stop();
    unsigned before = metric_requests();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        child_exports();
    wait_for_metrics(before + 1);
    instance(of_child);
    assert_true(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    assert_int_equal(strlen(of_child), 36);
    assert_string_equal(again, of_parent);
    assert_string_not_equal(of_child, of_parent);
}

/* ---- more than one request ---- */

static void call_shards(void)
{
    char name[BIDE_TARGET_NAME_MAX + 1];
    for (unsigned i = 0; i < SHARDS; i++) {
        snprintf(name, sizeof name, "shard-%u", i);
        call(name, 0);
    }
    memset(name, 0xff, sizeof name); /* each byte becomes three */
    for (unsigned i = 0; i < LONG_SHARDS; i++) {
        int length = snprintf(name, sizeof name, "shard-%u", SHARDS + i);
        name[length] = '-';
        name[sizeof name - 1] = '\0';
        call(name, 0);
    }
}

/* One of the last, because names are never forgotten. */
static void many_targets_are_several_requests_of_one_instant(void **state)
{
    (void)state;
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    start();
    call_shards();
    bide_telemetry_stop();
    setenv("OTEL_METRICS_EXPORTER", "otlp", 1);
    start();
    pthread_mutex_lock(&collector.lock);
    while (collector.shards < ALL_SHARDS)
        pthread_cond_wait(&collector.changed, &collector.lock);
    pthread_mutex_unlock(&collector.lock);
    stop();
    assert_int_equal(collector.shards, ALL_SHARDS);
    assert_true(collector.first_requests > 5);
    assert_true(collector.builds >= 1 && collector.builds < collector.first_requests);
    assert_false(collector.is_malformed);
    assert_int_equal(lost(TELEMETRY_TOO_LONG) + lost(TELEMETRY_EXPORT_FAILED), 0);
}

/* After the test above. Of each export four requests are being sent, and the rest counts as one. */
static void the_rest_of_an_export_is_counted_at_the_stop(void **state)
{
    (void)state;
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    collector.is_silent = true;
    start();
    wait_for_metrics(1);
    stop();
    assert_int_equal(lost(TELEMETRY_SHUTDOWN), 2 * (4 + 1));
    assert_int_equal(lost_in_all(), lost(TELEMETRY_SHUTDOWN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_collector_has_the_numbers_of_the_text, begin, end),
        cmocka_unit_test_setup_teardown(a_request_has_the_headers_and_resource_of_its_signal, begin, end),
        cmocka_unit_test_setup_teardown(the_stop_sends_a_last_export, begin, end),
        cmocka_unit_test_setup_teardown(sums_begin_once_although_telemetry_starts_again, begin, end),
        cmocka_unit_test_setup_teardown(without_traces_only_metrics_are_sent, begin, end),
        cmocka_unit_test_setup_teardown(without_metrics_only_spans_are_sent, begin, end),
        cmocka_unit_test_setup_teardown(a_program_may_export_spans_only, begin, end),
        cmocka_unit_test_setup_teardown(a_503_is_retried, begin, end),
        cmocka_unit_test_setup_teardown(a_400_is_counted_and_the_next_export_is_sent, begin, end),
        cmocka_unit_test_setup_teardown(a_500_is_counted_and_the_next_export_is_sent, begin, end),
        cmocka_unit_test_setup_teardown(a_partial_success_is_counted_as_one_rejected_request, begin, end),
        cmocka_unit_test_setup_teardown(a_silent_collector_delays_no_stop, begin, end),
        cmocka_unit_test_setup_teardown(an_absent_collector_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(a_forked_child_that_starts_telemetry_is_another_instance, begin, end),
        cmocka_unit_test_setup_teardown(many_targets_are_several_requests_of_one_instant, begin, end),
        cmocka_unit_test_setup_teardown(the_rest_of_an_export_is_counted_at_the_stop, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
