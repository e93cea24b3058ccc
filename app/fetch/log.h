/* log.h - what happened, one line for each thing: for people, or as JSON. Secrets are in none of it: of a URL only
 * what is shown, of a failure only its status or libcurl's words. */
#ifndef FETCH_LOG_H
#define FETCH_LOG_H

#include "fetch.h"

#include <stdio.h>

struct fetch_log {
    FILE *out;
    uint32_t attempts_max;
    const char *target; /* of all jobs; NULL: none was named */
    bool several_urls;  /* several URLs: each line names its own */
    bool verbose;       /* also what went well */
    bool json;
    bool silent;
    bool show_errors; /* ... but for how a job failed in the end */
};

void fetch_log_event(const struct fetch_log *log, const struct fetch_event *event);

/* A line about the fleet that the target belongs to. */
void fetch_log_fleet(const struct fetch_log *log, const char *text);

/* A table of all jobs, in their order; or one JSON object. */
void fetch_log_summary(const struct fetch_log *log, const struct fetch_job *jobs, size_t count);

/* "1.3 MB", three digits that matter; units of a thousand. Returns text. */
#define FETCH_BYTES_SIZE 32u
const char *fetch_bytes_text(char text[FETCH_BYTES_SIZE], uint64_t bytes);

#endif
