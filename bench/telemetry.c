/* telemetry.c - what it costs to watch calls: instructions of bide_run beside the same call that nobody watches; and
 * the time of a scrape.
 *
 * A call is found by its name in the table of the process, as in most programs. */
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "bench.h"
#include "pair.h"
#include "server.h"
#include "telemetry/dropped.h"
#include "telemetry/listener.h"
#include "telemetry/meters.h"

#include <malloc.h>

#define CALLS 100000u

struct world {
    struct bide_policy policy;
    struct bide_outcome ok, unavailable;
    uint32_t failures; /* the first attempts of each call */
};

static struct bide_outcome attempt(void *context, const struct bide_verdict *start)
{
    const struct world *w = context;
    return start->attempt <= w->failures ? w->unavailable : w->ok;
}

#define RUN_REPORTS 0
#define bide_run    bare_run
#include "os/blocking.c"
#undef bide_run
extern struct bide_verdict bide_run(const struct bide_job *job);

static void run_bare(void *context, uint32_t n)
{
    struct world *w = context;
    struct bide_job job = {.name = "inventory",
                           .policy = &w->policy,
                           .request = {.safety = BIDE_SAFE, .seed = 7},
                           .attempt = attempt,
                           .context = w};
    for (uint32_t i = 0; i < n; i++)
        if (bare_run(&job).action != BIDE_ACTION_DONE)
            abort();
}

static void run_unwatched(void *context, uint32_t n)
{
    struct world *w = context;
    struct bide_job job = {.name = "inventory",
                           .policy = &w->policy,
                           .request = {.safety = BIDE_SAFE, .seed = 7},
                           .attempt = attempt,
                           .context = w};
    for (uint32_t i = 0; i < n; i++)
        if (bide_run(&job).action != BIDE_ACTION_DONE)
            abort();
}

static void start_meters(void)
{
    struct bide_problem problem;
    if (bide_telemetry_start(NULL, &problem) != BIDE_OK)
        abort();
}

static void run_metered(void *context, uint32_t n)
{
    start_meters();
    run_unwatched(context, n);
}

typedef void report_function(struct bide_report *report, const struct bide_verdict *verdict,
                             const struct bide_attempt_end *end, int64_t now_ns);

static __attribute__((noinline)) void report_nothing(struct bide_report *report, const struct bide_verdict *verdict,
                                                     const struct bide_attempt_end *end, int64_t now_ns)
{
    (void)report, (void)verdict, (void)end, (void)now_ns;
    __asm__ volatile("" ::: "memory");
}

/* The reports of a call alone, without the call: an attempt fails, a retry fails, and the next succeeds, in
 * milliseconds each. The verdicts of that last retry are reported by `retry`. */
static void replay(const struct world *w, report_function *retry, uint32_t n)
{
    const uint32_t last = retry == bide_report_verdict ? 3 : 2;
    const struct bide_report_call call = {.target_name = "inventory", .target = BIDE_NO_TARGET};
    const struct bide_attempt_end end[] = {{&w->unavailable, 1, 503}, {&w->unavailable, 2, 503}, {&w->ok, last, 200}};
    const struct bide_verdict start[] = {{.action = BIDE_ACTION_START,
                                          .reason = BIDE_REASON_FIRST_ATTEMPT,
                                          .attempt = 1},
                                         {.action = BIDE_ACTION_START, .reason = BIDE_REASON_RETRY, .attempt = 2},
                                         {.action = BIDE_ACTION_START, .reason = BIDE_REASON_RETRY, .attempt = 3}},
                              wait = {.action = BIDE_ACTION_WAIT, .reason = BIDE_REASON_BACKOFF},
                              done = {.action = BIDE_ACTION_DONE, .reason = BIDE_REASON_SUCCEEDED, .attempt = last};
    start_meters();
    for (uint32_t i = 0; i < n; i++) {
        struct bide_report report;
        bide_report_begin(&report, &call, 0);
        bide_report_verdict(&report, &start[0], NULL, 0);
        bide_report_verdict(&report, &wait, &end[0], BIDE_MS);
        bide_report_verdict(&report, &start[1], NULL, 2 * BIDE_MS);
        retry(&report, &wait, &end[1], 3 * BIDE_MS);
        retry(&report, &start[2], NULL, 4 * BIDE_MS);
        bide_report_verdict(&report, &done, &end[2], 5 * BIDE_MS);
    }
}

static void replay_retry(void *context, uint32_t n)
{
    replay(context, bide_report_verdict, n);
}

static void replay_without_retry(void *context, uint32_t n)
{
    replay(context, report_nothing, n);
}

/* No thread exports: what is measured is what a call does. The ring has room for all records: to drop one costs less
 * than to write it. */
static void run_spanned(void *context, uint32_t n)
{
    struct telemetry_listener_options options = {
        .spans = true, .sampler = {.parent_based = true, .limit = TELEMETRY_SAMPLER_ALL}, .ring_bytes = 4u << 20};
    if (!telemetry_meters_begin(BIDE_TELEMETRY_TARGETS) || telemetry_listener_begin(&options, NULL) != BIDE_OK)
        abort();
    run_unwatched(context, n);
}

/* ---- a scrape ---- */

/* Makes calls on as many targets as have a meter of their own, with failures, so that all series exist. */
static void call_targets(struct world *w)
{
    char name[64];
    w->policy.backoff = BIDE_BACKOFF_NONE;
    for (unsigned i = 0; i < BIDE_TELEMETRY_TARGETS; i++) {
        struct bide_job job = {.name = name,
                               .policy = &w->policy,
                               .request = {.safety = BIDE_SAFE, .seed = 7},
                               .attempt = attempt,
                               .context = w};
        snprintf(name, sizeof name, "https://service-%u.example.internal:8443", i);
        for (w->failures = 0; w->failures < 4; w->failures++)
            bide_run(&job);
    }
}

static void scrape(void *context, uint32_t n)
{
    static char text[8u << 20];
    (void)context;
    for (uint32_t i = 0; i < n; i++)
        if (bide_telemetry_write(text, sizeof text) >= sizeof text)
            abort();
}

/* ---- an export ---- */

#define EVENTS_PER_S 200000.0 /* a call that succeeds at once has two, its start and its end, and two spans */
#define EXPORT_S     10.0

/* Reads the rest of a request, and answers it. Returns false if the client is gone. */
static bool sink_answer(int fd, char *buffer, size_t size, size_t length)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    const char *field = strcasestr(buffer, "\r\ncontent-length:"), *end = strstr(buffer, "\r\n\r\n");
    if (field == NULL || end == NULL)
        return false;
    size_t missing = (size_t)(end + 4 - buffer) + strtoul(field + 17, NULL, 10) - length;
    for (ssize_t got; missing > 0; missing -= (size_t)got)
        if ((got = recv(fd, buffer, missing < size ? missing : size, 0)) <= 0)
            return false;
    return send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) > 0;
}

static void *sink_serve(void *context)
{
    static __thread char buffer[262144];
    int fd = (int)(intptr_t)context;
    for (size_t length = 0;;) {
        ssize_t got = recv(fd, buffer + length, sizeof buffer - 1 - length, 0);
        if (got <= 0)
            break;
        buffer[length += (size_t)got] = '\0';
        if (strstr(buffer, "\r\n\r\n") == NULL)
            continue;
        if (!sink_answer(fd, buffer, sizeof buffer, length))
            break;
        length = 0;
    }
    close(fd);
    return NULL;
}

/* Serves connections until the process is killed. */
static _Noreturn void sink_accept(int listener)
{
    for (;;) {
        pthread_t thread;
        pthread_create(&thread, NULL, sink_serve, (void *)(intptr_t)accept(listener, NULL, NULL));
    }
}

/* A collector in a process of its own, which accepts everything. Returns its process, after setting the port. */
static pid_t sink_start(uint16_t *port)
{
    struct sockaddr_in address = server_address(0);
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        server_give_up("no sink");
    *port = ntohs(address.sin_port);
    pid_t pid = fork();
    if (pid == 0)
        sink_accept(listener);
    close(listener);
    return pid;
}

static uint64_t spans_dropped(void)
{
    uint64_t all = 0;
    for (enum telemetry_cause cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
        all += telemetry_dropped_get(TELEMETRY_SPANS, cause);
    return all;
}

/* Makes calls at an even rate: each millisecond those that are due. */
static double make_events(struct world *w)
{
    double begin_ns = bench_clock_ns(CLOCK_MONOTONIC), events = 0, passed_s;
    while ((passed_s = (bench_clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1e9) < EXPORT_S) {
        uint32_t calls = (uint32_t)((passed_s * EVENTS_PER_S - events) / 2);
        run_unwatched(w, calls);
        events += 2.0 * calls;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return events / passed_s;
}

static void measure_export(struct world *w)
{
    char url[64];
    uint16_t port;
    struct bide_problem problem;
    pid_t sink = sink_start(&port);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    if (bide_telemetry_start(&(struct bide_telemetry_options){.otlp = url}, &problem) != BIDE_OK)
        server_give_up(problem.text);
    bench_figure("telemetry.events_per_s", make_events(w), "events/s", BENCH_NO_AIM);
    bide_telemetry_stop();
    bench_figure("telemetry.dropped", (double)spans_dropped(), "spans", 0);
    kill(sink, SIGKILL);
    waitpid(sink, NULL, 0);
}

static const struct bench_part parts[] = {{"bare", run_bare},       {"unwatched", run_unwatched},
                                          {"metered", run_metered}, {"spanned", run_spanned},
                                          {"replay", replay_retry}, {"replay_floor", replay_without_retry}};

/* Times of a call that succeeds at once, with meters: each thread counts in a lane of its own. */
static void print_times(struct world *w)
{
    start_meters();
    double one_ns = bench_ns(run_unwatched, w, CALLS);
    struct pair_cost two = pair_ns(run_unwatched, w, CALLS);
    bench_figure("telemetry.success.ns", one_ns, "ns", BENCH_NO_AIM);
    bench_figure("telemetry.success.ns.two_threads", two.cpu_ns, "ns", 2 * one_ns);
    bide_telemetry_stop();
}

int main(int argc, char **argv)
{
    static struct world world;
    bide_policy_init(&world.policy, BIDE_PRESET_SERVICE);
    world.ok = bide_classify_http(200, NULL);
    world.unavailable = bide_classify_http(503, NULL);
    if (argc == 3)
        return bench_count(parts, sizeof parts / sizeof *parts, &world, argv);
    bench_instructions("telemetry.unwatched.instructions", "unwatched-bare", 8);
    bench_instructions("telemetry.success.instructions", "metered-unwatched", 80);
    bench_instructions("telemetry.retry.instructions", "replay-replay_floor", 120);
    bench_instructions("telemetry.span.instructions", "spanned-metered", 250);
    measure_export(&world);
    print_times(&world);
    start_meters();
    call_targets(&world);
    bench_figure("telemetry.scrape.ms", bench_ns(scrape, &world, 1) / 1e6, "ms", 10);
    return EXIT_SUCCESS;
}
