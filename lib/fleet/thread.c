/* thread.c - the thread of a fleet: it runs in turns and sleeps in poll() between them.
 *
 * It wakes for a socket, for a function of bide/fleet.h (wake_fd), and for the earliest of: a member that is due or
 * must be checked for a shortage of tokens, a connection that may be retried, a reply that is overdue. For members it
 * wakes at most every CHECK_INTERVAL_MIN_NS.
 *
 * In a large idle fleet, open connections are a greater load for Redis than the requests on them (and Redis accepts
 * 10,000 by default). So the connection is closed between exchanges that are far apart. Not with TLS, where the
 * handshake costs more than the open connection. */
#include <bide/clock.h>

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/saturate.h"
#include "fleet_internal.h"

#define CHECK_INTERVAL_MIN_NS (10 * BIDE_MS)
#define LARGE_FLEET           2000 /* members */
#define CLOSE_GAP_NS          (5 * BIDE_S)

/* ---- leaving members ---- */

static struct fleet_member *leaving_take(struct bide_fleet *fleet, bool *stopping)
{
    pthread_mutex_lock(&fleet->members_lock);
    struct fleet_member *leaving = fleet->leaving;
    fleet->leaving = NULL;
    *stopping = fleet->stopping;
    pthread_mutex_unlock(&fleet->members_lock);
    return leaving;
}

/* Passes leaving members to their nodes. Returns true if the fleet is closing. */
static bool leaving_send_finals(struct bide_fleet *fleet, int64_t now_ns)
{
    bool stopping;
    for (struct fleet_member *member = leaving_take(fleet, &stopping); member != NULL;) {
        struct fleet_member *next = member->next;
        fleet_node_send_final(fleet, member, now_ns);
        member = next;
    }
    return stopping;
}

/* ---- unused nodes and connections ---- */

static bool members_use_node(const struct fleet_node *node, const struct fleet_member *member)
{
    while (member != NULL && member->node != node)
        member = member->next;
    return member != NULL;
}

/* A member that left since this turn began still has a final request to send to its node. */
static bool node_has_members(struct bide_fleet *fleet, const struct fleet_node *node)
{
    pthread_mutex_lock(&fleet->members_lock);
    bool any = members_use_node(node, fleet->members) || members_use_node(node, fleet->leaving);
    pthread_mutex_unlock(&fleet->members_lock);
    return any;
}

static void nodes_free_unused(struct bide_fleet *fleet)
{
    struct fleet_node *before = fleet->nodes; /* the URL's node stays */
    while (before != NULL && before->next != NULL) {
        struct fleet_node *node = before->next;
        if (node->pending_count > 0 || node_has_members(fleet, node)) {
            before = node;
            continue;
        }
        assert(node->sent == 0 && node != fleet->nodes);
        before->next = node->next;
        fleet_node_free(node);
    }
}

static bool node_should_close(struct bide_fleet *fleet, const struct fleet_node *node, int64_t now_ns)
{
    bool should_close =
        !fleet->url.tls && node->state == FLEET_CONNECTION_READY && node->pending_count == 0 && node->has_replied;
    pthread_mutex_lock(&fleet->members_lock);
    should_close = should_close && fleet->members != NULL &&
                   fleet->leaving == NULL; /* leaving members have final requests to send */
    for (struct fleet_member *member = fleet->members; member != NULL && should_close; member = member->next)
        if (fleet_member_node(fleet, member) == node)
            should_close =
                member->lease.reply.members >= LARGE_FLEET && member->lease.due_ns >= core_sum(now_ns, CLOSE_GAP_NS);
    pthread_mutex_unlock(&fleet->members_lock);
    return should_close;
}

/* ---- sleeping ---- */

/* Returns when a member needs a turn. Never while its request is pending, or its node is connecting or has no room: the
 * socket or its deadline wakes the thread then. */
static int64_t member_wake_ns(const struct bide_fleet *fleet, const struct fleet_member *member, int64_t now_ns)
{
    const struct fleet_node *node = fleet_member_node(fleet, member);
    if (member->lease.request_pending || node->state == FLEET_CONNECTION_OPENING)
        return BIDE_NEVER;
    if (node->state == FLEET_CONNECTION_READY && node->pending_count >= (node->has_replied ? FLEET_PENDING_MAX : 1))
        return BIDE_NEVER;
    int64_t wake_ns =
        core_max(lease_member_next_check_ns(&member->lease, now_ns), core_sum(now_ns, CHECK_INTERVAL_MIN_NS));
    return node->state == FLEET_CONNECTION_DOWN ? core_max(wake_ns, node->retry_ns) : wake_ns;
}

/* Returns when a node needs a turn, apart from its members: a timeout. */
static int64_t nodes_wake_ns(const struct bide_fleet *fleet)
{
    int64_t earliest_ns = BIDE_NEVER;
    for (const struct fleet_node *node = fleet->nodes; node != NULL; node = node->next) {
        earliest_ns = core_min(earliest_ns, fleet_connection_deadline_ns(node->connection));
        for (uint32_t i = node->sent; i < node->pending_count; i++)
            earliest_ns = core_min(earliest_ns, node->pending[i].deadline_ns);
    }
    return earliest_ns;
}

static int64_t thread_wake_ns(struct bide_fleet *fleet, int64_t now_ns)
{
    int64_t earliest_ns = nodes_wake_ns(fleet);
    pthread_mutex_lock(&fleet->members_lock);
    for (struct fleet_member *member = fleet->members; member != NULL; member = member->next)
        earliest_ns = core_min(earliest_ns, member_wake_ns(fleet, member, now_ns));
    if (fleet->leaving != NULL || fleet->stopping)
        earliest_ns = now_ns;
    pthread_mutex_unlock(&fleet->members_lock);
    return earliest_ns;
}

struct poll_set {
    struct pollfd fd[1 + FLEET_NODES_MAX];
    nfds_t count;
};

/* Polls for wake-ups and for the sockets of all nodes. */
static void poll_set_fill(struct poll_set *poll_set, const struct bide_fleet *fleet)
{
    poll_set->fd[0] = (struct pollfd){.fd = fleet->wake_fd, .events = POLLIN};
    poll_set->count = 1;
    for (const struct fleet_node *node = fleet->nodes; node != NULL; node = node->next) {
        assert(poll_set->count <= FLEET_NODES_MAX);
        struct pollfd *at = &poll_set->fd[poll_set->count++];
        *at = (struct pollfd){0};
        at->fd = fleet_connection_fd(node->connection, &at->events);
    }
}

/* Rounds up to milliseconds: waking late by less than that is better than waking early and polling again. */
static void poll_set_wait(struct poll_set *poll_set, int64_t until_ns)
{
    int64_t left_ns = until_ns != BIDE_NEVER ? core_max(until_ns - bide_now(), 0) : 0;
    int64_t ms = core_min((left_ns + BIDE_MS - 1) / BIDE_MS, 60000);
    poll(poll_set->fd, poll_set->count, until_ns == BIDE_NEVER ? -1 : (int)ms);
    eventfd_t calls;
    if (poll_set->fd[0].revents != 0)
        eventfd_read(poll_set->fd[0].fd, &calls);
}

/* ---- turns ---- */

/* Returns false if the fleet is closing. */
static bool thread_take_turn(struct bide_fleet *fleet, struct poll_set *poll_set, int64_t *until_ns)
{
    pthread_mutex_lock(&fleet->turn_lock);
    int64_t now_ns = bide_now();
    bool stopping = leaving_send_finals(fleet, now_ns);
    for (struct fleet_node *node = fleet->nodes; node != NULL && !stopping; node = node->next) {
        fleet_node_serve(fleet, node, now_ns);
        if (node_should_close(fleet, node, now_ns)) {
            fleet_connection_close(node->connection);
            node->state = FLEET_CONNECTION_DOWN;
        }
    }
    nodes_free_unused(fleet);
    pthread_mutex_lock(&fleet->members_lock);
    fleet_report_recovery(fleet, now_ns);
    pthread_mutex_unlock(&fleet->members_lock);
    poll_set_fill(poll_set, fleet);
    *until_ns = thread_wake_ns(fleet, now_ns);
    pthread_mutex_unlock(&fleet->turn_lock);
    return !stopping;
}

/* Returns true if every final request is sent or cannot be sent. */
static bool thread_flush_finals(struct bide_fleet *fleet, struct poll_set *poll_set, int64_t *until_ns)
{
    bool done = true;
    int64_t now_ns = bide_now();
    pthread_mutex_lock(&fleet->turn_lock);
    for (struct fleet_node *node = fleet->nodes; node != NULL; node = node->next) {
        fleet_node_serve(fleet, node, now_ns);
        done = fleet_node_finals_sent(node) && done;
    }
    poll_set_fill(poll_set, fleet);
    poll_set->fd[0].fd = -1; /* no further wake-ups matter */
    *until_ns = nodes_wake_ns(fleet);
    pthread_mutex_unlock(&fleet->turn_lock);
    return done;
}

/* Passes the final requests to the sockets, for at most the timeout. */
static void thread_drain(struct bide_fleet *fleet, struct poll_set *poll_set)
{
    int64_t end_ns = core_sum(bide_now(), fleet->url.terms.timeout_ns), until_ns;
    while (!thread_flush_finals(fleet, poll_set, &until_ns) && bide_now() < end_ns)
        poll_set_wait(poll_set, core_min(until_ns, end_ns));
    pthread_mutex_lock(&fleet->members_lock);
    fleet_report_never_reached(fleet);
    pthread_mutex_unlock(&fleet->members_lock);
    fleet_report_deliver(fleet);
}

void *fleet_thread(void *fleet)
{
    struct poll_set poll_set;
    int64_t until_ns;
    while (thread_take_turn(fleet, &poll_set, &until_ns)) {
        fleet_report_deliver(fleet);
        poll_set_wait(&poll_set, until_ns);
    }
    thread_drain(fleet, &poll_set);
    return NULL;
}
