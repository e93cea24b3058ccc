/* fleet_thread.c - the one thread of a fleet: it goes round in turns, and sleeps in between.
 *
 * It wakes for a socket, for a function of bide/fleet.h that wants it to, and for the earliest of: a member that is due
 * or must be looked at, a connection that may be tried again, an answer that is overdue. It never wakes more often than
 * each LOOK_NS for a member alone, whatever ledgers say.
 *
 * In a large fleet that is idle, connections would be more of a load than what is said over them (and Redis takes
 * 10,000 by default): there a line is closed between exchanges that are far apart. Not with TLS, where the greeting
 * costs more than the connection. */
#include <bide/clock.h>

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/saturate.h"
#include "fleet_internal.h"

#define LOOK_NS      (10 * BIDE_MS)
#define CROWD        2000 /* instances */
#define FAR_APART_NS (5 * BIDE_S)

/* ---- those who leave ---- */

static struct fleet_member *take_leavers(struct bide_fleet *fleet, bool *stopping)
{
    pthread_mutex_lock(&fleet->lock);
    struct fleet_member *leavers = fleet->leaving;
    fleet->leaving = NULL;
    *stopping = fleet->stopping;
    pthread_mutex_unlock(&fleet->lock);
    return leavers;
}

/* True: we are to stop. */
static bool see_off(struct bide_fleet *fleet, int64_t now_ns)
{
    bool stopping;
    for (struct fleet_member *member = take_leavers(fleet, &stopping); member != NULL;) {
        struct fleet_member *next = member->next;
        fleet_line_last(fleet, member, now_ns);
        member = next;
    }
    return stopping;
}

/* ---- lines that nobody needs ---- */

static bool has(const struct fleet_line *line, const struct fleet_member *member)
{
    while (member != NULL && member->line != line)
        member = member->next;
    return member != NULL;
}

/* Those who have left since this turn began still have something to say there. */
static bool has_members(struct bide_fleet *fleet, const struct fleet_line *line)
{
    pthread_mutex_lock(&fleet->lock);
    bool any = has(line, fleet->members) || has(line, fleet->leaving);
    pthread_mutex_unlock(&fleet->lock);
    return any;
}

static void drop_lines(struct bide_fleet *fleet)
{
    struct fleet_line *before = fleet->lines; /* the first stays */
    while (before != NULL && before->next != NULL) {
        struct fleet_line *line = before->next;
        if (line->count > 0 || has_members(fleet, line)) {
            before = line;
            continue;
        }
        before->next = line->next;
        fleet_line_free(line);
    }
}

static bool is_crowded(struct bide_fleet *fleet, const struct fleet_line *line, int64_t now_ns)
{
    bool crowded = !fleet->url.tls && line->state == FLEET_LINK_READY && line->count == 0 && line->proven;
    pthread_mutex_lock(&fleet->lock);
    crowded = crowded && fleet->members != NULL && fleet->leaving == NULL; /* who leaves has something to say */
    for (struct fleet_member *member = fleet->members; member != NULL && crowded; member = member->next)
        if (fleet_line_of(fleet, member) == line)
            crowded =
                member->ledger.answer.instances >= CROWD && member->ledger.due_ns >= core_sum(now_ns, FAR_APART_NS);
    pthread_mutex_unlock(&fleet->lock);
    return crowded;
}

/* ---- sleeping ---- */

/* When a member needs a turn: not while its line is busy with what comes before it. */
static int64_t member_wake_ns(const struct bide_fleet *fleet, const struct fleet_member *member, int64_t now_ns)
{
    const struct fleet_line *line = fleet_line_of(fleet, member);
    if (member->ledger.asked || line->state == FLEET_LINK_BEGINNING)
        return BIDE_NEVER;
    if (line->state == FLEET_LINK_READY && line->count >= (line->proven ? FLEET_FLIGHTS : 1))
        return BIDE_NEVER;
    int64_t wake_ns = core_max(lease_ledger_look_ns(&member->ledger, now_ns), core_sum(now_ns, LOOK_NS));
    return line->state == FLEET_LINK_DOWN ? core_max(wake_ns, line->retry_ns) : wake_ns;
}

/* When a line needs one, whatever its members want. */
static int64_t lines_wake_ns(const struct bide_fleet *fleet)
{
    int64_t earliest_ns = BIDE_NEVER;
    for (const struct fleet_line *line = fleet->lines; line != NULL; line = line->next) {
        earliest_ns = core_min(earliest_ns, fleet_link_deadline_ns(line->link));
        for (uint32_t i = line->sent; i < line->count; i++)
            earliest_ns = core_min(earliest_ns, line->flight[i].deadline_ns);
    }
    return earliest_ns;
}

static int64_t wake_ns(struct bide_fleet *fleet, int64_t now_ns)
{
    int64_t earliest_ns = lines_wake_ns(fleet);
    pthread_mutex_lock(&fleet->lock);
    for (struct fleet_member *member = fleet->members; member != NULL; member = member->next)
        earliest_ns = core_min(earliest_ns, member_wake_ns(fleet, member, now_ns));
    if (fleet->leaving != NULL || fleet->stopping)
        earliest_ns = now_ns;
    pthread_mutex_unlock(&fleet->lock);
    return earliest_ns;
}

struct sleep {
    struct pollfd fd[1 + FLEET_LINES];
    nfds_t count;
};

/* What to poll for: the call to wake, and the sockets. */
static void prepare(struct sleep *sleep, const struct bide_fleet *fleet)
{
    sleep->fd[0] = (struct pollfd){.fd = fleet->wake_fd, .events = POLLIN};
    sleep->count = 1;
    for (const struct fleet_line *line = fleet->lines; line != NULL; line = line->next) {
        struct pollfd *at = &sleep->fd[sleep->count++];
        *at = (struct pollfd){0};
        at->fd = fleet_link_fd(line->link, &at->events);
    }
}

/* Late by less than a millisecond rather than awake too early and again at once. */
static void sleep_until(struct sleep *sleep, int64_t until_ns)
{
    int64_t left_ns = until_ns != BIDE_NEVER ? core_max(until_ns - bide_now(), 0) : 0;
    int64_t ms = core_min((left_ns + BIDE_MS - 1) / BIDE_MS, 60000);
    poll(sleep->fd, sleep->count, until_ns == BIDE_NEVER ? -1 : (int)ms);
    eventfd_t calls;
    if (sleep->fd[0].revents != 0)
        eventfd_read(sleep->fd[0].fd, &calls);
}

/* ---- turns ---- */

/* False: it was the last. */
static bool take_turn(struct bide_fleet *fleet, struct sleep *sleep, int64_t *until_ns)
{
    pthread_mutex_lock(&fleet->turn);
    int64_t now_ns = bide_now();
    bool stopping = see_off(fleet, now_ns);
    for (struct fleet_line *line = fleet->lines; line != NULL && !stopping; line = line->next) {
        fleet_line_serve(fleet, line, now_ns);
        if (is_crowded(fleet, line, now_ns)) {
            fleet_link_close(line->link);
            line->state = FLEET_LINK_DOWN;
        }
    }
    drop_lines(fleet);
    pthread_mutex_lock(&fleet->lock);
    fleet_tell_back(fleet, now_ns);
    pthread_mutex_unlock(&fleet->lock);
    prepare(sleep, fleet);
    *until_ns = wake_ns(fleet, now_ns);
    pthread_mutex_unlock(&fleet->turn);
    return !stopping;
}

/* True: all that was to be said by those who left is said, or cannot be. */
static bool is_done(struct bide_fleet *fleet, struct sleep *sleep, int64_t *until_ns)
{
    bool done = true;
    int64_t now_ns = bide_now();
    pthread_mutex_lock(&fleet->turn);
    for (struct fleet_line *line = fleet->lines; line != NULL; line = line->next) {
        fleet_line_serve(fleet, line, now_ns);
        done = fleet_line_is_done(line) && done;
    }
    prepare(sleep, fleet);
    sleep->fd[0].fd = -1; /* we know */
    *until_ns = lines_wake_ns(fleet);
    pthread_mutex_unlock(&fleet->turn);
    return done;
}

/* The last asks of all are given to the sockets, as far as these take them within the timeout. */
static void bid_farewell(struct bide_fleet *fleet, struct sleep *sleep)
{
    int64_t end_ns = core_sum(bide_now(), fleet->url.terms.timeout_ns), until_ns;
    while (!is_done(fleet, sleep, &until_ns) && bide_now() < end_ns)
        sleep_until(sleep, core_min(until_ns, end_ns));
    pthread_mutex_lock(&fleet->lock);
    fleet_tell_unheard(fleet);
    pthread_mutex_unlock(&fleet->lock);
    fleet_tell_out(fleet);
}

void *fleet_thread(void *fleet)
{
    struct sleep sleep;
    int64_t until_ns;
    while (take_turn(fleet, &sleep, &until_ns)) {
        fleet_tell_out(fleet);
        sleep_until(&sleep, until_ns);
    }
    bid_farewell(fleet, &sleep);
    return NULL;
}
