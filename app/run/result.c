/* result.c - from what was seen of an attempt to an outcome, and to an exit status. */
#include "result.h"

#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define CANNOT_RUN 126 /* as the shell's */
#define NOT_FOUND  127
#define SIGNALLED  128

int run_shell_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? SIGNALLED + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static struct bide_outcome of_kind(enum bide_kind kind)
{
    return (struct bide_outcome){.kind = kind};
}

/* By number alone: rules first, then the table. */
static struct bide_outcome by_status(const struct run_ending *e, const struct bide_rules *rules)
{
    bool only_patterns = e->patterns && (rules == NULL || !rules->only);
    if (e->status != 0 && only_patterns)
        return of_kind(BIDE_KIND_PERMANENT);
    return bide_classify_exit(e->status, rules);
}

/* It failed: not yet, unless somebody interrupted it. */
static struct bide_outcome by_condition(const struct run_ending *e)
{
    bool interrupted = bide_classify_exit(e->condition, NULL).kind == BIDE_KIND_CANCELLED;
    return of_kind(interrupted ? BIDE_KIND_CANCELLED : BIDE_KIND_TRANSIENT);
}

static struct bide_outcome classify(const struct run_ending *e, const struct bide_rules *rules)
{
    if (e->start_error != 0)
        return of_kind(BIDE_KIND_PERMANENT);
    if (e->cut)
        return (struct bide_outcome){.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT};
    if (e->killed && bide_classify_exit(e->status, rules).kind == BIDE_KIND_CANCELLED)
        return of_kind(BIDE_KIND_CANCELLED);
    if (e->output_gone)
        return of_kind(BIDE_KIND_PERMANENT);
    if (e->pattern != NULL)
        return of_kind(BIDE_KIND_TRANSIENT);
    if (e->status == 0 && e->condition != 0)
        return by_condition(e);
    return by_status(e, rules);
}

struct bide_outcome run_judge(const struct run_ending *e, const struct bide_rules *rules)
{
    struct bide_outcome o = classify(e, rules);
    if (o.kind != BIDE_KIND_OK) {
        o.hint = e->hint;
        o.flags |= e->input_spent ? BIDE_FLAG_BODY_SPENT : 0u;
    }
    return o;
}

int run_exit_status(const struct run_ending *e)
{
    if (e->start_error != 0)
        return e->start_error == ENOENT ? NOT_FOUND : CANNOT_RUN;
    if (e->cut)
        return RUN_EXIT_TIME;
    if (e->status != 0)
        return e->status;
    if (e->output_gone) /* it had ended before it could be told */
        return SIGNALLED + SIGPIPE;
    if (e->pattern != NULL)
        return 1;
    return e->condition;
}
