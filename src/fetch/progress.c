/* progress.c - see progress.h. Lengths are what servers say, so they may be any number. */
#include "progress.h"

#include "conf/unit.h"
#include "tell.h"

#include <stdio.h>

#define RATE_PARTS 8        /* the shown rate follows the real one by an eighth each look */
#define LEFT_MAX_S 360000.0 /* more is not told apart */

static void update_rate(struct fetch_progress *p, uint64_t before, int64_t now_ns)
{
    double seconds = (double)(now_ns - p->tick_ns) / 1e9;
    double now = p->bytes > before && seconds > 0 ? (double)(p->bytes - before) / seconds : 0;
    p->rate = p->tick_ns == 0 ? 0 : p->rate + (now - p->rate) / RATE_PARTS;
    p->tick_ns = now_ns;
}

void fetch_progress_look(struct fetch_progress *p, const struct fetch_job *jobs, size_t count, int64_t now_ns)
{
    bool known = true;
    uint64_t before = p->bytes;
    p->jobs = jobs;
    p->count = count;
    p->bytes = 0;
    p->total = 0;
    for (size_t i = 0; i < count; i++) {
        bool over = jobs[i].state == FETCH_OVER;
        p->bytes += jobs[i].bytes;
        p->total += (double)(over ? jobs[i].bytes : jobs[i].total);
        known = known && (over || jobs[i].total > 0);
    }
    if (!known)
        p->total = 0;
    update_rate(p, before, now_ns);
}

static int put_one(const struct fetch_progress *p, char *text, size_t size, uint32_t attempts_max)
{
    char wait[CONF_VALUE_SIZE];
    const struct fetch_job *job = p->jobs;
    if (job->state == FETCH_WAITS)
        return snprintf(text, size, "attempt %u of %u in %s  ", job->attempt + 1, attempts_max,
                        conf_duration_short(wait, job->wake_ns > p->tick_ns ? job->wake_ns - p->tick_ns : 0));
    return job->attempt > 1 ? snprintf(text, size, "attempt %u  ", job->attempt) : snprintf(text, size, "%s", "");
}

static int put_several(const struct fetch_progress *p, char *text, size_t size)
{
    size_t over = 0, failed = 0, waiting = 0;
    for (const struct fetch_job *job = p->jobs; job < p->jobs + p->count; job++) {
        over += job->state == FETCH_OVER;
        failed += job->state == FETCH_OVER && job->exit_status != 0;
        waiting += job->state == FETCH_WAITS;
    }
    return snprintf(text, size, "%zu of %zu done, %zu failed, %zu waiting  ", over, p->count, failed, waiting);
}

size_t fetch_progress_state(const struct fetch_progress *p, char *text, size_t size, uint32_t attempts_max)
{
    int used = p->count == 1 ? put_one(p, text, size, attempts_max) : put_several(p, text, size);
    return used > 0 ? (size_t)used : 0;
}

void fetch_progress_amount(const struct fetch_progress *p, char *text, size_t size)
{
    char done[FETCH_BYTES_SIZE], all[FETCH_BYTES_SIZE], rate[FETCH_BYTES_SIZE], left[CONF_VALUE_SIZE];
    fetch_bytes_text(done, p->bytes);
    fetch_bytes_text(rate, (uint64_t)p->rate);
    if (p->total <= 0 || p->total >= 0x1p64 || p->rate < 1) {
        snprintf(text, size, "%s  %s/s", done, rate);
        return;
    }
    double left_s = (p->total - (double)p->bytes) / p->rate + 0.5;
    left_s = left_s < 0 ? 0 : left_s < LEFT_MAX_S ? left_s : LEFT_MAX_S;
    snprintf(text, size, "%s of %s  %s/s  %s left", done, fetch_bytes_text(all, (uint64_t)p->total), rate,
             conf_duration_short(left, (int64_t)left_s * BIDE_S));
}

int fetch_progress_percent(const struct fetch_progress *p)
{
    double percent = p->total > 0 ? 100 * (double)p->bytes / p->total : 0;
    return percent < 100 ? (int)percent : 100;
}
