/* test_soak.c - thousands of mixed calls against a server that fails in many ways; then the server's journal is
 * compared with bide's guarantees.
 *
 * A call's path, method, body and sink follow from its number and the seed. The seed is printed; BIDE_TEST_SEED=...
 * chooses another. Findings are counted in the threads and asserted at the end. */
#define _GNU_SOURCE
#include "live_chaos.h"

#include <bide/clock.h>
#include <bide/multi.h>

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CALLS        10000u
#define IN_FLIGHT    200u
#define THREADS      4u
#define THREAD_CALLS 500u /* per thread */
#define BODY_MAX     8192u
#define UPLOAD_MAX   30000u
#define STALLED_NS   (20 * BIDE_S) /* no attempt takes this long, except in a deadlock */

/* ---- the server ---- */

/* A path and its script, the body of its 200, and the minimum wait that a response with hint_status requests. */
struct endpoint {
    const char *path;
    const char *steps;
    size_t bytes;
    size_t short_by; /* a 200 may lack this many bytes and still look complete */
    int hint_status;
    int64_t hint_ns;
    unsigned share; /* weight of the path among all calls */
};

static const struct endpoint endpoints[] = {
    {.path = "/plain", .steps = "bytes=3000 fail=12%:503", .bytes = 3000, .share = 20},
    {.path = "/reset", .steps = "bytes=3000 fail=8%:reset", .bytes = 3000, .share = 10},
    {.path = "/close", .steps = "bytes=500 chunked fail=8%:close", .bytes = 500, .share = 10},
    {.path = "/slow", .steps = "bytes=1000 delay=1ms..15ms fail=5%:502", .bytes = 1000, .share = 10},
    {.path = "/reuse",
     .steps = "bytes=700 x4 | bytes=700 reuse=close | bytes=700 x2 | bytes=700 reuse=reset | loop",
     .bytes = 700,
     .share = 20},
    {.path = "/cut",
     .steps =
         "bytes=4000 x6 | reset=request | bytes=4000 reset=headers | bytes=4000 reset=half | bytes=4000 close=100 |"
         "bytes=4000 reset=end | close=request | bytes=4000 close=half | loop",
     .bytes = 4000,
     .share = 20},
    {.path = "/range",
     .steps = "bytes=6000 etag=v1 ranges x2 | bytes=6000 etag=v1 ranges reset=half | loop",
     .bytes = 6000,
     .share = 10},
    {.path = "/early",
     .steps =
         "bytes=300 x3 | 503 early | bytes=300 early=100 | 413 early=1000 body=\"too large\" | bytes=300 early | loop",
     .bytes = 300,
     .share = 10},
    {.path = "/wrong",
     .steps = "bytes=2000 x5 | bytes=2000 length=+10 close=end | bytes=2000 length=-10 | garbage | bytes=2000 "
              "length=none | loop",
     .bytes = 2000,
     .short_by = 10,
     .share = 10},
    {.path = "/interim", .steps = "bytes=100 interim=103 x9 | 500 interim=103 | loop", .bytes = 100, .share = 5},
    {.path = "/close-said",
     .steps = "bytes=100 connection=close x3 | 504 connection=close | loop",
     .bytes = 100,
     .share = 5},
    {.path = "/hint",
     .steps = "bytes=200 x12 | 503 retry-after=1 | loop",
     .bytes = 200,
     .hint_status = 503,
     .hint_ns = BIDE_S,
     .share = 10},
    {.path = "/less",
     .steps = "bytes=200 x5 | 429 header=\"retry-after-ms: 30\" | loop",
     .bytes = 200,
     .hint_status = 429,
     .hint_ns = 30 * BIDE_MS,
     .share = 10},
    {.path = "/details",
     .steps = "bytes=200 x5 | 503 type=application/problem+json body=\"{\\\"retry_after\\\": 0.02}\" | loop",
     .bytes = 200,
     .hint_status = 503,
     .hint_ns = 20 * BIDE_MS,
     .share = 5},
    {.path = "/gone", .steps = "404", .bytes = 0, .share = 5},
};

#define ENDPOINTS (sizeof endpoints / sizeof *endpoints)

static void serve(struct live_server *server)
{
    char script[8192] = "* reset=accept x15 | close=accept x15 | 404\n";
    for (size_t i = 0; i < ENDPOINTS; i++) {
        size_t used = strlen(script);
        snprintf(script + used, sizeof script - used, "%s %s\n", endpoints[i].path, endpoints[i].steps);
    }
    live_server_start(server, script);
}

/* ---- the plan of a call ---- */

enum kind { GET = 0, PUT, PUT_FILE, POST, POST_KEYED, POST_KEYED_FILE, KINDS };

static const char *const methods[KINDS] = {"GET", "PUT", "PUT", "POST", "POST", "POST"};

enum sink { PLAIN = 0, REWIND, RESUME, SINKS };

struct call_plan {
    const struct endpoint *endpoint;
    enum kind kind;
    enum sink sink;
    size_t offset; /* of its body in the shared bytes */
    size_t length;
};

/* How it ended. */
struct record {
    unsigned done;
    CURLcode code;
    enum bide_action action;
    uint32_t attempts;
    int64_t done_ns;
    int64_t total_ns;
    char key[BIDE_KEY_TEXT_SIZE];
    const char *wrong; /* a problem with the body in the sink; NULL: none */
};

struct soak {
    uint64_t seed;
    struct live_server server;
    struct bide_target target;
    struct bide_policy policy;
    uint32_t calls;
    struct record *record;
    char upload[UPLOAD_MAX];
    int file; /* has the same bytes */
};

static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static unsigned draw_below(const struct soak *soak, uint32_t id, unsigned which, unsigned below)
{
    return (unsigned)(mix_bits(soak->seed + mix_bits((uint64_t)id << 8 | which)) % below);
}

static const struct endpoint *draw_endpoint(const struct soak *soak, uint32_t id)
{
    unsigned all = 0;
    for (size_t i = 0; i < ENDPOINTS; i++)
        all += endpoints[i].share;
    unsigned at = draw_below(soak, id, 1, all);
    size_t i = 0;
    while (at >= endpoints[i].share)
        at -= endpoints[i++].share;
    return &endpoints[i];
}

static struct call_plan call_plan_of(const struct soak *soak, uint32_t id)
{
    struct call_plan call_plan = {.endpoint = draw_endpoint(soak, id),
                                  .kind = draw_below(soak, id, 2, KINDS),
                                  .sink = draw_below(soak, id, 3, SINKS)};
    if (call_plan.kind != GET) {
        call_plan.offset = draw_below(soak, id, 4, UPLOAD_MAX / 2);
        call_plan.length = draw_below(soak, id, 5, 10) == 0 ? 0 : draw_below(soak, id, 6, UPLOAD_MAX / 2);
    }
    return call_plan;
}

/* ---- one call ---- */

struct client_slot {
    struct soak *soak;
    struct bide_multi *multi; /* NULL: easy */
    uint32_t *next;           /* number of the next call, for a multi */
    uint32_t id;
    CURL *easy;
    struct bide_curl_options options;
    struct bide_curl_result result;
    char body[BODY_MAX];
    size_t length;
};

static size_t slot_write(char *at, size_t size, size_t count, void *context)
{
    struct client_slot *client_slot = context;
    if (size * count > BODY_MAX - client_slot->length)
        return 0;
    memcpy(client_slot->body + client_slot->length, at, size * count);
    client_slot->length += size * count;
    return size * count;
}

static bool slot_rewind(void *context)
{
    ((struct client_slot *)context)->length = 0;
    return true;
}

static void set_url(struct client_slot *client_slot, const struct call_plan *call_plan)
{
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s?%" PRIu32, chaos_port(client_slot->soak->server.chaos),
             call_plan->endpoint->path, client_slot->id);
    curl_easy_setopt(client_slot->easy, CURLOPT_URL, url);
}

static void set_body(struct client_slot *client_slot, const struct call_plan *call_plan)
{
    struct bide_curl_body *b = &client_slot->options.body;
    bool file = call_plan->kind == PUT_FILE || call_plan->kind == POST_KEYED_FILE;
    if (call_plan->kind == GET)
        return;
    *b = (struct bide_curl_body){.kind = file ? BIDE_CURL_BODY_FILE : BIDE_CURL_BODY_MEMORY,
                                 .fd = client_slot->soak->file,
                                 .at = file ? NULL : client_slot->soak->upload + call_plan->offset,
                                 .offset = file ? (int64_t)call_plan->offset : 0,
                                 .length = (int64_t)call_plan->length};
    curl_easy_setopt(client_slot->easy, call_plan->kind == PUT_FILE ? CURLOPT_UPLOAD : CURLOPT_POST, 1L);
    if (call_plan->kind == PUT)
        curl_easy_setopt(client_slot->easy, CURLOPT_CUSTOMREQUEST, "PUT");
}

static void slot_prepare_call(struct client_slot *client_slot)
{
    struct call_plan call_plan = call_plan_of(client_slot->soak, client_slot->id);
    struct bide_curl_options *o = &client_slot->options;
    curl_easy_reset(client_slot->easy);
    client_slot->length = 0;
    *o = (struct bide_curl_options){0};
    o->policy = &client_slot->soak->policy;
    o->seed = client_slot->soak->seed + client_slot->id + 1;
    o->write = slot_write;
    o->write_data = client_slot;
    o->rewind = call_plan.sink == REWIND ? slot_rewind : NULL;
    o->resume = call_plan.sink == RESUME;
    o->no_headers = true;
    o->inject = BIDE_CURL_INJECT_ATTEMPT;
    if (call_plan.kind == POST_KEYED || call_plan.kind == POST_KEYED_FILE)
        o->inject |= BIDE_CURL_INJECT_KEY;
    set_url(client_slot, &call_plan);
    set_body(client_slot, &call_plan);
}

static bool is_pattern(const struct client_slot *client_slot)
{
    for (size_t i = 0; i < client_slot->length; i++)
        if (client_slot->body[i] != chaos_pattern(i))
            return false;
    return true;
}

static bool is_error_text(const struct client_slot *client_slot)
{
    static const char *const texts[] = {
        "Service Unavailable\n",   "Bad Gateway\n",       "Gateway Timeout\n", "Not Found\n",
        "Internal Server Error\n", "Too Many Requests\n", "too large",         "{\"retry_after\": 0.02}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strlen(texts[i]) == client_slot->length && memcmp(texts[i], client_slot->body, client_slot->length) == 0)
            return true;
    return false;
}

/* Compares the body in the sink with the end of the call. Returns a problem, or NULL. */
static const char *slot_body_problem(const struct client_slot *client_slot, const struct call_plan *call_plan,
                                     CURLcode code)
{
    size_t whole = call_plan->endpoint->bytes, cut = whole - call_plan->endpoint->short_by;
    if (client_slot->result.verdict.action == BIDE_ACTION_DONE) {
        if (code != CURLE_OK)
            return "DONE with an error code";
        return (client_slot->length == whole || client_slot->length == cut) && is_pattern(client_slot)
                   ? NULL
                   : "incomplete success in the sink";
    }
    if (code != CURLE_OK)
        return client_slot->length == 0 || is_pattern(client_slot) ? NULL
                                                                   : "error with bytes of another response in the sink";
    if (client_slot->result.status < 400)
        return "GIVE_UP without an error code or a failure status";
    if (client_slot->result.body_dropped)
        return client_slot->length == 0 ? NULL : "dropped body in the sink";
    return is_error_text(client_slot) ? NULL : "incomplete last failure in the sink";
}

static void slot_record_end(struct client_slot *client_slot, CURLcode code)
{
    struct record *record = &client_slot->soak->record[client_slot->id];
    struct call_plan call_plan = call_plan_of(client_slot->soak, client_slot->id);
    record->done++;
    record->code = code;
    record->action = client_slot->result.verdict.action;
    record->attempts = client_slot->result.attempts;
    record->done_ns = bide_now();
    record->total_ns = client_slot->result.total_ns;
    memcpy(record->key, client_slot->result.key, sizeof record->key);
    record->wrong = slot_body_problem(client_slot, &call_plan, code);
}

/* ---- the drivers ---- */

static void slot_start_next(struct client_slot *client_slot);

static void on_done(void *context, const struct bide_multi_end *end)
{
    struct client_slot *client_slot = context;
    slot_record_end(client_slot, end->code);
    slot_start_next(client_slot);
}

static void slot_start_next(struct client_slot *client_slot)
{
    if (*client_slot->next == client_slot->soak->calls)
        return;
    client_slot->id = (*client_slot->next)++;
    slot_prepare_call(client_slot);
    struct bide_multi_job job = {.easy = client_slot->easy,
                                 .target = &client_slot->soak->target,
                                 .options = &client_slot->options,
                                 .result = &client_slot->result,
                                 .done = on_done,
                                 .context = client_slot};
    assert_int_equal(bide_multi_start(client_slot->multi, &job, NULL, NULL), BIDE_OK);
}

static void run_multi(struct soak *soak)
{
    struct client_slot *slots = calloc(IN_FLIGHT, sizeof *slots);
    struct bide_multi *multi;
    uint32_t next = 0;
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    for (unsigned i = 0; i < IN_FLIGHT; i++) {
        slots[i] = (struct client_slot){.soak = soak, .multi = multi, .next = &next, .easy = curl_easy_init()};
        slot_start_next(&slots[i]);
    }
    int64_t until_ns = bide_now() + 110 * BIDE_S;
    while (bide_multi_poll(multi, until_ns) > 0 && bide_now() < until_ns)
        continue;
    assert_int_equal(bide_multi_running_get(multi), 0);
    bide_multi_free(multi);
    for (unsigned i = 0; i < IN_FLIGHT; i++)
        curl_easy_cleanup(slots[i].easy);
    free(slots);
}

/* A thread performs every THREADS-th call. */
struct worker {
    struct soak *soak;
    uint32_t first;
};

static void *run_easy(void *context)
{
    const struct worker *worker = context;
    struct client_slot *client_slot = calloc(1, sizeof *client_slot);
    *client_slot = (struct client_slot){.soak = worker->soak, .easy = curl_easy_init()};
    for (client_slot->id = worker->first; client_slot->id < client_slot->soak->calls; client_slot->id += THREADS) {
        slot_prepare_call(client_slot);
        slot_record_end(client_slot, bide_curl_perform(client_slot->easy, &client_slot->soak->target,
                                                       &client_slot->options, &client_slot->result));
    }
    curl_easy_cleanup(client_slot->easy);
    free(client_slot);
    return NULL;
}

static void run_threads(struct soak *soak)
{
    pthread_t thread[THREADS];
    struct worker worker[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){soak, i};
        assert_int_equal(pthread_create(&thread[i], NULL, run_easy, &worker[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

/* ---- the journal ---- */

struct findings {
    unsigned count;
};

static void report_finding(struct findings *f, const struct soak *soak, uint32_t id, const char *which)
{
    const struct record *r = &soak->record[id];
    struct call_plan call_plan = call_plan_of(soak, id);
    if (f->count++ < 20)
        print_message("call %" PRIu32 " (%s %s, body %d of %zu, sink %d): %s; code %d, %s, %u attempts\n", id,
                      methods[call_plan.kind], call_plan.endpoint->path, call_plan.kind, call_plan.length,
                      call_plan.sink, which, r->code, bide_action_label(r->action), r->attempts);
}

/* The requests of one call, in order of arrival. */
struct request_trail {
    const struct chaos_seen **seen;
    size_t count;
};

static bool is_keyed(enum kind kind)
{
    return kind == POST_KEYED || kind == POST_KEYED_FILE;
}

static bool key_is_right(const struct chaos_seen *seen, const struct call_plan *call_plan, const struct record *record)
{
    char quoted[BIDE_KEY_TEXT_SIZE + 2];
    snprintf(quoted, sizeof quoted, "\"%s\"", record->key);
    return is_keyed(call_plan->kind) ? seen->key && strcmp(seen->key, quoted) == 0 : !seen->key;
}

/* Returns true if the body is complete and unchanged, or was cut by the server or an early response. */
static bool body_is_right(const struct soak *soak, const struct chaos_seen *seen, const struct call_plan *call_plan)
{
    bool early = strcmp(call_plan->endpoint->path, "/early") == 0;
    if (seen->body_bytes == call_plan->length)
        return seen->body_hash == bide_hash(soak->upload + call_plan->offset, call_plan->length);
    return seen->body_bytes < call_plan->length && (early || strcmp(seen->result, "answered") != 0);
}

static void check_request(struct findings *f, const struct soak *soak, uint32_t id, const struct chaos_seen *seen)
{
    struct call_plan call_plan = call_plan_of(soak, id);
    const struct record *record = &soak->record[id];
    if (strcmp(seen->method, methods[call_plan.kind]) != 0 || strcmp(seen->path, call_plan.endpoint->path) != 0)
        report_finding(f, soak, id, "method or path is wrong");
    if (!key_is_right(seen, &call_plan, record))
        report_finding(f, soak, id, "key is wrong");
    if (!body_is_right(soak, seen, &call_plan))
        report_finding(f, soak, id, "request body is wrong");
    if (!seen->attempt || strtoul(seen->attempt, NULL, 10) > record->attempts)
        report_finding(f, soak, id, "attempt number is missing or too high");
    if (seen->at_ns > record->done_ns)
        report_finding(f, soak, id, "request after the end of the call");
}

static void check_order(struct findings *f, const struct soak *soak, uint32_t id,
                        const struct request_trail *request_trail)
{
    const struct endpoint *endpoint = call_plan_of(soak, id).endpoint;
    for (size_t i = 1; i < request_trail->count; i++) {
        const struct chaos_seen *before = request_trail->seen[i - 1], *seen = request_trail->seen[i];
        if (before->attempt && seen->attempt && strtoul(before->attempt, NULL, 10) >= strtoul(seen->attempt, NULL, 10))
            report_finding(f, soak, id, "attempt numbers out of order");
        if (endpoint->hint_ns > 0 && before->status == endpoint->hint_status &&
            seen->at_ns - before->at_ns < endpoint->hint_ns)
            report_finding(f, soak, id, "attempt before the end of the server's hint");
    }
}

static void check_call(struct findings *f, const struct soak *soak, uint32_t id,
                       const struct request_trail *request_trail)
{
    const struct record *record = &soak->record[id];
    struct call_plan call_plan = call_plan_of(soak, id);
    if (record->done != 1)
        report_finding(f, soak, id, "done was not called exactly once");
    if (record->total_ns >= STALLED_NS)
        report_finding(f, soak, id, "call stalled");
    if (record->wrong)
        report_finding(f, soak, id, record->wrong);
    if (request_trail->count > record->attempts)
        report_finding(f, soak, id, "more requests than attempts");
    if (call_plan.kind == POST && request_trail->count > 1)
        report_finding(f, soak, id, "unsafe request was repeated");
    if (record->action == BIDE_ACTION_DONE && request_trail->count == 0)
        report_finding(f, soak, id, "success without a request at the server");
    for (size_t i = 0; i < request_trail->count; i++)
        check_request(f, soak, id, request_trail->seen[i]);
    check_order(f, soak, id, request_trail);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_keys_differ(struct findings *f, const struct soak *soak)
{
    const char **key = calloc(soak->calls, sizeof *key);
    size_t count = 0;
    for (uint32_t id = 0; id < soak->calls; id++)
        if (soak->record[id].key[0] != '\0')
            key[count++] = soak->record[id].key;
    qsort(key, count, sizeof *key, by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(key[i - 1], key[i]) == 0)
            f->count++;
    assert_true(count > 0);
    free(key);
}

/* Sorts the server's requests by call, keeping their order. */
static void check_journal(struct findings *f, const struct soak *soak)
{
    size_t count = soak->server.count, *end = calloc(soak->calls + 1, sizeof *end);
    const struct chaos_seen *seen = soak->server.seen, **sorted = calloc(count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        if (seen[i].query)
            end[strtoul(seen[i].query, NULL, 10) + 1]++;
    for (uint32_t id = 0; id < soak->calls; id++)
        end[id + 1] += end[id];
    for (size_t i = 0; i < count; i++)
        if (seen[i].query)
            sorted[end[strtoul(seen[i].query, NULL, 10)]++] = &seen[i];
    for (uint32_t id = 0, from = 0; id < soak->calls; from = (uint32_t)end[id++])
        check_call(f, soak, id, &(struct request_trail){sorted + from, end[id] - from});
    free(sorted);
    free(end);
}

/* ---- the tests ---- */

struct sums {
    uint64_t succeeded, retries;
};

static struct sums sums_of(const struct soak *soak)
{
    struct sums sums = {0, 0};
    for (uint32_t id = 0; id < soak->calls; id++) {
        sums.succeeded += soak->record[id].action == BIDE_ACTION_DONE;
        sums.retries += soak->record[id].attempts > 0 ? soak->record[id].attempts - 1 : 0;
    }
    return sums;
}

#define TOKENS 300u /* the initial budget; each success adds a tenth */

static void set_target(struct bide_target *target)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.hold_off_max_ns = 0;
    config.budget.kind = BIDE_BUDGET_TOKENS;
    config.budget.capacity_milli = TOKENS * 1000;
    config.budget.initial_milli = BIDE_FULL;
    config.budget.cost_milli = config.budget.cost_throttled_milli = config.budget.cost_timeout_milli = 1000;
    config.budget.earn_success_milli = 100;
    config.budget.earn_first_milli = config.budget.refill_per_minute_milli = config.budget.refund_permille = 0;
    assert_int_equal(bide_target_init(target, &config, bide_now(), NULL), BIDE_OK);
}

static void open_file(struct soak *soak)
{
    char name[] = "/tmp/bide-soak-XXXXXX";
    for (size_t i = 0; i < UPLOAD_MAX; i++)
        soak->upload[i] = (char)('a' + mix_bits(i) % 26);
    soak->file = mkstemp(name);
    assert_true(soak->file >= 0);
    unlink(name);
    assert_int_equal(write(soak->file, soak->upload, UPLOAD_MAX), UPLOAD_MAX);
}

static void soak_begin(struct soak *soak, uint64_t seed, uint32_t calls)
{
    const char *given = getenv("BIDE_TEST_SEED");
    *soak = (struct soak){.seed = given ? strtoull(given, NULL, 0) : seed, .calls = calls};
    print_message("BIDE_TEST_SEED=%" PRIu64 "\n", soak->seed);
    soak->record = calloc(calls, sizeof *soak->record);
    soak->policy = live_policy(5);
    soak->policy.jitter = BIDE_JITTER_FULL;
    soak->policy.cap_ns = 5 * BIDE_MS;
    soak->policy.attempt_timeout_ns = STALLED_NS;
    set_target(&soak->target);
    open_file(soak);
    serve(&soak->server);
}

static void check_budget(const struct soak *soak, struct sums sums)
{
    uint64_t refused = bide_target_get(&soak->target, bide_now()).refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)];
    print_message("%" PRIu64 " of %" PRIu32 " calls succeeded, %" PRIu64 " retries, %" PRIu64
                  " refused for lack of budget, %zu requests seen\n",
                  sums.succeeded, soak->calls, sums.retries, refused, soak->server.count);
    assert_true(sums.retries * 1000 <= TOKENS * 1000 + sums.succeeded * 100);
    assert_true(soak->server.count <= soak->calls + sums.retries + 30); /* 30 connections were cut at accept */
}

static void soak_finish(struct soak *soak)
{
    struct findings findings = {0};
    live_server_stop(&soak->server);
    check_journal(&findings, soak);
    check_keys_differ(&findings, soak);
    check_budget(soak, sums_of(soak));
    assert_int_equal(findings.count, 0);
    live_server_free(&soak->server);
    close(soak->file);
    free(soak->record);
}

static void ten_thousand_mixed_calls_in_a_multi_keep_all_guarantees(void **state)
{
    static struct soak soak;
    soak_begin(&soak, 20240611, CALLS);
    run_multi(&soak);
    assert_true(bide_target_get(&soak.target, bide_now()).refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)] >
                0); /* otherwise the budget was not tested */
    soak_finish(&soak);
}

static void mixed_calls_in_four_threads_keep_all_guarantees(void **state)
{
    static struct soak soak;
    soak_begin(&soak, 7, THREADS * THREAD_CALLS);
    run_threads(&soak);
    soak_finish(&soak);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_mixed_calls_in_a_multi_keep_all_guarantees),
        cmocka_unit_test(mixed_calls_in_four_threads_keep_all_guarantees),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failures;
}
