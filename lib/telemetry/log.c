/* log.c - which lines are written, and their members: see log.h. */
#include "log.h"

#include "dropped.h"
#include "log_fold.h"
#include "log_line.h"
#include "log_output.h"
#include "problem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A breaker as it was when it was looked at last. */
struct log_breaker {
    uint64_t openings;
    enum bide_breaker_state state;
    bool is_known;
};

struct telemetry_log {
    enum bide_telemetry_log format;
    int64_t wall_ns; /* instant of the wall clock minus that of bide_now */
    struct telemetry_output output;
    struct telemetry_fold fold;
    struct log_breaker *breaker; /* by number */
    uint32_t breakers;
};

/* ---- open and close ---- */

enum bide_err telemetry_log_open(struct telemetry_log **log, const struct bide_telemetry_options *options,
                                 int64_t wall_ns, struct bide_problem *problem)
{
    *log = NULL;
    if (options->log != BIDE_TELEMETRY_LOG_LOGFMT && options->log != BIDE_TELEMETRY_LOG_JSON)
        return telemetry_problem_number(problem, "log", options->log, "one of enum bide_telemetry_log");
    struct telemetry_log *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, ENOMEM, "out of memory");
    if (!telemetry_output_open(&opened->output, options->log_fd)) {
        free(opened);
        return telemetry_problem_number(problem, "log_fd", options->log_fd, "a descriptor that is open for writing");
    }
    opened->format = options->log;
    opened->wall_ns = wall_ns;
    *log = opened;
    return BIDE_OK;
}

void telemetry_log_set_wall(struct telemetry_log *log, int64_t wall_ns)
{
    log->wall_ns = wall_ns;
}

/* ---- a line ---- */

/* A line being written, with room for the longest: a target of 127 bytes is at most 762 in JSON. */
struct log_entry {
    struct telemetry_line line;
    char text[TELEMETRY_LINE_MAX];
};

struct log_head {
    const char *event;
    const char *level;
    struct bide_text target; /* empty: none */
    int64_t now_ns;
};

static void entry_begin(const struct telemetry_log *log, struct log_entry *entry, const struct log_head *head)
{
    struct telemetry_line *line = &entry->line;
    bool is_json = log->format == BIDE_TELEMETRY_LOG_JSON;
    *line = telemetry_line_begin(log->format, entry->text, sizeof entry->text);
    if (is_json)
        telemetry_line_label(line, "event", head->event);
    telemetry_line_time(line, "time", log->wall_ns + head->now_ns);
    telemetry_line_label(line, "level", head->level);
    if (!is_json)
        telemetry_line_label(line, "msg", head->event);
    if (head->target.length > 0)
        telemetry_line_text(line, "target", head->target);
}

/* Returns false after counting the line as dropped. */
static bool entry_write(struct telemetry_log *log, struct log_entry *entry)
{
    static const enum telemetry_cause causes[] = {
        [TELEMETRY_OUTPUT_BLOCKED] = TELEMETRY_BLOCKED, [TELEMETRY_OUTPUT_ERROR] = TELEMETRY_WRITE_ERROR};
    size_t length = telemetry_line_end(&entry->line);
    if (length == 0) {
        telemetry_dropped_add(TELEMETRY_LOGS, TELEMETRY_TOO_LONG, 1);
        return false;
    }
    enum telemetry_output_result result = telemetry_output_write(&log->output, entry->text, length);
    if (result != TELEMETRY_OUTPUT_WRITTEN)
        telemetry_dropped_add(TELEMETRY_LOGS, causes[result], 1);
    return result == TELEMETRY_OUTPUT_WRITTEN;
}

/* ---- records ---- */

static void put_attempt(struct telemetry_line *line, const struct telemetry_record *record)
{
    if (record->status != 0)
        telemetry_line_number(line, "status", record->status);
    else
        telemetry_line_null(line, "status");
    telemetry_line_label(line, "kind", bide_kind_label((enum bide_kind)record->kind));
    telemetry_line_label(line, "evidence", bide_evidence_label((enum bide_evidence)record->evidence));
    telemetry_line_ms(line, "took_ms", record->now_ns - record->start_ns);
    if (record->hint_ns > 0)
        telemetry_line_ms(line, "hint_ms", record->hint_ns);
}

static void put_ids(struct telemetry_line *line, const struct telemetry_record *record)
{
    bool has_trace = (record->trace_hi | record->trace_lo) != 0;
    telemetry_line_id(line, "call", record->call_id);
    if (!has_trace)
        return;
    telemetry_line_id_pair(line, "trace_id", record->trace_hi, record->trace_lo);
    telemetry_line_id(line, "span_id", record->call_ended ? record->call_id : record->span);
}

static void put_retry(struct telemetry_line *line, const struct telemetry_record *record)
{
    bool waits = record->action == BIDE_ACTION_WAIT && record->wake_ns != BIDE_NEVER;
    telemetry_line_number(line, "attempt", record->attempt);
    put_attempt(line, record);
    telemetry_line_ms(line, "wait_ms", waits ? record->wake_ns - record->now_ns : 0);
}

static void put_give_up(struct telemetry_line *line, const struct telemetry_record *record)
{
    telemetry_line_number(line, "attempt", record->attempts);
    if (record->attempt_ended)
        put_attempt(line, record);
    else
        telemetry_line_null(line, "status");
    telemetry_line_ms(line, "elapsed_ms", record->now_ns - record->begin_ns);
}

static const char *give_up_level(enum bide_reason reason)
{
    return reason == BIDE_REASON_CANCELLED ? "info" : "error";
}

void telemetry_log_write(struct telemetry_log *log, const struct telemetry_record *record, int64_t now_ns)
{
    struct log_entry entry;
    enum bide_reason reason = (enum bide_reason)record->reason;
    bool is_end = record->action == BIDE_ACTION_GIVE_UP;
    struct log_head head = {
        .event = is_end ? "give_up" : "retry",
        .level = is_end ? give_up_level(reason) : "warn",
        .target = {telemetry_record_text(record, TELEMETRY_TEXT_TARGET), record->length[TELEMETRY_TEXT_TARGET]},
        .now_ns = record->now_ns};
    if (!telemetry_log_wants((enum bide_action)record->action, record->attempt_ended))
        return;
    struct telemetry_fold_entry *fold = telemetry_fold_count(&log->fold, head.target, reason, now_ns);
    if (fold == NULL)
        return;
    entry_begin(log, &entry, &head);
    if (is_end)
        put_give_up(&entry.line, record);
    else
        put_retry(&entry.line, record);
    telemetry_line_label(&entry.line, "reason", bide_reason_label(reason));
    put_ids(&entry.line, record);
    bool carries = fold->suppressed > 0 && !fold->is_shared; /* those of the shared entry are not this line's */
    if (carries)
        telemetry_line_number(&entry.line, "suppressed", (int64_t)fold->suppressed);
    if (entry_write(log, &entry) && carries)
        fold->suppressed = 0;
}

/* ---- suppressed lines ---- */

static void log_write_suppressed(struct telemetry_log *log, struct telemetry_fold_entry *fold, int64_t now_ns)
{
    struct log_entry entry;
    struct log_head head = {
        .event = "suppressed", .level = "warn", .target = {fold->target, fold->target_length}, .now_ns = now_ns};
    if (fold->is_shared)
        head.target = (struct bide_text){"_other", strlen("_other")};
    entry_begin(log, &entry, &head);
    if (!fold->is_shared)
        telemetry_line_label(&entry.line, "reason", bide_reason_label(fold->reason));
    telemetry_line_number(&entry.line, "suppressed", (int64_t)fold->suppressed);
    if (entry_write(log, &entry))
        fold->suppressed = 0;
}

int64_t telemetry_log_tick(struct telemetry_log *log, int64_t now_ns)
{
    struct telemetry_fold_entry *fold;
    while ((fold = telemetry_fold_next(&log->fold, now_ns)) != NULL)
        log_write_suppressed(log, fold, now_ns); /* if it is lost, the number stays for the next line */
    return telemetry_fold_due(&log->fold);
}

void telemetry_log_close(struct telemetry_log *log, int64_t now_ns)
{
    struct telemetry_fold_entry *fold;
    if (log == NULL)
        return;
    while ((fold = telemetry_fold_any(&log->fold)) != NULL) {
        log_write_suppressed(log, fold, now_ns);
        fold->suppressed = 0; /* a line that is lost now is counted, and there is no next one */
    }
    if (!telemetry_output_close(&log->output))
        telemetry_dropped_add(TELEMETRY_LOGS, TELEMETRY_SHUTDOWN, 1);
    free(log->breaker);
    free(log);
}

/* ---- breakers ---- */

/* Returns the breaker of that number; NULL: there is no memory. */
static struct log_breaker *log_find_breaker(struct telemetry_log *log, uint32_t number)
{
    if (number >= log->breakers) {
        uint32_t breakers = number < 64 ? 64 : 2 * number;
        struct log_breaker *grown = realloc(log->breaker, breakers * sizeof *grown);
        if (grown == NULL)
            return NULL;
        memset(grown + log->breakers, 0, (breakers - log->breakers) * sizeof *grown);
        log->breaker = grown;
        log->breakers = breakers;
    }
    return &log->breaker[number];
}

static const char *breaker_level(enum bide_breaker_state state)
{
    return state == BIDE_BREAKER_OPEN || state == BIDE_BREAKER_HELD_OPEN ? "warn" : "info";
}

/* A total that is smaller than before is that of a new target of the same name. */
static uint64_t breaker_openings(const struct log_breaker *seen, const struct bide_breaker_view *now)
{
    return now->openings_total >= seen->openings ? now->openings_total - seen->openings : now->openings_total;
}

static void log_write_breaker(struct telemetry_log *log, const struct log_breaker *seen, const char *target,
                              const struct bide_breaker_view *breaker, int64_t now_ns)
{
    struct log_entry entry;
    entry_begin(log, &entry,
                &(struct log_head){.event = "breaker",
                                   .level = breaker_level(breaker->state),
                                   .target = {target, strlen(target)},
                                   .now_ns = now_ns});
    telemetry_line_label(&entry.line, "state", bide_breaker_state_label(breaker->state));
    if (seen->is_known)
        telemetry_line_number(&entry.line, "openings", (int64_t)breaker_openings(seen, breaker));
    else
        telemetry_line_null(&entry.line, "openings");
    if (breaker->state == BIDE_BREAKER_OPEN)
        telemetry_line_ms(&entry.line, "wait_ms", breaker->until_ns - now_ns);
    entry_write(log, &entry);
}

void telemetry_log_breaker(struct telemetry_log *log, uint32_t number, const char *target,
                           const struct bide_breaker_view *breaker, int64_t now_ns)
{
    struct log_breaker *seen = log_find_breaker(log, number);
    if (seen == NULL) {
        telemetry_dropped_add(TELEMETRY_LOGS, TELEMETRY_TOO_LONG, 1);
        return;
    }
    bool changed = breaker->state != seen->state || (seen->is_known && breaker->openings_total != seen->openings);
    if (changed)
        log_write_breaker(log, seen, target, breaker, now_ns);
    *seen = (struct log_breaker){.openings = breaker->openings_total, .state = breaker->state, .is_known = true};
}
