/* log_output.h - writes lines to a descriptor that may be blocked, full or closed, and never waits for it.
 *
 * A line is written by one system call and is shorter than PIPE_BUF, so that a pipe takes it whole or not at all, and
 * lines of other writers do not mix with it. A socket, a terminal or a full disk may take a part: the rest is kept and
 * written before the next line. Without the rest the line is lost, and the next one begins on a line of its own.
 *
 * The thread that writes blocks SIGPIPE: a closed pipe is an error, and does not end the process. */
#ifndef TELEMETRY_LOG_OUTPUT_H
#define TELEMETRY_LOG_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define TELEMETRY_LINE_MAX 2048u
_Static_assert(TELEMETRY_LINE_MAX <= PIPE_BUF, "a pipe takes a line whole");

enum telemetry_output_result {
    TELEMETRY_OUTPUT_WRITTEN, /* or its rest is kept */
    TELEMETRY_OUTPUT_BLOCKED, /* nothing of it was written */
    TELEMETRY_OUTPUT_ERROR,   /* it could not be written */
};

struct telemetry_output {
    int fd; /* a descriptor of its own */
    bool is_socket;
    bool is_cut;        /* the last line was written in part, and its rest is lost */
    size_t rest_length; /* of a line that was written in part */
    char rest[TELEMETRY_LINE_MAX];
};

/* Returns false, with errno, if the descriptor is not open for writing. It may be closed after that. */
bool telemetry_output_open(struct telemetry_output *output, int fd);

/* Writes the rest of the last line and closes. Returns false if the rest is lost because the descriptor is blocked;
 * after an error it is counted here, as below. */
bool telemetry_output_close(struct telemetry_output *output);

/* Writes a line. If the rest of an earlier line is lost before it, that line is counted as dropped (dropped.h); this
 * line is counted by the caller. */
enum telemetry_output_result telemetry_output_write(struct telemetry_output *output, const char *line, size_t length);

#endif
