/* loop.h - a command, run again while it fails in a way that may pass.
 *
 *     config ──► run_command ──► exit status
 *                    │
 *                    └─► event: each attempt, its end, each wait, how it came out
 *
 * One loop obeys the engine's verdicts: START makes a process in a group of its own, WAIT sleeps, DONE and GIVE_UP end.
 * What the process did is evidence (its status, a pattern in its output, a condition afterwards, time that ran out);
 * judge.h makes an outcome of it, and the engine decides. Signals to bide end the call: they are passed on to the
 * group, which has a grace period before it is killed.
 *
 * Nothing is printed here: whoever listens to the events does that. */
#ifndef RUN_LOOP_H
#define RUN_LOOP_H

#include <bide/call.h>
#include <bide/classify.h>

#include "lines.h"
#include "result.h"

/* Where the command may ask for time. */
enum run_hints {
    RUN_HINT_NONE = 0,
    RUN_HINT_STDERR = 1u << 0, /* a line "retry-after: 5" on its stderr */
    RUN_HINT_FD = 1u << 1,     /* the same, or a bare value, on descriptor RUN_HINT_FD_NUMBER */
};
#define RUN_HINT_FD_NUMBER 3

enum run_event_kind {
    RUN_ATTEMPT_STARTS, /* an attempt is about to start */
    RUN_ATTEMPT_ENDED,  /* it ended: see `ending` */
    RUN_WAITING,        /* until verdict->wake_ns */
    RUN_TICK,           /* still waiting; only if tick_ns is set */
    RUN_SUCCEEDED,
    RUN_GAVE_UP,        /* `status` is the exit status, unless a fallback changes it */
    RUN_FALLBACK_ENDED, /* the fallback ended: `status` is its status, and the exit status */
    RUN_ERROR,          /* bide itself failed, or has something to say: see `text` */
};

struct run_event {
    enum run_event_kind kind;
    const struct bide_verdict *verdict;
    const struct run_result *result; /* of the last attempt; NULL: there was none */
    const char *text;
    int64_t call_start_ns; /* when the call began */
    int64_t now_ns;        /* of RUN_WAITS: when it was decided, so that the wait is what was drawn */
    int status;
    int signal; /* that bide was sent; 0: none */
};

struct run_config {
    const struct bide_policy *policy;
    struct bide_target *target;          /* NULL: none of its gates */
    const char *target_name;             /* NULL: it has none */
    const struct bide_rules *exit_rules; /* NULL: the table of classify.h */
    const struct run_patterns *stderr_patterns, *stdout_patterns;
    uint64_t seed;
    bool has_seed; /* else it is drawn */
    char *const *command;
    const char *until;    /* a shell command that must succeed after an attempt that did; NULL: none */
    const char *fallback; /* a shell command to run, once, when it is given up; NULL: none */
    int64_t grace_ns;     /* between asking a group to end and killing it */
    uint32_t hints;       /* enum run_hints */
    bool hold_stdout;     /* only the stdout of the attempt that succeeded is let out */
    bool replay_stdin;
    int64_t tick_ns; /* 0: no ticks */
    bool *midline;   /* set while stderr, as it was passed on, ends without a newline; NULL: nobody asks */
    void (*event)(void *context, const struct run_event *event);
    void *context;
};

#define RUN_EXIT_INTERNAL 125 /* bide itself failed */
#define RUN_EXIT_TIMEOUT  124 /* cut, or not run at all, for lack of time */
#define RUN_EXIT_REFUSED  75  /* nothing was run: a gate refused */

/* True if nobody gave bide the descriptor for hints. To be asked first of all, before anything is opened. */
bool run_hint_fd_is_free(void);

/* Runs it to its end. Returns the exit status; or minus the number of a signal that was the keyboard's, by which the
 * caller should die, so that a shell sees it (see run_die). */
int run_command(const struct run_config *config);

/* Dies of a signal, as if nobody had heard it. Does not return. */
_Noreturn void run_die_by_signal(int signo);

#endif
