/* progress.c - the text of the progress bar; see progress.h. Servers announce the lengths, so they may be any
 * number. */
#include "progress.h"

#include "common/event.h"
#include "common/term.h"
#include "log.h"
#include "text/unit.h"

#include <stdarg.h>
#include <stdio.h>

#define RATE_SMOOTHING 8        /* the displayed rate moves by an eighth of the difference per update */
#define LEFT_MAX_S     360000.0 /* longer times are shown as this */

static void progress_update_rate(struct fetch_progress *p, uint64_t before, int64_t now_ns)
{
    double seconds = (double)(now_ns - p->tick_ns) / 1e9;
    double now = p->bytes > before && seconds > 0 ? (double)(p->bytes - before) / seconds : 0;
    p->rate = p->tick_ns == 0 ? 0 : p->rate + (now - p->rate) / RATE_SMOOTHING;
    p->tick_ns = now_ns;
}

void fetch_progress_update(struct fetch_progress *p, const struct fetch_job *jobs, size_t count, int64_t now_ns)
{
    bool known = true;
    uint64_t before = p->bytes;
    p->jobs = jobs;
    p->count = count;
    p->bytes = 0;
    p->total = 0;
    for (size_t i = 0; i < count; i++) {
        bool over = jobs[i].state == FETCH_JOB_ENDED;
        p->bytes += jobs[i].bytes;
        p->total += (double)(over ? jobs[i].bytes : jobs[i].total);
        known = known && (over || jobs[i].total > 0);
    }
    if (!known)
        p->total = 0;
    progress_update_rate(p, before, now_ns);
}

/* ---- the line: parts are dropped from the least important until it fits ---- */

/* From the most to the least important. A line contains each at most once. */
enum rank {
    RANK_STATE,
    RANK_PERCENT,
    RANK_FAILED,
    RANK_DONE,
    RANK_TOTAL,
    RANK_WAITING,
    RANK_RATE,
    RANK_LEFT,
    RANK_BAR,
    RANK_COUNT
};

struct part {
    const char *separator; /* separator before the part, unless it is the first */
    char text[FETCH_BAR_SIZE];
    enum rank rank;
};

struct line {
    struct part part[RANK_COUNT];
    size_t count;
};

__attribute__((format(printf, 4, 5))) static void line_add(struct line *l, enum rank rank, const char *separator,
                                                           const char *format, ...)
{
    va_list arguments;
    struct part *part = &l->part[l->count++];
    part->rank = rank;
    part->separator = separator;
    va_start(arguments, format);
    vsnprintf(part->text, sizeof part->text, format, arguments);
    va_end(arguments);
}

static size_t line_width(const struct line *l)
{
    size_t sum = 0;
    for (const struct part *part = l->part; part < l->part + l->count; part++)
        sum += (part > l->part ? cli_text_columns(part->separator) : 0) + cli_text_columns(part->text);
    return sum;
}

static void line_drop_least(struct line *l)
{
    size_t least = 0;
    for (size_t i = 1; i < l->count; i++)
        if (l->part[i].rank > l->part[least].rank)
            least = i;
    l->count--;
    for (size_t i = least; i < l->count; i++)
        l->part[i] = l->part[i + 1];
}

static void line_add_job(const struct fetch_progress *p, struct line *l, uint32_t attempts_max)
{
    char wait[TEXT_VALUE_SIZE], number[CLI_ATTEMPT_SIZE];
    const struct fetch_job *job = p->jobs;
    if (job->state == FETCH_JOB_WAITING)
        line_add(l, RANK_STATE, "", "attempt %s in %s", cli_attempt_text(number, job->attempt + 1, attempts_max),
                 text_duration_format_short(wait, job->wake_ns > p->tick_ns ? job->wake_ns - p->tick_ns : 0));
    else if (job->attempt > 1)
        line_add(l, RANK_STATE, "", "attempt %u", job->attempt);
}

static void line_add_jobs(const struct fetch_progress *p, struct line *l)
{
    size_t over = 0, failed = 0, waiting = 0;
    for (const struct fetch_job *job = p->jobs; job < p->jobs + p->count; job++) {
        over += job->state == FETCH_JOB_ENDED;
        failed += job->state == FETCH_JOB_ENDED && job->exit_status != 0;
        waiting += job->state == FETCH_JOB_WAITING;
    }
    line_add(l, RANK_STATE, "", "%zu of %zu done", over, p->count);
    line_add(l, RANK_FAILED, ", ", "%zu failed", failed);
    line_add(l, RANK_WAITING, ", ", "%zu waiting", waiting);
}

static void line_add_amount(const struct fetch_progress *p, struct line *l)
{
    char bytes[FETCH_BYTES_SIZE], left[TEXT_VALUE_SIZE];
    bool known = p->total > 0 && p->total < 0x1p64 && p->rate >= 1;
    line_add(l, RANK_DONE, "  ", "%s", fetch_bytes_text(bytes, p->bytes));
    if (known)
        line_add(l, RANK_TOTAL, " ", "of %s", fetch_bytes_text(bytes, (uint64_t)p->total));
    line_add(l, RANK_RATE, "  ", "%s/s", fetch_bytes_text(bytes, (uint64_t)p->rate));
    if (!known)
        return;
    double left_s = (p->total - (double)p->bytes) / p->rate + 0.5;
    left_s = left_s < 0 ? 0 : left_s < LEFT_MAX_S ? left_s : LEFT_MAX_S;
    line_add(l, RANK_LEFT, "  ", "%s left", text_duration_format_short(left, (int64_t)left_s * BIDE_S));
}

static int progress_percent(const struct fetch_progress *p)
{
    double percent = 100 * (double)p->bytes / p->total;
    return percent < 100 ? (int)percent : 100;
}

void fetch_progress_line(const struct fetch_progress *p, const struct fetch_progress_layout *layout, char *text,
                         size_t size)
{
    struct line l = {.count = 0};
    size_t used = 0;
    if (p->count == 1)
        line_add_job(p, &l, layout->attempts_max);
    else
        line_add_jobs(p, &l);
    if (p->total > 0) {
        line_add(&l, RANK_PERCENT, "  ", "%3d%%", progress_percent(p));
        line_add(&l, RANK_BAR, " ", "%s%*s", layout->bar, (int)(layout->bar_columns - cli_text_columns(layout->bar)),
                 "");
    }
    line_add_amount(p, &l);
    while (l.count > 1 && line_width(&l) > layout->columns)
        line_drop_least(&l);
    text[0] = '\0';
    for (size_t i = 0; i < l.count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? l.part[i].separator : "", l.part[i].text);
}
