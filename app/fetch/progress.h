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
void fetch_progress_update(struct fetch_progress *progress, const struct fetch_job *jobs, size_t count, int64_t now_ns);

#define FETCH_BAR_SIZE      128u
#define FETCH_PROGRESS_SIZE 1024u /* for any line */

/* Where it is shown. */
struct fetch_progress_layout {
    uint32_t attempts_max;
    size_t columns;     /* there is room for */
    const char *bar;    /* as drawn, shorter than FETCH_BAR_SIZE and not wider than bar_columns */
    size_t bar_columns; /* ... when it is full */
};

/* One line that fits: how far, the bar, how much, how fast, how much longer. One job tells its attempt or its wait,
 * several how many are where. Where there is no room for everything, what matters least is left out: the bar first,
 * then the time that is left, the rate and so on; one part is always there. */
void fetch_progress_line(const struct fetch_progress *progress, const struct fetch_progress_layout *layout, char *text,
                         size_t size);

#endif
