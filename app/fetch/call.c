/* call.c - a running job: libcurl callbacks, events and the end of the call; see call.h. */
#include "call.h"

#include "reset.h"
#include "setup.h"

#include "common/hint_fd.h"
#include "text/slice.h"
#include "text/unit.h"

#include <bide/clock.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- events ---- */

/* libcurl's text then contains the URL of the proxy, with its password. */
static bool proxy_is_unsupported(const struct fetch_call *call)
{
    return strncasecmp(call->error, "Unsupported proxy", strlen("Unsupported proxy")) == 0;
}

/* Codes for which libcurl's error buffer says more than the generic text: which host, which certificate, the status
 * with which a proxy rejected CONNECT. Not the name of a proxy: in a wrong URL it may be a part of the password. */
static bool code_has_details(const struct fetch_call *call, CURLcode code)
{
    switch ((int)code) {
    case CURLE_RECV_ERROR:
    case CURLE_COULDNT_CONNECT: return strstr(call->error, "CONNECT") != NULL;
    case CURLE_UNSUPPORTED_PROTOCOL: /* a response that is not HTTP */
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE: return true;
    default: return false;
    }
}

/* Returns true if libcurl itself found the response wrong. Otherwise libbide-curl ended the transfer because of a head
 * beyond the limits: the error buffer then has libcurl's text for a callback that failed or, at the end of the call,
 * the sentence of the result. */
static bool response_is_malformed(const struct fetch_call *call)
{
    static const char callback[] = "Failed writing";
    return call->error[0] != '\0' && strncmp(call->error, callback, sizeof callback - 1) != 0 &&
           strcmp(call->error, call->result.error) != 0;
}

static const struct bide_curl_attempt *attempt_record(const struct fetch_call *call, uint32_t attempt)
{
    return attempt >= 1 && attempt <= BIDE_CURL_ATTEMPTS_RECORDED ? &call->result.attempt[attempt - 1] : NULL;
}

static bool last_attempt_stalled(const struct fetch_call *call)
{
    const struct bide_curl_attempt *record = attempt_record(call, call->job->attempt);
    return record && record->stalled;
}

/* Replaces the version, code and function that precede the message of OpenSSL, 50 columns, by "TLS: ". */
static void error_shorten(char error[CURL_ERROR_SIZE])
{
    static const char library[] = "OpenSSL/", prefix[] = "TLS: ";
    const char *colon = strrchr(error, ':');
    if (strncmp(error, library, sizeof library - 1) != 0 || !colon || colon < error + sizeof prefix - 1)
        return;
    memmove(error + sizeof prefix - 1, colon + 1, strlen(colon + 1) + 1);
    memcpy(error, prefix, sizeof prefix - 1);
}

static const char *code_text(struct fetch_call *call, CURLcode code)
{
    if (code == CURLE_OK)
        return "";
    if (code == CURLE_SSL_CONNECT_ERROR)
        error_shorten(call->error);
    if (code == CURLE_OPERATION_TIMEDOUT && last_attempt_stalled(call))
        return "Stalled: no byte within the time of --stall";
    if (code == CURLE_WEIRD_SERVER_REPLY)
        return response_is_malformed(call) ? call->error : "The response header exceeds the limit";
    if (proxy_is_unsupported(call))
        return "Unsupported URL of the proxy (-x, http_proxy, https_proxy or all_proxy)";
    return code_has_details(call, code) && call->error[0] != '\0' ? call->error : bide_curl_strerror(code);
}

static void listener_notify(struct fetch_call *call, const struct fetch_event *event)
{
    if (call->listener->on_event)
        call->listener->on_event(call->listener->context, event);
}

void fetch_call_report(struct fetch_call *call)
{
    if (!call->has_event)
        return;
    call->has_event = false;
    const struct bide_event *held = &call->held;
    struct fetch_event event = {
        .job = call->job, .index = call->index, .verdict = call->held_verdict, .text = "", .mismatch = ""};
    if (call->held_verdict.action != BIDE_ACTION_START) {
        const struct bide_curl_attempt *record = attempt_record(call, held->attempt);
        event.ended = held->outcome != NULL;
        event.attempt = event.ended ? held->attempt : call->held_verdict.attempt;
        event.kind = call->held_outcome.kind;
        event.status = held->status;
        event.code = record && held->status < 400 ? record->code : CURLE_OK;
        event.mismatch = bide_curl_mismatch_text(record ? record->mismatch : BIDE_CURL_MISMATCH_NONE);
        event.text = event.mismatch[0] != '\0' ? "" : code_text(call, event.code);
        event.hint = call->held_outcome.hint;
        event.wait_ns = call->held_verdict.wake_ns - held->now_ns;
        event.time_ns = event.ended ? held->now_ns - held->start_ns : 0;
    }
    listener_notify(call, &event);
}

static void event_hold(struct fetch_call *call, const struct bide_event *event)
{
    fetch_call_report(call);
    call->has_event = true;
    call->held = *event;
    call->held_verdict = *event->verdict;
    call->held_outcome = event->outcome ? *event->outcome : (struct bide_outcome){0};
    call->held.outcome = event->outcome ? &call->held_outcome : NULL;
}

/* Holds back the end of an attempt after which no attempt or wait follows: the call ends, or another attempt still
 * runs. */
static void event_hold_end(struct fetch_call *call, const struct bide_event *event)
{
    if (!event->outcome)
        return;
    event_hold(call, event);
    call->held_verdict.action = BIDE_ACTION_NONE;
}

static void on_event(void *context, const struct bide_event *event)
{
    struct fetch_call *call = context;
    const struct bide_verdict *v = event->verdict;
    switch (v->action) {
    case BIDE_ACTION_START:
        event_hold(call, event);
        call->error[0] = '\0';
        call->seen_status = 0;
        call->job->state = FETCH_JOB_RUNNING;
        call->job->attempt = v->attempt;
        break;
    case BIDE_ACTION_WAIT:
        event_hold(call, event);
        call->job->state = FETCH_JOB_WAITING;
        call->job->wake_ns = v->wake_ns;
        break;
    case BIDE_ACTION_GIVE_UP:
        call->gave_up = true;
        if (event->outcome)
            cli_hint_pass_on(&event->outcome->hint); /* a bide run around bide fetch then waits as long */
        event_hold_end(call, event);
        break;
    case BIDE_ACTION_NONE:
    case BIDE_ACTION_DONE: event_hold_end(call, event); break;
    }
}

static struct bide_text easy_field(CURL *easy, const char *name)
{
    struct curl_header *field = NULL;
    if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &field) != CURLHE_OK)
        return (struct bide_text){NULL, 0};
    return text_from(field->value);
}

/* Describes the response whose body may be the next in a partial file. A 206, which continues what is in it or was not
 * requested, has no validator here. */
static void output_describe_next(struct fetch_output *output, const char *url,
                                 const struct bide_curl_response *response)
{
    curl_off_t total = -1;
    curl_easy_getinfo(response->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &total);
    output->next.url_hash = fetch_partial_hash_url(url);
    output->next.total = total > 0 ? (uint64_t)total : 0;
    bide_curl_validator(output->next.validator, sizeof output->next.validator, response->easy);
}

/* Returns true if Retry-After is 0 or cannot be read. libbide-curl has then substituted a wait, which a field that can
 * be read replaces. */
static bool retry_after_is_unreadable(CURL *easy)
{
    struct bide_text value = easy_field(easy, "Retry-After");
    struct bide_hint hint = bide_hint_retry_after(value, easy_field(easy, "Date"), bide_wall_s());
    return value.at != NULL && (hint.kind != BIDE_HINT_WAIT || hint.wait_ns == 0);
}

/* GitHub answers a request beyond its limit with 403. Other reasons of a 403 are no limit, so it must say that this is
 * one. */
static bool response_is_throttled(const struct bide_curl_response *response)
{
    return response->status == 429 || response->status == 503 ||
           (response->status == 403 && easy_field(response->easy, "X-RateLimit-Remaining").at != NULL);
}

static bool request_has_range(const struct fetch_request *request)
{
    bool found = request->range != NULL;
    for (const struct curl_slist *line = request->headers; line && !found; line = line->next)
        found = strncasecmp(line->data, "Range:", strlen("Range:")) == 0;
    return found;
}

/* Returns true for "bytes 0-99/100". */
static bool range_is_whole(struct bide_text range)
{
    static const char start[] = "bytes 0-";
    uint64_t last, total;
    size_t used = sizeof start - 1, length;
    if (range.length < used || strncasecmp(range.at, start, used) != 0)
        return false;
    length = text_number_take(range.at + used, range.length - used, &last);
    used += length + 1;
    return length > 0 && range.at[used - 1] == '/' && text_number_parse(range.at + used, range.length - used, &total) &&
           last == total - 1;
}

/* Returns true for a 206 of which no range was requested, unless it has the whole body. It is not the file. */
static bool response_is_unrequested_part(const struct fetch_call *call, const struct bide_curl_response *response)
{
    if (response->status != 206 || call->job->bytes > 0 || request_has_range(call->request))
        return false;
    return !range_is_whole(easy_field(response->easy, "Content-Range"));
}

/* Records the status, and reads the fields that libbide-curl does not read without knowing their unit. */
static void on_response(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome)
{
    struct fetch_call *call = context;
    call->seen_status = response->status;
    if (response_is_unrequested_part(call, response))
        *outcome = (struct bide_outcome){.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    if (call->request->continues)
        output_describe_next(&call->output, call->job->url, response);
    if (!response_is_throttled(response) ||
        (outcome->hint.kind != BIDE_HINT_NONE && !retry_after_is_unreadable(response->easy)))
        return;
    struct bide_hint hint = fetch_reset_hint(&(struct fetch_reset){
        .x_remaining = easy_field(response->easy, "X-RateLimit-Remaining"),
        .x_reset = easy_field(response->easy, "X-RateLimit-Reset"),
        .remaining = easy_field(response->easy, "RateLimit-Remaining"),
        .reset = easy_field(response->easy, "RateLimit-Reset"),
        .date = easy_field(response->easy, "Date"),
        .wall_s = bide_wall_s(),
    });
    if (hint.kind != BIDE_HINT_NONE)
        outcome->hint = hint;
}

/* ---- response head ---- */

static bool line_starts_with(const char *line, size_t length, const char *name)
{
    size_t n = strlen(name);
    return length >= n && strncasecmp(line, name, n) == 0;
}

/* Parses the digits after blanks. Returns -1 if there are none, or on overflow. */
static int64_t parse_length(const char *at, size_t length)
{
    struct bide_text value = text_trim((struct bide_text){at, length}, TEXT_OWS);
    uint64_t number;
    bool valid = text_number_take(value.at, value.length, &number) > 0 && number <= INT64_MAX;
    return valid ? (int64_t)number : -1;
}

static bool head_append(struct fetch_call *call, const char *line, size_t length)
{
    char *grown = realloc(call->head, call->head_length + length);
    if (!grown)
        return false;
    memcpy(grown + call->head_length, line, length);
    call->head = grown;
    call->head_length += length;
    return true;
}

static void head_begin(struct fetch_call *call)
{
    call->in_head = true;
    call->is_encoded = false;
    call->head_length = 0;
    call->content_length = -1;
}

/* After a resumed download the bytes written before count as well. */
static void head_end(struct fetch_call *call)
{
    call->in_head = false;
    call->job->total =
        call->content_length > 0 && !call->is_encoded ? call->job->bytes + (uint64_t)call->content_length : 0;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    static const char length_name[] = "content-length:", encoding_name[] = "content-encoding:";
    struct fetch_call *call = context;
    size_t length = size * count;
    if (line_starts_with(line, length, "HTTP/"))
        head_begin(call);
    if (!call->in_head) /* trailers */
        return length;
    if (call->request->include && !head_append(call, line, length))
        return 0;
    if (line_starts_with(line, length, length_name))
        call->content_length = parse_length(line + sizeof length_name - 1, length - (sizeof length_name - 1));
    if (line_starts_with(line, length, encoding_name))
        call->is_encoded = true;
    if (line[0] == '\r' || line[0] == '\n')
        head_end(call);
    return length;
}

static bool head_write(struct fetch_call *call)
{
    if (call->head_written || !call->request->include)
        return true;
    call->head_written = true;
    return fetch_output_write(&call->output, call->head, call->head_length);
}

/* ---- response body ---- */

/* Drops the body of a failure. It is read only if this is all of it: the connection can then be reused. */
static size_t body_drop(struct fetch_call *call, size_t length)
{
    call->body_cut = call->content_length != (int64_t)length;
    return call->body_cut ? 0 : length;
}

/* The first bytes decide, as with curl: text has no NUL. */
static bool response_is_refused(struct fetch_call *call, const char *at, size_t length)
{
    struct fetch_job *job = call->job;
    if (call->request->guards_terminal && !job->output_path && job->bytes == 0)
        job->is_binary = memchr(at, '\0', length) != NULL;
    return job->is_binary;
}

static size_t on_body(char *at, size_t size, size_t count, void *context)
{
    struct fetch_call *call = context;
    size_t length = size * count;
    if (call->gave_up && !call->request->fail_with_body)
        return body_drop(call, length);
    if (response_is_refused(call, at, length))
        return 0;
    if (!head_write(call) || !fetch_output_write(&call->output, at, length))
        return 0;
    call->job->bytes += length;
    return length;
}

static void call_note_restart(const struct fetch_call *call, const char *why)
{
    if (call->listener->on_restart)
        call->listener->on_restart(call->listener->context, call->job, why);
}

/* A 200 replaces the partial file without a failed attempt that would be reported. */
static void call_note_replaced_partial(const struct fetch_call *call)
{
    const struct fetch_output *output = &call->output;
    if (!output->recorded || call->seen_status != 200)
        return;
    bool same = strcmp(output->record.validator, output->next.validator) == 0;
    call_note_restart(call, same ? "the server sent the whole file, as if it had no ranges"
                                 : "the file has changed on the server");
}

static bool on_rewind(void *context)
{
    struct fetch_call *call = context;
    call_note_replaced_partial(call);
    call->job->bytes = 0;
    call->job->total = 0;
    call->head_written = false;
    return fetch_output_rewind(&call->output);
}

/* ---- request body from a stream ---- */

/* Never blocks, so that deadlines and signals are handled while the writer of the stream is slow. */
static size_t on_upload_read(char *into, size_t size, size_t count, void *context)
{
    struct fetch_call *call = context;
    struct pollfd ready = {.fd = call->request->upload_fd, .events = POLLIN};
    call->upload_paused = poll(&ready, 1, 0) == 0;
    if (call->upload_paused)
        return CURL_READFUNC_PAUSE;
    ssize_t n = read(call->request->upload_fd, into, size * count);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        call->upload_paused = true;
        return CURL_READFUNC_PAUSE;
    }
    return n >= 0 ? (size_t)n : CURL_READFUNC_ABORT;
}

void fetch_call_resume_upload(struct fetch_call *call)
{
    struct pollfd ready = {.fd = call->request->upload_fd, .events = POLLIN};
    if (!call->upload_paused || poll(&ready, 1, 0) == 0)
        return;
    call->upload_paused = false;
    curl_easy_pause(call->easy, CURLPAUSE_CONT);
}

/* ---- end of the call ---- */

/* The call was cancelled while it waited: the result is that of its last attempt. */
static void job_record_outage(struct fetch_call *call)
{
    const struct bide_curl_attempt *last = attempt_record(call, call->job->attempts);
    call->job->in_outage = true;
    call->job->verdict.reason = BIDE_REASON_WAITS_SPENT;
    call->job->code = call->job->attempts == 0 ? BIDE_CURL_NOT_SENT : last ? last->code : CURLE_OK;
}

/* A failure whose body was cut here still counts as a response. */
static void job_record_end(struct fetch_call *call, const struct bide_multi_end *end)
{
    struct fetch_job *job = call->job;
    job->verdict = end->verdict;
    job->code = call->body_cut ? CURLE_HTTP_RETURNED_ERROR : end->code;
    job->status = call->result.status;
    job->attempts = call->result.attempts;
    job->time_ns = call->result.total_ns;
    job->resumed = call->result.resumed;
    memcpy(job->key, call->result.key, sizeof job->key);
    if (call->in_outage && job->verdict.reason == BIDE_REASON_CANCELLED)
        job_record_outage(call);
    const struct bide_curl_attempt *last = attempt_record(call, job->attempts);
    job->mismatch = bide_curl_mismatch_text(last ? last->mismatch : BIDE_CURL_MISMATCH_NONE);
    bool has_response = (job->status >= 400 && job->code != CURLE_WRITE_ERROR) || job->mismatch[0] != '\0';
    snprintf(job->error_text, sizeof job->error_text, "%s", has_response ? "" : code_text(call, job->code));
}

/* 304 keeps the existing file. An incomplete error body must not replace it. */
static bool response_is_kept(const struct fetch_call *call)
{
    const struct fetch_job *job = call->job;
    if (job->verdict.action == BIDE_ACTION_DONE)
        return job->status != 304 || call->output.kind != FETCH_OUTPUT_FILE;
    return call->request->fail_with_body && job->status >= 400 && job->code == CURLE_OK && !call->result.body_dropped &&
           job->verdict.reason != BIDE_REASON_CANCELLED;
}

static void on_done(void *context, const struct bide_multi_end *end)
{
    struct fetch_call *call = context;
    fetch_call_report(call);
    job_record_end(call, end);
    if (response_is_kept(call))
        (void)(head_write(call) && fetch_output_commit(&call->output));
    else if (call->output.kind != FETCH_OUTPUT_STDOUT)
        fetch_output_close(&call->output);
    call->on_over(call->owner, call);
}

void fetch_call_finish(struct fetch_call *call)
{
    struct fetch_job *job = call->job;
    job->error = call->output.error;
    job->spool_failed = call->output.spool_failed;
    job->is_locked = call->output.is_locked;
    if (job->verdict.action != BIDE_ACTION_DONE && job->error == 0 && fetch_signal != 0)
        job->cancelled = true;
    job->state = FETCH_JOB_ENDED;
    job->exit_status = fetch_exit_status(job);
    listener_notify(call, &(struct fetch_event){.job = job,
                                                .index = call->index,
                                                .verdict = job->verdict,
                                                .status = job->status,
                                                .code = job->code,
                                                .text = job->error_text,
                                                .mismatch = job->mismatch,
                                                .time_ns = job->time_ns});
    fetch_output_close(&call->output);
}

/* ---- start of the call ---- */

static void call_fill_options(struct fetch_call *call, const struct fetch_call_params *params)
{
    struct bide_curl_options *o = &call->options;
    fetch_request_options(o, call->request, call->index);
    o->targets = params->targets;
    o->write = on_body;
    o->write_data = call;
    o->header = on_header;
    o->header_data = call;
    o->context = call;
    o->error_buffer = call->error;
    o->event = on_event;
    o->classify = on_response;
    if (call->resume_from.delivered_bytes > 0)
        o->resume_from = &call->resume_from;
    if (fetch_output_can_rewind(&call->output))
        o->rewind = on_rewind;
    else if (!call->request->unbuffered)
        o->hold_max = FETCH_HOLD_MAX;
    if (o->body.kind == BIDE_CURL_BODY_STREAM) {
        o->body.read = on_upload_read;
        o->body.read_data = call;
    }
}

/* Ends a job that could not be started. */
static bool call_fail_start(struct fetch_call *call, CURLcode code)
{
    struct fetch_job *job = call->job;
    job->verdict = (struct bide_verdict){.action = BIDE_ACTION_GIVE_UP, .reason = BIDE_REASON_CANCELLED};
    job->code = code;
    snprintf(job->error_text, sizeof job->error_text, "%s", code_text(call, code));
    call->on_over(call->owner, call);
    return false;
}

/* Opens the output; a partial file determines where the response begins. */
static bool call_open_output(struct fetch_call *call, bool is_next)
{
    struct fetch_output *output = &call->output;
    struct fetch_job *job = call->job;
    const char *why;
    if (!call->request->continues)
        return fetch_output_open(output, job->output_path, is_next);
    if (!fetch_output_open_partial(output, job->output_path, job->url, &job->bytes, &why))
        return false;
    call->resume_from = (struct bide_curl_resume_from){
        .delivered_bytes = job->bytes, .total = output->record.total, .validator = output->record.validator};
    if (why)
        call_note_restart(call, why);
    return true;
}

bool fetch_call_start(struct fetch_call *call, const struct fetch_call_params *params)
{
    CURLcode code;
    call->content_length = -1;
    call->job->state = FETCH_JOB_RUNNING;
    call->job->start_ns = bide_now();
    bool creates = call->request->create_dirs && call->job->output_path;
    int error = creates ? fetch_output_create_directories(call->job->output_path) : 0;
    if (error != 0) {
        call->output.error = error;
        return call_fail_start(call, CURLE_WRITE_ERROR);
    }
    if (!call_open_output(call, params->is_next))
        return call_fail_start(call, CURLE_WRITE_ERROR);
    call->easy = fetch_easy_new(call->request, call->job->url, &code);
    if (!call->easy)
        return call_fail_start(call, code);
    curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->error);
    call_fill_options(call, params);
    struct bide_multi_job job = {.easy = call->easy,
                                 .target = params->target,
                                 .options = &call->options,
                                 .result = &call->result,
                                 .done = on_done,
                                 .context = call};
    if (bide_multi_start(params->multi, &job, &call->running, NULL) != BIDE_OK)
        return call_fail_start(call, CURLE_FAILED_INIT);
    return true;
}

void fetch_call_free(struct fetch_call *call)
{
    if (!call)
        return;
    fetch_output_close(&call->output);
    if (call->easy)
        curl_easy_cleanup(call->easy);
    free(call->head);
    free(call);
}
