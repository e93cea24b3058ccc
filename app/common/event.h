/* event.h - the JSON events of `bide run` and `bide fetch`: one object per line, the same members for the same things.
 * docs/command.md describes them.
 *
 * A line is written with one call of fwrite, because several processes may append to one log. No memory is needed for
 * that unless the line is longer than 8 KiB; without memory such a line is written in parts. A line is whole, or its
 * stream has failed. */
#ifndef CLI_EVENT_H
#define CLI_EVENT_H

#include <bide/hint.h>
#include <bide/verdict.h>

#include <stdio.h>

enum cli_event_kind {
    CLI_EVENT_ATTEMPT,  /* an attempt starts: reason */
    CLI_EVENT_OUTCOME,  /* an attempt ended: status, outcome, text, took_ns, timed_out, hint, transfer */
    CLI_EVENT_WAIT,     /* wait_ns, reason */
    CLI_EVENT_DONE,     /* the call succeeded: reason, status, exit_status, text, elapsed_ns, signal, transfer */
    CLI_EVENT_GIVE_UP,  /* the call failed: likewise */
    CLI_EVENT_FALLBACK, /* the fallback ended: exit_status, elapsed_ns */
    CLI_EVENT_FLEET,    /* a message about the fleet: text */
    CLI_EVENT_ERROR,    /* bide itself failed, or ignored a variable or a partial file: text */
};

#define CLI_EVENT_NO_STATUS (-1) /* of `status`: no attempt ended, or no response was received */

/* Members that only `bide fetch` has. */
struct cli_event_transfer {
    int code; /* CURLcode; 0 is written as null */
    uint64_t bytes;
    bool resumed;
    const char *file, *key; /* NULL or "": null */
};

struct cli_event {
    enum cli_event_kind kind;
    const char *target;    /* NULL: left out */
    const char *url;       /* NULL: left out */
    uint32_t attempt;      /* its number; of DONE and GIVE_UP: number of attempts made */
    uint32_t attempts_max; /* UINT32_MAX: unlimited, left out */
    enum bide_reason reason;
    enum bide_kind outcome;
    int64_t status; /* of the command or the response */
    int exit_status;
    const char *text; /* NULL or "": null */
    int64_t took_ns, wait_ns, elapsed_ns;
    bool timed_out;
    struct bide_hint hint;
    int signal;                                /* 0: left out */
    const struct cli_event_transfer *transfer; /* NULL: left out */
};

/* Formats "2 of 4", or "2" if attempts are unlimited. Returns text. */
#define CLI_ATTEMPT_SIZE 32u
const char *cli_attempt_text(char text[CLI_ATTEMPT_SIZE], uint32_t attempt, uint32_t attempts_max);

/* Return false and set errno if the stream could not be written. */
bool cli_event_write(FILE *out, const struct cli_event *event);

/* Writes the event `summary`: an array `urls` with the members of DONE and GIVE_UP, without time and target. `get`
 * describes element i; its strings must stay valid until the next call. */
bool cli_event_write_summary(FILE *out, size_t count, void (*get)(void *context, size_t i, struct cli_event *event),
                             void *context);

#endif
