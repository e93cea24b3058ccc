/* log.c - text and JSON lines about events; see log.h. */
#include "log.h"

#include "common/atomic_file.h"
#include "common/event.h"
#include "common/spool.h"
#include "common/term.h"
#include "text/unit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define RESULT_SIZE (CURL_ERROR_SIZE + 32u)

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

static bool is_given(const char *text)
{
    return text && text[0] != '\0';
}

/* "503", "Couldn't connect to server", for an interrupted body "200, then ...", for a body that could not be resumed
 * "206 with an unknown length". Returns the buffer. */
static const char *result_text(char buffer[RESULT_SIZE], long status, const char *text, const char *mismatch)
{
    if (status > 0 && is_given(mismatch))
        snprintf(buffer, RESULT_SIZE, "%ld %s", status, mismatch);
    else if (status > 0)
        snprintf(buffer, RESULT_SIZE, "%ld%s%s", status, text[0] != '\0' ? ", then " : "", text);
    else
        snprintf(buffer, RESULT_SIZE, "%s", text[0] != '\0' ? text : "no response");
    return buffer;
}

/* A line is "bide: URL: HEAD RESULT TAIL", of less than CLI_LINE_COLUMNS: the result and then the URL are cut in the
 * middle if there is no room, but not below these columns. */
#define RESULT_COLUMNS_MIN 12u
#define URL_COLUMNS_MIN    16u
#define PART_SIZE          160u
#define PATH_COLUMNS       60u /* a path of any length fits into a result */

struct text_line {
    const struct fetch_job *job; /* of the URL; NULL: the line names none */
    char head[PART_SIZE], result[RESULT_SIZE], tail[PART_SIZE];
};

/* Returns how many columns remain for URL and result. */
static size_t line_room(const struct text_line *line)
{
    size_t used = strlen("bide: ") + cli_text_columns(line->head) + cli_text_columns(line->tail) + 1;
    used += line->job != NULL ? strlen(": ") : 0;
    return used < CLI_LINE_COLUMNS ? CLI_LINE_COLUMNS - used : 0;
}

static size_t room_or_least(size_t room, size_t taken, size_t least)
{
    return room > taken + least ? room - taken : least;
}

static size_t line_url_least(const struct text_line *line)
{
    size_t columns = line->job != NULL ? cli_text_columns(line->job->display_url) : 0;
    return columns < URL_COLUMNS_MIN ? columns : URL_COLUMNS_MIN;
}

static void line_put(const struct fetch_log *log, const struct text_line *line)
{
    char url[CLI_SHORT_SIZE(CLI_LINE_COLUMNS)], result[CLI_SHORT_SIZE(CLI_LINE_COLUMNS)];
    size_t room = line_room(line);
    cli_text_shorten(result, line->result, room_or_least(room, line_url_least(line), RESULT_COLUMNS_MIN));
    fputs("bide: ", log->out);
    if (line->job != NULL)
        fprintf(log->out, "%s: ",
                cli_text_shorten(url, line->job->display_url,
                                 room_or_least(room, cli_text_columns(result), URL_COLUMNS_MIN)));
    fprintf(log->out, "%s%s%s\n", line->head, result, line->tail);
}

static __attribute__((format(printf, 2, 3))) void line_append(char part[PART_SIZE], const char *format, ...)
{
    size_t used = strlen(part);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part + used, PART_SIZE - used, format, arguments);
    va_end(arguments);
}

static void text_start(const struct fetch_log *log, const struct fetch_event *e)
{
    struct text_line line = {.job = e->job};
    char number[CLI_ATTEMPT_SIZE];
    if (!log->verbose)
        return;
    line_append(line.head, "attempt %s%s", cli_attempt_text(number, e->verdict.attempt, log->attempts_max),
                e->verdict.reason == BIDE_REASON_HEDGE ? ", hedging a slow attempt" : "");
    line_put(log, &line);
}

/* Returns why a request waits, if not for its backoff. */
static const char *wait_note(enum bide_reason reason)
{
    static const char *const notes[BIDE_REASON_COUNT] = {
        [BIDE_REASON_SERVER_HINT] = "server asked",
        [BIDE_REASON_HOLD_OFF] = "server asked another call",
        [BIDE_REASON_LAST_WAIT] = "the last before the deadline",
        [BIDE_REASON_LATE_WAKE] = "the last wait ended late",
    };
    return notes[reason] != NULL ? notes[reason] : bide_reason_text(reason);
}

static void text_wait(const struct fetch_log *log, const struct fetch_event *e)
{
    struct text_line line = {.job = log->several_urls ? e->job : NULL};
    char text[TEXT_VALUE_SIZE], number[CLI_ATTEMPT_SIZE];
    if (e->ended) {
        line_append(line.head, "attempt %s failed: ", cli_attempt_text(number, e->verdict.attempt, log->attempts_max));
        result_text(line.result, e->status, e->text, e->mismatch);
        if (log->verbose)
            line_append(line.tail, " after %s", text_duration_format_short(text, e->time_ns));
        if (log->verbose && e->hint.kind == BIDE_HINT_WAIT)
            line_append(line.tail, ", server asked for %s", text_duration_format_short(text, e->hint.wait_ns));
        line_append(line.tail, is_given(e->mismatch) ? "; starting over; " : "; ");
    }
    line_append(line.tail, "next in %s", text_duration_format_short(text, e->wait_ns));
    if (e->verdict.reason != BIDE_REASON_BACKOFF)
        line_append(line.tail, " (%s)", wait_note(e->verdict.reason));
    line_put(log, &line);
}

static void text_success(const struct fetch_log *log, const struct fetch_job *job)
{
    struct text_line line = {.job = log->verbose || log->several_urls ? job : NULL};
    char time[TEXT_VALUE_SIZE], bytes[FETCH_BYTES_SIZE], number[CLI_ATTEMPT_SIZE];
    text_duration_format_short(time, job->time_ns);
    if (!log->verbose && job->attempts <= 1)
        return;
    if (log->verbose)
        line_append(line.head, "%ld, %s in %s, %u attempt%s%s", job->status, fetch_bytes_text(bytes, job->bytes), time,
                    job->attempts, job->attempts == 1 ? "" : "s", job->resumed ? ", resumed" : "");
    else
        line_append(line.head, "attempt %s succeeded, after %s",
                    cli_attempt_text(number, job->verdict.attempt, log->attempts_max), time);
    line_put(log, &line);
}

static const char locked_text[] = "another process is downloading to this file";

/* A closed pipe (EPIPE) needs no message. */
static void text_write_error(const struct fetch_log *log, const struct fetch_job *job)
{
    struct cli_spool_directory directory = cli_spool_directory();
    if (job->spool_failed)
        fprintf(log->out, "bide: %s: cannot store the response in %s (%s): %s\n", job->display_url, directory.path,
                directory.source, strerror(job->error));
    else if (job->is_locked)
        fprintf(log->out, "bide: %s: %s%s: %s\n", job->display_url, job->output_path, CLI_PARTIAL_SUFFIX, locked_text);
    else if (job->error != EPIPE)
        fprintf(log->out, "bide: %s: cannot write %s: %s\n", job->display_url,
                job->output_path ? job->output_path : "to standard output", strerror(job->error));
}

static const char outage_text[] = "the server stayed down for waits_max";

/* Removes ": HOST" at the end of libcurl's text if the URL, which the line begins with, has that host. */
static void result_drop_host(char result[RESULT_SIZE], const struct fetch_job *job)
{
    char *colon = strrchr(result, ':');
    if (colon != NULL && colon[1] == ' ' && colon[2] != '\0' && strstr(job->display_url, colon + 2) != NULL)
        *colon = '\0';
}

/* Shortens the words of a failure if there is no room for the whole URL and result. */
static void text_failure_shorten(struct text_line *line)
{
    const struct fetch_job *job = line->job;
    if (line_room(line) >= cli_text_columns(job->display_url) + cli_text_columns(line->result))
        return;
    if (job->attempts > 1)
        snprintf(line->head, sizeof line->head, "after %u attempts: ", job->attempts);
    if (job->verdict.reason == BIDE_REASON_PERMANENT)
        snprintf(line->tail, sizeof line->tail, ": permanent");
}

static void text_failure(const struct fetch_log *log, const struct fetch_job *job)
{
    struct text_line line = {.job = job};
    const char *why = job->in_outage ? outage_text : bide_reason_text(job->verdict.reason);
    if (job->attempts == 0 || job->verdict.reason == BIDE_REASON_KEY_REQUIRED) {
        line_append(line.head, "nothing was sent: ");
        snprintf(line.result, sizeof line.result, "%s",
                 job->verdict.reason == BIDE_REASON_CANCELLED ? job->error_text : why);
        line_put(log, &line);
        return;
    }
    result_text(line.result, job->status, job->error_text, job->mismatch);
    result_drop_host(line.result, job);
    line_append(line.tail, ": %s", why);
    if (job->attempts > 1)
        line_append(line.head, "gave up after %u attempts: ", job->attempts);
    text_failure_shorten(&line);
    line_put(log, &line);
}

static const char binary_text[] = "the response is binary and standard output is a terminal";

static void text_end(const struct fetch_log *log, const struct fetch_job *job)
{
    if (job->cancelled)
        return;
    if (job->is_binary)
        fprintf(log->out, "bide: %s: %s; -o FILE writes it to a file, -o - to the terminal\n", job->display_url,
                binary_text);
    else if (job->error != 0)
        text_write_error(log, job);
    else if (job->verdict.action == BIDE_ACTION_DONE)
        text_success(log, job);
    else
        text_failure(log, job);
}

/* ---- JSON for programs ---- */

static void json_write(struct fetch_log *log, const struct cli_event *event)
{
    if (!cli_event_write(log->out, event) && log->error == 0)
        log->error = errno != 0 ? errno : EIO;
}

/* Returns the members that all events of a job have. */
static struct cli_event json_event(const struct fetch_log *log, const struct fetch_job *job, enum cli_event_kind kind)
{
    return (struct cli_event){
        .kind = kind, .target = log->target, .url = job->display_url, .attempts_max = log->attempts_max};
}

static int64_t status_or_none(long status)
{
    return status > 0 ? status : CLI_EVENT_NO_STATUS;
}

static void json_put_outcome(struct fetch_log *log, const struct fetch_event *e)
{
    char text[RESULT_SIZE];
    struct cli_event_transfer transfer = {.code = (int)e->code};
    struct cli_event event = json_event(log, e->job, CLI_EVENT_OUTCOME);
    event.attempt = e->attempt;
    event.status = status_or_none(e->status);
    event.outcome = e->kind;
    event.text = result_text(text, e->status, e->text, e->mismatch);
    event.took_ns = e->time_ns;
    event.timed_out = e->code == CURLE_OPERATION_TIMEDOUT;
    event.hint = e->hint;
    event.transfer = &transfer;
    json_write(log, &event);
}

static void json_put_next(struct fetch_log *log, const struct fetch_event *e, enum cli_event_kind kind)
{
    struct cli_event event = json_event(log, e->job, kind);
    event.attempt = e->verdict.attempt;
    event.reason = e->verdict.reason;
    event.wait_ns = e->wait_ns;
    json_write(log, &event);
}

/* Room for what an end event points to. */
struct end_parts {
    char text[RESULT_SIZE];
    struct cli_event_transfer transfer;
};

static struct cli_event json_end_event(const struct fetch_log *log, const struct fetch_job *job,
                                       struct end_parts *parts)
{
    struct cli_event event = json_event(log, job, job->exit_status == 0 ? CLI_EVENT_DONE : CLI_EVENT_GIVE_UP);
    parts->transfer = (struct cli_event_transfer){.code = (int)job->code,
                                                  .bytes = job->bytes,
                                                  .resumed = job->resumed,
                                                  .file = job->output_path,
                                                  .key = job->key};
    event.attempt = job->attempts;
    event.reason = job->verdict.reason;
    event.status = status_or_none(job->status);
    event.exit_status = job->exit_status;
    event.elapsed_ns = job->time_ns;
    event.signal = job->cancelled ? (int)fetch_signal : 0;
    event.transfer = &parts->transfer;
    if (job->is_binary)
        event.text = binary_text;
    else if (job->error != 0)
        event.text = job->is_locked ? locked_text : strerror(job->error);
    else if (job->exit_status != 0)
        event.text = result_text(parts->text, job->status, job->error_text, job->mismatch);
    return event;
}

static void json_put_end(struct fetch_log *log, const struct fetch_job *job)
{
    struct end_parts parts;
    struct cli_event event = json_end_event(log, job, &parts);
    json_write(log, &event);
}

static void json_put_event(struct fetch_log *log, const struct fetch_event *e)
{
    if (e->ended)
        json_put_outcome(log, e);
    switch (e->verdict.action) {
    case BIDE_ACTION_NONE: break;
    case BIDE_ACTION_START: json_put_next(log, e, CLI_EVENT_ATTEMPT); break;
    case BIDE_ACTION_WAIT: json_put_next(log, e, CLI_EVENT_WAIT); break;
    case BIDE_ACTION_DONE:
    case BIDE_ACTION_GIVE_UP: json_put_end(log, e->job); break;
    }
}

void fetch_log_event(struct fetch_log *log, const struct fetch_event *e)
{
    bool over = e->verdict.action == BIDE_ACTION_DONE || e->verdict.action == BIDE_ACTION_GIVE_UP;
    if (log->silent && !(log->show_errors && over && e->job->exit_status != 0))
        return;
    if (log->json)
        json_put_event(log, e);
    else if (over)
        text_end(log, e->job);
    else if (e->verdict.action == BIDE_ACTION_WAIT)
        text_wait(log, e);
    else if (e->verdict.action == BIDE_ACTION_START)
        text_start(log, e);
}

/* ---- summary table ---- */

static void table_put_row(FILE *out, const struct fetch_job *job)
{
    char status[24] = "-", time[TEXT_VALUE_SIZE], bytes[FETCH_BYTES_SIZE];
    if (job->status > 0)
        snprintf(status, sizeof status, "%ld", job->status);
    fprintf(out, "%6s  %8u  %8s  %8s  %-14s  %s\n", status, job->attempts,
            text_duration_format_short(time, job->time_ns), fetch_bytes_text(bytes, job->bytes),
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

void fetch_log_fleet(struct fetch_log *log, const char *text)
{
    if (log->silent)
        return;
    if (log->json)
        json_write(log, &(struct cli_event){.kind = CLI_EVENT_FLEET, .target = log->target, .text = text});
    else
        fprintf(log->out, "bide: %s\n", text);
}

static void text_restart(const struct fetch_log *log, const struct fetch_job *job, const char *why)
{
    struct text_line line = {.job = log->several_urls ? job : NULL};
    cli_text_shorten(line.result, job->output_path, PATH_COLUMNS);
    line_append(line.tail, CLI_PARTIAL_SUFFIX ": %s; starting over", why);
    line_put(log, &line);
}

void fetch_log_restart(struct fetch_log *log, const struct fetch_job *job, const char *why)
{
    struct cli_event event = json_event(log, job, CLI_EVENT_ERROR);
    char *text = NULL;
    if (log->silent)
        return;
    if (!log->json) {
        text_restart(log, job, why);
    } else if (asprintf(&text, "%s" CLI_PARTIAL_SUFFIX ": %s; starting over", job->output_path, why) >= 0) {
        event.attempt = job->attempt;
        event.text = text;
        json_write(log, &event);
        free(text);
    }
}

void fetch_log_error(struct fetch_log *log, const char *text)
{
    if (log->json) {
        json_write(
            log, &(struct cli_event){
                     .kind = CLI_EVENT_ERROR, .target = log->target, .attempts_max = log->attempts_max, .text = text});
        return;
    }
    fputs("bide: ", log->out);
    cli_print_sanitized(log->out, text);
    fputc('\n', log->out);
}

struct summary {
    const struct fetch_log *log;
    const struct fetch_job *jobs;
    struct end_parts parts;
};

static void summary_row(void *context, size_t i, struct cli_event *event)
{
    struct summary *summary = context;
    *event = json_end_event(summary->log, &summary->jobs[i], &summary->parts);
}

void fetch_log_summary(struct fetch_log *log, const struct fetch_job *jobs, size_t count)
{
    struct summary summary = {.log = log, .jobs = jobs};
    if (!log->json)
        table_put(log->out, jobs, count);
    else if (!cli_event_write_summary(log->out, count, summary_row, &summary) && log->error == 0)
        log->error = errno != 0 ? errno : EIO;
}
