/* progress.h - progress of all jobs as one line of text for a terminal. */
#ifndef FETCH_PROGRESS_H
#define FETCH_PROGRESS_H

#include "fetch.h"

/* Zeroed before the first update. */
struct fetch_progress {
    const struct fetch_job *jobs;
    size_t count;
    int64_t tick_ns; /* of the last update */
    uint64_t bytes;  /* written so far, by all jobs */
    double total;    /* expected, of all jobs; 0: unknown */
    double rate;     /* bytes per second, smoothed */
};

/* Sums up the jobs. Called about once per tick. */
void fetch_progress_update(struct fetch_progress *progress, const struct fetch_job *jobs, size_t count, int64_t now_ns);

#define FETCH_BAR_SIZE      128u
#define FETCH_PROGRESS_SIZE 1024u /* enough for any line */

/* How the line is displayed. */
struct fetch_progress_layout {
    uint32_t attempts_max;
    size_t columns;     /* width of the terminal */
    const char *bar;    /* already drawn: shorter than FETCH_BAR_SIZE, at most bar_columns wide */
    size_t bar_columns; /* width of a full bar */
};

/* Writes one line that fits: state, percentage, bar, amount, rate, remaining time. For a single job the state is its
 * attempt or wait, for several the number of jobs per state. If the line is too wide, the bar is dropped first, then
 * remaining time, rate and so on; at least one part stays. */
void fetch_progress_line(const struct fetch_progress *progress, const struct fetch_progress_layout *layout, char *text,
                         size_t size);

#endif
