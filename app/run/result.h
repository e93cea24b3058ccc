/* result.h - from what was seen of an attempt to an outcome, and to an exit status.
 *
 * In this order: it could not be started (permanent); time ran out (transient); somebody interrupted it, as death by
 * SIGINT, SIGQUIT or SIGTERM says (cancelled, unless a rule of the user names it); its output cannot be read by anybody
 * any more (permanent); a pattern matched (transient, whatever the status); the status, by the user's rules and the
 * table of classify.h. With patterns given and none matched, only a rule can make a failure transient. Where the status
 * is success, the condition has the last word. */
#ifndef RUN_RESULT_H
#define RUN_RESULT_H

#include <bide/classify.h>

struct run_result {
    int status;                 /* of the command, as a shell reports it: its code, or 128 + the signal it died of */
    bool killed;                /* it died of a signal */
    bool timed_out;             /* its time ran out ... */
    int64_t timed_out_after_ns; /* ... after that long */
    int exec_error;             /* errno: it could not be started; 0: it ran */
    const char *pattern;        /* that matched; NULL: none */
    const char *stream;         /* "stdout" or "stderr": where */
    bool has_patterns;          /* there were patterns to match */
    bool stdout_closed;         /* nobody reads our stdout, and that ended it or lost what it printed */
    bool stdin_spent;           /* it read from a stdin that cannot be given a second time */
    int condition_status;       /* status of the condition; 0: it held, or was not asked */
    struct bide_hint hint;
    struct bide_outcome outcome; /* what run_judge made of all that */
    int64_t took_ns;
};

/* The status of waitpid, as a shell reports it. */
int run_shell_status(int wait_status);

struct bide_outcome run_result_outcome(const struct run_result *result, const struct bide_rules *rules);

/* What bide exits with if this attempt is the last: never 0 unless the outcome is OK. */
int run_result_exit_status(const struct run_result *result);

#endif
