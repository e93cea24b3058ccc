/* side.c - one side of the comparison: a server and its callers, each in its own thread.
 *
 * The callers' thread starts every call at its time, whether or not earlier calls have ended, because real callers are
 * independent of each other. A call takes a libcurl handle and its other data from a list of free call slots. Calls
 * still in progress DEMO_GRACE_NS after the last call should have started are cancelled, and counted as still
 * trying. */
#include "side.h"

#include <bide/clock.h>
#include <bide/multi.h>
#include <bide/wait.h>

#include "chaos/chaos.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_CONNECTIONS 256L
#define STOP_POLL_NS     (50 * BIDE_MS) /* interval at which the stop flag is checked */

/* Data of a call in progress. */
struct call_slot {
    struct demo_side *side;
    struct call_slot *next; /* in the free list */
    struct demo_call *call;
    CURL *easy;
    struct bide_curl_options options;
    struct bide_curl_result result;
};

struct demo_side {
    struct bide_target target; /* first, for its alignment */
    const struct demo_scenario *scenario;
    const struct demo_client *client;
    struct chaos *chaos;
    struct bide_multi *multi;
    struct call_slot *free_slots;
    struct demo_call *call;
    char url[64];
    int64_t start_ns;
    int64_t late_ns;
    pthread_t server, callers;
    bool serving, calling;
    bool no_memory;     /* set by the callers' thread */
    bool server_failed; /* set by the server's thread; both are read after joining */
    /* Shared with threads that call demo_side_progress or demo_side_stop. */
    uint64_t begun, succeeded, failed;
    bool over, stopped;
};

static void counter_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* ---- one call ---- */

static size_t discard_body(char *at, size_t size, size_t count, void *context)
{
    (void)at;
    (void)context;
    return size * count;
}

static struct call_slot *call_slot_new(struct demo_side *side)
{
    struct call_slot *call_slot = calloc(1, sizeof *call_slot);
    if (call_slot == NULL || (call_slot->easy = curl_easy_init()) == NULL) {
        free(call_slot);
        return NULL;
    }
    call_slot->side = side;
    curl_easy_setopt(call_slot->easy, CURLOPT_URL, side->url);
    curl_easy_setopt(call_slot->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(call_slot->easy, CURLOPT_PROXY, ""); /* ignore proxies in the environment */
    call_slot->options = (struct bide_curl_options){0};
    call_slot->options.policy = &side->client->policy;
    call_slot->options.status_rules = side->client->status_rules;
    call_slot->options.inject = BIDE_CURL_INJECT_ATTEMPT;
    call_slot->options.no_headers = true;
    call_slot->options.write = discard_body;
    call_slot->options.write_data = side;
    return call_slot;
}

static void call_slots_free(struct demo_side *side)
{
    while (side->free_slots != NULL) {
        struct call_slot *call_slot = side->free_slots;
        side->free_slots = call_slot->next;
        curl_easy_cleanup(call_slot->easy);
        free(call_slot);
    }
}

static void call_on_end(void *context, const struct bide_multi_end *end)
{
    struct call_slot *call_slot = context;
    struct demo_side *side = call_slot->side;
    bool ok = end->verdict.action == BIDE_ACTION_DONE;
    call_slot->call->end_ns = bide_now() - side->start_ns;
    call_slot->call->attempts = call_slot->result.attempts;
    call_slot->call->reason = end->verdict.reason;
    if (end->verdict.reason != BIDE_REASON_CANCELLED) /* by the end of the demo: then it stays in progress */
        counter_store(ok ? &side->succeeded : &side->failed, (ok ? side->succeeded : side->failed) + 1);
    call_slot->next = side->free_slots;
    side->free_slots = call_slot;
}

/* Returns false without memory. */
static bool side_start_call(struct demo_side *side, uint32_t number)
{
    struct call_slot *call_slot = side->free_slots != NULL ? side->free_slots : call_slot_new(side);
    if (call_slot == NULL)
        return false;
    if (call_slot == side->free_slots)
        side->free_slots = call_slot->next;
    call_slot->call = &side->call[number];
    call_slot->call->begin_ns = bide_now() - side->start_ns;
    call_slot->options.seed = demo_call_seed(side->scenario, number);
    struct bide_multi_job job = {.easy = call_slot->easy,
                                 .target = &side->target,
                                 .options = &call_slot->options,
                                 .result = &call_slot->result,
                                 .done = call_on_end,
                                 .context = call_slot};
    counter_store(&side->begun, side->begun + 1);
    if (bide_multi_start(side->multi, &job, NULL, NULL) == BIDE_OK)
        return true;
    call_slot->next = side->free_slots;
    side->free_slots = call_slot;
    return false;
}

/* ---- all calls ---- */

static bool side_is_stopped(const struct demo_side *side)
{
    return __atomic_load_n(&side->stopped, __ATOMIC_RELAXED);
}

/* Starts the calls that are due. Returns the time of the next call; BIDE_NEVER if all have started, or memory ran
 * out. */
static int64_t side_start_due_calls(struct demo_side *side, uint32_t *next)
{
    for (uint32_t calls = demo_call_count(side->scenario); *next < calls && !side->no_memory; (*next)++) {
        int64_t due_ns = side->start_ns + demo_call_start_ns(side->scenario, *next), late_ns = bide_now() - due_ns;
        if (late_ns < 0)
            return due_ns;
        if (late_ns > side->late_ns)
            side->late_ns = late_ns;
        if (!side_start_call(side, *next))
            side->no_memory = true;
    }
    return BIDE_NEVER;
}

/* Waits for libcurl events, at most until that instant, or until the stop flag must be checked again. */
static void side_wait(struct demo_side *side, int64_t until_ns)
{
    int64_t look_ns = bide_now() + STOP_POLL_NS;
    until_ns = until_ns < look_ns ? until_ns : look_ns;
    if (bide_multi_running_get(side->multi) > 0)
        bide_multi_poll(side->multi, until_ns);
    else
        bide_wait_until(until_ns, NULL);
}

static void *callers_thread(void *context)
{
    struct demo_side *side = context;
    const int64_t cut_ns = side->start_ns + side->scenario->length_ns + DEMO_GRACE_NS;
    uint32_t next = 0;
    while (!side_is_stopped(side)) {
        int64_t due_ns = side_start_due_calls(side, &next);
        bool all_begun = due_ns == BIDE_NEVER;
        if (all_begun && (bide_multi_running_get(side->multi) == 0 || bide_now() >= cut_ns || side->no_memory))
            break;
        side_wait(side, all_begun ? cut_ns : due_ns);
    }
    bide_multi_cancel_all(side->multi);
    bide_multi_free(side->multi);
    side->multi = NULL;
    __atomic_store_n(&side->over, true, __ATOMIC_RELEASE);
    return NULL;
}

static void *server_thread(void *context)
{
    struct demo_side *side = context;
    if (chaos_run(side->chaos) != BIDE_OK)
        side->server_failed = true;
    return NULL;
}

/* ---- a side ---- */

/* Starts a thread with all signals blocked: the main thread handles the terminal's signals. */
static bool start_thread(pthread_t *thread, void *(*function)(void *), struct demo_side *side)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, function, side);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

static bool side_open_server(struct demo_side *side, char error[DEMO_ERROR_SIZE])
{
    char script[DEMO_SCRIPT_SIZE];
    struct chaos_error wrong;
    struct chaos_config config = {
        .script = demo_script(script, side->scenario), .seed = side->scenario->seed, .journal_fd = -1, .keep = true};
    if (chaos_new(&side->chaos, &config, &wrong) != BIDE_OK) {
        snprintf(error, DEMO_ERROR_SIZE, "cannot start a server on 127.0.0.1: %s",
                 wrong.line > 0 ? wrong.text : strerror(errno));
        return false;
    }
    snprintf(side->url, sizeof side->url, "http://127.0.0.1:%u" DEMO_PATH, chaos_port(side->chaos));
    side->serving = start_thread(&side->server, server_thread, side);
    if (!side->serving)
        snprintf(error, DEMO_ERROR_SIZE, "cannot start the server's thread");
    return side->serving;
}

struct demo_side *demo_side_new(const struct demo_scenario *scenario, const struct demo_client *client,
                                char error[DEMO_ERROR_SIZE])
{
    struct bide_problem problem;
    struct demo_side *side = aligned_alloc(_Alignof(struct demo_side), sizeof *side);
    snprintf(error, DEMO_ERROR_SIZE, "out of memory");
    if (side == NULL)
        return NULL;
    memset(side, 0, sizeof *side);
    side->scenario = scenario;
    side->client = client;
    if (bide_target_init(&side->target, &client->target, bide_now(), &problem) != BIDE_OK) {
        snprintf(error, DEMO_ERROR_SIZE, "%s", problem.text);
        goto failed;
    }
    side->call = calloc(demo_call_count(scenario), sizeof *side->call);
    if (side->call == NULL || bide_multi_new(&side->multi) != BIDE_OK)
        goto failed;
    curl_multi_setopt(bide_multi_handle_get(side->multi), CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
    if (side_open_server(side, error))
        return side;
failed:
    demo_side_free(side);
    return NULL;
}

bool demo_side_begin(struct demo_side *side, int64_t start_ns, char error[DEMO_ERROR_SIZE])
{
    side->start_ns = start_ns;
    side->calling = start_thread(&side->callers, callers_thread, side);
    if (!side->calling)
        snprintf(error, DEMO_ERROR_SIZE, "cannot start the callers' thread");
    return side->calling;
}

struct demo_progress demo_side_progress(const struct demo_side *side)
{
    /* `over` is loaded first: if it is set, the counts are the last ones. */
    struct demo_progress progress = {.over = __atomic_load_n(&side->over, __ATOMIC_ACQUIRE)};
    progress.requests = chaos_requests(side->chaos);
    progress.succeeded = __atomic_load_n(&side->succeeded, __ATOMIC_RELAXED);
    progress.failed = __atomic_load_n(&side->failed, __ATOMIC_RELAXED);
    uint64_t begun = __atomic_load_n(&side->begun, __ATOMIC_RELAXED), ended = progress.succeeded + progress.failed;
    progress.in_progress = begun > ended ? begun - ended : 0;
    return progress;
}

void demo_side_stop(struct demo_side *side)
{
    __atomic_store_n(&side->stopped, true, __ATOMIC_RELAXED);
}

/* ---- the end ---- */

static void side_join_threads(struct demo_side *side)
{
    if (side->calling)
        pthread_join(side->callers, NULL);
    if (side->serving) {
        chaos_stop(side->chaos);
        pthread_join(side->server, NULL);
    }
    side->calling = side->serving = false;
}

static bool record_copy_requests(const struct demo_side *side, struct demo_record *record)
{
    size_t count;
    const struct chaos_seen *seen = chaos_seen(side->chaos, &count);
    record->request = calloc(count > 0 ? count : 1, sizeof *record->request);
    for (size_t i = 0; record->request != NULL && i < count; i++) {
        bool whole = strcmp(seen[i].result, "answered") == 0;
        record->request[record->requests++] =
            (struct demo_request){.at_ns = seen[i].at_ns - side->start_ns,
                                  .end_ns = seen[i].end_ns - side->start_ns,
                                  .status = whole ? seen[i].status : 0,
                                  .is_first = seen[i].attempt != NULL && strncmp(seen[i].attempt, "1;", 2) == 0};
    }
    return record->request != NULL;
}

static const char *side_failure(const struct demo_side *side)
{
    if (side->no_memory)
        return "out of memory for the calls";
    if (side->server_failed)
        return "the server failed";
    return side->begun == demo_call_count(side->scenario) ? NULL : "the demo was stopped";
}

bool demo_side_end(struct demo_side *side, struct demo_record *record, char error[DEMO_ERROR_SIZE])
{
    side_join_threads(side);
    const char *reason = side_failure(side);
    *record = (struct demo_record){.call = side->call, .calls = side->begun};
    side->call = NULL;
    if (reason == NULL && record_copy_requests(side, record))
        return true;
    snprintf(error, DEMO_ERROR_SIZE, "%s", reason != NULL ? reason : "out of memory");
    demo_record_free(record);
    return false;
}

int64_t demo_side_late_ns(const struct demo_side *side)
{
    return side->late_ns;
}

void demo_side_free(struct demo_side *side)
{
    if (side == NULL)
        return;
    demo_side_stop(side);
    side_join_threads(side);
    bide_multi_free(side->multi);
    call_slots_free(side);
    chaos_free(side->chaos);
    free(side->call);
    free(side);
}
