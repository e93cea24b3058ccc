/* telemetry.c - starts and stops telemetry: see bide/telemetry.h. */
#include <bide/clock.h>
#include <bide/key.h>
#include <bide/telemetry.h>

#include <curl/curl.h>

#include "listener.h"
#include "meters.h"
#include "otel.h"
#include "problem.h"
#include "snapshot.h"
#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TARGETS_MAX 100000u
#define SPAN_ROOM   128u /* of the ring, for each span of the queue: a call without a URL needs 160 bytes */

static const char *environment_get(void *context, const char *name)
{
    (void)context;
    return secure_getenv(name);
}

/* ---- the ends of a process ---- */

static void forked_in_child(void)
{
    telemetry_listener_forked();
    telemetry_thread_forked();
}

/* A program that ends without bide_telemetry_stop loses nothing, if the collector is quick. */
static void stop_at_exit(void)
{
    if (telemetry_thread_runs())
        bide_telemetry_stop();
}

static int hooks_error;

static void set_hooks(void)
{
    hooks_error = pthread_atfork(NULL, NULL, forked_in_child);
}

/* libcurl first: what it registers for the exit then runs after stop_at_exit. */
static void set_thread_hooks(void)
{
    if (hooks_error == 0 && (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || atexit(stop_at_exit) != 0))
        hooks_error = ENOMEM;
}

static enum bide_err hooks_once(bool has_thread, struct bide_problem *problem)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT, thread_once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_hooks);
    if (has_thread)
        pthread_once(&thread_once, set_thread_hooks);
    return hooks_error == 0 ? BIDE_OK
                            : telemetry_problem_set(problem, BIDE_ERR_SYSTEM, hooks_error,
                                                    "libcurl, or the handlers of fork and exit, could not be set up");
}

/* ---- start and stop ---- */

/* Starts the thread, if something needs it, and listens. */
static enum bide_err telemetry_begin(const struct bide_telemetry_options *o, struct telemetry_otel *otel,
                                     struct bide_problem *problem)
{
    struct telemetry_listener_options listen = {.spans = otel->traces.is_on,
                                                .log = o->log != BIDE_TELEMETRY_LOG_NONE,
                                                .sampler = otel->sampler,
                                                .ring_bytes = (uint64_t)otel->queue_max * SPAN_ROOM};
    bool has_thread = listen.spans || otel->metrics.is_on || listen.log || o->listen != NULL;
    enum bide_err err = hooks_once(has_thread, problem);
    if (err == BIDE_OK)
        err = telemetry_listener_begin(&listen, problem);
    if (err != BIDE_OK || !has_thread)
        return err;
    err = telemetry_thread_start(o, otel, problem);
    if (err != BIDE_OK)
        telemetry_listener_end();
    return err;
}

/* Returns the service.instance.id of this process: two processes of a service must not export to the same series. NULL
 * if there is no randomness. */
static const char *instance_id(void)
{
    static char id[BIDE_KEY_TEXT_SIZE];
    static pid_t owner;
    if (owner != getpid() && bide_key_make(id) == BIDE_OK)
        owner = getpid(); /* a child after fork gets its own */
    return owner == getpid() ? id : NULL;
}

/* Reads the variables OTEL_*. */
static enum bide_err read_environment(const struct bide_telemetry_options *o, struct telemetry_otel *otel,
                                      struct bide_problem *problem)
{
    struct telemetry_environment environment = {
        .get = environment_get, .program = program_invocation_short_name, .instance = instance_id()};
    return o->otlp != NULL ? telemetry_otel_read(otel, o, &environment, problem) : BIDE_OK;
}

static int64_t wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * BIDE_S + now.tv_nsec;
}

/* Sets the problem of reserved words, and of a limit that is too high. */
static enum bide_err options_check(const struct bide_telemetry_options *o, struct bide_problem *problem)
{
    for (size_t i = 0; i < sizeof o->reserved_ / sizeof *o->reserved_; i++)
        if (o->reserved_[i] != 0)
            return telemetry_problem_number(problem, "reserved_", 1, "0: this library does not know that field");
    if (o->targets_max > TARGETS_MAX)
        return telemetry_problem_number(problem, "targets_max", o->targets_max, "1 to 100000 (0: 128)");
    return BIDE_OK;
}

enum bide_err bide_telemetry_start(const struct bide_telemetry_options *options, struct bide_problem *problem)
{
    struct bide_telemetry_options o = options != NULL ? *options : (struct bide_telemetry_options){0};
    struct telemetry_otel otel = {.queue_max = TELEMETRY_QUEUE_DEFAULT};
    uint32_t targets_max = o.targets_max != 0 ? o.targets_max : BIDE_TELEMETRY_TARGETS;
    enum bide_err err = options_check(&o, problem);
    if (err != BIDE_OK)
        return err;
    if (!telemetry_meters_begin(targets_max))
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for a table of %u meters", targets_max);
    struct bide_targets *targets = o.targets != NULL ? o.targets : bide_targets_default();
    if (targets == NULL)
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for the table of targets");
    telemetry_snapshot_started(wall_now());
    err = read_environment(&o, &otel, problem);
    if (err == BIDE_OK)
        err = telemetry_begin(&o, &otel, problem);
    telemetry_otel_free(&otel);
    if (err == BIDE_OK)
        telemetry_snapshot_targets_set(targets);
    return err;
}

/* Calls first: what they report after this is counted as lost. */
void bide_telemetry_stop(void)
{
    telemetry_listener_end();
    telemetry_thread_stop();
    telemetry_snapshot_targets_set(NULL);
}

enum bide_err bide_telemetry_inbound(const char *name, const struct bide_inbound_ratio *ratio,
                                     struct bide_problem *problem)
{
    return telemetry_snapshot_inbound_set(name, ratio, problem);
}

size_t bide_telemetry_write(char *text, size_t size)
{
    struct telemetry_numbers *numbers = telemetry_snapshot_new(bide_now());
    size_t length = numbers != NULL ? telemetry_prometheus_write_all(text, size, numbers) : 0;
    if (numbers == NULL && size > 0)
        text[0] = '\0';
    telemetry_snapshot_free(numbers);
    return length;
}
