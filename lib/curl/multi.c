/* multi.c - the driver for many calls in one thread, over curl_multi.
 *
 *     call ──► racers: the owner's handle, and copies of it for hedges ──► curl_multi
 *       └────► one timer, in one queue with those of all other calls
 *
 * libcurl forbids adding and removing handles from inside its callbacks, and verdicts are given there; so a callback
 * only puts its call on a list (poke), and after libcurl has returned the list is worked off (settle): timers are set,
 * losers are cut, calls that are over are finished. A call's timer is always in the queue, parked when nothing is due,
 * so that setting it cannot fail. */
#include <bide/multi.h>

#include "attempt.h"

#include <bide/clock.h>
#include <bide/timers.h>

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PARKED (BIDE_NEVER - 1) /* in the queue, and never due */

/* One handle at work for a call. */
struct racer {
    struct http_exchange x;
    struct bide_multi_call *call;
    struct racer *next;
    bool added; /* to libcurl's multi */
};

struct bide_multi_call {
    struct http_transfer http; /* first: poke is given a pointer to it */
    struct racer main;         /* the owner's handle; copies for hedges follow as main.next */
    struct bide_timer timer;
    struct bide_multi *multi;
    struct bide_multi_call *next;
    struct bide_multi_call *prev;
    struct bide_multi_call *next_poked;
    char *private_data; /* the owner's CURLOPT_PRIVATE */
    void (*done)(void *context, const struct bide_multi_end *end);
    void *context;
    bool poked;
    bool start_due; /* the verdict START is still to be obeyed */
    bool hedge_due; /* a hedge came due before the method was known */
    bool cancel_asked;
};

struct bide_multi {
    CURLM *curl;
    struct bide_timers timers;
    struct bide_multi_call *first;
    struct bide_multi_call *poked;
    size_t running;
    int64_t curl_due_ns; /* when libcurl wants to be called, in a loop of the owner's */
    int64_t told_ns;
    void (*timer)(void *context, int64_t due_ns);
    void *timer_context;
    bool inside; /* libcurl is at work */
    bool settling;
    bool draining;
};

/* ---- racers ---- */

static void detach(struct racer *racer)
{
    if (racer->added)
        curl_multi_remove_handle(racer->call->multi->curl, racer->x.easy);
    racer->added = false;
}

/* All but the handle `kept`, which is the caller's to clean up. */
static void free_copies(struct bide_multi_call *t, const CURL *kept)
{
    for (struct racer *racer = t->main.next, *next; racer; racer = next) {
        next = racer->next;
        detach(racer);
        http_exchange_disown(&racer->x); /* frees the header list */
        http_exchange_free(&racer->x);
        if (racer->x.easy != kept)
            curl_easy_cleanup(racer->x.easy);
        free(racer);
    }
    t->main.next = NULL;
}

/* curl_easy_duphandle leaves out what a handle has learned. Cookies are carried over; the jar stays the owner's. */
static void carry_cookies(CURL *from, CURL *to)
{
    struct curl_slist *cookies = NULL;
    if (curl_easy_getinfo(from, CURLINFO_COOKIELIST, &cookies) == CURLE_OK)
        for (const struct curl_slist *c = cookies; c; c = c->next)
            curl_easy_setopt(to, CURLOPT_COOKIELIST, c->data);
    curl_slist_free_all(cookies);
    curl_easy_setopt(to, CURLOPT_COOKIEJAR, NULL);
}

static struct racer *make_copy(struct bide_multi_call *t)
{
    struct racer *racer = calloc(1, sizeof *racer);
    CURL *easy = racer ? curl_easy_duphandle(t->main.x.easy) : NULL;
    if (!easy) {
        free(racer);
        return NULL;
    }
    racer->call = t;
    racer->x.transfer = &t->http;
    racer->x.easy = easy;
    racer->next = t->main.next;
    t->main.next = racer;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, (char *)racer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL); /* two must not write there */
    carry_cookies(t->main.x.easy, easy);
    return http_exchange_own(&racer->x) == CURLE_OK ? racer : NULL;
}

static bool runs(const struct racer *racer)
{
    return racer->added && !racer->x.run.judged;
}

static bool any_runs(const struct bide_multi_call *t)
{
    for (const struct racer *racer = &t->main; racer; racer = racer->next)
        if (runs(racer))
            return true;
    return false;
}

/* An attempt that cannot be made is taken back: a hedge beside one that runs, or all there is of the call. */
static void take_back(struct bide_multi_call *t, uint32_t attempt)
{
    static const struct bide_outcome unsent = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_NOT_SENT};
    int64_t now_ns = bide_now();
    t->http.code = CURLE_FAILED_INIT;
    http_transfer_obey(&t->http, bide_call_outcome(&t->http.call, attempt, &unsent, now_ns), &unsent, now_ns);
}

static void perform(struct bide_multi_call *t, struct racer *racer)
{
    racer->added = curl_multi_add_handle(t->multi->curl, racer->x.easy) == CURLM_OK;
    racer->x.run.judged = !racer->added;
    if (!racer->added)
        take_back(t, racer->x.start.attempt);
}

/* Obeys START. The owner's handle makes the attempt, unless it is at work on another one. */
static void start_attempt(struct bide_multi_call *t)
{
    bool alone = !any_runs(t);
    struct racer *racer = runs(&t->main) ? make_copy(t) : &t->main;
    t->start_due = false;
    if (!racer) {
        take_back(t, t->http.verdict.attempt);
        return;
    }
    detach(racer); /* it may still be reading the rest of an error */
    if (http_exchange_start(&racer->x, &t->http.verdict, bide_now()) != CURLE_OK)
        return;
    if (alone)
        free_copies(t, NULL); /* of the round before; what they kept is not wanted any more */
    perform(t, racer);
}

/* ---- the end of a call ---- */

static void unlink_call(struct bide_multi_call *t)
{
    struct bide_multi *m = t->multi;
    bide_timers_set(&m->timers, &t->timer, BIDE_NEVER);
    *(t->prev ? &t->prev->next : &m->first) = t->next;
    if (t->next)
        t->next->prev = t->prev;
    m->running--;
}

static CURL *answer_of(const struct bide_multi_call *t)
{
    for (const struct racer *racer = t->main.next; racer; racer = racer->next)
        if (&racer->x == t->http.last)
            return racer->x.easy;
    return t->main.x.easy;
}

/* A copy outlives done by a moment, what its owner gave to libcurl perhaps not. */
static void make_harmless(CURL *copy)
{
    curl_easy_setopt(copy, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(copy, CURLOPT_VERBOSE, 0L);
    curl_easy_setopt(copy, CURLOPT_SHARE, NULL);
}

static void finish(struct bide_multi_call *t)
{
    t->poked = true; /* gone: nobody looks at it any more */
    struct bide_multi_end end = {.easy = t->main.x.easy, .last_easy = answer_of(t)};
    unlink_call(t);
    for (struct racer *racer = &t->main; racer; racer = racer->next)
        detach(racer);
    end.code = http_transfer_finish(&t->http);
    end.verdict = t->http.verdict;
    http_exchange_disown(&t->main.x);
    curl_easy_setopt(end.easy, CURLOPT_PRIVATE, t->private_data);
    free_copies(t, end.last_easy);
    http_exchange_free(&t->main.x);
    if (end.last_easy != end.easy)
        make_harmless(end.last_easy);
    if (t->done)
        t->done(t->context, &end);
    if (end.last_easy != end.easy)
        curl_easy_cleanup(end.last_easy);
    free(t);
}

/* ---- verdicts ---- */

static void poke(struct http_transfer *http)
{
    struct bide_multi_call *t = (struct bide_multi_call *)http;
    if (t->poked)
        return;
    t->poked = true;
    t->next_poked = t->multi->poked;
    t->multi->poked = t;
}

/* An answer goes to the sink, or the call is over: whoever else is at work is in vain. */
static void cut_losers(struct bide_multi_call *t)
{
    for (struct racer *racer = &t->main; racer; racer = racer->next) {
        bool ran = runs(racer);
        if (&racer->x == t->http.winner || !(t->http.over || ran))
            continue;
        detach(racer);
        if (ran && !t->http.over)
            http_exchange_abandon(&racer->x, bide_now());
    }
}

static bool winner_at_work(const struct bide_multi_call *t)
{
    for (const struct racer *racer = &t->main; racer; racer = racer->next)
        if (racer->added && &racer->x == t->http.winner)
            return true;
    return false;
}

static void do_cancel(struct bide_multi_call *t)
{
    t->cancel_asked = t->start_due = t->hedge_due = false;
    if (!http_transfer_cancel(&t->http, bide_now()))
        t->http.code = CURLE_ABORTED_BY_CALLBACK; /* over already, and its last answer was on the way to the sink */
    t->http.winner = NULL;
}

/* May a second attempt run beside the first? Two need a sink that knows which one won, a body that both can read, and
 * credentials that nobody renews meanwhile. */
static bool can_hedge(const struct bide_multi_call *t)
{
    const struct http_transfer *http = &t->http;
    switch (http->options->body.kind) {
    case BIDE_CURL_BODY_UNKNOWN:
        if (t->main.x.run.legs == 0 || !t->main.x.run.bodiless)
            return false;
        break;
    case BIDE_CURL_BODY_STREAM: return false;
    case BIDE_CURL_BODY_REPEATABLE:
    case BIDE_CURL_BODY_MEMORY:
    case BIDE_CURL_BODY_FILE: break;
    }
    return http->sink && !http->options->refresh && !http->winner && http->delivered == 0;
}

/* What the options do not tell of the request is known when it is about to be sent. */
static bool is_known(const struct bide_multi_call *t)
{
    return t->http.safety_known && (t->main.x.run.legs > 0 || t->http.options->body.kind != BIDE_CURL_BODY_UNKNOWN);
}

/* The timer fired: the wait is over, or a hedge is due. */
static void wake(struct bide_multi_call *t)
{
    bool hedge = any_runs(t);
    t->hedge_due = hedge && !is_known(t);
    if (t->hedge_due)
        return;
    if (hedge && !can_hedge(t)) {
        t->http.verdict.wake_ns = BIDE_NEVER;
        return;
    }
    http_transfer_wake(&t->http, bide_now());
    t->start_due = t->http.verdict.action == BIDE_START;
}

static int64_t timer_of(const struct bide_multi_call *t)
{
    const struct http_transfer *http = &t->http;
    bool none =
        http->over || http->verdict.wake_ns == BIDE_NEVER || (http->winner && http->verdict.action != BIDE_WAIT);
    return none ? PARKED : http->verdict.wake_ns;
}

/* Does what the newest verdict asks for. */
static void do_next(struct bide_multi_call *t)
{
    if (t->cancel_asked)
        do_cancel(t);
    if (t->hedge_due && any_runs(t))
        wake(t);
    if (t->start_due)
        start_attempt(t);
    t->hedge_due = t->hedge_due && any_runs(t);
    bide_timers_set(&t->multi->timers, &t->timer, t->hedge_due ? PARKED : timer_of(t));
    if (t->http.over || t->http.winner)
        cut_losers(t);
}

/* True: the call is finished, and gone. */
static bool obey(struct bide_multi_call *t)
{
    t->poked = true; /* what comes up meanwhile is seen to here */
    do
        do_next(t);
    while (t->cancel_asked); /* asked for by a hook */
    t->poked = false;
    bool gone = t->http.over && !winner_at_work(t);
    if (gone)
        finish(t);
    return gone;
}

/* ---- what libcurl says ---- */

static void racer_ended(struct racer *racer, CURLcode code)
{
    struct bide_multi_call *t = racer->call;
    const struct bide_curl_options *o = t->http.options;
    detach(racer);
    if (t->cancel_asked) { /* in a callback of this very transfer: that comes first */
        poke(&t->http);
        return;
    }
    if (&racer->x == t->http.winner)
        cut_losers(t); /* they leave the round first: if the winner broke, nobody else is left in it */
    http_exchange_end(&racer->x, code, bide_now());
    poke(&t->http);
    if (racer->x.run.judged)
        return;
    t->http.refreshed = true;
    if (!o->refresh(o->context, racer->x.easy))
        http_exchange_settle(&racer->x, bide_now());
    else if (http_exchange_again(&racer->x, bide_now()) == CURLE_OK)
        perform(t, racer);
}

static void read_messages(struct bide_multi *m)
{
    int left;
    for (CURLMsg *msg; (msg = curl_multi_info_read(m->curl, &left)) != NULL;) {
        struct racer *racer = NULL;
        if (msg->msg == CURLMSG_DONE &&
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&racer) == CURLE_OK)
            racer_ended(racer, msg->data.result);
    }
}

static void work_off(struct bide_multi *m)
{
    for (struct bide_multi_call *t; (t = m->poked) != NULL;) {
        m->poked = t->next_poked;
        t->poked = false;
        obey(t);
    }
}

static struct bide_multi_call *call_of(struct bide_timer *timer)
{
    return (struct bide_multi_call *)((char *)timer - offsetof(struct bide_multi_call, timer));
}

/* Everything that can be done now. */
static void settle(struct bide_multi *m)
{
    if (m->settling)
        return; /* called from a callback of ours: the outer one goes on */
    m->settling = true;
    read_messages(m);
    work_off(m);
    int64_t now_ns = bide_now();
    for (struct bide_timer *timer; (timer = bide_timers_pop(&m->timers, now_ns)) != NULL;) {
        struct bide_multi_call *t = call_of(timer);
        bide_timers_set(&m->timers, timer, PARKED); /* there is room: it was just taken out */
        wake(t);
        poke(&t->http);
        work_off(m);
    }
    read_messages(m);
    work_off(m);
    m->settling = false;
}

/* ---- the owner's loop ---- */

static int64_t due_of(const struct bide_multi *m)
{
    int64_t ours = bide_timers_next(&m->timers);
    if (ours >= PARKED)
        ours = BIDE_NEVER;
    return ours < m->curl_due_ns ? ours : m->curl_due_ns;
}

static void tell_timer(struct bide_multi *m)
{
    int64_t due_ns = due_of(m);
    if (!m->timer || m->inside || due_ns == m->told_ns)
        return;
    m->told_ns = due_ns;
    m->timer(m->timer_context, due_ns);
}

static int on_curl_timer(CURLM *curl, long timeout_ms, void *context)
{
    struct bide_multi *m = context;
    (void)curl;
    m->curl_due_ns = timeout_ms < 0 ? BIDE_NEVER : bide_now() + timeout_ms * BIDE_MS;
    return 0;
}

void bide_multi_on_timer(struct bide_multi *multi, void (*timer)(void *context, int64_t due_ns), void *context)
{
    multi->timer = timer;
    multi->timer_context = context;
    multi->told_ns = BIDE_NEVER;
    tell_timer(multi);
}

size_t bide_multi_action(struct bide_multi *multi, curl_socket_t fd, int events)
{
    int running;
    assert(!multi->inside && !multi->settling);
    if (multi->inside || multi->settling)
        return multi->running;
    multi->told_ns = fd == CURL_SOCKET_TIMEOUT ? BIDE_NEVER : multi->told_ns; /* it fired, so it is not set */
    if (fd != CURL_SOCKET_TIMEOUT || multi->curl_due_ns <= bide_now()) {
        multi->inside = true;
        if (fd == CURL_SOCKET_TIMEOUT)
            multi->curl_due_ns = BIDE_NEVER; /* libcurl sets it anew */
        curl_multi_socket_action(multi->curl, fd, events, &running);
        multi->inside = false;
    }
    settle(multi);
    tell_timer(multi);
    return multi->running;
}

/* ---- the loop here ---- */

/* Milliseconds to wait, rounded up: never early, so that no round is in vain. */
static int pause_ms(const struct bide_multi *m, int64_t until_ns)
{
    int64_t due_ns = bide_timers_next(&m->timers), now_ns = bide_now();
    due_ns = due_ns < until_ns ? due_ns : until_ns;
    if (due_ns <= now_ns)
        return 0;
    int64_t ms = (due_ns - now_ns - 1) / BIDE_MS + 1;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

size_t bide_multi_poll(struct bide_multi *multi, int64_t until_ns)
{
    int running;
    assert(!multi->inside && !multi->settling);
    if (multi->running == 0 || multi->inside || multi->settling)
        return multi->running;
    multi->inside = true;
    curl_multi_poll(multi->curl, NULL, 0, pause_ms(multi, until_ns), NULL);
    curl_multi_perform(multi->curl, &running);
    multi->inside = false;
    settle(multi);
    return multi->running;
}

void bide_multi_wakeup(struct bide_multi *multi)
{
    curl_multi_wakeup(multi->curl);
}

size_t bide_multi_drain(struct bide_multi *multi, int64_t until_ns)
{
    assert(!multi->inside && !multi->settling);
    if (multi->inside || multi->settling)
        return 0;
    multi->draining = true;
    while (bide_multi_poll(multi, until_ns) > 0 && bide_now() < until_ns)
        continue;
    size_t left = multi->running;
    bide_multi_cancel_all(multi);
    multi->draining = false;
    return left;
}

/* ---- calls ---- */

static enum bide_err begin(struct bide_multi_call *t, const struct bide_multi_job *job, struct bide_problem *problem)
{
    if (job->result)
        memset(job->result, 0, sizeof *job->result);
    if (job->options && job->options->cancel) {
        if (problem)
            *problem =
                (struct bide_problem){.field = "cancel", .want = "NULL: in a multi, bide_multi_cancel", .value = 1};
        return BIDE_ERR_INVALID;
    }
    enum bide_err err = bide_timers_set(&t->multi->timers, &t->timer, PARKED);
    if (err == BIDE_OK)
        err = http_transfer_begin(&t->http, job->easy, job->target, job->options, job->result, problem);
    if (err != BIDE_OK)
        bide_timers_set(&t->multi->timers, &t->timer, BIDE_NEVER);
    return err;
}

static void link_call(struct bide_multi_call *t)
{
    struct bide_multi *m = t->multi;
    t->next = m->first;
    if (t->next)
        t->next->prev = t;
    m->first = t;
    m->running++;
}

/* The handle becomes ours. If it cannot be, the call ends with libcurl's reason. */
static void take_handle(struct bide_multi_call *t, CURL *easy)
{
    t->main = (struct racer){.x = {.transfer = &t->http, .easy = easy}, .call = t};
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t->private_data);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, (char *)&t->main);
    t->http.code = http_exchange_own(&t->main.x);
    t->http.poke = poke;
    t->start_due = t->http.verdict.action == BIDE_START;
    t->cancel_asked = t->http.code != CURLE_OK;
}

/* What its done starts or cancels is seen to before this returns. */
static bool obey_alone(struct bide_multi_call *t)
{
    struct bide_multi *m = t->multi;
    m->settling = true;
    bool gone = obey(t);
    work_off(m);
    m->settling = false;
    return gone;
}

enum bide_err bide_multi_start(struct bide_multi *multi, const struct bide_multi_job *job,
                               struct bide_multi_call **transfer, struct bide_problem *problem)
{
    if (transfer)
        *transfer = NULL;
    if (multi->draining)
        return BIDE_ERR_BUSY;
    struct bide_multi_call *t = calloc(1, sizeof *t);
    if (!t)
        return BIDE_ERR_NOMEM;
    t->multi = multi;
    t->done = job->done;
    t->context = job->context;
    enum bide_err err = begin(t, job, problem);
    if (err != BIDE_OK) {
        free(t);
        return err;
    }
    link_call(t);
    take_handle(t, job->easy);
    if (multi->inside || multi->settling)
        poke(&t->http); /* in a callback: when that has returned. Calls that are refused at once do not nest */
    else if (obey_alone(t))
        t = NULL;
    if (transfer)
        *transfer = t;
    tell_timer(multi);
    return BIDE_OK;
}

void bide_multi_cancel(struct bide_multi *multi, struct bide_multi_call *transfer)
{
    transfer->cancel_asked = true;
    poke(&transfer->http);
    if (multi->inside || multi->settling)
        return;
    settle(multi);
    tell_timer(multi);
}

void bide_multi_cancel_all(struct bide_multi *multi)
{
    for (struct bide_multi_call *t = multi->first; t; t = t->next) {
        t->cancel_asked = true;
        poke(&t->http);
    }
    if (!multi->inside)
        settle(multi);
    tell_timer(multi);
}

size_t bide_multi_running(const struct bide_multi *multi)
{
    return multi->running;
}

CURLM *bide_multi_handle(struct bide_multi *multi)
{
    return multi->curl;
}

enum bide_err bide_multi_new(struct bide_multi **multi)
{
    *multi = calloc(1, sizeof **multi);
    if (!*multi)
        return BIDE_ERR_NOMEM;
    (*multi)->curl = curl_multi_init();
    (*multi)->curl_due_ns = BIDE_NEVER;
    (*multi)->told_ns = BIDE_NEVER;
    if (!(*multi)->curl) {
        free(*multi);
        *multi = NULL;
        return BIDE_ERR_NOMEM;
    }
    curl_multi_setopt((*multi)->curl, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt((*multi)->curl, CURLMOPT_TIMERDATA, *multi);
    return BIDE_OK;
}

void bide_multi_free(struct bide_multi *multi)
{
    if (!multi)
        return;
    assert(!multi->inside && !multi->settling);
    multi->draining = true; /* a done that starts another call is refused */
    bide_multi_cancel_all(multi);
    curl_multi_cleanup(multi->curl);
    bide_timers_free(&multi->timers);
    free(multi);
}
