/* call.c - one logical call over HTTP: how it begins, what is told of it, how it ends.
 *
 * The sink gets one answer, once. While an attempt may still be followed by another, its body is not given away: it is
 * kept (up to a limit), and given when the engine gives up during the wait. */
#include "call.h"

#include "attempt.h"
#include "origin.h"

#include <bide/clock.h>
#include <bide/entropy.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_LEAST 64u

/* ---- buffers ---- */

bool http_buffer_add(struct http_buffer *buffer, const void *at, size_t length)
{
    if (length > buffer->room - buffer->length) {
        size_t room = buffer->room > 0 ? buffer->room : BUFFER_LEAST;
        while (room - buffer->length < length)
            room *= 2;
        char *grown = realloc(buffer->at, room);
        if (!grown)
            return false;
        buffer->at = grown;
        buffer->room = room;
    }
    memcpy(buffer->at + buffer->length, at, length);
    buffer->length += length;
    return true;
}

void http_buffer_free(struct http_buffer *buffer)
{
    free(buffer->at);
    *buffer = (struct http_buffer){0};
}

/* ---- begin ---- */

static struct bide_policy service;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_policy(void)
{
    bide_policy_init(&service, BIDE_PRESET_SERVICE);
}

static const struct bide_policy *policy_of(const struct bide_curl_options *o)
{
    if (!o->policy)
        pthread_once(&once, make_policy);
    return o->policy ? o->policy : &service;
}

/* Unknown yet: the engine may take it for safe, because it is told better before a byte leaves. */
static enum bide_safety safety_of(const struct bide_curl_options *o)
{
    if (o->inject & BIDE_CURL_INJECT_KEY)
        return BIDE_KEYED;
    return o->safety == BIDE_CURL_BY_METHOD ? BIDE_SAFE : (enum bide_safety)(o->safety - BIDE_CURL_UNSAFE);
}

static struct bide_request request_of(const struct bide_curl_options *o, int64_t now_ns)
{
    struct bide_request r = {.safety = safety_of(o),
                             .lane = bide_lane(),
                             .seed = o->seed != 0 ? o->seed : bide_seed(),
                             .deadline_ns = o->deadline_ns,
                             .retry_key = o->retry_key};
    if (o->inbound)
        bide_layer_apply(o->inbound, &r, now_ns);
    return r;
}

static enum bide_err choose_names(struct http_transfer *t)
{
    const struct bide_curl_options *o = t->options;
    if (o->inject & BIDE_CURL_INJECT_TRACE) {
        struct bide_text inbound = {o->traceparent, o->traceparent ? strlen(o->traceparent) : 0};
        if (!bide_trace_parse(inbound, &t->trace))
            t->trace = bide_trace_new();
    }
    return o->inject & BIDE_CURL_INJECT_KEY && !o->key ? bide_key_make(t->key) : BIDE_OK;
}

/* A START of a call that was cancelled is taken back before anyone hears of it. */
static void begin_or_wake(struct http_transfer *t, struct bide_verdict v, int64_t now_ns)
{
    const struct bide_cancel *cancel = t->options->cancel;
    if (v.action == BIDE_START && cancel && bide_cancelled(cancel))
        http_transfer_cancel(t, now_ns);
    else
        http_transfer_obey(t, v, NULL, now_ns);
}

enum bide_err http_transfer_begin(struct http_transfer *t, CURL *easy, struct bide_target *target,
                                  const struct bide_curl_options *options, struct bide_curl_result *result,
                                  struct bide_problem *problem)
{
    static const struct bide_curl_options plain = {.struct_size = sizeof plain};
    const struct bide_curl_options *o = options ? options : &plain;
    enum bide_err err = options ? bide_curl_options_check(options, problem) : BIDE_OK;
    if (err != BIDE_OK)
        return err;
    int64_t now_ns = bide_now();
    *t = (struct http_transfer){.options = o, .result = result, .begin_ns = now_ns};
    t->sink = o->write || o->write_data;
    t->safety_told = o->safety != BIDE_CURL_BY_METHOD || o->inject & BIDE_CURL_INJECT_KEY;
    t->safety_known = t->safety_told;
    err = choose_names(t);
    if (err != BIDE_OK)
        return err;
    struct bide_request request = request_of(o, now_ns);
    struct bide_target *known = target ? target : http_target_of(o->targets, easy, now_ns);
    begin_or_wake(t, bide_call_begin(&t->call, policy_of(o), known, &request, now_ns), now_ns);
    return BIDE_OK;
}

void http_transfer_wake(struct http_transfer *t, int64_t now_ns)
{
    begin_or_wake(t, bide_call_wake(&t->call, now_ns), now_ns);
}

bool http_transfer_cancel(struct http_transfer *t, int64_t now_ns)
{
    struct bide_verdict v = bide_call_cancel(&t->call, now_ns);
    t->cancelled = true;
    if (v.action == BIDE_GIVE_UP)
        http_transfer_obey(t, v, NULL, now_ns);
    return v.action == BIDE_GIVE_UP;
}

bool http_transfer_is(struct http_transfer *t, struct http_exchange *x, enum bide_safety safety)
{
    struct bide_verdict v = bide_call_safety(&t->call, safety, x->run.start_ns);
    if (v.action != BIDE_GIVE_UP)
        return true;
    x->run.judged = true;
    http_transfer_obey(t, v, NULL, bide_now());
    return false;
}

/* ---- what is told ---- */

void http_transfer_obey(struct http_transfer *t, struct bide_verdict verdict, const struct bide_outcome *outcome,
                        int64_t now_ns)
{
    if (t->over)
        return; /* what comes after the end is late */
    t->verdict = verdict;
    if (verdict.action == BIDE_DONE || verdict.action == BIDE_GIVE_UP)
        t->over = true;
    if (t->options->event)
        t->options->event(t->options->context, &(struct bide_event){&t->verdict, outcome, now_ns});
    if (t->poke)
        t->poke(t);
}

/* Where the result describes this attempt; NULL: nowhere. */
static struct bide_curl_attempt *record_of(const struct http_transfer *t, const struct http_exchange *x)
{
    uint32_t number = x->start.attempt;
    return t->result && number <= BIDE_CURL_ATTEMPTS_RECORDED ? &t->result->attempt[number - 1] : NULL;
}

void http_transfer_started(struct http_transfer *t, const struct http_exchange *x, int64_t now_ns)
{
    struct bide_curl_attempt *record = record_of(t, x);
    if (record)
        *record = (struct bide_curl_attempt){.delay_ns = t->ended_ns > 0 ? now_ns - t->ended_ns : 0};
    t->attempts++;
    t->last = NULL;
    t->keeper = NULL;
    t->winner = NULL; /* nobody starts beside an answer that goes to the sink already */
}

void http_transfer_record(struct http_transfer *t, const struct http_exchange *x, const struct bide_outcome *outcome,
                          int64_t now_ns)
{
    struct bide_curl_attempt *record = record_of(t, x);
    if (record) {
        record->status = x->answer.status;
        record->kind = outcome->kind;
        record->evidence = outcome->evidence;
        record->hint = outcome->hint;
        record->time_ns = now_ns - x->run.start_ns;
        record->replay_stopped = x->run.stop == HTTP_REPLAY || x->run.stop == HTTP_REFUSED;
    }
    t->last = x;
    t->status = x->answer.status;
    t->ended_ns = now_ns;
    t->fresh = t->fresh || outcome->flags & BIDE_FLAG_FRESH;
}

void http_transfer_ended(struct http_transfer *t, const struct http_exchange *x, CURLcode code)
{
    struct bide_curl_attempt *record = record_of(t, x);
    if (record)
        record->code = code;
    if (t->last == x)
        t->code = code;
}

/* ---- the sink ---- */

size_t http_deliver(struct http_transfer *t, const char *at, size_t length)
{
    const struct bide_curl_options *o = t->options;
    char *bytes = (char *)(uintptr_t)at; /* libcurl's type has no const; a sink does not write there */
    size_t taken = o->write ? o->write(bytes, 1, length, o->write_data) : fwrite(at, 1, length, o->write_data);
    if (taken != CURL_WRITEFUNC_PAUSE)
        t->delivered += length; /* some of it, even if not all was taken */
    return taken;
}

bool http_show_head(struct http_transfer *t, struct http_buffer *head)
{
    const struct bide_curl_options *o = t->options;
    if (head->length == 0)
        return true;
    char *line = head->at, *end = head->at + head->length;
    head->length = 0;
    while (line < end) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((next ? next + 1 : end) - line);
        if (o->header(line, 1, length, o->header_data) != length)
            return false;
        line += length;
    }
    return true;
}

/* ---- the end ---- */

/* The engine gave up during the wait, or could not start what it had planned: the failure before it is the last one. */
static void deliver_kept(struct http_transfer *t)
{
    struct http_exchange *x = t->keeper;
    if (!x || t->cancelled)
        return;
    t->dropped = t->dropped || !x->run.whole || t->delivered > 0;
    bool taken = http_show_head(t, &x->head);
    if (taken && !t->dropped && x->body.length > 0)
        taken = http_deliver(t, x->body.at, x->body.length) == x->body.length;
    if (!taken)
        t->code = CURLE_WRITE_ERROR;
}

/* What libcurl would have returned. */
static CURLcode code_of(const struct http_transfer *t)
{
    if (t->verdict.action == BIDE_DONE)
        return CURLE_OK;
    bool stopped = t->verdict.reason == BIDE_REASON_CANCELLED && t->code == CURLE_OK;
    if (stopped || (t->cancelled && t->attempts > 0))
        return CURLE_ABORTED_BY_CALLBACK;
    if ((t->attempts == 0 && t->code == CURLE_OK) || t->verdict.reason == BIDE_REASON_KEY_REQUIRED) {
        bool late = t->verdict.reason == BIDE_REASON_DEADLINE || t->verdict.reason == BIDE_REASON_DEADLINE_NEAR;
        return late ? CURLE_OPERATION_TIMEDOUT : CURLE_ABORTED_BY_CALLBACK;
    }
    if (t->code == CURLE_OK && t->dropped) /* the sink has part of another answer, or nothing */
        return t->delivered > 0 ? CURLE_PARTIAL_FILE : CURLE_HTTP_RETURNED_ERROR;
    return t->code;
}

CURLcode http_transfer_finish(struct http_transfer *t)
{
    if (t->verdict.action == BIDE_GIVE_UP)
        deliver_kept(t);
    CURLcode code = code_of(t);
    struct bide_curl_result *r = t->result;
    if (r) {
        r->verdict = t->verdict;
        r->attempts = t->attempts;
        r->refreshed = t->refreshed;
        r->status = t->status;
        r->total_ns = bide_now() - t->begin_ns;
        r->body_dropped = t->dropped;
        r->resumed = t->resumed;
        memcpy(r->key, t->key, sizeof r->key);
    }
    free(t->resume);
    t->resume = NULL;
    return code;
}
