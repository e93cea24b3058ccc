/* thread.c - the one thread of telemetry: see thread.h.
 *
 *     loop:  take records from the ring ──► spans into a batch, lines into the log
 *            send the batch if it is full, or if the schedule delay is over
 *            send the metrics if their interval is over
 *            look at the breakers, if there is a log
 *            sleep in curl_multi_poll: on the sockets of exports and of /metrics, on the eventfd of the ring
 *
 * WAKING: before it sleeps, the thread announces how many bytes it waits for: those that fill the batch, by the average
 * of the spans so far. The call that fills it wakes the thread; all others make no system call. What does not fill a
 * batch is taken at the next tick, one schedule delay after the last (OTEL_BSP_SCHEDULE_DELAY), or, with a log, a
 * quarter of a second. While all batches are being sent, the thread takes nothing and announces nothing: the ring
 * fills, and what does not fit is counted by the calls.
 *
 * A LOG does not wait for a collector that is slow or absent: the thread looks ahead in the ring and writes the lines
 * of records whose spans wait. So that records of later lines find room, it gives up the oldest of these spans while
 * they fill more than half of the ring, and is woken when they fill three quarters.
 *
 * STOP: the thread reads the metrics a last time, takes what is in the ring, and sends both until all batches are sent
 * or the time is over. It counts what is left: batches (telemetry_export_free) and records.
 *
 * FORK: the child has no such thread. It closes its copy of the socket that listens, lest it occupy the address. Its
 * copies of the other sockets and of libcurl's memory are left as they are, because the thread may have been using them
 * at that moment. */
#include "thread.h"

#include "dropped.h"
#include "export.h"
#include "listener.h"
#include "log.h"
#include "metric_export.h"
#include "problem.h"
#include "server.h"
#include "snapshot.h"

#include <bide/clock.h>

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RETRY_NS       BIDE_MS /* a record is reserved but not yet published */
#define RECORDS_A_TURN 4096u   /* then sockets get their turn */
#define SPAN_BYTES     100u    /* of the ring, for a span: the first guess */

struct thread {
    pthread_t id;
    bool stops;         /* set by telemetry_thread_stop */
    int64_t stop_by_ns; /* ... after this */
    struct bide_multi *multi;
    struct telemetry_otel otel;
    struct telemetry_export *export;         /* NULL: no spans */
    struct telemetry_metric_export *metrics; /* NULL: no metrics over OTLP */
    struct telemetry_log *log;               /* NULL: no lines, or closed at the end */
    bool has_log;
    struct telemetry_server *server; /* NULL: /metrics is not served */
    bool has_ring;
    int64_t flush_ns;           /* when the batch is sent even if it is not full */
    int64_t metrics_ns;         /* when metrics are sent next */
    int64_t breakers_ns;        /* when the breakers are looked at next, for the log */
    int64_t log_ns;             /* when the log has something to write next */
    uint64_t spans, span_bytes; /* taken from the ring so far, for the average */
};

static struct thread *running; /* NULL: this process has no thread */

/* ---- records ---- */

static int64_t wall_offset_ns(void)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return (int64_t)wall.tv_sec * BIDE_S + wall.tv_nsec - bide_now();
}

static uint64_t record_spans(const struct telemetry_record *record)
{
    return record->is_sampled ? (record->attempt_ended ? 1u : 0u) + (record->call_ended ? 1u : 0u) : 0;
}

/* Writes the lines of all records, also of those whose spans have to wait for a batch. */
static void thread_log(struct thread *t)
{
    const struct telemetry_record *record;
    while (t->log != NULL && (record = telemetry_listener_look_ahead()) != NULL)
        telemetry_log_write(t->log, record, bide_now());
}

/* Passes the spans of a record on. Returns false if they have to wait for a batch. With a log they may fill no more
 * than half of the ring meanwhile. */
static bool thread_take(struct thread *t, const struct telemetry_record *record, int64_t offset_ns)
{
    if (t->export == NULL || telemetry_export_add(t->export, record, offset_ns))
        return true;
    if (t->log == NULL || telemetry_listener_pending() <= telemetry_listener_capacity() / 2)
        return false;
    telemetry_dropped_add(TELEMETRY_SPANS, TELEMETRY_RING_FULL, record_spans(record));
    return true;
}

/* Takes records from the ring as long as there are any, and room for them. Returns true if there may be more. */
static bool thread_drain(struct thread *t)
{
    const struct telemetry_record *record;
    size_t size;
    int64_t offset_ns = wall_offset_ns();
    for (unsigned count = 0; t->has_ring && (record = telemetry_listener_peek(&size)) != NULL; count++) {
        uint64_t spans = record_spans(record);
        if (count == RECORDS_A_TURN)
            return true;
        thread_log(t); /* first: a record that is popped has its line */
        if (!thread_take(t, record, offset_ns))
            return false;
        t->spans += spans;
        t->span_bytes += spans > 0 ? size : 0;
        telemetry_listener_pop();
    }
    return false;
}

/* Returns how many bytes of records fill the batch, or half of the ring if that is less: a ring that is full before the
 * thread wakes loses records. */
static uint64_t thread_missing_bytes(const struct thread *t)
{
    uint64_t missing = t->export != NULL ? telemetry_export_missing(t->export) : UINT16_MAX;
    uint64_t bytes = missing * (t->span_bytes / t->spans), half = telemetry_listener_capacity() / 2;
    return bytes < half ? bytes : half;
}

/* ---- time ---- */

static int64_t later(int64_t now_ns, int64_t duration_ns)
{
    return duration_ns < BIDE_NEVER - now_ns ? now_ns + duration_ns : BIDE_NEVER;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Does what is due. */
static void thread_tick(struct thread *t, int64_t now_ns)
{
    if (t->export != NULL && now_ns >= t->flush_ns) {
        telemetry_export_flush(t->export);
        t->flush_ns = later(now_ns, t->otel.delay_ns);
    }
    if (t->metrics != NULL)
        t->metrics_ns = telemetry_metric_export_tick(t->metrics, now_ns, wall_offset_ns());
    if (t->log != NULL && now_ns >= t->breakers_ns) {
        telemetry_log_set_wall(t->log, wall_offset_ns());
        telemetry_snapshot_log_breakers(t->log, now_ns);
        t->breakers_ns = later(now_ns, TELEMETRY_LOG_BREAKERS_NS);
    }
    if (t->log != NULL)
        t->log_ns = telemetry_log_tick(t->log, now_ns);
}

static int timeout_ms(int64_t until_ns, int64_t now_ns)
{
    if (until_ns <= now_ns)
        return 0;
    int64_t ms = (until_ns - now_ns - 1) / BIDE_MS + 1;
    return ms < 3600000 ? (int)ms : 3600000;
}

/* ---- sleeping ---- */

_Static_assert(CURL_WAIT_POLLIN == POLLIN && CURL_WAIT_POLLOUT == POLLOUT, "libcurl uses the numbers of poll");

/* Waits until an instant, or for a socket or the eventfd. `fds`: what the server waits for; receives what is ready. */
static void thread_wait(struct thread *t, struct pollfd *fds, size_t count, int64_t until_ns)
{
    struct curl_waitfd wait[TELEMETRY_SERVER_FDS + 1];
    unsigned waits = 0;
    for (; waits < count; waits++)
        wait[waits] = (struct curl_waitfd){.fd = fds[waits].fd, .events = fds[waits].events};
    if (t->has_ring)
        wait[waits++] = (struct curl_waitfd){.fd = telemetry_listener_fd(), .events = CURL_WAIT_POLLIN};
    curl_multi_poll(bide_multi_handle_get(t->multi), wait, waits, timeout_ms(until_ns, bide_now()), NULL);
    for (size_t i = 0; i < count; i++)
        fds[i].revents = wait[i].revents;
}

/* Waits, then lets the server and all exports go on. */
static void thread_poll(struct thread *t, int64_t until_ns)
{
    struct pollfd fds[TELEMETRY_SERVER_FDS];
    size_t count = t->server != NULL ? telemetry_server_fds(t->server, fds) : 0;
    until_ns = earlier(until_ns, bide_multi_due_get(t->multi));
    if (t->server != NULL)
        until_ns = earlier(until_ns, telemetry_server_due(t->server));
    thread_wait(t, fds, count, until_ns);
    if (t->server != NULL)
        telemetry_server_process(t->server, fds, count, bide_now());
    bide_multi_poll(t->multi, 0);
}

/* Announces what the thread waits for, if it can take records. Returns until when it may sleep at most. */
static int64_t thread_announce(const struct thread *t, int64_t now_ns)
{
    bool is_busy = t->export != NULL && !telemetry_export_is_free(t->export);
    if (!t->has_ring || (is_busy && t->log == NULL))
        return BIDE_NEVER;
    uint64_t pending = is_busy ? telemetry_listener_capacity() / 4 * 3 : thread_missing_bytes(t);
    return telemetry_listener_sleep(pending) ? BIDE_NEVER : now_ns + RETRY_NS;
}

static void thread_sleep(struct thread *t)
{
    int64_t now_ns = bide_now();
    int64_t until_ns = earlier(thread_announce(t, now_ns), earlier(t->flush_ns, t->metrics_ns));
    thread_poll(t, earlier(until_ns, earlier(t->breakers_ns, t->log_ns)));
    if (t->has_ring)
        telemetry_listener_awake();
}

/* ---- the end ---- */

static bool ring_is_empty(const struct thread *t)
{
    size_t size;
    return !t->has_ring || telemetry_listener_peek(&size) == NULL;
}

static bool thread_is_finished(const struct thread *t)
{
    return ring_is_empty(t) && (t->export == NULL || telemetry_export_sending(t->export) == 0) &&
           (t->metrics == NULL || telemetry_metric_export_is_idle(t->metrics));
}

/* Sends what is left. Events come no more. */
static void thread_finish(struct thread *t)
{
    if (t->metrics != NULL)
        telemetry_metric_export_finish(t->metrics, bide_now(), wall_offset_ns());
    for (;;) {
        bool has_more = thread_drain(t);
        if (t->metrics != NULL)
            telemetry_metric_export_tick(t->metrics, bide_now(), wall_offset_ns());
        if (t->export != NULL && ring_is_empty(t))
            telemetry_export_flush(t->export);
        if (thread_is_finished(t) || bide_now() >= t->stop_by_ns)
            return;
        thread_poll(t, has_more ? 0 : t->stop_by_ns);
    }
}

static void ring_count_lost(bool has_spans, bool has_log)
{
    const struct telemetry_record *record;
    size_t size;
    for (; (record = telemetry_listener_peek(&size)) != NULL; telemetry_listener_pop()) {
        telemetry_dropped_add(TELEMETRY_SPANS, TELEMETRY_SHUTDOWN, has_spans ? record_spans(record) : 0);
        if (has_log && !telemetry_listener_has_passed() && telemetry_log_wants(record->action, record->attempt_ended))
            telemetry_dropped_add(TELEMETRY_LOGS, TELEMETRY_SHUTDOWN, 1);
    }
}

static void *thread_main(void *context)
{
    struct thread *t = context;
    while (!__atomic_load_n(&t->stops, __ATOMIC_ACQUIRE)) {
        bool has_more = thread_drain(t);
        thread_tick(t, bide_now());
        if (has_more)
            thread_poll(t, 0);
        else
            thread_sleep(t);
    }
    thread_finish(t);
    telemetry_log_close(t->log, bide_now()); /* here, where SIGPIPE is blocked */
    t->log = NULL;
    return NULL;
}

/* ---- start and stop ---- */

static void thread_free(struct thread *t)
{
    telemetry_export_free(t->export);
    telemetry_metric_export_free(t->metrics);
    telemetry_log_close(t->log, bide_now());
    telemetry_server_close(t->server);
    bide_multi_free(t->multi);
    telemetry_otel_free(&t->otel);
    free(t);
}

/* The thread gets no signal of the process. */
static int thread_create(struct thread *t)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&t->id, NULL, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(t->id, "bide-telemetry");
    return error;
}

static enum bide_err thread_open(struct thread *t, const struct bide_telemetry_options *options,
                                 struct bide_problem *problem)
{
    enum bide_err err = BIDE_OK;
    t->flush_ns = t->metrics_ns = t->breakers_ns = t->log_ns = BIDE_NEVER;
    if (bide_multi_new(&t->multi) != BIDE_OK)
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for the export thread");
    if (options->listen != NULL)
        err = telemetry_server_open(&t->server, options->listen, telemetry_snapshot_page, NULL, problem);
    if (err == BIDE_OK && options->log != BIDE_TELEMETRY_LOG_NONE) {
        t->has_log = true;
        t->breakers_ns = bide_now();
        err = telemetry_log_open(&t->log, options, wall_offset_ns(), problem);
    }
    if (err == BIDE_OK && t->otel.traces.is_on) {
        t->flush_ns = later(bide_now(), t->otel.delay_ns);
        err = telemetry_export_new(&t->export, t->multi, TELEMETRY_SPANS, &t->otel, problem);
    }
    if (err == BIDE_OK && t->otel.metrics.is_on)
        err = telemetry_metric_export_new(&t->metrics, t->multi, &t->otel, bide_now(), problem);
    return err;
}

enum bide_err telemetry_thread_start(const struct bide_telemetry_options *options, struct telemetry_otel *otel,
                                     struct bide_problem *problem)
{
    struct thread *t = calloc(1, sizeof *t);
    if (t == NULL)
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for the export thread");
    t->otel = *otel;
    *otel = (struct telemetry_otel){0};
    t->has_ring = t->otel.traces.is_on || options->log != BIDE_TELEMETRY_LOG_NONE;
    t->spans = 1;
    t->span_bytes = SPAN_BYTES;
    enum bide_err err = thread_open(t, options, problem);
    int error = err == BIDE_OK ? thread_create(t) : 0;
    if (error != 0)
        err = telemetry_problem_set(problem, BIDE_ERR_SYSTEM, error, "the export thread: %s", strerror(error));
    if (err != BIDE_OK)
        thread_free(t);
    else
        running = t;
    return err;
}

void telemetry_thread_stop(void)
{
    struct thread *t = running;
    if (t == NULL)
        return;
    running = NULL;
    t->stop_by_ns = bide_now() + TELEMETRY_STOP_NS;
    __atomic_store_n(&t->stops, true, __ATOMIC_RELEASE);
    bide_multi_wakeup(t->multi);
    pthread_join(t->id, NULL);
    if (t->has_ring)
        ring_count_lost(t->export != NULL, t->has_log);
    thread_free(t);
}

bool telemetry_thread_runs(void)
{
    return running != NULL;
}

void telemetry_thread_forked(void)
{
    if (running != NULL && running->server != NULL)
        telemetry_server_forked(running->server);
    running = NULL;
}
