/* progress.h - how far all jobs are, as text: what a bar on a terminal is drawn from. */
#ifndef FETCH_PROGRESS_H
#define FETCH_PROGRESS_H

#include "fetch.h"

/* Zeroed before the first look. */
struct fetch_progress {
    const struct fetch_job *jobs;
    size_t count;
    int64_t tick_ns; /* of the last look */
    uint64_t bytes;  /* kept so far, of all jobs */
    double total;    /* ... and when all are whole; 0: nobody knows */
    double rate;     /* bytes a second, smoothed */
};

/* Adds up. Looks are a tick apart, or so. */
void fetch_progress_look(struct fetch_progress *progress, const struct fetch_job *jobs, size_t count, int64_t now_ns);

/* One job: its attempt or its wait. Several: how many are where. Returns what was written, without the NUL; `size` is
 * 128 at least. */
size_t fetch_progress_state(const struct fetch_progress *progress, char *text, size_t size, uint32_t attempts_max);

/* How much, how fast, how much longer. */
void fetch_progress_amount(const struct fetch_progress *progress, char *text, size_t size);

int fetch_progress_percent(const struct fetch_progress *progress); /* 0 to 100; 0 if the total is not known */

#endif
