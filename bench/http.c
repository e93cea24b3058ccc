/* http.c - the cost that bide adds to libcurl: instructions per call, throughput of many calls, memory and CPU of
 * waiting calls.
 *
 * Both sides do the same work in the same run: a kept-alive handle with a write function against a local nginx, then
 * against `bide chaos`; then a thousand calls in flight over curl_multi. The servers are child processes. BIDE_CHAOS
 * names the program bide-chaos. */
#define BIDE_CURL_RECORD_DECLARE_ONLY
#include <bide/curl_record.h>
#include <bide/multi.h>
#include <bide/telemetry.h>

#include <bide/clock.h>

#include <malloc.h>
#include <sys/resource.h>

#include "bench.h"
#include "server.h"

#define IN_FLIGHT 1000u
#define CALLS     10000u /* per run of many calls */
#define PAIRS     9      /* runs of each side, alternating; the least disturbed run counts */
#define WAITING   100000u

/* ---- servers ---- */

static void write_nginx_conf(const struct server *s, const char *path)
{
    const char *d = s->directory;
    FILE *f = fopen(path, "w");
    if (!f)
        server_give_up("cannot write the configuration of nginx");
    fprintf(f,
            "daemon off; pid %s/pid; error_log %s/error.log; worker_processes 1; events { worker_connections 4096; }\n"
            "http { access_log off; keepalive_requests 1000000000; default_type text/plain;\n"
            "client_body_temp_path %s/a; proxy_temp_path %s/b; fastcgi_temp_path %s/c; uwsgi_temp_path %s/d;\n"
            "scgi_temp_path %s/e; server { listen 127.0.0.1:%u backlog=4096; location / { return 200 \"hello, "
            "world\\n\"; } } }\n",
            d, d, d, d, d, d, d, s->port);
    fclose(f);
}

static struct server start_nginx(void)
{
    struct server s = server_prepare(true);
    char conf[96];
    snprintf(conf, sizeof conf, "%s/n.conf", s.directory);
    write_nginx_conf(&s, conf);
    const char *const argv[] = {"nginx", "-e", "/dev/null", "-c", conf, NULL};
    server_launch(&s, argv);
    return s;
}

static struct server start_chaos(const char *script)
{
    struct server s = server_prepare(false);
    char number[8];
    const char *given = getenv("BIDE_CHAOS");
    snprintf(number, sizeof number, "%u", s.port);
    const char *const argv[] = {given ? given : "build/bide-chaos", "--port", number, "--script", script, NULL};
    server_launch(&s, argv);
    return s;
}

/* ---- calls one after another ---- */

static size_t sink(char *at, size_t size, size_t count, void *context)
{
    (void)at;
    *(size_t *)context += size * count;
    return size * count;
}

struct easy {
    CURL *handle;
    size_t bytes;
    struct bide_target target;
    struct bide_curl_options options;
    struct curl_slist *headers;
};

static struct easy *easy_new(const char *url)
{
    struct easy *e = aligned_alloc(64, (sizeof *e + 63) / 64 * 64);
    struct bide_target_config config;
    memset(e, 0, sizeof *e);
    e->handle = curl_easy_init();
    curl_easy_setopt(e->handle, CURLOPT_URL, url);
    curl_easy_setopt(e->handle, CURLOPT_WRITEFUNCTION, sink);
    curl_easy_setopt(e->handle, CURLOPT_WRITEDATA, &e->bytes);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    bide_target_init(&e->target, &config, bide_now(), NULL);
    e->options = (struct bide_curl_options){0};
    e->options.write = sink;
    e->options.write_data = &e->bytes;
    return e;
}

static void easy_free(struct easy *e)
{
    curl_slist_free_all(e->headers);
    curl_easy_cleanup(e->handle);
    free(e);
}

static void require_ok(CURLcode code)
{
    if (code != CURLE_OK)
        server_give_up(curl_easy_strerror(code));
}

static void perform_bare(void *context, uint32_t n)
{
    struct easy *e = easy_new(context);
    for (uint32_t i = 0; i <= n; i++) /* the first call connects */
        require_ok(curl_easy_perform(e->handle));
    easy_free(e);
}

/* The minimum that any supervision of a call needs: two timeouts and a header function. The floor of bide's cost. */
static void perform_watched(void *context, uint32_t n)
{
    struct easy *e = easy_new(context);
    size_t bytes = 0;
    curl_easy_setopt(e->handle, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(e->handle, CURLOPT_CONNECTTIMEOUT_MS, 3000L);
    curl_easy_setopt(e->handle, CURLOPT_HEADERFUNCTION, sink);
    curl_easy_setopt(e->handle, CURLOPT_HEADERDATA, &bytes);
    for (uint32_t i = 0; i <= n; i++)
        require_ok(curl_easy_perform(e->handle));
    easy_free(e);
}

static void perform_bide(void *context, uint32_t n)
{
    struct easy *e = easy_new(context);
    for (uint32_t i = 0; i <= n; i++)
        require_ok(bide_curl_perform(e->handle, &e->target, &e->options, NULL));
    easy_free(e);
}

static CURL *recorded_new(const char *url, size_t *bytes)
{
    CURL *handle = bide_curl_easy_init();
    bide_curl_easy_setopt(handle, CURLOPT_URL, url);
    bide_curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, sink);
    bide_curl_easy_setopt(handle, CURLOPT_WRITEDATA, bytes);
    return handle;
}

/* The one-line change on a recorded handle: no options, the target found by origin. */
static void perform_drop_in(void *context, uint32_t n)
{
    size_t bytes = 0;
    CURL *handle = recorded_new(context, &bytes);
    for (uint32_t i = 0; i <= n; i++)
        require_ok(bide_curl_perform(handle, NULL, NULL, NULL));
    bide_curl_easy_cleanup(handle);
}

static void start_meters(void)
{
    struct bide_problem problem;
    if (bide_telemetry_start(NULL, &problem) != BIDE_OK)
        abort();
}

/* The same, and each call is counted by the meter of its target. */
static void perform_metered(void *context, uint32_t n)
{
    start_meters();
    perform_drop_in(context, n);
}

/* Not counted. The heap is as before: what an allocation costs depends on those before it. */
static void perform_unmetered(void *context, uint32_t n)
{
    start_meters();
    bide_telemetry_stop();
    perform_drop_in(context, n);
}

/* For many calls: the handle is adopted, the target given. */
static void perform_adopted(void *context, uint32_t n)
{
    struct easy *e = easy_new(context);
    CURL *handle = recorded_new(context, &e->bytes);
    require_ok(bide_curl_adopt(handle));
    for (uint32_t i = 0; i <= n; i++)
        require_ok(bide_curl_perform(handle, &e->target, NULL, NULL));
    bide_curl_easy_cleanup(handle);
    easy_free(e);
}

static void perform_bare_headers(void *context, uint32_t n)
{
    struct easy *e = easy_new(context);
    e->headers = curl_slist_append(NULL, "Bide-Attempt: 1;max=4;left=59999");
    e->headers = curl_slist_append(e->headers, "Idempotency-Key: \"8e03978e-40d5-43e8-bc93-6894a57f9324\"");
    e->headers = curl_slist_append(e->headers, "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    curl_easy_setopt(e->handle, CURLOPT_HTTPHEADER, e->headers);
    for (uint32_t i = 0; i <= n; i++)
        require_ok(curl_easy_perform(e->handle));
    easy_free(e);
}

static void perform_bide_headers(void *context, uint32_t n)
{
    struct easy *e = easy_new(context);
    e->options.inject = BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_TRACE;
    e->options.no_headers = true;
    e->options.body.kind = BIDE_CURL_BODY_REPEATABLE; /* none */
    for (uint32_t i = 0; i <= n; i++)
        require_ok(bide_curl_perform(e->handle, &e->target, &e->options, NULL));
    easy_free(e);
}

/* ---- many calls at once ---- */

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

struct many {
    struct easy *easy[IN_FLIGHT];
    CURLM *curl;
    struct bide_multi *multi;
    uint32_t calls;
    uint32_t started;
    uint32_t ended;
};

/* The result of one run. The client is a single thread and the bottleneck, so its capacity is calls per second of CPU
 * time. Wall-clock time is reported as well, but depends on the load of the machine. */
struct rate {
    double per_s;
    double per_cpu_s;
};

static struct rate rate_of(uint32_t calls, int64_t begin_ns, double begin_cpu_s)
{
    return (struct rate){calls / ((double)(bide_now() - begin_ns) / 1e9), calls / (cpu_s() - begin_cpu_s)};
}

static struct many *many_new(const char *url, uint32_t calls)
{
    struct many *m = calloc(1, sizeof *m);
    m->calls = calls;
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        m->easy[i] = easy_new(url);
        m->easy[i]->options.context = m;
    }
    return m;
}

static void many_free(struct many *m)
{
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        easy_free(m->easy[i]);
    free(m);
}

static struct rate run_bare_many(struct many *m)
{
    int running, left;
    m->curl = curl_multi_init();
    m->started = m->ended = 0;
    int64_t begin_ns = bide_now();
    double begin_cpu_s = cpu_s();
    for (; m->started < IN_FLIGHT; m->started++)
        curl_multi_add_handle(m->curl, m->easy[m->started]->handle);
    while (m->ended < m->calls) {
        curl_multi_poll(m->curl, NULL, 0, 1000, NULL);
        curl_multi_perform(m->curl, &running);
        for (CURLMsg *msg; (msg = curl_multi_info_read(m->curl, &left)) != NULL; m->ended++) {
            CURL *handle = msg->easy_handle;
            require_ok(msg->data.result);
            curl_multi_remove_handle(m->curl, handle);
            if (m->started < m->calls && ++m->started)
                curl_multi_add_handle(m->curl, handle);
        }
    }
    struct rate rate = rate_of(m->calls, begin_ns, begin_cpu_s);
    curl_multi_cleanup(m->curl);
    return rate;
}

static void start_one(struct many *m, struct easy *e);

static void on_done(void *context, const struct bide_multi_end *end)
{
    struct easy *e = context;
    struct many *m = e->options.context;
    require_ok(end->code);
    m->ended++;
    if (m->started < m->calls)
        start_one(m, e);
}

static void start_one(struct many *m, struct easy *e)
{
    struct bide_multi_job job = {
        .easy = e->handle, .target = &m->easy[0]->target, .options = &e->options, .done = on_done, .context = e};
    m->started++;
    if (bide_multi_start(m->multi, &job, NULL, NULL) != BIDE_OK)
        server_give_up("cannot start a call");
}

static struct rate run_bide_many(struct many *m)
{
    bide_multi_new(&m->multi);
    m->started = m->ended = 0;
    int64_t begin_ns = bide_now();
    double begin_cpu_s = cpu_s();
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        start_one(m, m->easy[i]);
    while (bide_multi_poll(m->multi, BIDE_NEVER) > 0)
        continue;
    struct rate rate = rate_of(m->calls, begin_ns, begin_cpu_s);
    bide_multi_free(m->multi);
    return rate;
}

static void keep_best(struct rate *best, struct rate rate)
{
    best->per_s = rate.per_s > best->per_s ? rate.per_s : best->per_s;
    best->per_cpu_s = rate.per_cpu_s > best->per_cpu_s ? rate.per_cpu_s : best->per_cpu_s;
}

static void measure_many(const char *url, const char *key, double least)
{
    struct many *m = many_new(url, CALLS);
    struct rate plain = {0, 0}, ours = {0, 0};
    char name[64];
    for (int i = 0; i < PAIRS; i++) {
        keep_best(&plain, run_bare_many(m));
        keep_best(&ours, run_bide_many(m));
    }
    many_free(m);
    snprintf(name, sizeof name, "%s.bare_requests_per_s", key);
    bench_figure(name, plain.per_s, "1/s", BENCH_NO_AIM);
    snprintf(name, sizeof name, "%s.requests_per_s", key);
    bench_figure(name, ours.per_s, "1/s", BENCH_NO_AIM);
    snprintf(name, sizeof name, "%s.wall_ratio", key);
    bench_figure(name, ours.per_s / plain.per_s, "ratio", BENCH_NO_AIM);
    snprintf(name, sizeof name, "%s.throughput_ratio", key);
    bench_figure_least(name, ours.per_cpu_s / plain.per_cpu_s, "ratio", least);
}

/* For counting instructions: n calls in addition to the thousand that are always in flight. */
static void count_bare_many(void *context, uint32_t n)
{
    struct many *m = many_new(context, IN_FLIGHT + n);
    run_bare_many(m);
    many_free(m);
}

static void count_bide_many(void *context, uint32_t n)
{
    struct many *m = many_new(context, IN_FLIGHT + n);
    run_bide_many(m);
    many_free(m);
}

/* ---- waiting calls ---- */

static size_t heap_bytes(void)
{
    return mallinfo2().uordblks;
}

static void ignore_end(void *context, const struct bide_multi_end *end)
{
    (void)context;
    (void)end;
}

/* All calls have failed once and wait for an hour. Their memory beyond the handles is counted: handles that were used
 * once without bide are measured first and subtracted. */
struct waiting {
    CURL **handle;
    struct bide_multi *multi;
    struct bide_policy policy;
    struct bide_target target;
    struct bide_curl_options options;
    size_t waits;
    size_t bytes;
};

/* Each response is a 503, after which the call waits. A listener of events would add to the bytes of a call. */
static void count_waits(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome)
{
    (void)response;
    (void)outcome;
    ((struct waiting *)context)->waits++;
}

static void prepare_waiting(struct waiting *w)
{
    struct bide_target_config config;
    bide_policy_init(&w->policy, BIDE_PRESET_SERVICE);
    w->policy.base_ns = w->policy.cap_ns = 3600 * BIDE_S;
    w->policy.jitter = BIDE_JITTER_NONE;
    w->policy.call_timeout_ns = BIDE_NEVER;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_NONE;
    config.breaker.kind = BIDE_BREAKER_OFF;
    bide_target_init(&w->target, &config, bide_now(), NULL);
    w->options = (struct bide_curl_options){0};
    w->options.policy = &w->policy;
    w->options.write = sink;
    w->options.write_data = &w->bytes;
    w->options.classify = count_waits;
    w->options.context = w;
}

static void fail_all(struct waiting *w, uint32_t n)
{
    struct bide_multi_job job = {.target = &w->target, .options = &w->options, .done = ignore_end};
    for (uint32_t i = 0; i < n; i++) {
        job.easy = w->handle[i];
        if (bide_multi_start(w->multi, &job, NULL, NULL) != BIDE_OK)
            server_give_up("cannot start a call");
        while (i + 1 - w->waits >= 200) /* limits the connections at a time */
            bide_multi_poll(w->multi, BIDE_NEVER);
    }
    while (w->waits < n)
        bide_multi_poll(w->multi, BIDE_NEVER);
    bide_multi_poll(w->multi, bide_now());
}

static void measure_waiting(const char *url)
{
    struct waiting *w = aligned_alloc(64, (sizeof *w + 63) / 64 * 64);
    memset(w, 0, sizeof *w);
    w->handle = calloc(WAITING, sizeof *w->handle);
    prepare_waiting(w);
    bide_multi_new(&w->multi);
    for (uint32_t i = 0; i < WAITING; i++) {
        w->handle[i] = curl_easy_init();
        curl_easy_setopt(w->handle[i], CURLOPT_URL, url);
        curl_easy_setopt(w->handle[i], CURLOPT_WRITEFUNCTION, sink);
        curl_easy_setopt(w->handle[i], CURLOPT_WRITEDATA, &w->bytes);
        curl_multi_add_handle(bide_multi_handle_get(w->multi), w->handle[i]);
        int running = 1, left;
        while (running > 0) {
            curl_multi_poll(bide_multi_handle_get(w->multi), NULL, 0, 1000, NULL);
            curl_multi_perform(bide_multi_handle_get(w->multi), &running);
        }
        curl_multi_info_read(bide_multi_handle_get(w->multi), &left);
        curl_multi_remove_handle(bide_multi_handle_get(w->multi), w->handle[i]);
    }
    size_t before = heap_bytes();
    fail_all(w, WAITING);
    bench_figure("http.waiting.bytes_per_call", (double)(heap_bytes() - before) / WAITING, "bytes", 1024);
    double cpu = cpu_s();
    for (int64_t until_ns = bide_now() + 2 * BIDE_S; bide_now() < until_ns;)
        bide_multi_poll(w->multi, until_ns);
    bench_figure("http.waiting.cpu_ms_per_s", (cpu_s() - cpu) / 2 * 1e3, "ms", 1);
    bide_multi_free(w->multi);
    for (uint32_t i = 0; i < WAITING; i++)
        curl_easy_cleanup(w->handle[i]);
    free(w->handle);
    free(w);
}

/* ---- */

static const struct bench_part parts[] = {{"bare", perform_bare},
                                          {"watched", perform_watched},
                                          {"bide", perform_bide},
                                          {"many_bare", count_bare_many},
                                          {"many_bide", count_bide_many},
                                          {"drop_in", perform_drop_in},
                                          {"metered", perform_metered},
                                          {"unmetered", perform_unmetered},
                                          {"adopted", perform_adopted},
                                          {"bare_headers", perform_bare_headers},
                                          {"bide_headers", perform_bide_headers}};

static void count_instructions(void)
{
    bench_instruction_ratio("http.easy.instruction_ratio", "bide/bare:500", 1.065);
    bench_instruction_ratio("http.easy.floor.instruction_ratio", "watched/bare:500", BENCH_NO_AIM);
    bench_instruction_ratio("http.easy.adopted.instruction_ratio", "adopted/bare:500", 1.05);
    bench_instruction_ratio("http.easy.drop_in.instruction_ratio", "drop_in/bare:500", 1.065);
    bench_instruction_ratio("telemetry.http.instruction_ratio", "metered/unmetered:500", 1.01);
    bench_instruction_ratio("http.easy.injected.instruction_ratio", "bide_headers/bare_headers:500", BENCH_NO_AIM);
}

static void measure(void)
{
    struct server nginx = start_nginx();
    struct server chaos = start_chaos("* 200 body=\"hello, world\\n\"");
    measure_many(nginx.url, "http.multi", 0.93);
    measure_many(chaos.url, "http.multi.chaos", 0.93);
    server_stop(&chaos);
    server_stop(&nginx);
    chaos = start_chaos("* 503 body=\"no\\n\"");
    measure_waiting(chaos.url);
    server_stop(&chaos);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    curl_global_init(CURL_GLOBAL_ALL);
    if (argc != 3) {
        count_instructions();
        measure();
        return EXIT_SUCCESS;
    }
    struct server nginx = start_nginx();
    int status = bench_count(parts, sizeof parts / sizeof *parts, nginx.url, argv);
    server_stop(&nginx);
    return status;
}
