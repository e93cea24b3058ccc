/* log.h - reports events on stderr, one line each, as text or JSON. Contains no secrets: of a URL only display_url, of
 * a failure only the status or libcurl's description. */
#ifndef FETCH_LOG_H
#define FETCH_LOG_H

#include "fetch.h"

#include <stdio.h>

struct fetch_log {
    FILE *out;
    uint32_t attempts_max;
    const char *target; /* of all jobs; NULL: unnamed */
    bool several_urls;  /* several URLs: every line names its URL */
    bool verbose;       /* report successful attempts, too */
    bool json;
    bool silent;
    bool show_errors; /* ... except final failures (-S) */
    int error;        /* errno of a JSON event that could not be written; 0: none */
};

void fetch_log_event(struct fetch_log *log, const struct fetch_event *event);

/* Reports a message about the target's fleet. */
void fetch_log_fleet(struct fetch_log *log, const char *text);

/* Reports why the partial file of a job is not continued. */
void fetch_log_restart(struct fetch_log *log, const struct fetch_job *job, const char *why);

/* Reports an error of bide itself, also if the log is silent. The text may quote untrusted input. */
void fetch_log_error(struct fetch_log *log, const char *text);

/* Writes a table of all jobs in their order, or one JSON object. */
void fetch_log_summary(struct fetch_log *log, const struct fetch_job *jobs, size_t count);

/* Formats as "1.3 MB": three significant digits, decimal units. Returns text. */
#define FETCH_BYTES_SIZE 32u
const char *fetch_bytes_text(char text[FETCH_BYTES_SIZE], uint64_t bytes);

#endif
