/* call.c - one job at work. */
#include "call.h"

#include "setup.h"

#include <bide/clock.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- what is told ---- */

/* Codes whose own words say more than libcurl's table: which name, which certificate. */
static bool has_words(CURLcode code)
{
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE: return true;
    default: return false;
    }
}

static const char *words_of(const struct fetch_transfer *t, CURLcode code)
{
    if (code == CURLE_OK)
        return "";
    return has_words(code) && t->error[0] != '\0' ? t->error : curl_easy_strerror(code);
}

/* The attempt that a verdict speaks of, as far as it is described. */
static const struct bide_curl_attempt *record_of(const struct fetch_transfer *t, uint32_t attempt)
{
    return attempt >= 1 && attempt <= BIDE_CURL_ATTEMPTS_RECORDED ? &t->result.attempt[attempt - 1] : NULL;
}

/* The attempt that the noted outcome is of: beside a hedge, the verdict's may be the other one. */
static uint32_t ended_attempt(struct fetch_transfer *t)
{
    uint32_t begun = t->job->attempt < BIDE_CURL_ATTEMPTS_RECORDED ? t->job->attempt : BIDE_CURL_ATTEMPTS_RECORDED;
    for (uint32_t i = 0; t->note_ended && i < begun; i++) {
        const struct bide_curl_attempt *record = &t->result.attempt[i];
        if ((t->told & 1u << i) != 0 || record->time_ns == 0 || record->kind != t->note_outcome.kind)
            continue;
        t->told |= 1u << i;
        return i + 1;
    }
    return t->note.attempt;
}

static void hear(struct fetch_transfer *t, const struct fetch_news *news)
{
    if (t->listener->hear)
        t->listener->hear(t->listener->context, news);
}

void fetch_transfer_tell(struct fetch_transfer *t)
{
    if (!t->has_note)
        return;
    t->has_note = false;
    struct fetch_news news = {.job = t->job, .index = t->index, .verdict = t->note, .text = ""};
    if (t->note.action != BIDE_START) {
        news.ended = t->note_ended;
        news.attempt = ended_attempt(t);
        const struct bide_curl_attempt *record = record_of(t, news.attempt);
        news.kind = t->note_outcome.kind;
        news.status = record ? record->status : t->seen_status;
        news.code = record && record->status < 400 ? record->code : CURLE_OK;
        news.text = words_of(t, news.code);
        news.hint = t->note_outcome.hint;
        news.wait_ns = t->note.wake_ns - t->note_ns;
        news.time_ns = record ? record->time_ns : 0;
    }
    hear(t, &news);
}

static void note(struct fetch_transfer *t, const struct bide_event *event)
{
    fetch_transfer_tell(t);
    t->has_note = true;
    t->note_ns = event->now_ns;
    t->note = *event->verdict;
    t->note_ended = event->outcome != NULL;
    t->note_outcome = event->outcome ? *event->outcome : (struct bide_outcome){0};
}

/* How an attempt ended, where nothing follows from it but the end of all, or nothing yet. */
static void note_outcome(struct fetch_transfer *t, const struct bide_event *event)
{
    if (!event->outcome)
        return;
    note(t, event);
    t->note.action = BIDE_NONE;
}

static void on_event(void *context, const struct bide_event *event)
{
    struct fetch_transfer *t = context;
    const struct bide_verdict *v = event->verdict;
    switch (v->action) {
    case BIDE_START:
        note(t, event);
        t->error[0] = '\0';
        t->seen_status = 0;
        t->job->state = FETCH_RUNS;
        t->job->attempt = v->attempt;
        break;
    case BIDE_WAIT:
        note(t, event);
        t->job->state = FETCH_WAITS;
        t->job->wake_ns = v->wake_ns;
        break;
    case BIDE_GIVE_UP:
        t->gave_up = true;
        note_outcome(t, event);
        break;
    case BIDE_NONE:
    case BIDE_DONE: note_outcome(t, event); break;
    }
}

/* Changes nothing; but the status of every answer passes here, and with this hook a success may be held back. */
static void on_answer(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome)
{
    struct fetch_transfer *t = context;
    (void)outcome;
    t->seen_status = response->status;
}

/* ---- the head of an answer ---- */

static bool begins(const char *line, size_t length, const char *name)
{
    size_t n = strlen(name);
    return length >= n && strncasecmp(line, name, n) == 0;
}

/* Digits, as far as they go; -1: none, or more than can be. */
static int64_t number(const char *at, size_t length)
{
    int64_t value = -1;
    while (length > 0 && (*at == ' ' || *at == '\t')) {
        at++;
        length--;
    }
    for (; length > 0 && *at >= '0' && *at <= '9'; at++, length--) {
        if (value > INT64_MAX / 10 - 1)
            return -1;
        value = (value > 0 ? value : 0) * 10 + (*at - '0');
    }
    return value;
}

static bool keep_line(struct fetch_transfer *t, const char *line, size_t length)
{
    char *grown = realloc(t->head, t->head_length + length);
    if (!grown)
        return false;
    memcpy(grown + t->head_length, line, length);
    t->head = grown;
    t->head_length += length;
    return true;
}

static void begin_head(struct fetch_transfer *t)
{
    t->in_head = true;
    t->encoded = false;
    t->head_length = 0;
    t->content_length = -1;
}

/* What is kept so far stays, if this answer continues it. */
static void end_head(struct fetch_transfer *t)
{
    t->in_head = false;
    t->job->total = t->content_length > 0 && !t->encoded ? t->job->bytes + (uint64_t)t->content_length : 0;
}

static size_t on_head(char *line, size_t size, size_t count, void *context)
{
    static const char length_name[] = "content-length:", encoding_name[] = "content-encoding:";
    struct fetch_transfer *t = context;
    size_t length = size * count;
    if (begins(line, length, "HTTP/"))
        begin_head(t);
    if (!t->in_head) /* trailers */
        return length;
    if (t->request->include && !keep_line(t, line, length))
        return 0;
    if (begins(line, length, length_name))
        t->content_length = number(line + sizeof length_name - 1, length - (sizeof length_name - 1));
    if (begins(line, length, encoding_name))
        t->encoded = true;
    if (line[0] == '\r' || line[0] == '\n')
        end_head(t);
    return length;
}

static bool write_head(struct fetch_transfer *t)
{
    if (t->head_written || !t->request->include)
        return true;
    t->head_written = true;
    return fetch_place_write(&t->place, t->head, t->head_length);
}

/* ---- the body of an answer ---- */

/* A failure that nobody wants to see is read on only if this is all of it: then the connection lives. */
static size_t drop(struct fetch_transfer *t, size_t length)
{
    t->cut = t->content_length != (int64_t)length;
    return t->cut ? 0 : length;
}

static size_t on_body(char *at, size_t size, size_t count, void *context)
{
    struct fetch_transfer *t = context;
    size_t length = size * count;
    if (t->gave_up && !t->request->fail_with_body)
        return drop(t, length);
    if (!write_head(t) || !fetch_place_write(&t->place, at, length))
        return 0;
    t->job->bytes += length;
    return length;
}

static bool on_rewind(void *context)
{
    struct fetch_transfer *t = context;
    t->job->bytes = 0;
    t->job->total = 0;
    t->head_written = false;
    return fetch_place_rewind(&t->place);
}

/* ---- a request's body that can be read only once ---- */

/* Never waits here, so that deadlines and signals are heeded while whoever writes it thinks. */
static size_t on_read(char *into, size_t size, size_t count, void *context)
{
    struct fetch_transfer *t = context;
    struct pollfd ready = {.fd = t->request->upload_fd, .events = POLLIN};
    t->fed_later = poll(&ready, 1, 0) == 0;
    if (t->fed_later)
        return CURL_READFUNC_PAUSE;
    ssize_t n = read(t->request->upload_fd, into, size * count);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        t->fed_later = true;
        return CURL_READFUNC_PAUSE;
    }
    return n >= 0 ? (size_t)n : CURL_READFUNC_ABORT;
}

void fetch_transfer_feed(struct fetch_transfer *t)
{
    struct pollfd ready = {.fd = t->request->upload_fd, .events = POLLIN};
    if (!t->fed_later || poll(&ready, 1, 0) == 0)
        return;
    t->fed_later = false;
    curl_easy_pause(t->easy, CURLPAUSE_CONT);
}

/* ---- the end ---- */

/* A failure that we cut ourselves is an answer all the same. */
static void note_end(struct fetch_transfer *t, const struct bide_multi_end *end)
{
    struct fetch_job *job = t->job;
    job->verdict = end->verdict;
    job->code = t->cut ? CURLE_HTTP_RETURNED_ERROR : end->code;
    job->status = t->result.status;
    job->attempts = t->result.attempts;
    job->time_ns = t->result.total_ns;
    job->resumed = t->result.resumed;
    memcpy(job->key, t->result.key, sizeof job->key);
    bool answered = job->status >= 400 && job->code != CURLE_WRITE_ERROR;
    snprintf(job->reason, sizeof job->reason, "%s", answered ? "" : words_of(t, job->code));
}

/* 304: what is there is still right. Half of a failure's body is worth less than what it would replace. */
static bool is_worth_keeping(const struct fetch_transfer *t)
{
    const struct fetch_job *job = t->job;
    if (job->verdict.action == BIDE_DONE)
        return job->status != 304 || t->place.kind != FETCH_TO_FILE;
    return t->request->fail_with_body && job->status >= 400 && job->code == CURLE_OK && !t->result.body_dropped &&
           job->verdict.reason != BIDE_REASON_CANCELLED;
}

static void on_done(void *context, const struct bide_multi_end *end)
{
    struct fetch_transfer *t = context;
    fetch_transfer_tell(t);
    note_end(t, end);
    if (is_worth_keeping(t))
        (void)(write_head(t) && fetch_place_keep(&t->place));
    else if (t->place.kind != FETCH_TO_STDOUT)
        fetch_place_close(&t->place);
    t->over(t->owner, t);
}

void fetch_transfer_finish(struct fetch_transfer *t)
{
    struct fetch_job *job = t->job;
    job->error = t->place.error;
    if (job->verdict.action != BIDE_DONE && job->error == 0 && fetch_signal != 0)
        job->cancelled = true;
    job->state = FETCH_OVER;
    job->exit_status = fetch_exit_status(job);
    hear(t, &(struct fetch_news){.job = job,
                                 .index = t->index,
                                 .verdict = job->verdict,
                                 .status = job->status,
                                 .code = job->code,
                                 .text = job->reason,
                                 .time_ns = job->time_ns});
    fetch_place_close(&t->place);
}

/* ---- the beginning ---- */

static void fill_options(struct fetch_transfer *t, const struct fetch_start *start)
{
    struct bide_curl_options *o = &t->options;
    fetch_options(o, t->request, t->index);
    o->targets = start->targets;
    o->write = on_body;
    o->write_data = t;
    o->header = on_head;
    o->header_data = t;
    o->context = t;
    o->event = on_event;
    o->classify = on_answer;
    if (fetch_place_can_rewind(&t->place))
        o->rewind = on_rewind;
    else if (!t->request->unbuffered)
        o->hold_max = FETCH_HOLD_MAX;
    if (o->body.kind == BIDE_CURL_BODY_STREAM) {
        o->body.read = on_read;
        o->body.read_data = t;
    }
}

/* What the job is as long as nothing else is known. */
static bool fail_early(struct fetch_transfer *t, CURLcode code)
{
    struct fetch_job *job = t->job;
    job->verdict = (struct bide_verdict){.action = BIDE_GIVE_UP, .reason = BIDE_REASON_CANCELLED};
    job->code = code;
    snprintf(job->reason, sizeof job->reason, "%s", words_of(t, code));
    t->over(t->owner, t);
    return false;
}

bool fetch_transfer_begin(struct fetch_transfer *t, const struct fetch_start *start)
{
    CURLcode code;
    t->place.fd = -1;
    t->content_length = -1;
    t->job->state = FETCH_RUNS;
    t->job->begin_ns = bide_now();
    if (!fetch_place_open(&t->place, t->job->path, start->now))
        return fail_early(t, CURLE_WRITE_ERROR);
    t->easy = fetch_easy(t->request, t->job->url, &code);
    if (!t->easy)
        return fail_early(t, code);
    curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
    fill_options(t, start);
    struct bide_multi_job job = {.easy = t->easy,
                                 .target = start->target,
                                 .options = &t->options,
                                 .result = &t->result,
                                 .done = on_done,
                                 .context = t};
    if (bide_multi_start(start->multi, &job, NULL, NULL) != BIDE_OK)
        return fail_early(t, CURLE_FAILED_INIT);
    return true;
}

void fetch_transfer_free(struct fetch_transfer *t)
{
    if (!t)
        return;
    fetch_place_close(&t->place);
    if (t->easy)
        curl_easy_cleanup(t->easy);
    free(t->head);
    free(t);
}
