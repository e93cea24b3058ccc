/* fleet.c - the functions of bide/fleet.h: open, join, leave, get, close; and fork.
 *
 * None of them waits for Redis, except bide_fleet_close, which waits up to the timeout until the sockets have taken the
 * final requests.
 *
 * fork: the child has a copy of the memory, but not the thread. Its private targets hold the same tokens and unreported
 * earnings as the parent's; both are removed before fork returns in the child, so that no token is spent or reported
 * twice. The child closes the descriptors without sending anything, because the parent uses the same sockets. The fleet
 * is then orphaned: it can be read, left and closed, but not joined. Known weakness: children that pthread_atfork does
 * not see (raw clone) have duplicate tokens. */
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
#include "problem.h"

#define STACK_BYTES         262144u /* OpenSSL verifies certificates on it, and it runs the report callback */
#define CONFIGURE_TRIES_MAX 1000u   /* attempts to begin or end a lease while another thread configures the target */

static pthread_mutex_t fleets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bide_fleet *fleets;

/* ---- fork ---- */

static void fork_lock_all(void)
{
    pthread_mutex_lock(&fleets_lock);
    for (struct bide_fleet *fleet = fleets; fleet != NULL; fleet = fleet->next) {
        pthread_mutex_lock(&fleet->turn_lock);
        pthread_mutex_lock(&fleet->members_lock);
    }
}

static void fork_unlock_all(void)
{
    for (struct bide_fleet *fleet = fleets; fleet != NULL; fleet = fleet->next) {
        pthread_mutex_unlock(&fleet->members_lock);
        pthread_mutex_unlock(&fleet->turn_lock);
    }
    pthread_mutex_unlock(&fleets_lock);
}

static void fleet_orphan(struct bide_fleet *fleet, int64_t now_ns)
{
    fleet->orphaned = true;
    for (struct fleet_member *member = fleet->members; member != NULL; member = member->next)
        if (!member->shared) {
            bide_budget_add_milli(member->lease.target, -(int64_t)BIDE_CAPACITY_MAX_MILLI, now_ns);
            core_lease_collect(member->lease.target);
        }
    for (struct fleet_node *node = fleet->nodes; node != NULL; node = node->next)
        fleet_connection_abandon(node->connection);
}

/* Async-signal-safe functions only: other threads of the parent may have held any lock, e.g. malloc's. */
static void fork_child_orphan_all(void)
{
    int64_t now_ns = bide_now();
    for (struct bide_fleet *fleet = fleets; fleet != NULL; fleet = fleet->next)
        if (!fleet->orphaned)
            fleet_orphan(fleet, now_ns);
    fork_unlock_all();
}

static int atfork_failed;

static void fork_register_handlers(void)
{
    atfork_failed = pthread_atfork(fork_lock_all, fork_unlock_all, fork_child_orphan_all);
}

static void fleets_add(struct bide_fleet *fleet)
{
    pthread_mutex_lock(&fleets_lock);
    fleet->next = fleets;
    fleets = fleet;
    pthread_mutex_unlock(&fleets_lock);
}

static void fleets_remove(struct bide_fleet *fleet)
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

/* Blocks the program's signals on our thread, except those that a thread raises by its own instructions: SIGBUS must
 * reach the handler that guards truncated files of shared targets (bide/shared.h). */
static int fleet_start_thread(struct bide_fleet *fleet)
{
    static const int synchronous[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, previous;
    pthread_attr_t attributes;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        sigdelset(&blocked, synchronous[i]);
    int failed = pthread_attr_init(&attributes);
    if (failed != 0)
        return failed;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_BLOCK, &blocked, &previous);
    failed = pthread_create(&fleet->thread, &attributes, fleet_thread, fleet);
    if (failed == EINVAL) /* the program's thread-local storage does not fit into the small stack */
        failed = pthread_create(&fleet->thread, NULL, fleet_thread, fleet);
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    pthread_attr_destroy(&attributes);
    if (failed == 0)
        pthread_setname_np(fleet->thread, "bide-fleet");
    return failed;
}

static void members_free(struct fleet_member *member)
{
    while (member != NULL) {
        struct fleet_member *next = member->next;
        free(member);
        member = next;
    }
}

static void fleet_free(struct bide_fleet *fleet)
{
    if (fleet == NULL)
        return;
    while (fleet->nodes != NULL) {
        struct fleet_node *node = fleet->nodes;
        fleet->nodes = node->next;
        fleet_node_free(node);
    }
    members_free(fleet->members);
    members_free(fleet->leaving);
    fleet_url_free(&fleet->url);
    if (fleet->wake_fd >= 0)
        close(fleet->wake_fd);
    pthread_mutex_destroy(&fleet->members_lock);
    pthread_mutex_destroy(&fleet->turn_lock);
    free(fleet);
}

static struct bide_fleet *fleet_new(const struct bide_fleet_options *options)
{
    struct bide_fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet == NULL)
        return NULL;
    if (options != NULL)
        fleet->options = *options;
    pthread_mutex_init(&fleet->turn_lock, NULL);
    pthread_mutex_init(&fleet->members_lock, NULL);
    fleet->wake_fd = -1;
    do
        fleet->claimant_id = (uint32_t)bide_seed();
    while (fleet->claimant_id == 0);
    return fleet;
}

/* Adds the fleet to the list before its thread starts, so that a fork in between finds it. */
static enum bide_err fleet_start(struct bide_fleet *fleet, struct bide_problem *problem)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fork_register_handlers);
    if (atfork_failed != 0)
        return fleet_problem_set(problem, BIDE_ERR_NOMEM, 0, "%s: out of memory", fleet->url.redacted);
    fleet->wake_fd = fleet_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (fleet->wake_fd < 0)
        return fleet_problem_set(problem, BIDE_ERR_SYSTEM, errno, "%s: cannot create a descriptor (%s)",
                                 fleet->url.redacted, strerror(errno));
    fleets_add(fleet);
    int failed = fleet_start_thread(fleet);
    if (failed == 0)
        return BIDE_OK;
    fleets_remove(fleet);
    return fleet_problem_set(problem, BIDE_ERR_SYSTEM, failed, "%s: cannot create a thread (%s)", fleet->url.redacted,
                             strerror(failed));
}

enum bide_err bide_fleet_open(struct bide_fleet **into, const char *url, const struct bide_fleet_options *options,
                              struct bide_problem *problem)
{
    struct bide_fleet *fleet = fleet_new(options);
    *into = NULL;
    if (fleet == NULL)
        return fleet_problem_set(problem, BIDE_ERR_NOMEM, 0, "out of memory");
    enum bide_err err = fleet_url_parse(&fleet->url, url, problem);
    if (err != BIDE_OK)
        goto out;
    fleet->nodes = fleet_node_new(&fleet->url, "");
    err = fleet->nodes == NULL ? fleet_problem_set(problem, BIDE_ERR_NOMEM, 0, "%s: out of memory", fleet->url.redacted)
                               : fleet_start(fleet, problem);
    if (err == BIDE_OK) {
        *into = fleet;
        fleet = NULL;
    }
out:
    fleet_free(fleet);
    return err;
}

/* ---- joining ---- */

void fleet_member_count_disconnected(struct fleet_member *member, int64_t now_ns)
{
    int64_t leased_until_ns = lease_member_leased_until_ns(&member->lease);
    int64_t disconnected_ns = now_ns - core_max(leased_until_ns, member->disconnected_until_ns);
    if (disconnected_ns > 0)
        member->view.disconnected_ns += disconnected_ns;
    assert(member->view.disconnected_ns >= 0);
    member->disconnected_until_ns = core_max(member->disconnected_until_ns, now_ns);
}

static struct fleet_member **member_find(struct bide_fleet *fleet, const struct bide_target *target)
{
    struct fleet_member **at = &fleet->members;
    while (*at != NULL && (*at)->lease.target != target)
        at = &(*at)->next;
    return at;
}

static enum bide_err member_begin_lease(struct bide_fleet *fleet, struct fleet_member *member,
                                        struct bide_target *target, struct bide_problem *problem)
{
    struct lease_terms terms = fleet->url.terms;
    enum bide_err err = BIDE_ERR_BUSY;
    terms.shared = member->shared;
    for (unsigned i = 0; err == BIDE_ERR_BUSY && i < CONFIGURE_TRIES_MAX; i++) {
        if (i > 0)
            sched_yield();
        err = lease_member_join(&member->lease, target, &terms, fleet->claimant_id, bide_now(), problem);
    }
    return err;
}

/* Under members_lock. */
static enum bide_err member_admit(struct bide_fleet *fleet, struct fleet_member *member, struct bide_target *target,
                                  struct bide_problem *problem)
{
    if (fleet->orphaned)
        return fleet_problem_set(problem, BIDE_ERR_INVALID, 0,
                                 "%s: this fleet was opened before fork; open another in the child", member->name);
    if (*member_find(fleet, target) != NULL)
        return fleet_problem_set(problem, BIDE_ERR_INVALID, 0, "%s: this target has joined already", member->name);
    enum bide_err err = member_begin_lease(fleet, member, target, problem);
    if (err != BIDE_OK)
        return err;
    member->disconnected_until_ns = bide_now();
    member->next = fleet->members;
    fleet->members = member;
    return BIDE_OK;
}

static void thread_wake(const struct bide_fleet *fleet)
{
    eventfd_write(fleet->wake_fd, 1); /* fails only if the counter is full, i.e. a wake-up is pending */
}

enum bide_err bide_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target,
                              struct bide_problem *problem)
{
    enum bide_err err = bide_targets_name_check(name, problem);
    if (err != BIDE_OK)
        return err;
    struct fleet_member *member = calloc(1, sizeof *member);
    if (member == NULL)
        return fleet_problem_set(problem, BIDE_ERR_NOMEM, 0, "%s: out of memory", name);
    snprintf(member->name, sizeof member->name, "%s", name);
    fleet_key_format(&fleet->url, name, member->key);
    member->shared = core_target_is_shared(target);
    pthread_mutex_lock(&fleet->members_lock);
    err = member_admit(fleet, member, target, problem);
    pthread_mutex_unlock(&fleet->members_lock);
    if (err == BIDE_OK)
        thread_wake(fleet);
    else
        free(member);
    return err;
}

/* ---- leaving ---- */

static void target_end_lease(struct bide_target *target)
{
    for (unsigned i = 0; core_lease_end(target, bide_now()) == BIDE_ERR_BUSY && i < CONFIGURE_TRIES_MAX; i++)
        sched_yield();
}

/* Under members_lock. Afterwards the target belongs to the caller alone; the thread sends the final request, if any. */
static void member_leave(struct bide_fleet *fleet, struct fleet_member **at)
{
    struct fleet_member *member = *at;
    int64_t now_ns = bide_now();
    assert(member->lease.state != LEASE_MEMBER_LEAVING && !member->has_final_request);
    *at = member->next;
    fleet_report_keep_floor(fleet, member, now_ns);
    if (!fleet->orphaned)
        member->has_final_request = lease_member_leave(&member->lease, now_ns, &member->final_request);
    if (!member->shared)
        target_end_lease(member->lease.target);
    member->next = fleet->leaving;
    fleet->leaving = member;
}

void bide_fleet_leave(struct bide_fleet *fleet, struct bide_target *target)
{
    pthread_mutex_lock(&fleet->members_lock);
    struct fleet_member **at = member_find(fleet, target);
    bool found = *at != NULL;
    if (found)
        member_leave(fleet, at);
    pthread_mutex_unlock(&fleet->members_lock);
    if (found && !fleet->orphaned)
        thread_wake(fleet);
}

void bide_fleet_close(struct bide_fleet *fleet)
{
    if (fleet == NULL)
        return;
    assert(fleet->orphaned ||
           !pthread_equal(pthread_self(), fleet->thread)); /* the report callback would wait for itself */
    pthread_mutex_lock(&fleet->members_lock);
    while (fleet->members != NULL)
        member_leave(fleet, &fleet->members);
    fleet->stopping = true;
    pthread_mutex_unlock(&fleet->members_lock);
    if (!fleet->orphaned) {
        thread_wake(fleet);
        pthread_join(fleet->thread, NULL);
    }
    fleets_remove(fleet);
    fleet_free(fleet);
}

/* ---- reading ---- */

/* A failing member's own lease end says nothing, because it is a random instant (protocol/member.c). But if another
 * process is the exchanger now and the end has moved since our failure, that process had a reply: only a reply moves
 * it. */
bool fleet_member_is_failing(const struct fleet_member *member)
{
    return member->lease.state == LEASE_MEMBER_FAILING &&
           (member->lease.exchanger || lease_member_leased_until_ns(&member->lease) <= member->failed_lease_end_ns);
}

bool bide_fleet_get(struct bide_fleet *fleet, const struct bide_target *target, struct bide_fleet_view *view)
{
    pthread_mutex_lock(&fleet->members_lock);
    struct fleet_member *member = *member_find(fleet, target);
    if (member != NULL) {
        int64_t now_ns = bide_now();
        fleet_member_count_disconnected(member, now_ns);
        *view = member->view;
        view->connected = lease_member_leased_until_ns(&member->lease) > now_ns && !fleet_member_is_failing(member);
        view->exchanger = member->lease.exchanger && !fleet->orphaned;
        view->fleet_left_milli = member->lease.reply.level_milli;
        view->leased_milli = bide_target_get(target, now_ns).budget_left_milli;
        view->share_milli = member->lease.reply.share_milli;
        view->members = (uint64_t)member->lease.reply.members;
        snprintf(view->problem, sizeof view->problem, "%s", fleet->report.problem);
    }
    pthread_mutex_unlock(&fleet->members_lock);
    return member != NULL;
}
