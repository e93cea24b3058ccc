/* multi.c - bide_multi: many calls in a single thread, over curl_multi.
 *
 *     call ──► attempt slots: the caller's handle, and copies of it for hedges ──► curl_multi
 *       └────► one timer, in one queue with the timers of all calls
 *
 * libcurl forbids adding and removing handles inside its callbacks, but verdicts arrive there. So a callback only puts
 * its call on the ready list (multi_call_mark_ready), and after libcurl has returned the list is processed
 * (multi_process_all): timers are set, losing attempts are cancelled, finished calls are reported. The same list serves
 * calls that hooks and `done` start or cancel, so nothing recurses.
 *
 * A call's timer is always in the queue, parked at DUE_PARKED when nothing is due: the queue has room for it, so that
 * setting the timer cannot fail. It stands for the next of: the end of a wait, a hedge, the time limit of an attempt.
 *
 * bide itself ends late attempts here, because CURLOPT_TIMEOUT_MS would count the time that a transfer waits in
 * libcurl's own queue (CURLMOPT_MAX_HOST_CONNECTIONS). The timeout of an attempt counts from its first PREREQ; before
 * that the connect timeout and the call's deadline apply. libcurl before 8.8 counts the connect timeout from the end of
 * its queue; since then it counts the queue as well, so bide extends it (slot_check_queue). A stall is noticed here,
 * too, by counting bytes (slot_check_stall). */
#include <bide/multi.h>

#include "attempt.h"
#include "handle_set.h"

#include <bide/clock.h>
#include <bide/timers.h>

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DUE_PARKED    (BIDE_NEVER - 1) /* in the queue, and never due */
#define POLL_RETRY_NS (10 * BIDE_MS)

/* A handle that makes attempts for a call. */
struct attempt_slot {
    struct http_attempt attempt;
    struct bide_multi_call *call;
    struct attempt_slot *next;
    int64_t due_ns;           /* when its transfer is ended as late */
    int64_t added_ns;         /* when libcurl got the transfer */
    int64_t queue_check_ns;   /* before the first PREREQ: when slot_check_queue is due */
    int64_t connect_limit_ns; /* its connect timeout */
    int64_t stall_check_ns;   /* when its bytes are counted next; BIDE_NEVER: it has no stall timeout */
    int64_t moved_ns;         /* when a check last found more bytes */
    uint64_t moved_bytes;     /* their number then */
    bool added;               /* it is in libcurl's multi */
    bool timed;  /* due_ns is the attempt's own time limit; before the first PREREQ it is the call's deadline */
    bool queued; /* it was in libcurl's queue: the connect timeout on its handle includes the time there */
};

struct bide_multi_call {
    struct http_call http;           /* first member: multi_call_mark_ready gets a pointer to it */
    struct attempt_slot caller_slot; /* the caller's handle; copies for hedges follow in caller_slot.next */
    struct bide_timer timer;         /* from here on multi_call_new sets the members */
    struct bide_multi *multi;
    struct bide_multi_call *next;
    struct bide_multi_call *prev;
    struct bide_multi_call *next_ready; /* in the ready list of the multi */
    void (*done)(void *context, const struct bide_multi_end *end);
    void *context;
    bool is_ready;               /* it is in the ready list, or being processed */
    bool start_due;              /* START was received and not executed yet */
    bool hedge_due;              /* a hedge was due before the method was known */
    bool cancel_requested;       /* executed before anything else */
    struct bide_report report[]; /* one, if the call has a listener or a meter */
};

struct bide_multi {
    CURLM *curl;
    struct bide_timers timers;
    struct http_handle_set slots; /* attempt slots, by easy handle */
    struct http_socket sockets[HTTP_SOCKETS];
    struct bide_multi_call *first_call; /* all calls */
    struct bide_multi_call *ready;      /* calls with a new verdict or a request to cancel */
    struct bide_multi_call *starting;   /* bide_multi_start is processing it; NULL if it was freed meanwhile */
    size_t running;                     /* unfinished calls, waiting calls included */
    int64_t curl_due_ns;                /* when libcurl wants to be called, for the caller's own event loop */
    int64_t timer_set_ns;               /* the instant last passed to on_timer; BIDE_NEVER: no timer is set */
    void (*on_timer)(void *context, int64_t due_ns);
    void *timer_context;
    void (*on_message)(void *context, CURLMsg *message);
    void *message_context;
    bool owns_curl;  /* curl was made by bide_multi_new */
    bool in_libcurl; /* libcurl is running: handles must not be added or removed */
    bool processing; /* the ready list is being processed: nothing may recurse into it */
    bool draining;   /* new calls are refused */
};

/* ---- attempt slots ---- */

static void slot_detach(struct attempt_slot *slot)
{
    if (slot->added)
        curl_multi_remove_handle(slot->call->multi->curl, slot->attempt.easy);
    slot->added = false;
}

/* Frees all copies but the handle `kept`, which the caller of this function cleans up. */
static void multi_call_free_copies(struct bide_multi_call *call, const CURL *kept)
{
    for (struct attempt_slot *slot = call->caller_slot.next, *next; slot; slot = next) {
        next = slot->next;
        slot_detach(slot);
        http_attempt_uninstall(&slot->attempt); /* also frees the injected header list */
        http_attempt_free(&slot->attempt);
        http_handle_set_remove(&call->multi->slots, slot->attempt.easy);
        if (slot->attempt.easy != kept)
            curl_easy_cleanup(slot->attempt.easy);
        free(slot);
    }
    call->caller_slot.next = NULL;
}

/* Copies the cookies, which curl_easy_duphandle leaves out. The cookie jar file stays with the original handle. */
static void handle_copy_cookies(CURL *from, CURL *to)
{
    struct curl_slist *cookies = NULL;
    if (curl_easy_getinfo(from, CURLINFO_COOKIELIST, &cookies) == CURLE_OK)
        for (const struct curl_slist *cookie = cookies; cookie; cookie = cookie->next)
            curl_easy_setopt(to, CURLOPT_COOKIELIST, cookie->data);
    curl_slist_free_all(cookies);
    curl_easy_setopt(to, CURLOPT_COOKIEJAR, NULL);
}

static struct attempt_slot *multi_call_add_copy(struct bide_multi_call *call)
{
    struct http_handle_set *slots = &call->multi->slots;
    struct attempt_slot *slot = calloc(1, sizeof *slot);
    CURL *easy = slot && http_handle_set_reserve(slots) ? curl_easy_duphandle(call->caller_slot.attempt.easy) : NULL;
    if (!easy) {
        free(slot);
        return NULL;
    }
    slot->call = call;
    slot->attempt.call = &call->http;
    slot->attempt.easy = easy;
    slot->attempt.is_copy = true;
    slot->next = call->caller_slot.next;
    call->caller_slot.next = slot;
    http_handle_set_add(slots, easy, slot);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL); /* the caller's buffer: two handles must not write to it */
    handle_copy_cookies(call->caller_slot.attempt.easy, easy);
    return http_attempt_install(&slot->attempt) == CURLE_OK ? slot : NULL;
}

static bool slot_is_running(const struct attempt_slot *slot)
{
    return slot->added && !slot->attempt.state.reported;
}

static bool multi_call_is_running(const struct bide_multi_call *call)
{
    for (const struct attempt_slot *slot = &call->caller_slot; slot; slot = slot->next)
        if (slot_is_running(slot))
            return true;
    return false;
}

/* Reports an attempt that cannot be made, as cancelled and not sent. If another attempt is in flight, the call goes on
 * without this one; otherwise it ends. */
static void multi_call_report_unsent(struct bide_multi_call *call, uint32_t attempt)
{
    static const struct bide_outcome unsent = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_NOT_SENT};
    call->http.code = CURLE_FAILED_INIT;
    http_call_end_attempt(&call->http, (struct bide_attempt_end){.outcome = &unsent, .attempt = attempt}, bide_now());
}

/* The connect timeout on the handle applies. If libcurl counts its queue as connect time, the slot is checked when half
 * of the timeout has passed: in time to extend it. */
static void slot_begin_connect(struct attempt_slot *slot)
{
    slot->connect_limit_ns = slot->attempt.connect_ms_set * BIDE_MS;
    slot->queue_check_ns = BIDE_NEVER;
    if (slot->connect_limit_ns == 0 || !http_connection_counts_queue())
        return;
    slot->added_ns = bide_now();
    slot->queue_check_ns = slot->added_ns + slot->connect_limit_ns / 2;
}

/* Hands the prepared attempt to libcurl. */
static void slot_perform(struct bide_multi_call *call, struct attempt_slot *slot)
{
    assert(!slot->added && !call->multi->in_libcurl);
    slot->added = curl_multi_add_handle(call->multi->curl, slot->attempt.easy) == CURLM_OK;
    slot->due_ns = call->http.engine.deadline_ns;
    slot->timed = slot->queued = false;
    slot->stall_check_ns = BIDE_NEVER;
    slot_begin_connect(slot);
    slot->attempt.state.reported = !slot->added;
    if (!slot->added)
        multi_call_report_unsent(call, slot->attempt.start.attempt);
}

/* Executes START. The caller's handle makes the attempt unless it is busy with another attempt. */
static void multi_call_start_attempt(struct bide_multi_call *call)
{
    bool first_of_round = !multi_call_is_running(call);
    struct attempt_slot *slot = slot_is_running(&call->caller_slot) ? multi_call_add_copy(call) : &call->caller_slot;
    call->start_due = false;
    if (!slot) {
        multi_call_report_unsent(call, call->http.verdict.attempt);
        return;
    }
    slot_detach(slot); /* it may still be draining an error body */
    if (http_attempt_start(&slot->attempt, &call->http.verdict, bide_now()) != CURLE_OK)
        return;
    if (first_of_round)
        multi_call_free_copies(call, NULL); /* copies of the previous round; their kept responses are obsolete now */
    slot_perform(call, slot);
}

/* ---- the end of a call ---- */

static void multi_call_unlink(struct bide_multi_call *call)
{
    struct bide_multi *multi = call->multi;
    assert(multi->running > 0);
    bide_timers_set(&multi->timers, &call->timer, BIDE_NEVER);
    *(call->prev ? &call->prev->next : &multi->first_call) = call->next;
    if (call->next)
        call->next->prev = call->prev;
    multi->running--;
}

static CURL *multi_call_last_easy(const struct bide_multi_call *call)
{
    for (const struct attempt_slot *slot = call->caller_slot.next; slot; slot = slot->next)
        if (&slot->attempt == call->http.last_attempt)
            return slot->attempt.easy;
    return call->caller_slot.attempt.easy;
}

/* Clears the options that point to the caller's memory: the copy is cleaned up after `done`, which may free that
 * memory. */
static void handle_clear_user_options(CURL *copy)
{
    curl_easy_setopt(copy, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(copy, CURLOPT_VERBOSE, 0L);
    curl_easy_setopt(copy, CURLOPT_SHARE, NULL);
}

static void multi_call_finish(struct bide_multi_call *call)
{
    assert(call->http.is_over && !call->multi->in_libcurl);
    call->is_ready = true; /* so that it is not put on the ready list again: the call is about to be freed */
    if (call->multi->starting == call)
        call->multi->starting = NULL;
    struct bide_multi_end end = {.easy = call->caller_slot.attempt.easy, .last_easy = multi_call_last_easy(call)};
    multi_call_unlink(call);
    for (struct attempt_slot *slot = &call->caller_slot; slot; slot = slot->next)
        slot_detach(slot);
    end.code = http_call_finish(&call->http);
    end.verdict = call->http.verdict;
    http_attempt_uninstall(&call->caller_slot.attempt);
    http_handle_set_remove(&call->multi->slots, end.easy);
    multi_call_free_copies(call, end.last_easy);
    http_attempt_free(&call->caller_slot.attempt);
    if (end.last_easy != end.easy)
        handle_clear_user_options(end.last_easy);
    if (call->done)
        call->done(call->context, &end);
    if (end.last_easy != end.easy)
        curl_easy_cleanup(end.last_easy);
    free(call);
}

/* ---- verdicts ---- */

static void multi_call_mark_ready(struct http_call *http)
{
    struct bide_multi_call *call = (struct bide_multi_call *)http;
    if (call->is_ready)
        return;
    call->is_ready = true;
    call->next_ready = call->multi->ready;
    call->multi->ready = call;
}

/* A response is being streamed to the sink, or the call is over: cancels the other attempts. */
static void multi_call_cancel_losers(struct bide_multi_call *call)
{
    for (struct attempt_slot *slot = &call->caller_slot; slot; slot = slot->next) {
        bool was_running = slot_is_running(slot);
        if (&slot->attempt == call->http.winner || !(call->http.is_over || was_running))
            continue;
        slot_detach(slot);
        if (was_running && !call->http.is_over)
            http_attempt_abandon(&slot->attempt, bide_now());
    }
}

static bool multi_call_winner_is_running(const struct bide_multi_call *call)
{
    for (const struct attempt_slot *slot = &call->caller_slot; slot; slot = slot->next)
        if (slot->added && &slot->attempt == call->http.winner)
            return true;
    return false;
}

static void multi_call_do_cancel(struct bide_multi_call *call)
{
    call->cancel_requested = call->start_due = call->hedge_due = false;
    if (!http_call_cancel(&call->http, bide_now()))
        /* Over already: its final response was being streamed to the sink. */
        call->http.code = CURLE_ABORTED_BY_CALLBACK;
    call->http.winner = NULL;
}

/* Returns true if a second attempt may run beside the first: it needs a sink, so that bide controls which response is
 * written; a request body that both can read; and no refresh hook, which could change the credentials under the other
 * attempt. */
static bool multi_call_can_hedge(const struct bide_multi_call *call)
{
    const struct http_call *http = &call->http;
    switch (http->options->body.kind) {
    case BIDE_CURL_BODY_UNKNOWN:
        if (call->caller_slot.attempt.state.legs == 0 || !call->caller_slot.attempt.state.bodyless_method)
            return false;
        break;
    case BIDE_CURL_BODY_STREAM: return false;
    case BIDE_CURL_BODY_REPEATABLE:
    case BIDE_CURL_BODY_MEMORY:
    case BIDE_CURL_BODY_FILE: break;
    }
    return http->has_sink && !http->options->refresh && !http->winner && http->delivered_bytes == 0;
}

/* Returns true if safety and body of the request are known: given by the options, or seen when libcurl was about to
 * send. */
static bool multi_call_request_is_known(const struct bide_multi_call *call)
{
    return call->http.safety_known &&
           (call->caller_slot.attempt.state.legs > 0 || call->http.options->body.kind != BIDE_CURL_BODY_UNKNOWN);
}

/* The wait is over or, if an attempt is in flight, a hedge is due. A hedge that is due while the request is still
 * unknown is postponed by hedge_due. */
static void multi_call_wake(struct bide_multi_call *call)
{
    bool is_hedge = multi_call_is_running(call);
    call->hedge_due = is_hedge && !multi_call_request_is_known(call);
    if (call->hedge_due)
        return;
    if (is_hedge && !multi_call_can_hedge(call)) {
        call->http.verdict.wake_ns = BIDE_NEVER;
        return;
    }
    http_call_wake(&call->http, bide_now());
    call->start_due = call->http.verdict.action == BIDE_ACTION_START;
}

/* Returns when the engine's timer is due. */
static int64_t multi_call_wake_ns(const struct bide_multi_call *call)
{
    const struct http_call *http = &call->http;
    bool no_timer = http->is_over || call->hedge_due || http->verdict.wake_ns == BIDE_NEVER ||
                    (http->winner && http->verdict.action != BIDE_ACTION_WAIT);
    return no_timer ? DUE_PARKED : http->verdict.wake_ns;
}

/* A transfer has a time limit until its outcome is reported, and while its body goes to the sink. */
static bool slot_has_limit(const struct attempt_slot *slot)
{
    return slot_is_running(slot) || (slot->added && &slot->attempt == slot->call->http.winner);
}

/* ---- stalls ---- */

/* libcurl's LOW_SPEED_TIME takes an average: a byte now and then counts as none, and silence after a burst is noticed
 * late. So the bytes of a transfer are counted, STALL_CHECKS times per stall timeout but not more often than the step,
 * and an attempt is stalled if the number stays the same for that time: it ends at most one check late. Known weakness:
 * libcurl counts a response head by lines, so a head that arrives byte by byte may count as stalled. */
#define STALL_CHECKS      8
#define STALL_STEP_MIN_NS (20 * BIDE_MS)

static int64_t stall_step_ns(int64_t stall_ns)
{
    int64_t step_ns = stall_ns / STALL_CHECKS;
    return step_ns > STALL_STEP_MIN_NS ? step_ns : STALL_STEP_MIN_NS;
}

static uint64_t easy_bytes(CURL *easy)
{
    curl_off_t down = 0, up = 0;
    long head = 0;
    curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
    curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &up);
    curl_easy_getinfo(easy, CURLINFO_HEADER_SIZE, &head);
    return (uint64_t)down + (uint64_t)up + (uint64_t)head;
}

/* The request is about to be sent: from now on bytes must move. */
static void slot_begin_stall(struct attempt_slot *slot)
{
    int64_t stall_ns = slot->call->http.stall_ns;
    if (stall_ns == BIDE_NEVER || slot->stall_check_ns != BIDE_NEVER)
        return;
    int64_t now_ns = bide_now();
    slot->moved_bytes = easy_bytes(slot->attempt.easy);
    slot->moved_ns = now_ns;
    slot->stall_check_ns = now_ns + stall_step_ns(stall_ns);
}

/* Counts the bytes. A transfer that the sink has paused waits for the caller. Returns false if it is stalled. */
static bool slot_check_stall(struct attempt_slot *slot, int64_t now_ns)
{
    int64_t stall_ns = slot->call->http.stall_ns;
    uint64_t bytes = easy_bytes(slot->attempt.easy);
    if (bytes != slot->moved_bytes || slot->attempt.response.paused)
        slot->moved_ns = now_ns;
    slot->moved_bytes = bytes;
    if (now_ns - slot->moved_ns >= stall_ns) {
        slot->attempt.state.stop = HTTP_STOP_STALLED;
        return false;
    }
    int64_t next_ns = now_ns + stall_step_ns(stall_ns), end_ns = slot->moved_ns + stall_ns;
    slot->stall_check_ns = next_ns < end_ns ? next_ns : end_ns;
    return true;
}

/* ---- time limits ---- */

/* The attempt's own time begins when libcurl is about to send the request. Later legs get the plain connect timeout. */
static void slot_begin_time(struct attempt_slot *slot)
{
    const struct bide_verdict *start = &slot->attempt.start;
    if (slot->timed || slot->attempt.state.legs == 0)
        return;
    slot_begin_stall(slot);
    if (slot->queued)
        http_attempt_set_connect_timeout(&slot->attempt, slot->connect_limit_ns);
    slot->queue_check_ns = BIDE_NEVER;
    slot->queued = false;
    if (start->attempt_deadline_ns == BIDE_NEVER)
        return;
    int64_t due_ns = bide_now() + (start->attempt_deadline_ns - slot->attempt.state.start_ns);
    slot->timed = true;
    slot->due_ns = due_ns < slot->due_ns ? due_ns : slot->due_ns;
}

static int64_t multi_call_due_ns(struct bide_multi_call *call)
{
    int64_t due_ns = multi_call_wake_ns(call);
    for (struct attempt_slot *slot = &call->caller_slot; slot; slot = slot->next) {
        if (!slot_has_limit(slot))
            continue;
        slot_begin_time(slot);
        due_ns = slot->due_ns < due_ns ? slot->due_ns : due_ns;
        due_ns = slot->queue_check_ns < due_ns ? slot->queue_check_ns : due_ns;
        due_ns = slot->stall_check_ns < due_ns ? slot->stall_check_ns : due_ns;
    }
    return due_ns;
}

/* Executes the newest verdict. */
static void multi_call_execute_verdict(struct bide_multi_call *call)
{
    if (call->cancel_requested)
        multi_call_do_cancel(call);
    if (call->hedge_due && multi_call_is_running(call))
        multi_call_wake(call);
    if (call->start_due)
        multi_call_start_attempt(call);
    call->hedge_due = call->hedge_due && multi_call_is_running(call);
    bide_timers_set(&call->multi->timers, &call->timer, multi_call_due_ns(call));
    if (call->http.is_over || call->http.winner)
        multi_call_cancel_losers(call);
}

/* Processes the call until nothing is left to do. If it finished, it is freed. */
static void multi_call_process(struct bide_multi_call *call)
{
    call->is_ready = true; /* marks made meanwhile are handled by this loop */
    do
        multi_call_execute_verdict(call);
    while (call->cancel_requested); /* set by a hook */
    call->is_ready = false;
    if (call->http.is_over && !multi_call_winner_is_running(call))
        multi_call_finish(call);
}

/* ---- messages from libcurl ---- */

/* libcurl has ended the transfer of a slot. */
static void slot_ended(struct attempt_slot *slot, CURLcode code)
{
    struct bide_multi_call *call = slot->call;
    const struct bide_curl_options *o = call->http.options;
    slot_detach(slot);
    if (call->cancel_requested) { /* by a callback: the call ends without this outcome */
        multi_call_mark_ready(&call->http);
        return;
    }
    /* Report the losers first: if the winner broke off, the engine must find no other attempt of this round open. */
    if (&slot->attempt == call->http.winner)
        multi_call_cancel_losers(call);
    enum http_attempt_next next = http_attempt_end(&slot->attempt, code, bide_now());
    multi_call_mark_ready(&call->http);
    if (next == HTTP_NEXT_VERDICT)
        return;
    if (next == HTTP_NEXT_REFRESH)
        call->http.credentials_refreshed = true;
    if (next == HTTP_NEXT_REFRESH && !o->refresh(o->context, slot->attempt.easy)) {
        http_attempt_end_with_401(&slot->attempt, bide_now());
        return;
    }
    code = next == HTTP_NEXT_REFRESH ? http_attempt_restart(&slot->attempt, bide_now())
                                     : http_attempt_reconnect(&slot->attempt, bide_now());
    if (code == CURLE_OK)
        slot_perform(call, slot);
}

/* Extends the connect timeout by the time that the transfer spends in libcurl's queue. While it waits there, the
 * timeout on its handle is kept more than connect_limit_ns ahead until the next check, so it has its full time whenever
 * it leaves. The first check after that sets the exact instant, at which bide ends the transfer: libcurl has set a
 * timer only for the original timeout. A transfer that was never in the queue is left to libcurl. Returns false if the
 * transfer is late. */
static bool slot_check_queue(struct attempt_slot *slot, int64_t now_ns)
{
    int64_t queue_ns = http_connection_queue_ns(slot->attempt.easy), limit_ns = slot->connect_limit_ns;
    int64_t end_ns = slot->added_ns + queue_ns + limit_ns;
    if (queue_ns > 0 && slot->queued && end_ns <= now_ns)
        return false;
    slot->queue_check_ns = BIDE_NEVER;
    if (queue_ns > 0 && queue_ns < BIDE_MS && !slot->queued)
        return true;
    slot->queued = true;
    slot->queue_check_ns = queue_ns > 0 ? end_ns : now_ns + limit_ns / 2;
    http_attempt_set_connect_timeout(&slot->attempt, slot->queue_check_ns + limit_ns - slot->added_ns);
    return true;
}

/* The call's timer expired: ends transfers that are late, and wakes the engine if its own instant has come. */
static void multi_call_on_timer(struct bide_multi_call *call, int64_t now_ns)
{
    for (struct attempt_slot *slot = &call->caller_slot; slot; slot = slot->next) {
        if (!slot_has_limit(slot))
            continue;
        bool late = slot->due_ns <= now_ns;
        if (!late && slot->queue_check_ns <= now_ns && slot->attempt.state.legs == 0)
            late = !slot_check_queue(slot, now_ns);
        if (!late && slot->stall_check_ns <= now_ns)
            late = !slot_check_stall(slot, now_ns);
        if (late)
            slot_ended(slot, CURLE_OPERATION_TIMEDOUT);
    }
    if (multi_call_wake_ns(call) <= now_ns)
        multi_call_wake(call);
    multi_call_mark_ready(&call->http);
}

/* Reads libcurl's messages. Messages of transfers that others added to the multi are passed on. */
static void multi_read_messages(struct bide_multi *multi)
{
    int left;
    for (CURLMsg *msg; (msg = curl_multi_info_read(multi->curl, &left)) != NULL;) {
        struct attempt_slot *slot = http_handle_set_find(&multi->slots, msg->easy_handle);
        if (slot && msg->msg == CURLMSG_DONE) {
            http_sockets_note(multi->sockets, &slot->attempt);
            slot_ended(slot, msg->data.result);
        }
        if (!slot && multi->on_message)
            multi->on_message(multi->message_context, msg);
    }
}

static void multi_process_ready(struct bide_multi *multi)
{
    for (struct bide_multi_call *call; (call = multi->ready) != NULL;) {
        multi->ready = call->next_ready;
        call->is_ready = false;
        multi_call_process(call);
    }
}

static struct bide_multi_call *multi_call_from_timer(struct bide_timer *timer)
{
    return (struct bide_multi_call *)((char *)timer - offsetof(struct bide_multi_call, timer));
}

/* Handles everything that is pending: libcurl's messages, the ready list, timers that are due. */
static void multi_process_all(struct bide_multi *multi)
{
    if (multi->processing)
        return; /* called from a hook or `done`: the outer call continues */
    multi->processing = true;
    multi_read_messages(multi);
    multi_process_ready(multi);
    int64_t now_ns = bide_now();
    for (struct bide_timer *timer; (timer = bide_timers_pop(&multi->timers, now_ns)) != NULL;) {
        struct bide_multi_call *call = multi_call_from_timer(timer);
        /* Cannot fail: the queue has room, the timer was just removed. */
        bide_timers_set(&multi->timers, timer, DUE_PARKED);
        multi_call_on_timer(call, now_ns);
        multi_process_ready(multi);
    }
    multi_read_messages(multi);
    multi_process_ready(multi);
    multi->processing = false;
}

/* ---- the caller's event loop ---- */

/* Returns when libcurl wants to be called. Without a timer function of bide's, libcurl is asked. */
static int64_t multi_curl_due_ns(const struct bide_multi *multi)
{
    long ms = -1;
    if (multi->on_timer)
        return multi->curl_due_ns;
    curl_multi_timeout(multi->curl, &ms);
    return ms < 0 ? BIDE_NEVER : bide_now() + ms * BIDE_MS;
}

int64_t bide_multi_due_get(const struct bide_multi *multi)
{
    int64_t own_due_ns = bide_timers_due_get(&multi->timers), curl_due_ns = multi_curl_due_ns(multi);
    if (own_due_ns >= DUE_PARKED)
        own_due_ns = BIDE_NEVER;
    return own_due_ns < curl_due_ns ? own_due_ns : curl_due_ns;
}

static void multi_update_timer(struct bide_multi *multi)
{
    if (!multi->on_timer || multi->in_libcurl)
        return;
    int64_t due_ns = bide_multi_due_get(multi);
    if (due_ns == multi->timer_set_ns)
        return;
    multi->timer_set_ns = due_ns;
    multi->on_timer(multi->timer_context, due_ns);
}

static int on_curl_timer(CURLM *curl, long timeout_ms, void *context)
{
    struct bide_multi *multi = context;
    (void)curl;
    multi->curl_due_ns = timeout_ms < 0 ? BIDE_NEVER : bide_now() + timeout_ms * BIDE_MS;
    if (!multi->processing)
        multi_update_timer(multi); /* the owner added or removed a transfer of his own */
    return 0;
}

/* libcurl's timer function is set only here: it costs every transfer some hundred instructions, and a poll loop does
 * without it. */
void bide_multi_on_timer(struct bide_multi *multi, void (*timer)(void *context, int64_t due_ns), void *context)
{
    multi->on_timer = NULL;
    multi->curl_due_ns = multi_curl_due_ns(multi);
    multi->on_timer = timer;
    multi->timer_context = context;
    multi->timer_set_ns = BIDE_NEVER;
    curl_multi_setopt(multi->curl, CURLMOPT_TIMERFUNCTION, timer ? on_curl_timer : NULL);
    curl_multi_setopt(multi->curl, CURLMOPT_TIMERDATA, multi);
    multi_update_timer(multi);
}

void bide_multi_on_message(struct bide_multi *multi, void (*message)(void *context, CURLMsg *message), void *context)
{
    multi->on_message = message;
    multi->message_context = context;
}

size_t bide_multi_action(struct bide_multi *multi, curl_socket_t fd, int events)
{
    int running;
    assert(!multi->in_libcurl && !multi->processing);
    if (multi->in_libcurl || multi->processing)
        return multi->running;
    /* The caller's timer fired, so it is no longer set. */
    multi->timer_set_ns = fd == CURL_SOCKET_TIMEOUT ? BIDE_NEVER : multi->timer_set_ns;
    if (fd != CURL_SOCKET_TIMEOUT || multi_curl_due_ns(multi) <= bide_now()) {
        multi->in_libcurl = true;
        if (fd == CURL_SOCKET_TIMEOUT)
            multi->curl_due_ns = BIDE_NEVER; /* libcurl sets it again if needed */
        curl_multi_socket_action(multi->curl, fd, events, &running);
        multi->in_libcurl = false;
    }
    multi_process_all(multi);
    multi_update_timer(multi);
    return multi->running;
}

/* ---- bide_multi_poll ---- */

/* Returns the milliseconds to wait, rounded up: waking early would only cost another round. */
static int multi_poll_timeout_ms(const struct bide_multi *multi, int64_t until_ns)
{
    int64_t due_ns = bide_timers_due_get(&multi->timers), now_ns = bide_now();
    due_ns = due_ns < until_ns ? due_ns : until_ns;
    if (due_ns <= now_ns)
        return 0;
    int64_t ms = (due_ns - now_ns - 1) / BIDE_MS + 1;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Returns true if there is something to wait for: a call, or a transfer that others added. */
static bool multi_has_work(struct bide_multi *multi)
{
    int transfers = 0;
    if (multi->running == 0)
        curl_multi_perform(multi->curl, &transfers);
    return multi->running > 0 || transfers > 0;
}

/* The system call poll has failed (no memory): waits a little, so that the caller's loop does not spin until it works
 * again. */
static void multi_pause(int64_t until_ns)
{
    int64_t retry_ns = bide_now() + POLL_RETRY_NS;
    bide_wait_until(retry_ns < until_ns ? retry_ns : until_ns, NULL);
}

size_t bide_multi_poll(struct bide_multi *multi, int64_t until_ns)
{
    int running;
    assert(!multi->in_libcurl && !multi->processing);
    if (multi->in_libcurl || multi->processing)
        return multi->running;
    multi->in_libcurl = true;
    if (multi_has_work(multi) &&
        curl_multi_poll(multi->curl, NULL, 0, multi_poll_timeout_ms(multi, until_ns), NULL) != CURLM_OK)
        multi_pause(until_ns);
    curl_multi_perform(multi->curl, &running);
    multi->in_libcurl = false;
    multi_process_all(multi);
    return multi->running;
}

void bide_multi_wakeup(struct bide_multi *multi)
{
    curl_multi_wakeup(multi->curl);
}

size_t bide_multi_drain(struct bide_multi *multi, int64_t until_ns)
{
    assert(!multi->in_libcurl && !multi->processing);
    if (multi->in_libcurl || multi->processing)
        return 0;
    multi->draining = true;
    while (bide_multi_poll(multi, until_ns) > 0 && bide_now() < until_ns)
        continue;
    size_t left = multi->running;
    bide_multi_cancel_all(multi);
    multi->draining = false;
    return left;
}

/* ---- starting and cancelling calls ---- */

static enum bide_err job_check(const struct bide_multi *multi, const struct bide_multi_job *job,
                               struct bide_problem *problem)
{
    if (multi->draining)
        return http_problem_set_text(problem, BIDE_ERR_BUSY, "the multi is draining: it accepts no new call");
    if (http_handle_set_find(&multi->slots, job->easy))
        return http_problem_set(problem, "easy", 1, "a handle without a running call");
    if (job->options && job->options->cancel)
        return http_problem_set(problem, "cancel", 1, "NULL in a multi (use bide_multi_cancel)");
    return BIDE_OK;
}

/* Leaves `http` to http_call_begin, and `caller_slot` to multi_call_take_handle. (calloc would clear them, too, and
 * before glibc 2.41 does not use the allocator's cache.) */
static struct bide_multi_call *multi_call_new(struct bide_multi *multi, const struct bide_multi_job *job)
{
    bool is_watched = http_call_is_watched(job->options, job->target);
    struct bide_multi_call *call = malloc(sizeof *call + (is_watched ? sizeof call->report[0] : 0));
    if (!call)
        return NULL;
    call->http.report = is_watched ? call->report : NULL;
    memset(&call->timer, 0, sizeof *call - offsetof(struct bide_multi_call, timer));
    call->multi = multi;
    call->done = job->done;
    call->context = job->context;
    return call;
}

static enum bide_err multi_call_begin(struct bide_multi_call *call, const struct bide_multi_job *job,
                                      struct bide_problem *problem)
{
    if (job->result)
        memset(job->result, 0, sizeof *job->result);
    enum bide_err err = http_handle_set_reserve(&call->multi->slots) ? BIDE_OK : BIDE_ERR_NOMEM;
    if (err == BIDE_OK)
        err = bide_timers_set(&call->multi->timers, &call->timer, DUE_PARKED);
    if (err != BIDE_OK)
        return http_problem_set_text(problem, err, "out of memory");
    err = http_call_begin(&call->http, job->easy, job->target, job->options, job->result, problem);
    if (err != BIDE_OK)
        bide_timers_set(&call->multi->timers, &call->timer, BIDE_NEVER);
    return err;
}

static void multi_call_link(struct bide_multi_call *call)
{
    struct bide_multi *multi = call->multi;
    call->next = multi->first_call;
    if (call->next)
        call->next->prev = call;
    multi->first_call = call;
    multi->running++;
}

/* Installs bide's options on the caller's handle. If libcurl rejects them, the call ends with libcurl's code. */
static void multi_call_take_handle(struct bide_multi_call *call, CURL *easy)
{
    call->caller_slot = (struct attempt_slot){.attempt = {.call = &call->http, .easy = easy}, .call = call};
    http_handle_set_add(&call->multi->slots, easy, &call->caller_slot);
    call->http.driver_ends_late = true;
    call->http.code = http_attempt_install(&call->caller_slot.attempt);
    call->http.on_change = multi_call_mark_ready;
    call->http.sockets = call->multi->sockets;
    call->start_due = call->http.verdict.action == BIDE_ACTION_START;
    call->cancel_requested = call->http.code != CURLE_OK;
}

/* Processes a new call at once, and with it the calls that its hooks and `done` start or cancel; one of these may
 * cancel the new call. Returns the call, or NULL if it finished and was freed. */
static struct bide_multi_call *multi_call_process_now(struct bide_multi_call *call)
{
    struct bide_multi *multi = call->multi;
    multi->starting = call;
    multi->processing = true;
    multi_call_process(call);
    multi_process_ready(multi);
    multi->processing = false;
    call = multi->starting;
    multi->starting = NULL;
    return call;
}

enum bide_err bide_multi_start(struct bide_multi *multi, const struct bide_multi_job *job,
                               struct bide_multi_call **call_out, struct bide_problem *problem)
{
    if (call_out)
        *call_out = NULL;
    enum bide_err err = job_check(multi, job, problem);
    if (err != BIDE_OK)
        return err;
    struct bide_multi_call *call = multi_call_new(multi, job);
    if (!call)
        return http_problem_set_text(problem, BIDE_ERR_NOMEM, "out of memory");
    err = multi_call_begin(call, job, problem);
    if (err != BIDE_OK) {
        free(call);
        return err;
    }
    multi_call_link(call);
    multi_call_take_handle(call, job->easy);
    /* Inside a callback the call is processed after the callback has returned, so calls that are refused at once do not
     * nest on the stack. */
    if (multi->in_libcurl || multi->processing)
        multi_call_mark_ready(&call->http);
    else
        call = multi_call_process_now(call);
    if (call_out)
        *call_out = call;
    multi_update_timer(multi);
    return BIDE_OK;
}

void bide_multi_cancel(struct bide_multi *multi, struct bide_multi_call *call)
{
    call->cancel_requested = true;
    multi_call_mark_ready(&call->http);
    if (multi->in_libcurl || multi->processing)
        return;
    multi_process_all(multi);
    multi_update_timer(multi);
}

void bide_multi_cancel_all(struct bide_multi *multi)
{
    for (struct bide_multi_call *call = multi->first_call; call; call = call->next) {
        call->cancel_requested = true;
        multi_call_mark_ready(&call->http);
    }
    if (!multi->in_libcurl)
        multi_process_all(multi);
    multi_update_timer(multi);
}

size_t bide_multi_running_get(const struct bide_multi *multi)
{
    return multi->running;
}

CURLM *bide_multi_handle_get(struct bide_multi *multi)
{
    return multi->curl;
}

static enum bide_err multi_create(struct bide_multi **multi, CURLM *curl)
{
    *multi = curl ? calloc(1, sizeof **multi) : NULL;
    if (!*multi)
        return BIDE_ERR_NOMEM;
    (*multi)->curl = curl;
    (*multi)->curl_due_ns = BIDE_NEVER;
    (*multi)->timer_set_ns = BIDE_NEVER;
    return BIDE_OK;
}

enum bide_err bide_multi_new(struct bide_multi **multi)
{
    CURLM *curl = curl_multi_init();
    enum bide_err err = multi_create(multi, curl);
    if (err == BIDE_OK)
        (*multi)->owns_curl = true;
    else if (curl)
        curl_multi_cleanup(curl);
    return err;
}

enum bide_err bide_multi_adopt(struct bide_multi **multi, CURLM *curl)
{
    return multi_create(multi, curl);
}

void bide_multi_free(struct bide_multi *multi)
{
    if (!multi)
        return;
    assert(!multi->in_libcurl && !multi->processing);
    multi->draining = true; /* `done` of a cancelled call may try to start another call: that is refused */
    bide_multi_cancel_all(multi);
    assert(multi->running == 0 && !multi->first_call && !multi->ready);
    if (multi->on_timer)
        bide_multi_on_timer(multi, NULL, NULL);
    if (multi->owns_curl)
        curl_multi_cleanup(multi->curl);
    http_handle_set_free(&multi->slots);
    bide_timers_free(&multi->timers);
    free(multi);
}
