/* result.c - turns the observations of an attempt into an outcome and an exit status; see result.h. */
#include "result.h"

#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define EXIT_CANNOT_RUN  126 /* as a shell reports it */
#define EXIT_NOT_FOUND   127
#define EXIT_SIGNAL_BASE 128

int run_shell_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? EXIT_SIGNAL_BASE + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static struct bide_outcome outcome_of_kind(enum bide_kind kind)
{
    return (struct bide_outcome){.kind = kind};
}

bool run_rules_name_status(const struct bide_rules *rules, int status)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++)
        if (status >= rules->rule[i].first && status <= rules->rule[i].last)
            return true;
    return rules != NULL && rules->only;
}

/* Returns whether the table of like.h says that the failure is transient. */
static bool like_is_transient(const struct run_result *e)
{
    if (e->known[RUN_KNOWN_PERMANENT] != NULL || e->known[RUN_KNOWN_TRANSIENT] != NULL)
        return e->known[RUN_KNOWN_PERMANENT] == NULL;
    for (size_t i = 0; e->like->exits[i] != 0; i++)
        if (e->like->exits[i] == e->status)
            return true;
    return false;
}

/* Classifies by exit status alone: the user's rules first, then the table of classify.h or of like.h. */
static struct bide_outcome classify_status(const struct run_result *e, const struct bide_rules *rules)
{
    bool by_table = e->status != 0 && !run_rules_name_status(rules, e->status);
    if (by_table && e->like != NULL && bide_classify_exit(e->status, NULL).kind != BIDE_KIND_CANCELLED)
        return outcome_of_kind(like_is_transient(e) ? BIDE_KIND_TRANSIENT : BIDE_KIND_PERMANENT);
    bool only_patterns = e->has_patterns && (rules == NULL || !rules->only);
    if (e->status != 0 && only_patterns)
        return outcome_of_kind(BIDE_KIND_PERMANENT);
    return bide_classify_exit(e->status, rules);
}

/* A failed condition is transient, unless the condition was interrupted. */
static struct bide_outcome classify_condition(const struct run_result *e)
{
    bool interrupted = bide_classify_exit(e->condition_status, NULL).kind == BIDE_KIND_CANCELLED;
    return outcome_of_kind(interrupted ? BIDE_KIND_CANCELLED : BIDE_KIND_TRANSIENT);
}

static struct bide_outcome classify_result(const struct run_result *e, const struct bide_rules *rules)
{
    if (e->exec_error != 0)
        return outcome_of_kind(BIDE_KIND_PERMANENT);
    if (e->timed_out)
        return (struct bide_outcome){.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT};
    if (e->killed && bide_classify_exit(e->status, rules).kind == BIDE_KIND_CANCELLED)
        return outcome_of_kind(BIDE_KIND_CANCELLED);
    if (e->stdout_closed)
        return outcome_of_kind(BIDE_KIND_PERMANENT);
    if (e->pattern != NULL)
        return outcome_of_kind(BIDE_KIND_TRANSIENT);
    if (e->status == 0 && e->condition_status != 0)
        return classify_condition(e);
    return classify_status(e, rules);
}

struct bide_outcome run_result_outcome(const struct run_result *e, const struct bide_rules *rules)
{
    struct bide_outcome o = classify_result(e, rules);
    if (o.kind != BIDE_KIND_OK) {
        o.hint = e->hint;
        o.flags |= e->stdin_spent ? BIDE_FLAG_BODY_SPENT : 0u;
    }
    return o;
}

int run_result_exit_status(const struct run_result *e)
{
    if (e->exec_error != 0)
        return e->exec_error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    if (e->timed_out)
        return RUN_EXIT_TIMEOUT;
    if (e->status != 0)
        return e->status;
    if (e->stdout_closed) /* the command ended before it could get SIGPIPE */
        return EXIT_SIGNAL_BASE + SIGPIPE;
    if (e->pattern != NULL)
        return 1;
    return e->condition_status;
}
