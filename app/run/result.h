/* result.h - observations of an attempt, its outcome, and the exit status of bide.
 *
 * The first rule that applies decides:
 *   exec failed                                              permanent
 *   deadline passed                                          transient
 *   death by SIGINT, SIGQUIT, SIGTERM, unless a rule names it  cancelled
 *   stdout has no reader any more                            permanent
 *   a pattern matched                                        transient, whatever the status
 *   status 0 and the condition failed                        transient (cancelled if the condition was interrupted)
 *   otherwise                                                by exit status: the user's rules, then classify.h
 *
 * If patterns are given and none matches, only a --retry-on list, or retry_exit of the policy, can make a failure
 * transient. With --like, a status that the user's rules do not name is classified by the table of like.h. */
#ifndef RUN_RESULT_H
#define RUN_RESULT_H

#include "like.h"
#include "lines.h"

#include <bide/classify.h>

struct run_result {
    int status;                         /* as a shell reports it: the exit code, or 128 + signal number */
    bool killed;                        /* the command died by a signal */
    bool timed_out;                     /* the deadline of the attempt passed ... */
    int64_t timed_out_after_ns;         /* ... this long after its start */
    int exec_error;                     /* errno of exec; 0: the command was started */
    const char *pattern;                /* the pattern that matched; NULL: none did */
    const char *stream;                 /* "stdout" or "stderr": where it matched */
    bool has_patterns;                  /* patterns were given */
    const struct run_like *like;        /* --like: the program whose failures decide; NULL: none */
    const char *known[RUN_KNOWN_COUNT]; /* its messages that matched; NULL: none did */
    bool stdout_closed;                 /* stdout has no reader: the command died by SIGPIPE, or its output was lost */
    bool stdin_spent;                   /* the command read input that cannot be replayed */
    int condition_status;               /* exit status of --until; 0: the condition held, or was not run */
    struct bide_hint hint;
    struct bide_outcome outcome; /* set from run_result_outcome */
    int64_t took_ns;
};

/* Converts a status of waitpid to the form that a shell reports. */
int run_shell_status(int wait_status);

/* Returns whether the rules decide about this exit status, by naming it or by naming all statuses to retry. */
bool run_rules_name_status(const struct bide_rules *rules, int status);

struct bide_outcome run_result_outcome(const struct run_result *result, const struct bide_rules *rules);

/* Returns the exit status of bide if this attempt is the last. Is 0 only if the outcome is OK. */
int run_result_exit_status(const struct run_result *result);

#endif
