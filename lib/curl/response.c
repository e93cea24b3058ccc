/* response.c - what becomes of an answer: when it is judged, and where its body goes.
 *
 * The sink gets one answer. So a body is passed on only when nothing can follow it: a success, or a failure that the
 * engine gave up on. Everything else is held back (somebody must read it first), kept (another attempt follows, unless
 * it does not), or dropped. A head is treated like its body: heads of failures are shown when they are final. */
#include "attempt.h"

#include <bide/clock.h>

#include <stdlib.h>
#include <string.h>

#define DRAIN_MOST_NS  BIDE_S
#define DRAIN_LEAST_NS (100 * BIDE_MS)

/* ---- judgement ---- */

bool http_answer_lost(const struct http_exchange *x)
{
    return x->transfer->winner && x->transfer->winner != x;
}

void http_answer_judge(struct http_exchange *x, const struct bide_outcome *outcome, int64_t now_ns)
{
    struct http_transfer *t = x->transfer;
    struct bide_outcome o = *outcome; /* it may be the one we are about to write to */
    x->run.judged = true;
    x->run.outcome = o;
    if (t->over)
        return; /* another attempt won in the same moment */
    http_transfer_record(t, x, &o, now_ns);
    http_transfer_obey(t, bide_call_outcome(&t->call, x->start.attempt, &o, now_ns), &o, now_ns);
}

static bool deliver(struct http_exchange *x, const char *at, size_t length)
{
    size_t taken = http_deliver(x->transfer, at, length);
    x->answer.paused = taken == CURL_WRITEFUNC_PAUSE;
    if (taken != length && !x->answer.paused)
        x->run.stop = HTTP_UNTAKEN;
    return x->run.stop != HTTP_UNTAKEN;
}

/* From now on the body goes to the sink, beginning with what was held back. */
static bool pass(struct http_exchange *x)
{
    size_t held = x->body.length;
    x->answer.mode = HTTP_PASS;
    x->transfer->winner = x;
    x->body.length = 0;
    bool taken = http_show_head(x->transfer, &x->head) && (held == 0 || deliver(x, x->body.at, held));
    if (!taken || x->answer.paused) /* what was held back cannot be held back again */
        x->run.stop = HTTP_UNTAKEN;
    return x->run.stop != HTTP_UNTAKEN;
}

/* Is the rest of a body that will be thrown away worth reading, so that the connection lives? Not if it is long, and
 * not if libcurl would have to decompress it. Without a sink the owner's own function would get it. */
static bool worth_reading(const struct http_exchange *x)
{
    curl_off_t length = -1;
    curl_easy_getinfo(x->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (x->run.head_only || length == 0)
        return true;
    return x->transfer->sink && length <= (curl_off_t)BIDE_CURL_KEEP_MAX && !http_field(x->easy, "Content-Encoding").at;
}

/* The attempt is over, and what is left of its body must not hold up the next one for long. */
static void hurry(const struct http_exchange *x, int64_t now_ns)
{
    int64_t left_ns = x->transfer->verdict.wake_ns - now_ns, last_ns = x->start.attempt_deadline_ns;
    left_ns = left_ns < DRAIN_LEAST_NS ? DRAIN_LEAST_NS : left_ns < DRAIN_MOST_NS ? left_ns : DRAIN_MOST_NS;
    int64_t by_ns = now_ns + left_ns < last_ns ? now_ns + left_ns : last_ns;
    curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)((by_ns - x->run.start_ns) / BIDE_MS + 1));
}

/* There will be another attempt, or another one runs: what becomes of this one's body? */
static bool set_aside(struct http_exchange *x, enum http_mode mode, int64_t now_ns)
{
    x->answer.mode = mode;
    if (mode == HTTP_KEEP)
        x->transfer->keeper = x;
    if (!worth_reading(x))
        return false;
    hurry(x, now_ns);
    return true;
}

static bool follow(struct http_exchange *x, int64_t now_ns)
{
    struct http_transfer *t = x->transfer;
    if (http_answer_lost(x))
        return false;
    switch (t->verdict.action) {
    case BIDE_WAIT: return set_aside(x, HTTP_KEEP, now_ns);
    case BIDE_NONE:
    case BIDE_START: return set_aside(x, HTTP_DROP, now_ns);
    case BIDE_DONE:
    case BIDE_GIVE_UP: break;
    }
    if (t->delivered == 0)
        return pass(x);
    t->dropped = true; /* it would follow part of another answer */
    return set_aside(x, HTTP_DROP, now_ns);
}

static bool judge_and_follow(struct http_exchange *x, const struct bide_outcome *outcome)
{
    int64_t now_ns = bide_now();
    x->run.answered = true;
    http_answer_judge(x, outcome, now_ns);
    return follow(x, now_ns);
}

/* ---- what the head says ---- */

/* What libcurl may answer by itself, with another leg: redirects, authentication, Expect. Judged when a byte of the
 * body arrives, which it does not if libcurl goes on. */
static bool libcurl_may_answer(int status)
{
    return status < 400 ? status >= 300 : status == 401 || status == 407 || status == 417;
}

static bool may_refresh(const struct http_exchange *x)
{
    const struct http_transfer *t = x->transfer;
    return x->answer.status == 401 && t->options->refresh && !t->refreshed && !http_body_spent(x);
}

/* The sink has the beginning of the body, and this answer was asked for the rest. */
static bool continues(struct http_exchange *x)
{
    static const struct bide_outcome changed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_BODY_DELIVERED};
    struct http_transfer *t = x->transfer;
    if (http_resume_fits(x)) {
        t->resumed = true;
        return pass(x);
    }
    if (x->answer.status != 200 || !t->options->rewind || !t->options->rewind(t->options->write_data))
        return judge_and_follow(x, &changed);
    t->delivered = 0; /* it changed: all of it, from the start */
    free(t->resume);
    t->resume = NULL;
    return pass(x);
}

/* A server may answer before it has the whole body. libcurl (7.88) then takes the transfer for complete, stops sending
 * and keeps the connection; the server takes what comes next for the rest of the body. That connection must not be used
 * again. (After a failure libcurl closes it. HTTP/2 ends a stream of its own.) */
static void distrust_early_answer(struct http_exchange *x)
{
    x->forbidden = !http_body_sent(x);
    if (x->forbidden)
        curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, 1L);
}

static bool hold(struct http_exchange *x)
{
    x->answer.mode = HTTP_HOLD;
    return true;
}

static bool success(struct http_exchange *x)
{
    if (http_answer_lost(x))
        return false;
    if (!x->run.bodiless && x->answer.version_1)
        distrust_early_answer(x);
    if (x->transfer->delivered > 0)
        return continues(x);
    return http_wants_body(x) ? hold(x) : pass(x);
}

/* Held until the owner was asked, in case the answer is no. Without a sink nothing can be held. */
static bool ask_for_credentials(struct http_exchange *x)
{
    x->answer.wants_refresh = true;
    return hold(x) && x->transfer->sink;
}

/* A success that nobody wants to look at. */
static bool is_plain(const struct http_exchange *x)
{
    const struct bide_curl_options *o = x->transfer->options;
    return x->answer.status < 300 && !o->classify && !o->status_rules;
}

bool http_answer_decide(struct http_exchange *x)
{
    if (is_plain(x))
        x->run.outcome.kind = BIDE_KIND_OK;
    else
        x->run.outcome = http_status_outcome(x);
    if (x->run.outcome.kind == BIDE_KIND_OK)
        return success(x);
    if (may_refresh(x))
        return ask_for_credentials(x);
    return http_wants_body(x) ? hold(x) : judge_and_follow(x, &x->run.outcome);
}

bool http_answer_decide_held(struct http_exchange *x, bool whole)
{
    x->run.outcome = http_body_outcome(x, whole);
    if (x->run.outcome.kind == BIDE_KIND_OK)
        return !http_answer_lost(x) && pass(x);
    return judge_and_follow(x, &x->run.outcome);
}

/* ---- the head, line by line ---- */

static bool head_ended(struct http_exchange *x)
{
    struct http_answer *a = &x->answer;
    if (a->status < 200 || x->run.judged || a->mode != HTTP_UNDECIDED)
        return true;
    a->answerable = libcurl_may_answer(a->status);
    if (a->answerable && (x->transfer->sink || !may_refresh(x)))
        return true;
    return http_answer_decide(x);
}

static bool is_status_line(const char *line, size_t length)
{
    return length > 5 && memcmp(line, "HTTP/", 5) == 0;
}

/* "HTTP/1.1 503 Service Unavailable", where a head may begin. (After the body come trailers.) */
static void status_line(struct http_exchange *x, const char *line, size_t length)
{
    struct http_answer *a = &x->answer;
    const char *end = line + length, *at = memchr(line, ' ', length);
    at = at ? at + 1 : end;
    for (a->status = 0; at < end && *at >= '0' && *at <= '9' && a->status < 100; at++)
        a->status = a->status * 10 + (*at - '0');
    a->in_head = true;
    a->version_1 = line[5] == '1';
    x->head.length = 0;
}

/* The owner's header function sees what libcurl would show it; heads of failures when they are final. */
static bool show_line(struct http_exchange *x, char *line, size_t length)
{
    const struct bide_curl_options *o = x->transfer->options;
    if (x->answer.status >= 400 && x->answer.mode != HTTP_PASS)
        return http_buffer_add(&x->head, line, length);
    if (o->header(line, 1, length, o->header_data) != length)
        x->run.stop = HTTP_UNTAKEN;
    return x->run.stop != HTTP_UNTAKEN;
}

/* It is counted already. */
bool http_answer_line(struct http_exchange *x, char *line, size_t length)
{
    struct http_answer *a = &x->answer;
    bool blank = line[0] == '\r' || line[0] == '\n';
    if (!a->in_head && a->mode == HTTP_UNDECIDED && is_status_line(line, length))
        status_line(x, line, length);
    a->in_head = a->in_head && !blank;
    if (a->head_bytes > BIDE_CURL_HEAD_MAX || a->head_lines > BIDE_CURL_LINES_MAX) {
        x->run.stop = HTTP_OVERSIZE;
        return false;
    }
    if (x->transfer->options->header && !show_line(x, line, length))
        return false;
    return !blank || head_ended(x);
}

/* ---- the body, piece by piece ---- */

static size_t hold_most(const struct http_exchange *x)
{
    size_t most = x->run.outcome.kind == BIDE_KIND_OK ? x->transfer->options->hold_max : BIDE_CURL_KEEP_MAX;
    return most + x->answer.shown_bytes;
}

static bool store(struct http_exchange *x, const char *at, size_t length, size_t most)
{
    return x->body.length <= most && length <= most - x->body.length && http_buffer_add(&x->body, at, length);
}

/* With CURLOPT_HEADER the head goes to the write function too, a moment before the header function sees it. */
static bool is_head(const struct http_exchange *x, const char *at, size_t length)
{
    return x->answer.in_head || (x->answer.status < 200 && is_status_line(at, length));
}

static bool store_head(struct http_exchange *x, const char *at, size_t length)
{
    if (!store(x, at, length, BIDE_CURL_HEAD_MAX))
        return false;
    x->answer.shown_bytes = x->body.length;
    x->transfer->shows_heads = true;
    return true;
}

/* More than can be held: what there is must do. New credentials count more than the body of a 401. */
static bool overflow(struct http_exchange *x, const char *at, size_t length)
{
    if (x->answer.wants_refresh)
        return false;
    return http_answer_decide_held(x, false) && http_answer_piece(x, at, length);
}

bool http_answer_piece(struct http_exchange *x, const char *at, size_t length)
{
    switch (x->answer.mode) {
    case HTTP_UNDECIDED:
        if (is_head(x, at, length))
            return store_head(x, at, length);
        return http_answer_decide(x) && http_answer_piece(x, at, length); /* decide leaves this mode */
    case HTTP_PASS: return deliver(x, at, length);
    case HTTP_HOLD: return store(x, at, length, hold_most(x)) || overflow(x, at, length);
    case HTTP_KEEP: return store(x, at, length, BIDE_CURL_KEEP_MAX + x->answer.shown_bytes);
    case HTTP_DROP: x->run.drained_bytes += length; return x->run.drained_bytes <= BIDE_CURL_KEEP_MAX;
    }
    return false;
}
