/* loop.h - runs a command, and repeats it while it fails in a transient way.
 *
 *     config ──► run_command ──► exit status
 *                    │
 *                    └─► events: attempt starts, attempt ends, wait, final result
 *
 * One loop executes the engine's verdicts: START forks a process in its own group, WAIT sleeps, DONE and GIVE_UP end
 * the call. The observations of an attempt (exit status, a matched pattern, the condition, a passed deadline) become an
 * outcome in result.c; the engine decides about the next attempt. A termination signal to bide cancels the call: it is
 * passed on to the process group, which has a grace period before SIGKILL.
 *
 * This layer prints nothing; the event callback does. */
#ifndef RUN_LOOP_H
#define RUN_LOOP_H

#include <bide/call.h>
#include <bide/classify.h>
#include <bide/event.h>

#include "lines.h"
#include "result.h"
#include "stdin.h"

/* Where the command may write hints (Retry-After). */
enum run_hints {
    RUN_HINT_NONE = 0,
    RUN_HINT_STDERR = 1u << 0, /* a line "retry-after: 5" on stderr */
    RUN_HINT_FD = 1u << 1,     /* the same, or a bare number, on descriptor RUN_HINT_FD_NUMBER */
};
#define RUN_HINT_FD_NUMBER 3

enum run_event_kind {
    RUN_ATTEMPT_STARTS, /* an attempt is about to start */
    RUN_ATTEMPT_ENDED,  /* an attempt ended: see `result` */
    RUN_WAITING,        /* until verdict->wake_ns */
    RUN_TICK,           /* still waiting; only if tick_ns is set */
    RUN_SUCCEEDED,
    RUN_GAVE_UP,        /* `status` is the exit status, unless a fallback runs */
    RUN_FALLBACK_ENDED, /* `status` is the exit status of the fallback and of bide */
    RUN_ERROR,          /* bide itself failed, or ignored an invalid variable: see `text` */
};

struct run_event {
    enum run_event_kind kind;
    const struct bide_verdict *verdict; /* NULL for RUN_ERROR: there is no call yet */
    const struct run_result *result;    /* of the last attempt; NULL: no attempt was made */
    const char *text;
    int64_t call_start_ns; /* start of the call */
    int64_t now_ns;        /* of RUN_WAITING: the instant of the verdict, so that the drawn wait is reported */
    int status;
    int signal; /* that bide received; 0: none */
};

struct run_config {
    const struct bide_policy *policy;
    struct bide_target *target;                             /* BIDE_NO_TARGET: no shared gates */
    const char *target_name;                                /* NULL: unnamed */
    const struct bide_rules *exit_rules;                    /* NULL: the table of classify.h */
    const struct run_like *like;                            /* --like; NULL: none */
    struct run_patterns *known;                             /* its messages, RUN_KNOWN_COUNT sets */
    struct run_patterns *stderr_patterns, *stdout_patterns; /* NULL: none */
    uint64_t seed;
    bool has_seed; /* false: a random seed */
    char *const *command;
    const char *until;    /* --until: a shell command that must succeed after a successful attempt; NULL: none */
    const char *fallback; /* --fallback: a shell command that is run once if the call is given up; NULL: none */
    int64_t grace_ns;     /* between the termination signal and SIGKILL */
    uint32_t hints;       /* enum run_hints */
    bool hold_stdout;     /* --hold: write only the stdout of the successful attempt */
    bool only_failures;   /* --cron: store stdout and stderr of each attempt instead of forwarding them */
    bool show_failed;     /* write the stored output of the last attempt to stderr when bide gives up */
    enum run_stdin_option stdin_option;
    int64_t tick_ns; /* 0: no ticks */
    bool *midline;   /* set to whether forwarded stderr ends without a newline; may be NULL */
    void (*event)(void *context, const struct run_event *event);
    void *context;
};

#define RUN_EXIT_INTERNAL 125 /* bide itself failed */
#define RUN_EXIT_TIMEOUT  124 /* the attempt timed out, or the deadline passed before the first attempt */
#define RUN_EXIT_REFUSED  75  /* a gate refused the first attempt */

/* Returns true if bide was started without RUN_HINT_FD_NUMBER. Must be called before any descriptor is opened. */
bool run_hint_fd_is_free(void);

/* Runs the call to its end. Returns the exit status, or the negated number of a keyboard signal by which the caller
 * should die, so that a shell sees it (cli_signal_die). */
int run_command(const struct run_config *config);

#endif
