/* test_otlp.c - spans reach a collector, and a collector that fails in any way harms nothing: calls go on, memory stays
 * flat, and every span is received or counted as lost.
 *
 * Nothing here waits for a time: a test waits until the collector has received something, or ends telemetry, after
 * which every span is accounted for. */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/curl.h>
#include <bide/telemetry.h>

#include "live_tcp.h"
#include "otlp_text.h"
#include "telemetry/dropped.h"
#include "telemetry/listener.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CALLS 200u /* two spans each */
#define HEAD  16384u

/* ---- the collector ---- */

enum behaviour {
    ANSWER,    /* with `status` and `answer` */
    SILENT,    /* reads and never answers */
    DEAF,      /* does not even read */
    RESET,     /* resets the connection after the request */
    GARBAGE,   /* answers with something that is not HTTP */
    DRIP,      /* sends a byte of its head now and then */
    GIGABYTES, /* sends a body without end */
};

static struct {
    struct live_tcp *tcp;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum behaviour behaviour;
    int status;
    unsigned failures; /* so many requests are first answered with 503 */
    const char *answer;
    size_t answer_length;
    const char *extra; /* header lines */
    unsigned requests;
    size_t seen;     /* spans, in all requests */
    size_t accepted; /* spans in requests that were answered with 200 */
    char head[HEAD]; /* of the last request with spans */
    char get[HEAD];  /* of the last other request */
    struct otlp_request all;
} collector = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const char *head_field(const char *head, const char *name)
{
    for (const char *line = strchr(head, '\n'); line != NULL; line = strchr(line + 1, '\n'))
        if (strncasecmp(line + 1, name, strlen(name)) == 0)
            return line + 1 + strlen(name);
    return "";
}

/* Counts a request. Returns the status of its response. */
static int collector_count(const char *head, const char *body, size_t length)
{
    pthread_mutex_lock(&collector.lock);
    size_t before = collector.all.count;
    otlp_decode(&collector.all, body, length);
    int status = collector.failures > 0 ? 503 : collector.status;
    collector.failures -= collector.failures > 0;
    collector.requests++;
    collector.seen += collector.all.count - before;
    if (status == 200)
        collector.accepted += collector.all.count - before;
    snprintf(strncmp(head, "GET", 3) == 0 ? collector.get : collector.head, HEAD, "%s", head);
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

static void drip(int fd)
{
    struct pollfd client = {.fd = fd, .events = POLLIN};
    while (live_tcp_write(fd, "X-A: b\r\n", 1) && poll(&client, 1, 20) == 0)
        ;
}

static void write_head(int fd, int status, size_t length)
{
    char head[512];
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d A\r\nContent-Length: %zu\r\n%s\r\n", status, length,
                     collector.extra != NULL ? collector.extra : "");
    live_tcp_write(fd, head, (size_t)n);
}

static void flood(int fd, int status)
{
    static char zeros[65536];
    write_head(fd, status, 1000000000000);
    while (live_tcp_write(fd, zeros, sizeof zeros))
        ;
}

/* Answers a request. Returns false if the connection is to be closed. */
static bool collector_answer(int fd, int status)
{
    pthread_mutex_lock(&collector.lock);
    enum behaviour behaviour = collector.behaviour;
    pthread_mutex_unlock(&collector.lock);
    switch (behaviour) {
    case ANSWER:
        write_head(fd, status, collector.answer_length);
        return live_tcp_write(fd, collector.answer, collector.answer_length);
    case RESET: live_tcp_reset(fd); break;
    case GARBAGE: live_tcp_write(fd, "\x16\x03\x01 nonsense\r\n\r\n\r\n", 18); break;
    case DRIP: drip(fd); break;
    case GIGABYTES: flood(fd, status); break;
    case SILENT:
    case DEAF: wait_for_close(fd); break;
    }
    return false;
}

static void collect(void *context, int fd, unsigned number)
{
    char head[HEAD];
    (void)context;
    (void)number;
    if (collector.behaviour == DEAF) {
        struct pollfd closed = {.fd = fd, .events = POLLRDHUP};
        poll(&closed, 1, -1);
        return;
    }
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

/* Waits until the collector has accepted so many spans. */
static void wait_for_spans(size_t count)
{
    pthread_mutex_lock(&collector.lock);
    while (collector.accepted < count)
        pthread_cond_wait(&collector.changed, &collector.lock);
    pthread_mutex_unlock(&collector.lock);
}

static void wait_for_requests(unsigned count)
{
    pthread_mutex_lock(&collector.lock);
    while (collector.requests < count)
        pthread_cond_wait(&collector.changed, &collector.lock);
    pthread_mutex_unlock(&collector.lock);
}

static unsigned requests(void)
{
    pthread_mutex_lock(&collector.lock);
    unsigned count = collector.requests;
    pthread_mutex_unlock(&collector.lock);
    return count;
}

/* From the next request on. */
static void behave(enum behaviour behaviour, int status)
{
    pthread_mutex_lock(&collector.lock);
    collector.behaviour = behaviour;
    collector.status = status;
    pthread_mutex_unlock(&collector.lock);
}

/* ---- telemetry ---- */

static uint64_t lost_before[TELEMETRY_CAUSE_COUNT];

static uint64_t lost(enum telemetry_cause cause)
{
    return telemetry_dropped_get(TELEMETRY_SPANS, cause) - lost_before[cause];
}

static uint64_t lost_in_all(void)
{
    uint64_t all = 0;
    for (enum telemetry_cause cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
        all += lost(cause);
    return all;
}

static void start(void)
{
    char url[64];
    struct bide_problem problem;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", live_tcp_port(collector.tcp));
    for (enum telemetry_cause cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
        lost_before[cause] = telemetry_dropped_get(TELEMETRY_SPANS, cause);
    enum bide_err err = bide_telemetry_start(&(struct bide_telemetry_options){.otlp = url}, &problem);
    if (err != BIDE_OK)
        print_error("%s\n", problem.text);
    assert_int_equal(err, BIDE_OK);
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
    collector.behaviour = ANSWER;
    collector.status = 200;
    collector.failures = 0;
    collector.answer = "";
    collector.answer_length = 0;
    collector.extra = NULL;
    collector.requests = 0;
    collector.seen = collector.accepted = 0;
    collector.all = (struct otlp_request){0};
    collector.tcp = live_tcp_new(collect, NULL);
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "10", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "10000", 1);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "30000", 1);
    unsetenv("OTEL_BSP_MAX_QUEUE_SIZE");
    unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
    return 0;
}

static int end(void **state)
{
    (void)state;
    stop();
    free(collector.all.span);
    return 0;
}

static struct bide_outcome succeed(void *context, const struct bide_verdict *start)
{
    (void)context;
    (void)start;
    return bide_classify_http(200, NULL);
}

static void call(unsigned times)
{
    struct bide_job job = {
        .name = "inventory", .target = BIDE_NO_TARGET, .request.safety = BIDE_SAFE, .attempt = succeed};
    for (unsigned i = 0; i < times; i++)
        assert_int_equal(bide_run(&job).action, BIDE_ACTION_DONE);
}

/* ---- a collector that works ---- */

static void every_span_arrives(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k1,x=a%20b", 1);
    start();
    call(CALLS);
    wait_for_spans(2 * CALLS);
    stop();
    assert_false(collector.all.is_malformed);
    assert_int_equal(collector.seen, 2 * CALLS);
    assert_int_equal(lost_in_all(), 0);
    assert_memory_equal(collector.head, "POST /v1/traces HTTP/1.1\r\n", 26);
    assert_non_null(strstr(collector.head, "Content-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(collector.head, "User-Agent: bide-OTLP-Exporter-C/" BIDE_VERSION "\r\n"));
    assert_non_null(strstr(collector.head, "api-key: k1\r\n"));
    assert_non_null(strstr(collector.head, "x: a b\r\n"));
    assert_null(strstr(collector.head, "Expect"));
    assert_true(otlp_has(collector.all.resource, "telemetry.sdk.name=bide"));
}

static void spans_have_the_time_of_the_wall_clock(void **state)
{
    struct timespec wall;
    (void)state;
    clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t before_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    start();
    call(1);
    wait_for_spans(2);
    stop();
    clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t after_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec, slack_ns = 1000000000u;
    for (size_t i = 0; i < 2; i++)
        assert_true(collector.all.span[i].start_ns > before_ns - slack_ns &&
                    collector.all.span[i].start_ns <= collector.all.span[i].end_ns &&
                    collector.all.span[i].end_ns < after_ns + slack_ns);
}

/* A stop may be too short on a busy machine: one of many is not. */
static void what_is_left_is_sent_at_the_stop(void **state)
{
    size_t accepted = 0;
    (void)state;
    setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000", 1);
    for (int i = 0; i < 50 && accepted == 0; i++) {
        start();
        call(CALLS);
        bide_telemetry_stop();
        pthread_mutex_lock(&collector.lock);
        accepted = collector.accepted;
        pthread_mutex_unlock(&collector.lock);
        assert_true(accepted + lost(TELEMETRY_SHUTDOWN) >= 2 * CALLS);
    }
    assert_true(accepted > 0);
}

/* The span of each attempt has the id that the request carried in its traceparent. */
static void the_exported_id_is_the_one_that_was_sent(void **state)
{
    char url[64];
    (void)state;
    start();
    snprintf(url, sizeof url, "http://127.0.0.1:%u/?q=secret", live_tcp_port(collector.tcp));
    struct bide_curl_options options = *BIDE_CURL_PLAIN_HANDLE;
    options.inject = BIDE_CURL_INJECT_TRACE;
    options.no_headers = true;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    assert_int_equal(bide_curl_perform(easy, BIDE_NO_TARGET, &options, NULL), CURLE_OK);
    char parent[64];
    pthread_mutex_lock(&collector.lock);
    snprintf(parent, sizeof parent, "%.55s", head_field(collector.get, "traceparent: "));
    pthread_mutex_unlock(&collector.lock);
    curl_easy_cleanup(easy);
    wait_for_spans(2);
    stop();
    const struct otlp_span *attempt = collector.all.span[0].kind == 3 ? &collector.all.span[0] : &collector.all.span[1];
    assert_memory_equal(parent + 3, attempt->trace, 32);
    assert_memory_equal(parent + 36, attempt->id, 16);
    assert_string_equal(parent + 53, "03"); /* sampled, random */
    assert_string_equal(attempt->name, "GET");
    assert_true(otlp_has(attempt->attributes, "http.response.status_code=200"));
    assert_non_null(strstr(attempt->attributes, "/?q=REDACTED\n"));
    assert_null(strstr(attempt->attributes, "secret"));
}

/* ---- failures that are retried ---- */

static void a_503_is_retried_and_nothing_is_lost(void **state)
{
    (void)state;
    collector.failures = 2;
    start();
    call(CALLS);
    wait_for_spans(2 * CALLS);
    stop();
    assert_true(collector.seen > 2 * CALLS); /* some were sent more than once */
    assert_int_equal(lost_in_all(), 0);
}

static void a_retry_after_beyond_the_timeout_ends_the_batch(void **state)
{
    (void)state;
    collector.status = 429;
    collector.extra = "Retry-After: 3600\r\n";
    start();
    call(1);
    wait_for_requests(1);
    stop();
    assert_int_equal(collector.requests, 1);
    assert_int_equal(lost(TELEMETRY_EXPORT_FAILED) + lost(TELEMETRY_SHUTDOWN), 2);
}

/* ---- failures that are not ---- */

/* Makes calls, waits until the collector has seen some, and stops. Every span was sent once at most, and is accounted
 * for under this cause or, if the stop was quicker, as shutdown. */
static void expect_loss(enum telemetry_cause cause)
{
    start();
    call(CALLS);
    wait_for_requests(1);
    stop();
    assert_true(collector.seen <= 2 * CALLS);
    assert_int_equal(lost(cause) + lost(TELEMETRY_SHUTDOWN), 2 * CALLS);
}

static void a_400_is_counted_and_not_sent_again(void **state)
{
    (void)state;
    collector.status = 400;
    expect_loss(TELEMETRY_REJECTED);
    assert_true(lost(TELEMETRY_REJECTED) > 0);
}

static void a_500_is_counted_and_not_sent_again(void **state)
{
    (void)state;
    collector.status = 500;
    expect_loss(TELEMETRY_EXPORT_FAILED);
    assert_true(lost(TELEMETRY_EXPORT_FAILED) > 0);
}

static void a_redirect_is_not_followed(void **state)
{
    char location[96];
    (void)state;
    snprintf(location, sizeof location, "Location: http://127.0.0.1:%u/other\r\n", live_tcp_port(collector.tcp));
    collector.status = 307;
    collector.extra = location;
    expect_loss(TELEMETRY_EXPORT_FAILED);
    assert_memory_equal(collector.head, "POST /v1/traces ", 16);
}

static void a_partial_success_is_counted_and_not_sent_again(void **state)
{
    (void)state;
    collector.answer = "\x0a\x0a\x08\x01\x12\x06 no !!"; /* partial_success {rejected_spans: 1, error_message} */
    collector.answer_length = 12;
    start();
    call(CALLS);
    wait_for_spans(2 * CALLS);
    stop();
    assert_int_equal(collector.seen, 2 * CALLS);
    assert_int_equal(lost(TELEMETRY_REJECTED) + lost(TELEMETRY_SHUTDOWN), collector.requests);
}

static void a_partial_success_is_counted_whatever_the_length_of_its_message(void **state)
{
    static char answer[9000] = "\x0a\xa5\x46\x08\x01\x12\xa0\x46"; /* 8997: rejected_spans 1, error_message of 8992 */
    (void)state;
    collector.answer = answer;
    collector.answer_length = sizeof answer;
    start();
    call(CALLS);
    wait_for_spans(2 * CALLS);
    stop();
    assert_true(lost(TELEMETRY_REJECTED) > 0);
    assert_int_equal(lost(TELEMETRY_REJECTED) + lost(TELEMETRY_SHUTDOWN), collector.requests);
}

static void an_answer_that_is_no_message_counts_as_accepted(void **state)
{
    (void)state;
    collector.answer = "\xff\xff\xff{\"ok\":true}";
    collector.answer_length = 14;
    start();
    call(CALLS);
    wait_for_spans(2 * CALLS);
    stop();
    assert_int_equal(lost_in_all(), lost(TELEMETRY_SHUTDOWN));
}

/* ---- a collector that does not answer ---- */

/* Starts, makes calls and stops, twice. The second time telemetry runs while the collector fails. */
static void expect_all_lost(enum behaviour behaviour, const char *timeout_ms)
{
    collector.behaviour = behaviour;
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", timeout_ms, 1);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", timeout_ms, 1);
    for (int i = 0; i < 2; i++) {
        unsigned before = requests();
        start();
        call(CALLS);
        if (i == 1 && behaviour != DEAF)
            wait_for_requests(before + 1);
        bide_telemetry_stop();
        assert_int_equal(lost_in_all(), 2 * CALLS);
    }
}

static void a_silent_collector_delays_no_stop(void **state)
{
    (void)state;
    int64_t before_ns = bide_now();
    expect_all_lost(SILENT, "100000");
    assert_true(bide_now() - before_ns < 30 * BIDE_S); /* not the timeout of an export */
}

static void a_collector_that_reads_nothing_delays_no_stop(void **state)
{
    (void)state;
    expect_all_lost(DEAF, "100000");
}

static void a_dripping_collector_runs_into_the_timeout(void **state)
{
    (void)state;
    expect_all_lost(DRIP, "50");
}

static void lost_connections_are_counted_when_the_time_is_over(void **state)
{
    (void)state;
    expect_all_lost(RESET, "50");
}

static void garbage_is_no_answer(void **state)
{
    (void)state;
    expect_all_lost(GARBAGE, "50");
}

static void an_absent_collector_loses_all_and_nothing_waits(void **state)
{
    char url[64];
    (void)state;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", live_tcp_port(collector.tcp));
    live_tcp_free(collector.tcp);
    collector.tcp = NULL;
    for (enum telemetry_cause cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
        lost_before[cause] = telemetry_dropped_get(TELEMETRY_SPANS, cause);
    assert_int_equal(bide_telemetry_start(&(struct bide_telemetry_options){.otlp = url}, NULL), BIDE_OK);
    call(CALLS);
    bide_telemetry_stop();
    assert_int_equal(lost_in_all(), 2 * CALLS);
}

/* ---- memory ---- */

static long memory_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void gigabytes_of_response_cost_no_memory(void **state)
{
    (void)state;
    start();
    call(CALLS);
    wait_for_spans(2 * CALLS);
    bide_telemetry_stop();
    long before_kb = memory_kb();
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200", 1);
    for (int status = 200; status <= 500; status += 300) {
        unsigned before = requests();
        behave(GIGABYTES, status);
        start();
        call(CALLS);
        wait_for_requests(before + 1);
        bide_telemetry_stop();
        assert_true(memory_kb() - before_kb < 64 * 1024);
    }
}

static void a_stopped_collector_fills_the_ring_and_no_more(void **state)
{
    (void)state;
    collector.behaviour = SILENT;
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1000", 1);
    start();
    call(100000);
    bide_telemetry_stop();
    assert_true(lost(TELEMETRY_RING_FULL) > 100000);
    assert_int_equal(lost_in_all(), 200000);
}

static struct bide_outcome be_unavailable(void *context, const struct bide_verdict *start)
{
    (void)context;
    (void)start;
    return bide_classify_http(503, NULL);
}

static uint64_t seen_so_far(void)
{
    pthread_mutex_lock(&collector.lock);
    uint64_t seen = collector.seen;
    pthread_mutex_unlock(&collector.lock);
    return seen;
}

/* 512 spans, four of five of a failed attempt with a record of its own, need 111 KB with that name: the ring has 64. */
static void a_ring_that_is_smaller_than_a_batch_loses_nothing(void **state)
{
    char name[BIDE_TARGET_NAME_MAX + 1];
    struct bide_policy policy;
    struct bide_job job = {.name = name,
                           .policy = &policy,
                           .target = BIDE_NO_TARGET,
                           .request.safety = BIDE_SAFE,
                           .attempt = be_unavailable};
    (void)state;
    snprintf(name, sizeof name, "%0*d", (int)BIDE_TARGET_NAME_MAX, 1);
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.backoff = BIDE_BACKOFF_NONE;
    policy.attempts_max = 4;
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "512", 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "86400000", 1);
    start();
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 10; i++)
            bide_run(&job);
        while (telemetry_listener_pending() >= telemetry_listener_capacity() / 2)
            sched_yield();
    }
    while (seen_so_far() + lost_in_all() <
           5000 / 512 * 512) /* full batches are sent before the stop, in whatever time */
        sched_yield();
    stop();
    assert_int_equal(collector.seen, 5000);
    assert_int_equal(lost_in_all(), 0);
}

/* ---- processes ---- */

static void in_child(void (*run)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run();
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

static void child_calls(void)
{
    uint64_t before = lost(TELEMETRY_SHUTDOWN);
    call(CALLS);
    _exit(lost(TELEMETRY_SHUTDOWN) == before + 2 * CALLS ? 0 : 1);
}

static void a_forked_child_exports_nothing(void **state)
{
    (void)state;
    start();
    call(CALLS);
    in_child(child_calls);
    call(CALLS);
    wait_for_spans(4 * CALLS);
    stop();
    assert_int_equal(collector.seen, 4 * CALLS);
}

#ifndef __SANITIZE_THREAD__ /* it refuses a thread in a forked child */
static void child_starts(void)
{
    start();
    call(CALLS);
    bide_telemetry_stop();
    _exit(0);
}

static void child_forgets_to_stop(void)
{
    setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000", 1);
    start();
    call(CALLS);
    exit(0);
}

static void a_forked_child_may_start_telemetry_itself(void **state)
{
    (void)state;
    start();
    call(CALLS);
    wait_for_spans(2 * CALLS);
    in_child(child_starts);
    wait_for_spans(4 * CALLS);
    call(CALLS);
    wait_for_spans(6 * CALLS);
}

static void an_exit_without_stop_sends_what_is_left(void **state)
{
    (void)state;
    in_child(child_forgets_to_stop);
    wait_for_spans(2 * CALLS);
}
#endif

static void *call_in_thread(void *context)
{
    (void)context;
    call(5 * CALLS);
    return NULL;
}

static void many_threads_lose_nothing_while_telemetry_stops_and_starts(void **state)
{
    pthread_t thread[4];
    (void)state;
    start();
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, call_in_thread, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        bide_telemetry_stop();
        assert_int_equal(bide_telemetry_start(&(struct bide_telemetry_options){.otlp = ""}, NULL), BIDE_OK);
    }
    for (size_t i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

static void malformed_variables_are_errors_of_the_start(void **state)
{
    struct bide_problem problem;
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    assert_int_equal(bide_telemetry_start(&(struct bide_telemetry_options){.otlp = ""}, &problem), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.text, "OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\"; must be http/protobuf"));
    unsetenv("OTEL_EXPORTER_OTLP_PROTOCOL");
    setenv("OTEL_SDK_DISABLED", "true", 1);
    assert_int_equal(bide_telemetry_start(&(struct bide_telemetry_options){.otlp = ""}, &problem), BIDE_OK);
    call(CALLS);
    stop();
    unsetenv("OTEL_SDK_DISABLED");
    assert_int_equal(collector.requests, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(every_span_arrives),
        TEST(spans_have_the_time_of_the_wall_clock),
        TEST(what_is_left_is_sent_at_the_stop),
        TEST(the_exported_id_is_the_one_that_was_sent),
        TEST(a_503_is_retried_and_nothing_is_lost),
        TEST(a_retry_after_beyond_the_timeout_ends_the_batch),
        TEST(a_400_is_counted_and_not_sent_again),
        TEST(a_500_is_counted_and_not_sent_again),
        TEST(a_redirect_is_not_followed),
        TEST(a_partial_success_is_counted_and_not_sent_again),
        TEST(a_partial_success_is_counted_whatever_the_length_of_its_message),
        TEST(a_ring_that_is_smaller_than_a_batch_loses_nothing),
        TEST(an_answer_that_is_no_message_counts_as_accepted),
        TEST(a_silent_collector_delays_no_stop),
        TEST(a_collector_that_reads_nothing_delays_no_stop),
        TEST(a_dripping_collector_runs_into_the_timeout),
        TEST(lost_connections_are_counted_when_the_time_is_over),
        TEST(garbage_is_no_answer),
        TEST(an_absent_collector_loses_all_and_nothing_waits),
        TEST(gigabytes_of_response_cost_no_memory),
        TEST(a_stopped_collector_fills_the_ring_and_no_more),
        TEST(a_forked_child_exports_nothing),
#ifndef __SANITIZE_THREAD__
        TEST(a_forked_child_may_start_telemetry_itself),
        TEST(an_exit_without_stop_sends_what_is_left),
#endif
        TEST(many_threads_lose_nothing_while_telemetry_stops_and_starts),
        TEST(malformed_variables_are_errors_of_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
