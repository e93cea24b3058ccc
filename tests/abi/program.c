/* program.c - a user's program that was built some versions ago: compiled with the stored headers (tests/abi/bide.h),
 * never with include/, and run with the shared libraries of this build.
 *
 * Each struct that a library reads or fills lies between canaries: a library whose struct is larger than the program's
 * writes over them, or reads them as a field. Values that the program sets must reach the library and the other way
 * round: the fields are where they were. */
#define BIDE_CURL_RECORD_DECLARE_ONLY
#include "bide.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CANARY      0xc5
#define CANARY_SIZE 64u
#define OBJECTS_MAX 64u

static unsigned failures;

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "program.c:%d: not true: %s\n", __LINE__, #condition);                                     \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

/* ---- structs between canaries ---- */

static struct object {
    const char *type;
    unsigned char *at;
    size_t size;
} objects[OBJECTS_MAX];
static size_t object_count;

/* Returns zeroed memory for a struct, aligned to a cache line. */
static void *object_new(const char *type, size_t size)
{
    size_t whole = (CANARY_SIZE + size + CANARY_SIZE + 63) / 64 * 64;
    unsigned char *memory = aligned_alloc(64, whole);
    if (memory == NULL || object_count == OBJECTS_MAX)
        abort();
    memset(memory, CANARY, whole);
    memset(memory + CANARY_SIZE, 0, size);
    objects[object_count++] = (struct object){type, memory + CANARY_SIZE, size};
    return memory + CANARY_SIZE;
}

#define NEW(type) ((struct type *)object_new(#type, sizeof(struct type)))

static bool canaries_are_alive(const unsigned char *at)
{
    for (size_t i = 0; i < CANARY_SIZE; i++)
        if (at[i] != CANARY)
            return false;
    return true;
}

/* Checks and frees all structs. */
static void objects_end(const char *after)
{
    while (object_count > 0) {
        struct object *o = &objects[--object_count];
        if (!canaries_are_alive(o->at - CANARY_SIZE) || !canaries_are_alive(o->at + o->size)) {
            fprintf(stderr, "program.c: %s: the library has written beyond struct %s\n", after, o->type);
            failures++;
        }
        free(o->at - CANARY_SIZE);
    }
}

/* ---- the engine ---- */

/* One retry, exactly a second after the failure. */
static struct bide_policy *policy_new(void)
{
    struct bide_policy *p = NEW(bide_policy);
    REQUIRE(bide_policy_init(p, BIDE_PRESET_SERVICE) == BIDE_OK);
    REQUIRE(p->attempts_max == 4 && p->base_ns == 200 * BIDE_MS && p->call_timeout_ns == 60 * BIDE_S);
    p->attempts_max = 2;
    p->backoff = BIDE_BACKOFF_FIXED;
    p->jitter = BIDE_JITTER_NONE;
    p->base_ns = p->cap_ns = BIDE_S;
    REQUIRE(bide_policy_check(p, NULL) == BIDE_OK);
    return p;
}

static struct bide_target *target_new(void)
{
    struct bide_target *target = NEW(bide_target);
    struct bide_target_config *config = NEW(bide_target_config), *now = NEW(bide_target_config);
    REQUIRE(bide_target_config_init(config, BIDE_PRESET_SERVICE) == BIDE_OK);
    REQUIRE(config->budget.capacity_milli == 10000 && config->breaker.probes == 1);
    REQUIRE(bide_target_init(target, config, 0, NULL) == BIDE_OK);
    config->budget.capacity_milli = 5000;
    REQUIRE(bide_target_configure(target, config, 0, NULL) == BIDE_OK);
    bide_target_config_get(target, now);
    REQUIRE(memcmp(now, config, sizeof *now) == 0);
    REQUIRE(bide_target_get(target, 0).budget_left_milli == 5000);
    return target;
}

static void call_retries_once(void)
{
    struct bide_policy *policy = policy_new();
    struct bide_target *target = target_new();
    struct bide_request *request = NEW(bide_request);
    struct bide_call *call = NEW(bide_call);
    struct bide_outcome *outcome = NEW(bide_outcome);
    request->safety = BIDE_SAFE;
    struct bide_verdict v = bide_call_begin(call, policy, target, request, BIDE_S);
    REQUIRE(v.action == BIDE_ACTION_START && v.attempt == 1 && v.attempt_deadline_ns == 11 * BIDE_S);
    *outcome = bide_classify_http(503, NULL);
    v = bide_call_outcome(call, 1, outcome, 2 * BIDE_S);
    REQUIRE(v.action == BIDE_ACTION_WAIT && v.reason == BIDE_REASON_BACKOFF && v.wake_ns == 3 * BIDE_S);
    REQUIRE(bide_target_get(target, 2 * BIDE_S).budget_left_milli == 4000);
    v = bide_call_wake(call, 3 * BIDE_S);
    REQUIRE(v.action == BIDE_ACTION_START && v.attempt == 2);
    v = bide_call_outcome(call, 2, outcome, 4 * BIDE_S);
    REQUIRE(v.action == BIDE_ACTION_GIVE_UP && v.reason == BIDE_REASON_ATTEMPTS_SPENT);
    REQUIRE(strcmp(bide_reason_label(v.reason), "attempts_spent") == 0);
    REQUIRE(bide_target_get(target, 4 * BIDE_S).breaker.state == BIDE_BREAKER_CLOSED);
    objects_end("call");
}

static void invalid_field_is_reported(void)
{
    struct bide_target_config *config = NEW(bide_target_config);
    struct bide_problem *problem = NEW(bide_problem);
    bide_target_config_init(config, BIDE_PRESET_SERVICE);
    config->throttle_max_permille = 0;
    REQUIRE(bide_target_config_check(config, problem) == BIDE_ERR_INVALID);
    REQUIRE(strcmp(problem->field, "throttle_max_permille") == 0 && problem->value == 0);
    objects_end("check");
}

/* ---- the OS layer ---- */

struct seen {
    unsigned attempts, events;
};

static struct bide_outcome attempt(void *context, const struct bide_verdict *start)
{
    ((struct seen *)context)->attempts++;
    return bide_classify_http(start->attempt == 1 ? 200 : 400, NULL);
}

static void on_event(void *context, const struct bide_event *event)
{
    REQUIRE(event->verdict != NULL && event->now_ns > 0);
    ((struct seen *)context)->events++;
}

static void job_runs(void)
{
    struct bide_job *job = NEW(bide_job);
    struct bide_cancel *cancel = NEW(bide_cancel);
    struct seen seen = {0, 0};
    REQUIRE(bide_cancel_init(cancel) == BIDE_OK);
    job->policy = policy_new();
    job->target = target_new();
    job->attempt = attempt;
    job->event = on_event;
    job->context = &seen;
    job->cancel = cancel;
    REQUIRE(bide_run(job).action == BIDE_ACTION_DONE && seen.attempts == 1 && seen.events == 2);
    bide_cancel_now(cancel);
    REQUIRE(bide_run(job).reason == BIDE_REASON_CANCELLED && seen.attempts == 1);
    bide_cancel_free(cancel);
    objects_end("run");
}

static bool list_one(void *context, const char *name, const struct bide_problem *wrong)
{
    *(bool *)context = strcmp(name, "payments") == 0 && wrong == NULL;
    return true;
}

static void target_is_shared(void)
{
    char directory[] = "/tmp/bide-abi-XXXXXX";
    struct bide_target_config *config = NEW(bide_target_config);
    struct bide_shared *a = NEW(bide_shared), *b = NEW(bide_shared);
    struct bide_shared_options *options = NEW(bide_shared_options);
    struct bide_problem *problem = NEW(bide_problem);
    bool listed = false;
    REQUIRE(mkdtemp(directory) != NULL);
    options->directory = directory;
    bide_target_config_init(config, BIDE_PRESET_SERVICE);
    REQUIRE(bide_shared_open(a, "payments", config, options, bide_now(), problem) == BIDE_OK && a->shared);
    REQUIRE(bide_shared_open(b, "payments", NULL, options, bide_now(), problem) == BIDE_OK);
    REQUIRE(bide_budget_add_milli(a->target, -10000, bide_now()) == -10000);
    REQUIRE(bide_target_get(b->target, bide_now()).budget_left_milli < 1000);
    REQUIRE(bide_shared_list(options, list_one, &listed, problem) == BIDE_OK && listed);
    bide_shared_close(a);
    bide_shared_close(b);
    REQUIRE(bide_shared_remove("payments", options, problem) == BIDE_OK);
    REQUIRE(bide_shared_remove("payments", options, problem) == BIDE_ERR_INVALID);
    REQUIRE(problem->reason == BIDE_SHARED_REASON_NOT_THERE);
    rmdir(directory);
    objects_end("shared");
}

static void tables_and_timers_work(void)
{
    struct bide_target_config *config = NEW(bide_target_config);
    struct bide_timers *timers = NEW(bide_timers);
    struct bide_timer *timer = NEW(bide_timer);
    struct bide_targets *table;
    bide_target_config_init(config, BIDE_PRESET_SERVICE);
    REQUIRE(bide_targets_new(&table, 8, config, NULL) == BIDE_OK);
    REQUIRE(bide_targets_get(table, "a", 0) == bide_targets_find(table, "a"));
    REQUIRE(bide_targets_view_get(table).held == 1);
    bide_targets_free(table);
    REQUIRE(bide_timers_set(timers, timer, 7) == BIDE_OK && bide_timers_due_get(timers) == 7);
    REQUIRE(bide_timers_pop(timers, 7) == timer);
    bide_timers_free(timers);
    objects_end("targets and timers");
}

/* ---- HTTP without a client ---- */

static struct bide_text text_of(const char *text)
{
    return (struct bide_text){text, strlen(text)};
}

static void headers_are_parsed(void)
{
    struct bide_layer *layer = NEW(bide_layer);
    struct bide_trace *trace = NEW(bide_trace);
    struct bide_details *details = NEW(bide_details);
    struct bide_retry_after *ask = NEW(bide_retry_after);
    char text[64];
    REQUIRE(bide_layer_parse(text_of("2;max=4;left=1850"), layer) && layer->attempt == 2 && layer->attempts_max == 4);
    REQUIRE(bide_trace_parse(text_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), trace));
    REQUIRE(trace->flags == BIDE_TRACE_SAMPLED);
    REQUIRE(bide_details_parse(text_of("{\"status\": 503, \"retry_after\": 2}"), details));
    REQUIRE(details->status == 503 && details->hint.wait_ns == 2 * BIDE_S);
    ask->wait_ns = 7 * BIDE_S;
    REQUIRE(bide_retry_after_format(text, sizeof text, ask) > 0 && strcmp(text, "Retry-After: 7\r\n") == 0);
    REQUIRE(bide_hint_retry_after(text_of("5"), text_of(""), 0).wait_ns == 5 * BIDE_S);
    objects_end("headers");
}

static void inbound_requests_are_counted(void)
{
    struct bide_inbound_ratio_config *config = NEW(bide_inbound_ratio_config);
    struct bide_inbound_ratio *ratio = NEW(bide_inbound_ratio);
    bide_inbound_ratio_config_init(config);
    REQUIRE(config->share_permille == 100 && config->window_ns == 10 * BIDE_S);
    REQUIRE(bide_inbound_ratio_init(ratio, config, NULL) == BIDE_OK);
    REQUIRE(!bide_inbound_ratio_count(ratio, NULL, BIDE_S));
    REQUIRE(bide_inbound_ratio_get(ratio, BIDE_S).requests == 1);
    objects_end("inbound ratio");
}

/* ---- libcurl ---- */

/* Writes the URL of a port that refuses connections: it is bound, and nobody listens. Returns the socket. */
static int closed_port(char url[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    snprintf(url, 64, "http://127.0.0.1:%u/", ntohs(address.sin_port));
    return fd;
}

static struct bide_curl_options *options_new(struct seen *seen)
{
    struct bide_curl_options *options = NEW(bide_curl_options);
    struct bide_policy *policy = policy_new();
    policy->base_ns = policy->cap_ns = BIDE_MS;
    options->policy = policy;
    options->event = on_event;
    options->context = seen;
    REQUIRE(bide_curl_options_check(options, NULL) == BIDE_OK);
    return options;
}

static void on_done(void *context, const struct bide_multi_end *end)
{
    REQUIRE(end->code == CURLE_COULDNT_CONNECT && end->verdict.reason == BIDE_REASON_ATTEMPTS_SPENT);
    *(bool *)context = true;
}

static void curl_calls_fail_twice(void)
{
    struct seen seen = {0, 0};
    struct bide_curl_options *options = options_new(&seen);
    struct bide_curl_result *result = NEW(bide_curl_result);
    struct bide_multi_job *job = NEW(bide_multi_job);
    struct bide_multi *multi;
    char url[64];
    int port = closed_port(url);
    bool done = false;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    REQUIRE(bide_curl_perform(easy, NULL, options, result) == CURLE_COULDNT_CONNECT);
    REQUIRE(result->attempts == 2 && result->attempt[1].evidence == BIDE_EVIDENCE_NOT_SENT && seen.events == 4);
    *job =
        (struct bide_multi_job){.easy = easy, .options = options, .result = result, .done = on_done, .context = &done};
    REQUIRE(bide_multi_new(&multi) == BIDE_OK && bide_multi_start(multi, job, NULL, NULL) == BIDE_OK);
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        ;
    REQUIRE(done && result->attempts == 2);
    bide_multi_free(multi);
    curl_easy_cleanup(easy);
    close(port);
    objects_end("curl");
}

/* ---- the fleet ---- */

/* Its reports may come at any time. */
static void on_report(void *context, const char *text)
{
    (void)context, (void)text;
}

static void target_joins_a_fleet_without_redis(void)
{
    struct bide_fleet_options *options = NEW(bide_fleet_options);
    struct bide_fleet_view *view = NEW(bide_fleet_view);
    struct bide_fleet_bucket *bucket = NEW(bide_fleet_bucket);
    struct bide_problem *problem = NEW(bide_problem);
    struct bide_target *target = target_new();
    struct bide_fleet *fleet;
    static const char url[] = "unix:///nowhere/at/all?timeout=1";
    options->report = on_report;
    REQUIRE(bide_fleet_open(&fleet, "redis://", options, problem) == BIDE_ERR_INVALID && problem->text[0] != '\0');
    REQUIRE(bide_fleet_open(&fleet, url, options, problem) == BIDE_OK);
    REQUIRE(bide_fleet_join(fleet, "payments", target, problem) == BIDE_OK);
    REQUIRE(bide_fleet_get(fleet, target, view) && !view->connected && view->granted_milli == 0);
    REQUIRE(bide_fleet_read(url, "payments", bucket, problem) != BIDE_OK && !bucket->exists);
    bide_fleet_leave(fleet, target);
    bide_fleet_close(fleet);
    objects_end("fleet");
}

int main(void)
{
    curl_global_init(CURL_GLOBAL_ALL);
    call_retries_once();
    invalid_field_is_reported();
    job_runs();
    target_is_shared();
    tables_and_timers_work();
    headers_are_parsed();
    inbound_requests_are_counted();
    curl_calls_fail_twice();
    target_joins_a_fleet_without_redis();
    curl_global_cleanup();
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
