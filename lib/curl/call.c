/* call.c - a call over HTTP: how it begins, how verdicts and attempts are recorded, how it ends.
 *
 * The engine (bide_call_*) makes every decision. Each event that is reported to it returns a verdict: START an attempt,
 * WAIT until wake_ns, DONE, GIVE_UP, or NONE. This file stores the newest verdict in call->verdict; a driver, easy.c or
 * multi.c, executes it. attempt.c and response.c report the outcomes of attempts.
 *
 * The sink, the caller's write function, gets exactly one response, once. As long as another attempt may follow, the
 * body of a failed attempt is not written to the sink; it is kept in memory (up to BIDE_CURL_KEEP_MAX) and delivered if
 * the engine gives up during the wait. Field owners: see call.h. */
#include "call.h"

#include "attempt.h"
#include "core/problem.h"
#include "origin.h"
#include "os/probe.h"
#include "record.h"

#include <bide/clock.h>
#include <bide/entropy.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_MIN 64u

/* ---- buffers ---- */

bool http_buffer_append(struct http_buffer *buffer, const void *at, size_t length)
{
    assert(buffer->length <= buffer->capacity);
    if (length > buffer->capacity - buffer->length) {
        size_t capacity = buffer->capacity > 0 ? buffer->capacity : BUFFER_MIN;
        while (capacity - buffer->length < length)
            capacity *= 2;
        char *larger = realloc(buffer->at, capacity);
        if (!larger)
            return false;
        buffer->at = larger;
        buffer->capacity = capacity;
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

static struct bide_policy default_policy;
static pthread_once_t default_policy_once = PTHREAD_ONCE_INIT;

static void default_policy_init(void)
{
    bide_policy_init(&default_policy, BIDE_PRESET_TRANSFER);
}

static const struct bide_policy *options_policy(const struct bide_curl_options *o)
{
    if (!o->policy)
        pthread_once(&default_policy_once, default_policy_init);
    return o->policy ? o->policy : &default_policy;
}

static int64_t options_stall_ns(const struct bide_curl_options *o)
{
    if (o->stall_timeout_ns > 0)
        return o->stall_timeout_ns;
    return o->policy ? BIDE_NEVER : BIDE_CURL_STALL_NS;
}

/* Returns the earlier of the caller's two limits; 0: none. */
static int64_t options_deadline_ns(const struct bide_curl_options *o, int64_t now_ns)
{
    if (o->call_timeout_ns == 0)
        return o->deadline_ns;
    int64_t timeout_ns = o->call_timeout_ns < BIDE_NEVER - now_ns ? now_ns + o->call_timeout_ns : BIDE_NEVER;
    return o->deadline_ns != 0 && o->deadline_ns < timeout_ns ? o->deadline_ns : timeout_ns;
}

/* Without a given safety the call begins as BIDE_SAFE: attempt.c learns the method before the first byte is sent and
 * then calls http_call_set_safety. A failure before that point has evidence "not sent" and may be repeated with any
 * method. From BIDE_CURL_UNSAFE on, both enums have the same order. */
static enum bide_safety options_safety(const struct bide_curl_options *o)
{
    if (o->inject & BIDE_CURL_INJECT_KEY)
        return BIDE_KEYED;
    return o->safety == BIDE_CURL_BY_METHOD ? BIDE_SAFE : (enum bide_safety)(o->safety - BIDE_CURL_UNSAFE);
}

static struct bide_request options_request(const struct bide_curl_options *o, int64_t now_ns)
{
    struct bide_request r = {.safety = options_safety(o),
                             .lane = bide_lane(),
                             .seed = o->seed != 0 ? o->seed : bide_seed(),
                             .deadline_ns = options_deadline_ns(o, now_ns),
                             .retry_key = o->retry_key};
    if (o->inbound)
        bide_layer_apply(o->inbound, &r, now_ns);
    return r;
}

static enum bide_err call_make_key_and_trace(struct http_call *call)
{
    const struct bide_curl_options *o = call->options;
    if (o->inject & BIDE_CURL_INJECT_TRACE) {
        struct bide_text inbound = {o->traceparent, o->traceparent ? strlen(o->traceparent) : 0};
        if (!bide_trace_parse(inbound, &call->trace))
            call->trace = bide_trace_new();
    }
    return o->inject & BIDE_CURL_INJECT_KEY && !o->key ? bide_key_make(call->key) : BIDE_OK;
}

/* Stores the verdict of begin or wake. If the caller cancelled meanwhile, a START is replaced by a cancellation before
 * any hook sees it. */
static void call_set_verdict_unless_cancelled(struct http_call *call, struct bide_verdict v, int64_t now_ns)
{
    const struct bide_cancel *cancel = call->options->cancel;
    if (v.action == BIDE_ACTION_START && cancel && bide_cancelled(cancel))
        http_call_cancel(call, now_ns);
    else
        http_call_set_verdict(call, v, NULL, now_ns);
}

/* Recorded options that no call has completed are the same as at the last call, but for the body, which a record always
 * translates into a valid one. */
static enum bide_err call_check_options(const struct http_call *call, struct bide_problem *problem)
{
    struct http_record *record = call->record;
    bool unchanged = record && call->options == &record->options;
    if (unchanged && record->checked)
        return BIDE_OK;
    enum bide_err err = http_options_check(call->options, problem);
    if (unchanged)
        record->checked = err == BIDE_OK;
    return err;
}

bool http_call_is_watched(const struct bide_curl_options *options, const struct bide_target *target)
{
    struct bide_listener own = {.event = options ? options->event : NULL};
    if (options && options->unobserved)
        return false;
    return bide_report_wanted(target, &own);
}

/* Where the name of a target is found if the options have none. */
struct call_name {
    CURL *easy;
    char origin[HTTP_ORIGIN_SIZE];
};

static const char *call_find_name(void *context)
{
    struct call_name *name = context;
    return http_target_name(name->origin, name->easy);
}

/* given: the target that the caller gave; NULL: `target` was found by its origin. */
static void call_begin_report(struct http_call *call, CURL *easy, const struct bide_target *given,
                              const struct bide_target *target, uint32_t lane)
{
    const struct bide_curl_options *o = call->options;
    struct call_name name;
    name.easy = easy;
    struct bide_listener own = {.event = o->event, .context = o->context};
    struct bide_report_call report = {
        .target_name = o->target_name, .context = &name, .target = target, .trace = &call->trace, .listener = &own};
    report.is_of_table = !given && !o->target_name;
    report.lane = lane;
    report.about = http_describe_about;
    report.about_context = call;
    if (target != BIDE_NO_TARGET)
        report.find_name = call_find_name;
    if (!bide_report_begin(call->report, &report, call->begin_ns))
        call->report = NULL;
}

/* Checks the options and begins the engine's call. */
static enum bide_err call_begin(struct http_call *call, CURL *easy, struct bide_target *target,
                                struct bide_problem *problem)
{
    const struct bide_curl_options *o = call->options;
    int64_t now_ns = call->begin_ns;
    enum bide_err err = call_check_options(call, problem);
    if (err != BIDE_OK)
        return err;
    if (o->inject != 0 && (err = call_make_key_and_trace(call)) != BIDE_OK)
        return http_problem_set_text(problem, err, "no idempotency key could be made");
    if (o->error_buffer)
        o->error_buffer[0] = '\0';
    call->stall_ns = options_stall_ns(o);
    call->has_sink = o->write || o->write_data;
    call->safety_given = o->safety != BIDE_CURL_BY_METHOD || o->inject & BIDE_CURL_INJECT_KEY;
    call->safety_known = call->safety_given;
    if (!http_resume_begin(call))
        return http_problem_set_text(problem, BIDE_ERR_NOMEM, "out of memory");
    struct bide_request request = options_request(o, now_ns);
    struct bide_target *used_target = target ? target : http_target_for_url(o->targets, easy, call->record, now_ns);
    if (call->report)
        call_begin_report(call, easy, target, used_target, request.lane);
    call_set_verdict_unless_cancelled(
        call, bide_call_begin(&call->engine, options_policy(o), used_target, &request, now_ns), now_ns);
    return BIDE_OK;
}

/* Describes in the result and in the caller's error buffer why the call cannot begin. */
static void call_describe_problem(const struct http_call *call, const struct bide_problem *problem)
{
    const struct bide_curl_options *o = call->options;
    char text[CURL_ERROR_SIZE];
    snprintf(text, sizeof text, "%.*s", (int)core_problem_cut(problem->text, sizeof text - 1), problem->text);
    if (call->result)
        memcpy(call->result->error, text, sizeof text);
    if (o && o->error_buffer)
        memcpy(o->error_buffer, text, sizeof text);
}

enum bide_err http_call_begin(struct http_call *call, CURL *easy, struct bide_target *target,
                              const struct bide_curl_options *options, struct bide_curl_result *result,
                              struct bide_problem *problem)
{
    struct bide_problem found;
    struct http_record *record = easy ? http_record_find(easy) : NULL;
    bool busy = record && record->running;
    *call = (struct http_call){.options = record && !busy ? http_record_options(record, options) : options,
                               .record = record,
                               .result = result,
                               .report = call->report,
                               .easy = easy,
                               .begin_ns = bide_now()};
    enum bide_err err;
    if (record && !busy)
        record->sent_nothing = true;
    if (!easy)
        err = http_problem_set_text(&found, BIDE_ERR_INVALID, "the handle is NULL");
    else if (busy)
        err = http_problem_set(&found, "easy", 1, "a handle without a running call");
    else
        err = call_begin(call, easy, target, &found);
    if (err != BIDE_OK)
        call_describe_problem(call, &found);
    if (err != BIDE_OK && problem)
        *problem = found;
    return err;
}

void http_call_wake(struct http_call *call, int64_t now_ns)
{
    call_set_verdict_unless_cancelled(call, bide_call_wake(&call->engine, now_ns), now_ns);
}

bool http_call_cancel(struct http_call *call, int64_t now_ns)
{
    struct bide_verdict v = bide_call_cancel(&call->engine, now_ns);
    call->cancelled = true;
    if (v.action == BIDE_ACTION_GIVE_UP)
        http_call_set_verdict(call, v, NULL, now_ns);
    return v.action == BIDE_ACTION_GIVE_UP;
}

bool http_call_set_safety(struct http_call *call, struct http_attempt *attempt, enum bide_safety safety)
{
    struct bide_verdict v = bide_call_safety(&call->engine, safety, attempt->state.start_ns);
    if (v.action != BIDE_ACTION_GIVE_UP)
        return true;
    attempt->state.reported = true;
    http_call_set_verdict(call, v, NULL, bide_now());
    return false;
}

/* ---- verdicts and records ---- */

static struct os_probe call_probe(const struct http_call *call)
{
    return (struct os_probe){call, call->options->target_name};
}

void http_call_set_verdict(struct http_call *call, struct bide_verdict verdict, const struct bide_attempt_end *end,
                           int64_t now_ns)
{
    if (call->is_over)
        return; /* a late report: the call has its final verdict */
    assert(verdict.action != BIDE_ACTION_START || verdict.attempt > call->attempts);
    call->verdict = verdict;
    if (verdict.action == BIDE_ACTION_DONE || verdict.action == BIDE_ACTION_GIVE_UP)
        call->is_over = true;
    if (call->record && call->record->set.verbose)
        http_trace_verdict(call, now_ns);
    os_probe_verdict(call_probe(call), &call->verdict, end, now_ns);
    if (call->report)
        bide_report_verdict(call->report, &call->verdict, end, now_ns);
    if (call->on_change)
        call->on_change(call);
}

void http_call_end_attempt(struct http_call *call, struct bide_attempt_end end, int64_t now_ns)
{
    struct bide_verdict v = bide_call_outcome(&call->engine, end.attempt, end.outcome, now_ns);
    http_call_set_verdict(call, v, &end, now_ns);
}

void http_call_report_refresh(struct http_call *call, const struct http_attempt *attempt, int64_t now_ns)
{
    struct bide_verdict none = {.attempt = attempt->start.attempt,
                                .wake_ns = BIDE_NEVER,
                                .attempt_deadline_ns = BIDE_NEVER,
                                .connect_deadline_ns = BIDE_NEVER};
    struct bide_attempt_end end = {&attempt->state.outcome, attempt->start.attempt, attempt->response.status};
    os_probe_verdict(call_probe(call), &attempt->start, &end, now_ns);
    if (!call->report)
        return;
    bide_report_verdict(call->report, &none, &end, now_ns);
    bide_report_verdict(call->report, &attempt->start, NULL, now_ns);
}

/* Returns the attempt's entry in the result; NULL if the caller wants no result or the number exceeds the array. */
static struct bide_curl_attempt *call_attempt_record(const struct http_call *call, const struct http_attempt *attempt)
{
    uint32_t number = attempt->start.attempt;
    assert(number > 0);
    return call->result && number <= BIDE_CURL_ATTEMPTS_RECORDED ? &call->result->attempt[number - 1] : NULL;
}

void http_call_attempt_started(struct http_call *call, const struct http_attempt *attempt, int64_t now_ns)
{
    struct bide_curl_attempt *record = call_attempt_record(call, attempt);
    if (record)
        *record =
            (struct bide_curl_attempt){.delay_ns = call->last_outcome_ns > 0 ? now_ns - call->last_outcome_ns : 0};
    assert(!call->is_over);
    if (call->record)
        call->record->sent_nothing = false;
    call->attempts++;
    call->last_attempt = NULL;
    call->connect_status = 0;
    call->kept_attempt = NULL;
    call->winner = NULL; /* its body broke off: no attempt starts while a body is still being streamed to the sink */
}

void http_call_record_outcome(struct http_call *call, const struct http_attempt *attempt,
                              const struct bide_outcome *outcome, int64_t now_ns)
{
    struct bide_curl_attempt *record = call_attempt_record(call, attempt);
    if (record) {
        record->status = attempt->response.status;
        record->kind = outcome->kind;
        record->evidence = outcome->evidence;
        record->hint = outcome->hint;
        record->time_ns = now_ns - attempt->state.start_ns;
        record->mismatch = attempt->state.mismatch;
        record->replay_stopped = attempt->state.stop == HTTP_STOP_REPLAY;
        record->stalled = attempt->state.stop == HTTP_STOP_STALLED;
    }
    call->last_attempt = attempt;
    call->status = attempt->response.status;
    call->last_mismatch = attempt->state.mismatch;
    call->last_outcome_ns = now_ns;
    call->wants_fresh_connection = call->wants_fresh_connection || outcome->flags & BIDE_FLAG_FRESH;
}

void http_call_attempt_ended(struct http_call *call, const struct http_attempt *attempt, CURLcode code)
{
    struct bide_curl_attempt *record = call_attempt_record(call, attempt);
    if (record)
        record->code = code;
    if (call->last_attempt == attempt) {
        call->code = code;
        call->last_stop = attempt->state.stop;
    }
}

/* ---- the sink ---- */

static size_t sink_write(struct http_call *call, const char *at, size_t length)
{
    const struct bide_curl_options *o = call->options;
    assert(call->has_sink && !call->cancelled);
    char *bytes = (char *)(uintptr_t)at; /* curl_write_callback lacks const; a sink must not modify the bytes */
    size_t taken = o->write ? o->write(bytes, 1, length, o->write_data) : fwrite(at, 1, length, o->write_data);
    if (taken != CURL_WRITEFUNC_PAUSE)
        call->delivered_bytes += length; /* after an error part of it may have been written: count all of it */
    return taken;
}

/* A write function may rely on libcurl's largest piece, and a buffered body can be longer. */
size_t http_call_write_sink(struct http_call *call, const char *at, size_t length)
{
    if (length <= CURL_MAX_WRITE_SIZE)
        return sink_write(call, at, length);
    for (size_t done = 0, piece; done < length; done += piece) {
        piece = length - done < CURL_MAX_WRITE_SIZE ? length - done : CURL_MAX_WRITE_SIZE;
        if (sink_write(call, at + done, piece) != piece)
            return 0; /* a buffered body cannot be paused */
    }
    return length;
}

bool http_call_show_head(struct http_call *call, struct http_buffer *head)
{
    const struct bide_curl_options *o = call->options;
    if (head->length == 0)
        return true;
    assert(o->header);
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

/* ---- end ---- */

/* Delivers the kept failure: the engine gave up during the wait, or the next attempt could not be made, so the last
 * failed response is final. The body is dropped if it is incomplete or would follow part of another. */
static void call_deliver_kept_response(struct http_call *call)
{
    struct http_attempt *attempt = call->kept_attempt;
    if (!attempt || call->cancelled)
        return;
    call->body_dropped = call->body_dropped || !attempt->state.complete || call->delivered_bytes > 0;
    bool taken = http_call_show_head(call, &attempt->head);
    if (taken && !call->body_dropped && attempt->body.length > 0)
        taken = http_call_write_sink(call, attempt->body.at, attempt->body.length) == attempt->body.length;
    if (!taken)
        call->code = CURLE_WRITE_ERROR;
}

/* Returns the code that libcurl would have returned for the final attempt. Some calls have no such code: a cancelled
 * call returns CURLE_ABORTED_BY_CALLBACK; a call that the engine refused before its first attempt, or for lack of a
 * required key, BIDE_CURL_NOT_SENT. */
static CURLcode call_return_code(const struct http_call *call)
{
    if (call->verdict.action == BIDE_ACTION_DONE)
        return CURLE_OK;
    bool was_stopped = call->verdict.reason == BIDE_REASON_CANCELLED && call->code == CURLE_OK;
    if (was_stopped || (call->cancelled && call->attempts > 0))
        return CURLE_ABORTED_BY_CALLBACK;
    if ((call->attempts == 0 && call->code == CURLE_OK) || call->verdict.reason == BIDE_REASON_KEY_REQUIRED)
        return BIDE_CURL_NOT_SENT;
    if (call->code == CURLE_OK && call->body_dropped) /* the sink holds part of an earlier response, or nothing */
        return call->delivered_bytes > 0 ? CURLE_PARTIAL_FILE : CURLE_HTTP_RETURNED_ERROR;
    return call->code;
}

/* Describes a failure in the result, and in the caller's error buffer unless libcurl's own text is there. That buffer
 * stays empty if there is a response, as with libcurl. */
static void call_describe_failure(struct http_call *call, CURLcode code)
{
    char text[CURL_ERROR_SIZE], *buffer = call->options->error_buffer;
    http_describe_failure(text, sizeof text, call);
    if (call->result)
        memcpy(call->result->error, text, sizeof text);
    if (!buffer)
        return;
    bool is_libcurls = call->attempts > 0 && call->last_stop == HTTP_STOP_NONE && buffer[0] != '\0';
    if (code == CURLE_OK)
        buffer[0] = '\0';
    else if (!is_libcurls)
        memcpy(buffer, text, sizeof text);
}

CURLcode http_call_finish(struct http_call *call)
{
    assert(call->is_over);
    if (call->verdict.action == BIDE_ACTION_GIVE_UP)
        call_deliver_kept_response(call);
    CURLcode code = call_return_code(call);
    if (call->verdict.action == BIDE_ACTION_GIVE_UP)
        call_describe_failure(call, code);
    struct bide_curl_result *r = call->result;
    if (r) {
        r->verdict = call->verdict;
        r->attempts = call->attempts;
        r->refreshed = call->credentials_refreshed;
        r->status = call->status;
        r->total_ns = bide_now() - call->begin_ns;
        r->body_dropped = call->body_dropped;
        r->resumed = call->resumed;
        memcpy(r->key, call->key, sizeof r->key);
    }
    if (call->sink_refuted) /* no attempt followed: a later call must not resume these bytes again */
        (void)call->options->rewind(call->options->write_data);
    free(call->resume);
    call->resume = NULL;
    return code;
}
