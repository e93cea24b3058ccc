/* fleet.c - the functions of bide/fleet.h: who joins, who leaves, how things stand; and fork.
 *
 * None of them waits for Redis, but for bide_fleet_close: the timeout at most, until the sockets have the last words.
 *
 * fork: the child has the memory and not the thread. Its private targets hold the same tokens as the parent's, and the
 * same reports; both are taken away from them before fork returns, so that nothing is spent or earned twice, and the
 * connections are closed there without a word. What is left is a dead fleet, which can be looked at, left and closed.
 * Children that pthread_atfork does not see (raw clone) have doubled tokens: known weakness. */
#include <bide/clock.h>
#include <bide/entropy.h>

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/saturate.h"
#include "fd.h"
#include "fleet_internal.h"

#define STACK_BYTES    262144u /* OpenSSL looks at certificates on it, and `tell` is the caller's */
#define CONFIGURE_MOST 1000u   /* tries to begin or end a lease while somebody else is configuring the target */

static pthread_mutex_t fleets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bide_fleet *fleets;

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&fleets_lock);
    for (struct bide_fleet *fleet = fleets; fleet != NULL; fleet = fleet->next) {
        pthread_mutex_lock(&fleet->turn);
        pthread_mutex_lock(&fleet->lock);
    }
}

static void after_fork(void)
{
    for (struct bide_fleet *fleet = fleets; fleet != NULL; fleet = fleet->next) {
        pthread_mutex_unlock(&fleet->lock);
        pthread_mutex_unlock(&fleet->turn);
    }
    pthread_mutex_unlock(&fleets_lock);
}

static void disown(struct bide_fleet *fleet, int64_t now_ns)
{
    fleet->dead = true;
    for (struct fleet_member *member = fleet->members; member != NULL; member = member->next)
        if (!member->shared) {
            bide_budget_add_milli(member->ledger.target, -(int64_t)BIDE_CAPACITY_MAX_MILLI, now_ns);
            bide_lease_collect(member->ledger.target);
        }
    for (struct fleet_line *line = fleet->lines; line != NULL; line = line->next)
        fleet_link_abandon(line->link);
}

/* Async-signal-safe: in the child of a process with threads nothing else would be. */
static void after_fork_in_child(void)
{
    int64_t now_ns = bide_now();
    for (struct bide_fleet *fleet = fleets; fleet != NULL; fleet = fleet->next)
        if (!fleet->dead)
            disown(fleet, now_ns);
    after_fork();
}

static int atfork_failed;

static void mind_forks(void)
{
    atfork_failed = pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void enlist(struct bide_fleet *fleet)
{
    pthread_mutex_lock(&fleets_lock);
    fleet->next = fleets;
    fleets = fleet;
    pthread_mutex_unlock(&fleets_lock);
}

static void delist(struct bide_fleet *fleet)
{
    pthread_mutex_lock(&fleets_lock);
    for (struct bide_fleet **at = &fleets; *at != NULL; at = &(*at)->next)
        if (*at == fleet) {
            *at = fleet->next;
            break;
        }
    pthread_mutex_unlock(&fleets_lock);
}

/* ---- opening ---- */

static enum bide_err told(struct bide_fleet_problem *problem, enum bide_err err, const char *shown, const char *what)
{
    if (problem != NULL)
        snprintf(problem->text, sizeof problem->text, "%.300s%s%.200s", shown, shown[0] != 0 ? ": " : "", what);
    return err;
}

/* No signal of the program is handled on our thread; those that a thread raises itself are (a truncated file of
 * bide/shared.h is a SIGBUS, and has a guard). */
static int start(struct bide_fleet *fleet)
{
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    pthread_attr_t attributes;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    int failed = pthread_attr_init(&attributes);
    if (failed != 0)
        return failed;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    failed = pthread_create(&fleet->thread, &attributes, fleet_thread, fleet);
    if (failed == EINVAL) /* the program's thread-local variables do not fit in */
        failed = pthread_create(&fleet->thread, NULL, fleet_thread, fleet);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed == 0)
        pthread_setname_np(fleet->thread, "bide-fleet");
    return failed;
}

static void free_members(struct fleet_member *member)
{
    while (member != NULL) {
        struct fleet_member *next = member->next;
        free(member);
        member = next;
    }
}

static void free_fleet(struct bide_fleet *fleet)
{
    if (fleet == NULL)
        return;
    while (fleet->lines != NULL) {
        struct fleet_line *line = fleet->lines;
        fleet->lines = line->next;
        fleet_line_free(line);
    }
    free_members(fleet->members);
    free_members(fleet->leaving);
    fleet_url_free(&fleet->url);
    if (fleet->wake_fd >= 0)
        close(fleet->wake_fd);
    pthread_mutex_destroy(&fleet->lock);
    pthread_mutex_destroy(&fleet->turn);
    free(fleet);
}

static struct bide_fleet *new_fleet(const struct bide_fleet_options *options)
{
    struct bide_fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet == NULL)
        return NULL;
    if (options != NULL)
        fleet->options = *options;
    pthread_mutex_init(&fleet->turn, NULL);
    pthread_mutex_init(&fleet->lock, NULL);
    fleet->wake_fd = -1;
    do
        fleet->who = (uint32_t)bide_seed();
    while (fleet->who == 0);
    return fleet;
}

/* Puts the fleet in the list before its thread runs: a fork in between finds a whole one. */
static enum bide_err set_going(struct bide_fleet *fleet, struct bide_fleet_problem *problem)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char what[160];
    pthread_once(&once, mind_forks);
    if (atfork_failed != 0)
        return told(problem, BIDE_ERR_NOMEM, fleet->url.shown, "no memory");
    fleet->wake_fd = fleet_fd_above(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (fleet->wake_fd < 0) {
        snprintf(what, sizeof what, "no descriptor (%s)", strerror(errno));
        return told(problem, BIDE_ERR_SYSTEM, fleet->url.shown, what);
    }
    enlist(fleet);
    int failed = start(fleet);
    if (failed == 0)
        return BIDE_OK;
    delist(fleet);
    snprintf(what, sizeof what, "no thread (%s)", strerror(failed));
    return told(problem, BIDE_ERR_SYSTEM, fleet->url.shown, what);
}

enum bide_err bide_fleet_open(struct bide_fleet **into, const char *url, const struct bide_fleet_options *options,
                              struct bide_fleet_problem *problem)
{
    struct bide_fleet *fleet = new_fleet(options);
    *into = NULL;
    if (fleet == NULL)
        return told(problem, BIDE_ERR_NOMEM, "", "no memory");
    enum bide_err err = fleet_url_read(&fleet->url, url, problem);
    if (err != BIDE_OK)
        goto out;
    fleet->lines = fleet_line_new(&fleet->url, "");
    err =
        fleet->lines == NULL ? told(problem, BIDE_ERR_NOMEM, fleet->url.shown, "no memory") : set_going(fleet, problem);
    if (err == BIDE_OK) {
        *into = fleet;
        fleet = NULL;
    }
out:
    free_fleet(fleet);
    return err;
}

/* ---- joining ---- */

void fleet_member_count(struct fleet_member *member, int64_t now_ns)
{
    int64_t disconnected_ns = now_ns - core_max(bide_lease_until(member->ledger.target), member->counted_ns);
    if (disconnected_ns > 0)
        member->seen.disconnected_ns += disconnected_ns;
    member->counted_ns = core_max(member->counted_ns, now_ns);
}

static struct fleet_member **find(struct bide_fleet *fleet, const struct bide_target *target)
{
    struct fleet_member **at = &fleet->members;
    while (*at != NULL && (*at)->ledger.target != target)
        at = &(*at)->next;
    return at;
}

static enum bide_err begin(struct bide_fleet *fleet, struct fleet_member *member, struct bide_target *target,
                           struct bide_fleet_problem *problem)
{
    struct lease_terms terms = fleet->url.terms;
    struct bide_problem wrong = {0};
    char what[256] = "somebody else is configuring the target; try again";
    enum bide_err err = BIDE_ERR_BUSY;
    terms.shared = member->shared;
    for (unsigned i = 0; err == BIDE_ERR_BUSY && i < CONFIGURE_MOST; i++) {
        if (i > 0)
            sched_yield();
        err = lease_ledger_begin(&member->ledger, target, &terms, fleet->who, bide_now(), &wrong);
    }
    if (err == BIDE_ERR_INVALID && wrong.field != NULL)
        bide_problem_format(what, sizeof what, &wrong);
    return err == BIDE_OK ? BIDE_OK : told(problem, err, member->name, what);
}

static enum bide_err check(const char *name, struct bide_fleet_problem *problem)
{
    struct bide_problem wrong;
    char what[256];
    enum bide_err err = bide_targets_name_check(name, &wrong);
    if (err == BIDE_OK)
        return BIDE_OK;
    bide_problem_format(what, sizeof what, &wrong);
    return told(problem, err, "", what);
}

/* Under `lock`. */
static enum bide_err admit(struct bide_fleet *fleet, struct fleet_member *member, struct bide_target *target,
                           struct bide_fleet_problem *problem)
{
    if (fleet->dead)
        return told(problem, BIDE_ERR_INVALID, member->name, "this fleet was opened before fork; open it anew");
    if (*find(fleet, target) != NULL)
        return told(problem, BIDE_ERR_INVALID, member->name, "this target has joined already");
    enum bide_err err = begin(fleet, member, target, problem);
    if (err != BIDE_OK)
        return err;
    member->counted_ns = bide_now();
    member->next = fleet->members;
    fleet->members = member;
    return BIDE_OK;
}

static void wake(const struct bide_fleet *fleet)
{
    eventfd_write(fleet->wake_fd, 1); /* fails only if it is awake already */
}

enum bide_err bide_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target, bool shared,
                              struct bide_fleet_problem *problem)
{
    enum bide_err err = check(name, problem);
    if (err != BIDE_OK)
        return err;
    struct fleet_member *member = calloc(1, sizeof *member);
    if (member == NULL)
        return told(problem, BIDE_ERR_NOMEM, name, "no memory");
    snprintf(member->name, sizeof member->name, "%s", name);
    fleet_key(&fleet->url, name, member->key);
    member->shared = shared;
    pthread_mutex_lock(&fleet->lock);
    err = admit(fleet, member, target, problem);
    pthread_mutex_unlock(&fleet->lock);
    if (err == BIDE_OK)
        wake(fleet);
    else
        free(member);
    return err;
}

/* ---- leaving ---- */

static void end_lease(struct bide_target *target)
{
    for (unsigned i = 0; bide_lease_end(target, bide_now()) == BIDE_ERR_BUSY && i < CONFIGURE_MOST; i++)
        sched_yield();
}

/* Under `lock`. From now on its target is the caller's alone; the thread says the last ask, if there is one. */
static void leave(struct bide_fleet *fleet, struct fleet_member **at)
{
    struct fleet_member *member = *at;
    int64_t now_ns = bide_now();
    *at = member->next;
    if (!fleet->dead)
        member->has_last = lease_ledger_leave(&member->ledger, now_ns, &member->last);
    if (!member->shared)
        end_lease(member->ledger.target);
    member->left = true;
    member->next = fleet->leaving;
    fleet->leaving = member;
}

void bide_fleet_leave(struct bide_fleet *fleet, struct bide_target *target)
{
    pthread_mutex_lock(&fleet->lock);
    struct fleet_member **at = find(fleet, target);
    bool found = *at != NULL;
    if (found)
        leave(fleet, at);
    pthread_mutex_unlock(&fleet->lock);
    if (found && !fleet->dead)
        wake(fleet);
}

void bide_fleet_close(struct bide_fleet *fleet)
{
    if (fleet == NULL)
        return;
    assert(fleet->dead || !pthread_equal(pthread_self(), fleet->thread)); /* `tell` would wait for itself */
    pthread_mutex_lock(&fleet->lock);
    while (fleet->members != NULL)
        leave(fleet, &fleet->members);
    fleet->stopping = true;
    pthread_mutex_unlock(&fleet->lock);
    if (!fleet->dead) {
        wake(fleet);
        pthread_join(fleet->thread, NULL);
    }
    delist(fleet);
    free_fleet(fleet);
}

/* ---- looking ---- */

/* Not told by the lease's end, which is drawn for one that fails. If another process exchanges now, it is: only an
 * answer moves it. */
bool fleet_member_is_failing(const struct fleet_member *member)
{
    return member->failing &&
           (member->ledger.exchanger || bide_lease_until(member->ledger.target) <= member->lapses_ns);
}

bool bide_fleet_get(struct bide_fleet *fleet, const struct bide_target *target, struct bide_fleet_view *view)
{
    pthread_mutex_lock(&fleet->lock);
    struct fleet_member *member = *find(fleet, target);
    if (member != NULL) {
        int64_t now_ns = bide_now();
        fleet_member_count(member, now_ns);
        *view = member->seen;
        view->connected = bide_lease_until(target) > now_ns && !fleet_member_is_failing(member);
        view->exchanger = member->ledger.exchanger && !fleet->dead;
        view->fleet_left_milli = member->ledger.answer.level_milli;
        view->leased_milli = bide_budget_left_milli(target, now_ns);
        view->share_milli = member->ledger.answer.share_milli;
        view->members = (uint64_t)member->ledger.answer.instances;
        view->openings_followed = member->ledger.openings_followed;
        snprintf(view->problem, sizeof view->problem, "%s", fleet->news.problem);
    }
    pthread_mutex_unlock(&fleet->lock);
    return member != NULL;
}
