/* log.c - text and JSON lines about events; see log.h. */
#include "log.h"

#include "conf/unit.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *fetch_bytes_text(char text[FETCH_BYTES_SIZE], uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t whole = bytes, tenths = 0;
    size_t unit = 0;
    for (; whole >= 1000; unit++) {
        tenths = whole % 1000 / 100;
        whole /= 1000;
    }
    if (unit == 0 || whole >= 100)
        snprintf(text, FETCH_BYTES_SIZE, "%u %s", (unsigned)whole, units[unit]);
    else
        snprintf(text, FETCH_BYTES_SIZE, "%u.%u %s", (unsigned)whole, (unsigned)tenths, units[unit]);
    return text;
}

/* ---- text for people ---- */

/* "503", "Couldn't connect to server", or, for an interrupted body, "200, then ...". */
static void put_result(FILE *out, long status, const char *text)
{
    if (status > 0)
        fprintf(out, "%ld%s", status, text[0] != '\0' ? ", then " : "");
    if (status == 0 && text[0] == '\0')
        text = "no response";
    fputs(text, out);
}

static void text_begin_line(const struct fetch_log *log, const struct fetch_job *job)
{
    fputs("bide: ", log->out);
    if (log->several_urls)
        fprintf(log->out, "%s: ", job->display_url);
}

static void text_start(const struct fetch_log *log, const struct fetch_event *e)
{
    if (!log->verbose)
        return;
    fprintf(log->out, "bide: %s: attempt %u of %u%s\n", e->job->display_url, e->verdict.attempt, log->attempts_max,
            e->verdict.reason == BIDE_REASON_HEDGE ? ", hedging a slow attempt" : "");
}

static void text_put_reason(FILE *out, enum bide_reason reason)
{
    if (reason == BIDE_REASON_SERVER_HINT)
        fputs(" (server asked)", out);
    else if (reason != BIDE_REASON_BACKOFF)
        fprintf(out, " (%s)", bide_reason_text(reason));
}

static void text_wait(const struct fetch_log *log, const struct fetch_event *e)
{
    char text[CONF_VALUE_SIZE];
    text_begin_line(log, e->job);
    if (e->verdict.attempt > 0) {
        fprintf(log->out, "attempt %u of %u failed: ", e->verdict.attempt, log->attempts_max);
        put_result(log->out, e->status, e->text);
        if (log->verbose)
            fprintf(log->out, " after %s", conf_duration_format_short(text, e->time_ns));
        if (log->verbose && e->hint.kind == BIDE_HINT_WAIT)
            fprintf(log->out, ", server asked for %s", conf_duration_format_short(text, e->hint.wait_ns));
        fputs("; ", log->out);
    }
    fprintf(log->out, "next in %s", conf_duration_format_short(text, e->wait_ns));
    text_put_reason(log->out, e->verdict.reason);
    fputc('\n', log->out);
}

static void text_success(const struct fetch_log *log, const struct fetch_job *job)
{
    char time[CONF_VALUE_SIZE], bytes[FETCH_BYTES_SIZE];
    if (!log->verbose && job->attempts > 1) {
        text_begin_line(log, job);
        fprintf(log->out, "attempt %u of %u succeeded, after %s\n", job->verdict.attempt, log->attempts_max,
                conf_duration_format_short(time, job->time_ns));
    }
    if (!log->verbose)
        return;
    fprintf(log->out, "bide: %s: %ld, %s in %s, %u attempt%s%s\n", job->display_url, job->status,
            fetch_bytes_text(bytes, job->bytes), conf_duration_format_short(time, job->time_ns), job->attempts,
            job->attempts == 1 ? "" : "s", job->resumed ? ", resumed" : "");
}

/* A closed pipe (EPIPE) needs no message. */
static void text_write_error(const struct fetch_log *log, const struct fetch_job *job)
{
    if (job->error == EPIPE)
        return;
    fprintf(log->out, "bide: %s: cannot write %s: %s\n", job->display_url,
            job->output_path ? job->output_path : "to standard output", strerror(job->error));
}

static void text_failure(const struct fetch_log *log, const struct fetch_job *job)
{
    fprintf(log->out, "bide: %s: ", job->display_url);
    if (job->attempts == 0 || job->verdict.reason == BIDE_REASON_KEY_REQUIRED) {
        fprintf(log->out, "nothing was sent: %s\n",
                job->verdict.reason == BIDE_REASON_CANCELLED ? job->error_text : bide_reason_text(job->verdict.reason));
        return;
    }
    if (job->attempts > 1)
        fprintf(log->out, "gave up after %u attempts: ", job->attempts);
    put_result(log->out, job->status, job->error_text);
    fprintf(log->out, ": %s\n", bide_reason_text(job->verdict.reason));
}

static void text_end(const struct fetch_log *log, const struct fetch_job *job)
{
    if (job->cancelled)
        return;
    if (job->error != 0)
        text_write_error(log, job);
    else if (job->verdict.action == BIDE_DONE)
        text_success(log, job);
    else
        text_failure(log, job);
}

/* ---- JSON for programs ---- */

static json_t *json_number_or_null(int64_t number)
{
    return number > 0 ? json_integer(number) : json_null();
}

static json_t *json_text_or_null(const char *text)
{
    json_t *value = text && text[0] != '\0' ? json_string(text) : NULL;
    return value ? value : json_null();
}

/* Rounded up: a wait is never shown too short. */
static int64_t ms_rounded_up(int64_t ns)
{
    return ns / BIDE_MS + (ns % BIDE_MS != 0);
}

/* Writes the object as one line and releases it. */
static void json_put_line(FILE *out, json_t *object)
{
    if (object)
        json_dumpf(object, out, JSON_COMPACT);
    fputs(object ? "\n" : "", out);
    json_decref(object);
}

/* The members that every event starts with. Names and meanings are those of `bide run --json`. */
static json_t *json_event_begin(const char *event)
{
    struct timespec now;
    struct tm date;
    char text[32], time[48];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &date);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &date);
    snprintf(time, sizeof time, "%s.%03dZ", text, (int)(now.tv_nsec / BIDE_MS));
    return json_pack("{s:s, s:s}", "event", event, "time", time);
}

static json_t *json_attempt_event(const struct fetch_log *log, const struct fetch_event *e, const char *event,
                                  uint32_t attempt)
{
    json_t *o = json_event_begin(event);
    if (log->target)
        json_object_set_new(o, "target", json_text_or_null(log->target));
    json_object_set_new(o, "url", json_text_or_null(e->job->display_url));
    json_object_set_new(o, "attempt", json_integer(attempt));
    json_object_set_new(o, "attempts", json_integer(log->attempts_max));
    return o;
}

static void json_put_start(const struct fetch_log *log, const struct fetch_event *e)
{
    json_t *o = json_attempt_event(log, e, "attempt", e->verdict.attempt);
    json_object_set_new(o, "reason", json_string(bide_reason_label(e->verdict.reason)));
    json_put_line(log->out, o);
}

/* "503", or "200, then ...", as in the text. */
static json_t *json_result_text(const struct fetch_event *e)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return json_null();
    put_result(out, e->status, e->text);
    json_t *value = fclose(out) == 0 ? json_text_or_null(text) : json_null();
    free(text);
    return value;
}

static void json_put_outcome(const struct fetch_log *log, const struct fetch_event *e)
{
    json_t *o = json_attempt_event(log, e, "outcome", e->attempt);
    json_object_set_new(o, "status", json_number_or_null(e->status));
    json_object_set_new(o, "kind", json_string(bide_kind_label(e->kind)));
    json_object_set_new(o, "because", json_result_text(e));
    json_object_set_new(o, "took_ms", json_integer(ms_rounded_up(e->time_ns)));
    json_object_set_new(o, "code", json_number_or_null(e->code));
    if (e->code == CURLE_OPERATION_TIMEDOUT)
        json_object_set_new(o, "timed_out", json_true());
    if (e->hint.kind == BIDE_HINT_WAIT)
        json_object_set_new(o, "hint_ms", json_integer(ms_rounded_up(e->hint.wait_ns)));
    json_put_line(log->out, o);
}

static void json_put_wait(const struct fetch_log *log, const struct fetch_event *e)
{
    json_t *o = json_attempt_event(log, e, "wait", e->verdict.attempt);
    json_object_set_new(o, "wait_ms", json_integer(ms_rounded_up(e->wait_ns)));
    json_object_set_new(o, "reason", json_string(bide_reason_label(e->verdict.reason)));
    json_put_line(log->out, o);
}

/* The result of a job: `attempt` is the number of attempts made. */
static json_t *json_job(const struct fetch_log *log, const struct fetch_job *job)
{
    json_t *o = json_pack("{s:s, s:I, s:I, s:s, s:o, s:I, s:I, s:b, s:i}", "url", job->display_url, "attempt",
                          (json_int_t)job->attempts, "attempts", (json_int_t)log->attempts_max, "reason",
                          bide_reason_label(job->verdict.reason), "status", json_number_or_null(job->status),
                          "elapsed_ms", (json_int_t)ms_rounded_up(job->time_ns), "bytes", (json_int_t)job->bytes,
                          "resumed", job->resumed, "exit", job->exit_status);
    json_object_set_new(o, "code", json_number_or_null(job->code));
    json_object_set_new(o, "error", json_text_or_null(job->error != 0 ? strerror(job->error) : job->error_text));
    json_object_set_new(o, "file", json_text_or_null(job->output_path));
    json_object_set_new(o, "key", json_text_or_null(job->key));
    if (job->cancelled && fetch_signal != 0)
        json_object_set_new(o, "signal", json_integer(fetch_signal));
    return o;
}

static void json_put_end(const struct fetch_log *log, const struct fetch_event *e)
{
    json_t *o = json_job(log, e->job), *line = json_event_begin(e->job->exit_status == 0 ? "done" : "give_up");
    if (log->target)
        json_object_set_new(line, "target", json_text_or_null(log->target));
    json_object_update(line, o);
    json_decref(o);
    json_put_line(log->out, line);
}

static void json_put_event(const struct fetch_log *log, const struct fetch_event *e)
{
    if (e->ended)
        json_put_outcome(log, e);
    switch (e->verdict.action) {
    case BIDE_NONE: break;
    case BIDE_START: json_put_start(log, e); break;
    case BIDE_WAIT: json_put_wait(log, e); break;
    case BIDE_DONE:
    case BIDE_GIVE_UP: json_put_end(log, e); break;
    }
}

void fetch_log_event(const struct fetch_log *log, const struct fetch_event *e)
{
    bool over = e->verdict.action == BIDE_DONE || e->verdict.action == BIDE_GIVE_UP;
    if (log->silent && !(log->show_errors && over && e->job->exit_status != 0))
        return;
    if (log->json)
        json_put_event(log, e);
    else if (over)
        text_end(log, e->job);
    else if (e->verdict.action == BIDE_WAIT)
        text_wait(log, e);
    else if (e->verdict.action == BIDE_START)
        text_start(log, e);
}

/* ---- summary table ---- */

static void table_put_row(FILE *out, const struct fetch_job *job)
{
    char status[24] = "-", time[CONF_VALUE_SIZE], bytes[FETCH_BYTES_SIZE];
    if (job->status > 0)
        snprintf(status, sizeof status, "%ld", job->status);
    fprintf(out, "%6s  %8u  %8s  %8s  %-14s  %s\n", status, job->attempts,
            conf_duration_format_short(time, job->time_ns), fetch_bytes_text(bytes, job->bytes),
            job->error != 0 ? "not_written" : bide_reason_label(job->verdict.reason), job->display_url);
}

static void table_put(FILE *out, const struct fetch_job *jobs, size_t count)
{
    size_t failed = 0;
    fprintf(out, "%6s  %8s  %8s  %8s  %-14s  %s\n", "status", "attempts", "time", "size", "reason", "url");
    for (size_t i = 0; i < count; i++) {
        table_put_row(out, &jobs[i]);
        failed += jobs[i].exit_status != 0;
    }
    if (count > 1)
        fprintf(out, "%zu of %zu failed\n", failed, count);
}

void fetch_log_fleet(const struct fetch_log *log, const char *text)
{
    if (log->silent)
        return;
    if (!log->json) {
        fprintf(log->out, "bide: %s\n", text);
        return;
    }
    json_t *line = json_event_begin("fleet");
    json_object_set_new(line, "target", json_string(log->target));
    json_object_set_new(line, "text", json_string(text));
    json_put_line(log->out, line);
}

void fetch_log_summary(const struct fetch_log *log, const struct fetch_job *jobs, size_t count)
{
    if (!log->json) {
        table_put(log->out, jobs, count);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++)
        json_array_append_new(list, json_job(log, &jobs[i]));
    json_t *line = json_event_begin("summary");
    json_object_set_new(line, "urls", list);
    json_put_line(log->out, line);
}
