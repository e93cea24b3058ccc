/* listener.c - writes the events of calls into the ring: see listener.h.
 *
 * An event costs a call one record at most: no lock, no allocation, and no system call but the write to an eventfd,
 * once for each time that the consumer has announced that it sleeps.
 *
 * LIFE: a call that began before the stop still refers to the listener, and may be inside listener_event at any time.
 * So the ring and the eventfd are never freed: a later start uses them again, and the consumer then finds records that
 * were published too late for the stop before. Only a start that needs a larger ring replaces it, and the smaller one
 * is kept allocated; a ring has a power of two of bytes, so this happens a few times at most. WANT_OPEN: there is
 * a consumer. A producer that has seen it open may publish after the last look of the consumer: see above.
 *
 * The three listeners differ in what they cost a call: meters alone leave the fast path of lib/os/event.c without a
 * trace and without an event. They are constants, because calls of an earlier start may still read them. */
#include "listener.h"

#include "dropped.h"
#include "log.h"
#include "meters.h"
#include "problem.h"
#include "ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What calls read and a later start may write meanwhile: words of their own, each valid by itself. A call that reads an
 * older word acts as if it had been earlier. */
static struct {
    struct telemetry_ring *ring; /* published with release: it is complete */
    uint64_t wants;              /* enum want */
    uint64_t sampler;            /* limit, and SAMPLER_BY_PARENT */
    int fd;                      /* eventfd; -1: none yet */
    bool ring_is_stale;          /* a copy of the parent's */
    bool is_forked;              /* all this is a copy of the parent's, and telemetry was not started since */
} listening = {.fd = -1};

enum want {
    WANT_SPANS = 1,
    WANT_LOG = 2,
    WANT_OPEN = 4, /* there is a consumer */
};

#define SAMPLER_BY_PARENT (UINT64_C(1) << 63)

/* ---- in the thread of a call ---- */

static bool listener_sample(void *context, const struct bide_trace *trace)
{
    uint64_t word = __atomic_load_n(&listening.sampler, __ATOMIC_RELAXED);
    (void)context;
    return telemetry_sampler_decide(
        &(struct telemetry_sampler){.parent_based = word & SAMPLER_BY_PARENT, .limit = word & ~SAMPLER_BY_PARENT},
        trace);
}

static bool event_ends_call(const struct bide_event *event)
{
    return event->verdict->action == BIDE_ACTION_DONE || event->verdict->action == BIDE_ACTION_GIVE_UP;
}

static bool event_is_span(const struct bide_event *event)
{
    return event->trace != NULL && (event->trace->flags & BIDE_TRACE_SAMPLED) != 0 &&
           (event->outcome != NULL || event_ends_call(event));
}

static bool event_is_line(const struct bide_event *event)
{
    return telemetry_log_wants(event->verdict->action, event->outcome != NULL);
}

/* Returns what an event is wanted for. */
static inline uint64_t event_wants(const struct bide_event *event, uint64_t wants)
{
    return ((wants & WANT_SPANS) && event_is_span(event) ? WANT_SPANS : 0u) |
           ((wants & WANT_LOG) && event_is_line(event) ? WANT_LOG : 0u);
}

/* Counts an event that got no record. */
static __attribute__((noinline)) void event_count_lost(const struct bide_event *event, uint64_t wants,
                                                       enum telemetry_cause cause)
{
    unsigned spans = (event->outcome != NULL ? 1u : 0u) + (event_ends_call(event) ? 1u : 0u);
    if (wants & WANT_SPANS)
        telemetry_dropped_add(TELEMETRY_SPANS, cause, spans);
    if (wants & WANT_LOG)
        telemetry_dropped_add(TELEMETRY_LOGS, cause, 1);
}

static inline __attribute__((always_inline)) void event_put(const struct bide_event *event, uint64_t wants,
                                                            const struct telemetry_texts *texts)
{
    struct telemetry_ring *ring = __atomic_load_n(&listening.ring, __ATOMIC_ACQUIRE);
    struct telemetry_place place = telemetry_ring_reserve(ring, telemetry_record_size(event, texts));
    if (place.at == NULL) {
        event_count_lost(event, wants, TELEMETRY_RING_FULL);
        return;
    }
    telemetry_record_fill(place.at, event, texts);
    if (telemetry_ring_publish(ring, &place))
        telemetry_listener_wake();
}

static __attribute__((noinline)) void event_put_described(const struct bide_event *event, uint64_t wants)
{
    struct bide_call_about about = {0};
    struct telemetry_texts texts;
    event->about(event->about_context, &about);
    telemetry_texts_collect(&texts, &about);
    event_put(event, wants, &texts);
}

static void listener_event(void *context, const struct bide_event *event)
{
    uint64_t open = __atomic_load_n(&listening.wants, __ATOMIC_ACQUIRE), wants = event_wants(event, open);
    (void)context;
    if (wants == 0)
        return;
    if (!(open & WANT_OPEN))
        event_count_lost(event, wants, TELEMETRY_SHUTDOWN);
    else if (event->about != NULL)
        event_put_described(event, wants);
    else
        event_put(event, wants, NULL);
}

/* A call that succeeded at once is no line of the log. */
static void listener_at_once(void *context, const struct bide_at_once *call)
{
    uint64_t wants = __atomic_load_n(&listening.wants, __ATOMIC_ACQUIRE);
    uint64_t limit = __atomic_load_n(&listening.sampler, __ATOMIC_RELAXED) & ~SAMPLER_BY_PARENT;
    (void)context;
    if (!(wants & WANT_SPANS) || (call->random[1] & (TELEMETRY_SAMPLER_ALL - 1)) >= limit)
        return;
    size_t length = strlen(call->target);
    if (length > BIDE_TARGET_NAME_MAX)
        length = 0; /* as in an event */
    struct telemetry_ring *ring = __atomic_load_n(&listening.ring, __ATOMIC_ACQUIRE);
    struct telemetry_place place = {.at = NULL};
    if (wants & WANT_OPEN)
        place = telemetry_ring_reserve(ring, sizeof(struct telemetry_record) + length);
    if (place.at == NULL) {
        telemetry_dropped_add(TELEMETRY_SPANS, wants & WANT_OPEN ? TELEMETRY_RING_FULL : TELEMETRY_SHUTDOWN, 2);
        return;
    }
    telemetry_record_fill_at_once(place.at, call, length);
    if (telemetry_ring_publish(ring, &place))
        telemetry_listener_wake();
}

void telemetry_listener_wake(void)
{
    static const uint64_t one = 1;
    int saved = errno;
    ssize_t written = write(listening.fd, &one, sizeof one); /* EAGAIN: it is readable already */
    (void)written;
    errno = saved;
}

static const struct bide_listener meters_only = {.meter = telemetry_meters_find};
static const struct bide_listener with_log = {
    .meter = telemetry_meters_find, .event = listener_event, .ends_only = true};
static const struct bide_listener with_spans = {.meter = telemetry_meters_find,
                                                .event = listener_event,
                                                .sample = listener_sample,
                                                .at_once = listener_at_once,
                                                .ends_only = true};

/* ---- start and stop ---- */

static bool listener_open_ring(uint64_t bytes)
{
    struct telemetry_ring *ring = listening.ring;
    if (ring != NULL && listening.ring_is_stale) { /* no thread of this process has used it */
        telemetry_ring_free(ring);
        free(ring);
        ring = listening.ring = NULL;
    }
    listening.ring_is_stale = false;
    if (ring != NULL && ring->mask + 1 >= bytes)
        return true;
    if (posix_memalign((void **)&ring, 64, sizeof *ring) != 0)
        return false;
    if (!telemetry_ring_init(ring, bytes)) {
        free(ring);
        return false;
    }
    __atomic_store_n(&listening.ring, ring, __ATOMIC_RELEASE);
    return true;
}

static enum bide_err listener_open(const struct telemetry_listener_options *options, struct bide_problem *problem)
{
    if (!listener_open_ring(options->ring_bytes))
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for the ring of spans and log lines");
    if (listening.fd < 0)
        listening.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (listening.fd < 0)
        return telemetry_problem_set(problem, BIDE_ERR_SYSTEM, errno, "no eventfd for the export thread");
    uint64_t by_parent = options->sampler.parent_based ? SAMPLER_BY_PARENT : 0;
    __atomic_store_n(&listening.sampler, options->sampler.limit | by_parent, __ATOMIC_RELAXED);
    __atomic_store_n(&listening.wants,
                     (options->spans ? WANT_SPANS : 0u) | (options->log ? WANT_LOG : 0u) | (uint64_t)WANT_OPEN,
                     __ATOMIC_RELEASE);
    return BIDE_OK;
}

bool telemetry_listener_is_set(void)
{
    const struct bide_listener *listener = bide_listener_get();
    return listener == &meters_only || listener == &with_log || listener == &with_spans;
}

static enum bide_err listener_is_taken(struct bide_problem *problem)
{
    return telemetry_problem_set(problem, BIDE_ERR_BUSY, 0,
                                 "the process has another listener: call bide_listen(NULL) before telemetry starts");
}

enum bide_err telemetry_listener_begin(const struct telemetry_listener_options *options, struct bide_problem *problem)
{
    const struct bide_listener *listener = options->spans ? &with_spans : options->log ? &with_log : &meters_only;
    if (listening.is_forked && telemetry_listener_is_set())
        bide_listen(NULL); /* the child of a process with telemetry */
    listening.is_forked = false;
    if (telemetry_listener_is_set())
        return telemetry_problem_set(problem, BIDE_ERR_BUSY, 0, "telemetry runs already in this process");
    if (bide_listener_get() != NULL)
        return listener_is_taken(problem);
    if (listener != &meters_only) {
        enum bide_err err = listener_open(options, problem);
        if (err != BIDE_OK)
            return err;
    }
    if (bide_listen(listener) == BIDE_OK)
        return BIDE_OK;
    __atomic_and_fetch(&listening.wants, ~(uint64_t)WANT_OPEN, __ATOMIC_RELEASE);
    return listener_is_taken(problem);
}

void telemetry_listener_end(void)
{
    if (telemetry_listener_is_set())
        bide_listen(NULL);
    __atomic_and_fetch(&listening.wants, ~(uint64_t)WANT_OPEN, __ATOMIC_RELEASE);
}

/* The eventfd is the parent's, too: the child may start with its own. */
void telemetry_listener_forked(void)
{
    __atomic_and_fetch(&listening.wants, ~(uint64_t)WANT_OPEN, __ATOMIC_RELEASE);
    listening.ring_is_stale = true;
    listening.is_forked = true;
    if (listening.fd >= 0)
        close(listening.fd);
    listening.fd = -1;
}

/* ---- the consumer ---- */

const struct telemetry_record *telemetry_listener_peek(size_t *size)
{
    return telemetry_ring_peek(listening.ring, size);
}

void telemetry_listener_pop(void)
{
    telemetry_ring_pop(listening.ring);
}

const struct telemetry_record *telemetry_listener_look_ahead(void)
{
    return telemetry_ring_look_ahead(listening.ring);
}

bool telemetry_listener_has_passed(void)
{
    return telemetry_ring_has_passed(listening.ring);
}

uint64_t telemetry_listener_capacity(void)
{
    return listening.ring->mask + 1;
}

bool telemetry_listener_sleep(uint64_t pending)
{
    return telemetry_ring_sleep(listening.ring, pending);
}

void telemetry_listener_awake(void)
{
    uint64_t count;
    telemetry_ring_awake(listening.ring);
    ssize_t got = read(listening.fd, &count, sizeof count);
    (void)got;
}

uint64_t telemetry_listener_pending(void)
{
    return telemetry_ring_pending(listening.ring);
}

int telemetry_listener_fd(void)
{
    return listening.fd;
}
