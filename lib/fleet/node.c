/* node.c - the pipeline of requests to a Redis node: send requests, match replies, handle errors, -MOVED and leaving.
 *
 * At most once. A request has taken tokens out of its target, so running it twice would count them twice. It is sent
 * with EVALSHA. If Redis replies NOSCRIPT, the script did not run, and the same request is sent again with EVAL and the
 * script's text. In no other case is a request sent again: after an error, a timeout or a lost connection it is unknown
 * whether the script ran, so its tokens are treated as lost. The first request on a new connection goes alone, so that
 * a Redis without the script receives the text once and not from every member.
 *
 * Replies. Redis replies in the order of the requests on a connection, so a reply belongs to the first pending request.
 * A reply is accepted if it arrives before the deadline, has the right shape and passes lease_member_accept_reply.
 * Anything else is a failure: the target continues at its floor, and the member's next request waits with exponential
 * backoff. The connection is closed after a timeout, so a late reply cannot be taken for the reply to another request;
 * and if its next reply would be no better: after a wrong shape, from a read-only replica, for a user without
 * permission.
 *
 * Redis Cluster. -MOVED names the node that has the key. The tokens of that request are lost as well; the member moves
 * to that node, and its next request goes there. If that node cannot be reached, its members return to the node of the
 * URL. -ASK, which occurs while a slot migrates, is a failure like any other: a later request finds the node by -MOVED.
 *
 * Leaving. bide_fleet_leave has made the member's final request; from then on the target must not be touched. The
 * thread passes the member to fleet_node_send_final:
 * - An earlier request that is not on the wire (it waits for room, or got NOSCRIPT) never ran: its tokens and counters
 *   are merged into the final request.
 * - An earlier request on the wire to the same node: the final request waits for its reply (precedes_final), because
 *   the tokens that the reply grants must be returned, and by its serial the bucket counts the member out.
 * - An earlier request on the wire to another node is detached: its reply is ignored, its tokens are lost.
 * A member of a shared target that has no tokens to return and no earlier request pending has no final request. */
#include <bide/backoff.h>
#include <bide/clock.h>
#include <bide/entropy.h>

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/saturate.h"
#include "fleet_internal.h"
#include "script.h"

#define RETRY_WAIT_MIN_NS    (50 * BIDE_MS) /* jitter never makes a wait shorter */
#define PROBLEM_MAX          (FLEET_REPLY_ERROR_MAX + 64)
#define WORDS_BEFORE_REQUEST 4u /* EVALSHA, the script, number of keys, the key */

struct fleet_tuning fleet_tuning = {
    .report_interval_ns = BIDE_MINUTE,
    .retry_base_ns = 500 * BIDE_MS,
    .retry_cap_ns = 30 * BIDE_S,
};

/* ---- pending requests ---- */

struct fleet_node *fleet_node_new(const struct fleet_url *url, const char *endpoint)
{
    struct fleet_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    node->connection = fleet_connection_new(url);
    if (node->connection == NULL) {
        free(node);
        return NULL;
    }
    snprintf(node->endpoint, sizeof node->endpoint, "%s", endpoint);
    return node;
}

static void pending_release(struct fleet_pending *pending)
{
    if (pending->is_final)
        free(pending->member);
    pending->member = NULL;
}

void fleet_node_free(struct fleet_node *node)
{
    if (node == NULL)
        return;
    for (uint32_t i = 0; i < node->pending_count; i++)
        pending_release(&node->pending[i]);
    fleet_connection_free(node->connection);
    free(node);
}

struct fleet_node *fleet_member_node(const struct bide_fleet *fleet, const struct fleet_member *member)
{
    return member->node != NULL ? member->node : fleet->nodes;
}

static struct fleet_pending pending_remove(struct fleet_node *node, uint32_t at)
{
    assert(at < node->pending_count && node->sent <= node->pending_count);
    struct fleet_pending pending = node->pending[at];
    node->pending_count--;
    if (at < node->sent)
        node->sent--;
    memmove(&node->pending[at], &node->pending[at + 1], (node->pending_count - at) * sizeof *node->pending);
    return pending;
}

static void pending_append(struct fleet_node *node, const struct fleet_pending *pending)
{
    assert(node->pending_count < FLEET_PENDING_MAX && pending->member != NULL);
    assert(!pending->is_final || pending->request.leaving);
    node->pending[node->pending_count++] = *pending;
}

/* The final request cannot be sent: drop it, and detach an earlier request of the same member that is still pending. */
static void pending_drop_final(struct fleet_node *node, struct fleet_pending *final)
{
    for (uint32_t i = 0; i < node->pending_count; i++)
        if (node->pending[i].member == final->member)
            node->pending[i].member = NULL;
    pending_release(final);
}

static int64_t sum_clamped(int64_t a, int64_t b, int64_t max)
{
    return core_min(core_sum(a, b), max);
}

/* Adds the tokens and counters of a request that never ran to the final request. */
static void request_merge(struct lease_request *final, const struct lease_request *unsent)
{
    final->returned_milli = sum_clamped(final->returned_milli, unsent->returned_milli, LEASE_MILLI_MAX);
    final->earned_milli = sum_clamped(final->earned_milli, unsent->earned_milli, LEASE_MILLI_MAX);
    final->firsts = sum_clamped(final->firsts, unsent->firsts, LEASE_COUNT_MAX);
    final->successes = sum_clamped(final->successes, unsent->successes, LEASE_COUNT_MAX);
    final->spent_milli = sum_clamped(final->spent_milli, unsent->spent_milli, LEASE_COUNT_MAX);
}

/* Prepares the member's earlier requests for its final request, which goes to final_node. See "Leaving" above. */
static void member_detach_pending(struct bide_fleet *fleet, struct fleet_member *member,
                                  const struct fleet_node *final_node)
{
    for (struct fleet_node *node = fleet->nodes; node != NULL; node = node->next)
        for (uint32_t i = node->pending_count; i-- > 0;) {
            struct fleet_pending *pending = &node->pending[i];
            if (pending->member != member)
                continue;
            pending->precedes_final = node == final_node && member->has_final_request;
            if (!pending->precedes_final)
                pending->member = NULL;
            if (i >= node->sent) {
                request_merge(&member->final_request, &pending->request);
                pending_remove(node, i);
            }
        }
}

/* ---- failures ---- */

static int64_t retry_wait_ns(uint32_t failures)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.base_ns = fleet_tuning.retry_base_ns;
    policy.cap_ns = fleet_tuning.retry_cap_ns;
    policy.floor_ns = core_min(RETRY_WAIT_MIN_NS, policy.base_ns);
    return bide_backoff_wait(&policy, (struct bide_step){.step = failures}, bide_seed(), 0);
}

/* Returns true if the target belongs to the caller again: do not touch it. Under members_lock. */
static bool member_has_left(const struct fleet_member *member)
{
    return member->lease.state == LEASE_MEMBER_LEAVING;
}

/* Records a failed request or connection. Under members_lock. */
static void member_record_failure(struct fleet_member *member, int64_t retry_ns, int64_t now_ns)
{
    fleet_member_count_disconnected(member, now_ns);
    lease_member_request_failed(&member->lease, retry_ns, now_ns);
    member->failed_lease_end_ns = lease_member_leased_until_ns(&member->lease);
    member->consecutive_failures++;
    member->view.failures++;
}

static void member_fail_request(struct bide_fleet *fleet, struct fleet_member *member, const char *problem,
                                int64_t now_ns)
{
    pthread_mutex_lock(&fleet->members_lock);
    if (!member_has_left(member)) {
        member_record_failure(member, core_sum(now_ns, retry_wait_ns(member->consecutive_failures)), now_ns);
        if (problem != NULL)
            fleet_report_failure(fleet, fleet->url.redacted, problem, now_ns);
    }
    pthread_mutex_unlock(&fleet->members_lock);
}

/* The node cannot be reached: its members send to the node of the URL from now on, which redirects them. */
static void node_return_members(struct bide_fleet *fleet, struct fleet_node *node)
{
    if (node == fleet->nodes)
        return;
    for (struct fleet_member *member = fleet->members; member != NULL; member = member->next)
        if (member->node == node)
            member->node = NULL;
}

/* Closes a connection whose next reply would be no better. The reason was reported. */
static void node_disconnect(struct bide_fleet *fleet, struct fleet_node *node)
{
    fleet_connection_close(node->connection);
    node->closed_by_us = true;
    pthread_mutex_lock(&fleet->members_lock);
    node_return_members(fleet, node);
    pthread_mutex_unlock(&fleet->members_lock);
}

/* The connection was lost, or closed by node_disconnect. Pending requests on it have failed; if it was still opening,
 * so have the members that waited for it. A connection that worked and ends while nothing is pending is no failure
 * (Redis closes idle clients): it is opened again when needed. */
static void node_on_disconnect(struct bide_fleet *fleet, struct fleet_node *node, enum fleet_connection_state was_state,
                               int64_t now_ns)
{
    assert(node->state == FLEET_CONNECTION_DOWN && node->sent <= node->pending_count);
    bool failed = !node->has_replied || node->pending_count > 0;
    node->retry_ns = core_sum(now_ns, retry_wait_ns(node->consecutive_failures));
    if (failed)
        node->consecutive_failures++;
    pthread_mutex_lock(&fleet->members_lock);
    for (uint32_t i = 0; i < node->pending_count; i++) {
        struct fleet_member *member = node->pending[i].member;
        if (member != NULL && !member_has_left(member))
            member_record_failure(member, node->retry_ns, now_ns);
        pending_release(&node->pending[i]);
    }
    node->pending_count = node->sent = 0;
    for (struct fleet_member *member = fleet->members; was_state == FLEET_CONNECTION_OPENING && member != NULL;
         member = member->next)
        if (fleet_member_node(fleet, member) == node && lease_member_try_claim(&member->lease, now_ns))
            member_record_failure(member, node->retry_ns, now_ns);
    if (failed && !node->closed_by_us)
        fleet_report_failure(fleet, NULL, fleet_connection_problem(node->connection), now_ns); /* it has the endpoint */
    if (failed)
        node_return_members(fleet, node);
    pthread_mutex_unlock(&fleet->members_lock);
}

/* ---- replies ---- */

static bool text_begins_with(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && (text[length] == ' ' || text[length] == 0);
}

/* Errors that every further request on this connection would get: a replica, missing permissions. */
static bool error_is_permanent(const char *error)
{
    static const char *const words[] = {"READONLY", "NOAUTH", "WRONGPASS", "NOPERM"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text_begins_with(error, words[i]))
            return true;
    return false;
}

/* "MOVED 3999 host:port": slot and endpoint. */
bool fleet_moved_endpoint(const struct fleet_endpoint *current, const char *error, struct fleet_endpoint *moved)
{
    const char *last_space = text_begins_with(error, "MOVED") ? strrchr(error, ' ') : NULL;
    return last_space != NULL && fleet_endpoint_parse(moved, last_space + 1, current);
}

/* Returns the node that the error names, adding it if necessary; NULL if the error names none, there are too many
 * nodes, or no memory. */
static struct fleet_node *node_for_moved(struct bide_fleet *fleet, const struct fleet_node *from, const char *error)
{
    struct fleet_endpoint current = fleet->url.endpoint, moved;
    char endpoint[FLEET_ENDPOINT_MAX];
    if (from->endpoint[0] != 0)
        fleet_endpoint_parse(&current, from->endpoint, &fleet->url.endpoint);
    if (!fleet_moved_endpoint(&current, error, &moved))
        return NULL;
    snprintf(endpoint, sizeof endpoint, "%s:%s", moved.host, moved.port);
    struct fleet_node **at = &fleet->nodes;
    unsigned nodes = 0;
    for (; *at != NULL; at = &(*at)->next, nodes++)
        if (*at != fleet->nodes && strcmp((*at)->endpoint, endpoint) == 0)
            return *at;
    if (nodes < FLEET_NODES_MAX)
        *at = fleet_node_new(&fleet->url, endpoint);
    return *at;
}

/* In a cluster the first request of a member usually gets -MOVED, which is not reported. A second -MOVED before an
 * accepted reply is. */
static void member_follow_moved(struct bide_fleet *fleet, struct fleet_node *from, struct fleet_member *member,
                                const char *error, int64_t now_ns)
{
    struct fleet_node *node = node_for_moved(fleet, from, error);
    if (node == NULL) {
        member_fail_request(fleet, member, error, now_ns);
        return;
    }
    member_fail_request(fleet, member, member->consecutive_failures > 0 ? error : NULL, now_ns);
    member->node = node != fleet->nodes ? node : NULL;
}

/* Before AUTH, Redis rejects long commands with "Protocol error: unauthenticated bulk length" instead of NOAUTH. */
static const char *error_clarify(const char *error)
{
    return strstr(error, "unauthenticated") != NULL ? "NOAUTH Authentication required." : error;
}

static void pending_on_error(struct bide_fleet *fleet, struct fleet_node *node, struct fleet_pending *pending,
                             const char *error, int64_t now_ns)
{
    error = error_clarify(error);
    if (text_begins_with(error, "NOSCRIPT") && !pending->with_script_text) {
        pending->with_script_text = true;
        pending_append(node, pending);
        return;
    }
    if (text_begins_with(error, "MOVED")) {
        member_follow_moved(fleet, node, pending->member, error, now_ns);
        return;
    }
    char problem[PROBLEM_MAX];
    snprintf(problem, sizeof problem, "the server replied \"%s\"", error);
    member_fail_request(fleet, pending->member, problem, now_ns);
    if (error_is_permanent(error))
        node_disconnect(fleet, node);
}

/* A reply for a member that has left: the tokens it grants are returned by the final request, except those that repay
 * the advance. The final request of a private target now also carries the serial by which the bucket counts the member
 * out; a shared target stays a member. */
static void final_request_absorb_reply(struct lease_request *final, const struct fleet_pending *pending,
                                       const struct lease_reply *reply)
{
    assert(final->leaving && reply->granted_milli <= pending->request.wanted_milli);
    int64_t rest_milli = core_max(0, reply->granted_milli - pending->member->lease.advance_milli);
    final->returned_milli = sum_clamped(final->returned_milli, rest_milli, LEASE_MILLI_MAX);
    if (pending->member->shared)
        return;
    final->seen_serial = reply->serial;
    final->was_wanting = pending->request.wanted_milli > 0;
}

/* Applies a reply. Returns NULL, or the reason for rejecting it. The race: the member may have left after the request
 * was sent, while its final request is not on a node yet; then the target is not touched, and the final request takes
 * the grant. */
static const char *member_accept_reply(struct bide_fleet *fleet, struct fleet_node *node,
                                       const struct fleet_pending *pending, const struct lease_reply *reply,
                                       int64_t now_ns)
{
    struct fleet_member *member = pending->member;
    const char *wrong_field;
    pthread_mutex_lock(&fleet->members_lock);
    if (!member_has_left(member)) {
        fleet_member_count_disconnected(member, now_ns); /* first, because the reply ends the disconnected time */
        wrong_field = lease_member_accept_reply(&member->lease, reply, bide_seed(), now_ns);
    } else {
        wrong_field = lease_reply_check(reply, &pending->request);
        if (wrong_field == NULL)
            final_request_absorb_reply(&member->final_request, pending, reply);
    }
    if (wrong_field == NULL) {
        fleet->report.reply_seen = true;
        fleet->report.problem[0] = 0;
        member->consecutive_failures = 0;
        member->view.exchanges++;
        member->view.granted_milli += (uint64_t)reply->granted_milli;
        node->consecutive_failures = 0;
        node->has_replied = true;
    }
    pthread_mutex_unlock(&fleet->members_lock);
    return wrong_field;
}

/* The first serial belongs to the exchange that created the bucket: a bucket that Redis lost goes on with a leap if the
 * member has seen it before (protocol/bucket.h). */
static void reply_report_new_bucket(struct bide_fleet *fleet, const struct fleet_pending *pending,
                                    const struct lease_reply *reply)
{
    if (reply->serial == 1)
        fleet_report_new_bucket(fleet, pending->member);
}

static void pending_on_reply(struct bide_fleet *fleet, struct fleet_node *node, struct fleet_pending *pending,
                             const struct fleet_redis_reply *redis_reply, int64_t now_ns)
{
    char problem[PROBLEM_MAX];
    struct lease_reply reply;
    if (now_ns >= pending->deadline_ns) {
        snprintf(problem, sizeof problem, "the reply came too late");
    } else if (redis_reply->kind != FLEET_REPLY_VALUES || redis_reply->values != LEASE_REPLY_FIELD_COUNT) {
        snprintf(problem, sizeof problem, "the reply is something else than %zu numbers", LEASE_REPLY_FIELD_COUNT);
    } else {
        memcpy(&reply, redis_reply->value, sizeof reply);
        const char *wrong_field = member_accept_reply(fleet, node, pending, &reply, now_ns);
        if (wrong_field == NULL) {
            reply_report_new_bucket(fleet, pending, &reply);
            return;
        }
        snprintf(problem, sizeof problem, "the reply has a wrong number (%s)", wrong_field);
    }
    member_fail_request(fleet, pending->member, problem, now_ns);
    node_disconnect(fleet, node);
}

/* The reply to a final request is not needed, unless it is NOSCRIPT, or the request created the bucket. */
static void pending_on_final_reply(struct bide_fleet *fleet, struct fleet_node *node, struct fleet_pending *pending,
                                   const struct fleet_redis_reply *redis_reply)
{
    if (redis_reply->kind == FLEET_REPLY_ERROR && text_begins_with(redis_reply->error, "NOSCRIPT") &&
        !pending->with_script_text) {
        pending->with_script_text = true;
        pending_append(node, pending);
        return;
    }
    node->has_replied |= redis_reply->kind == FLEET_REPLY_VALUES;
    if (redis_reply->kind == FLEET_REPLY_VALUES && redis_reply->values == LEASE_REPLY_FIELD_COUNT) {
        struct lease_reply reply;
        memcpy(&reply, redis_reply->value, sizeof reply);
        reply_report_new_bucket(fleet, pending, &reply);
    }
    pending_release(pending);
}

/* Returns the pending final request of a member, or NULL if there is none. */
static struct fleet_pending *pending_find_final(struct fleet_node *node, const struct fleet_member *member)
{
    for (uint32_t i = 0; i < node->pending_count; i++)
        if (node->pending[i].is_final && node->pending[i].member == member)
            return &node->pending[i];
    return NULL;
}

static void pending_on_reply_before_final(struct bide_fleet *fleet, struct fleet_node *node,
                                          const struct fleet_pending *pending,
                                          const struct fleet_redis_reply *redis_reply, int64_t now_ns)
{
    struct fleet_pending *final = pending_find_final(node, pending->member);
    struct lease_reply reply;
    if (final == NULL || now_ns >= pending->deadline_ns)
        return;
    if (redis_reply->kind == FLEET_REPLY_ERROR && text_begins_with(redis_reply->error, "NOSCRIPT"))
        request_merge(&final->request, &pending->request);
    if (redis_reply->kind != FLEET_REPLY_VALUES || redis_reply->values != LEASE_REPLY_FIELD_COUNT)
        return;
    memcpy(&reply, redis_reply->value, sizeof reply);
    if (lease_reply_check(&reply, &pending->request) != NULL)
        return;
    final_request_absorb_reply(&final->request, pending, &reply);
    reply_report_new_bucket(fleet, pending, &reply);
    node->has_replied = true;
}

static void node_read_replies(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns)
{
    struct fleet_redis_reply redis_reply;
    while (node->sent > 0 && fleet_connection_next_reply(node->connection, &redis_reply)) {
        struct fleet_pending pending = pending_remove(node, 0);
        if (pending.member == NULL)
            continue;
        if (pending.is_final)
            pending_on_final_reply(fleet, node, &pending, &redis_reply);
        else if (pending.precedes_final)
            pending_on_reply_before_final(fleet, node, &pending, &redis_reply, now_ns);
        else if (redis_reply.kind == FLEET_REPLY_ERROR && now_ns < pending.deadline_ns)
            pending_on_error(fleet, node, &pending, redis_reply.error, now_ns);
        else
            pending_on_reply(fleet, node, &pending, &redis_reply, now_ns);
    }
}

void fleet_node_step(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns)
{
    fleet_connection_step(node->connection, now_ns);
    node_read_replies(fleet, node, now_ns);
    enum fleet_connection_state was_state = node->state;
    node->state = fleet_connection_state(node->connection);
    if (was_state != FLEET_CONNECTION_DOWN && node->state == FLEET_CONNECTION_DOWN)
        node_on_disconnect(fleet, node, was_state, now_ns);
}

/* ---- requests ---- */

/* Returns false if the connection has no room. */
static bool node_send_request(struct fleet_connection *connection, const char *key, const struct fleet_pending *pending)
{
    char digits[LEASE_REQUEST_FIELD_COUNT][24];
    const char *word[WORDS_BEFORE_REQUEST + LEASE_REQUEST_FIELD_COUNT] = {"EVALSHA", fleet_script_sha1, "1", key};
    size_t length[WORDS_BEFORE_REQUEST + LEASE_REQUEST_FIELD_COUNT];
    int64_t number[LEASE_REQUEST_FIELD_COUNT];
    assert(!lease_request_check(&pending->request));
    if (pending->with_script_text) {
        word[0] = "EVAL";
        word[1] = fleet_script;
    }
    memcpy(number, &pending->request, sizeof number);
    for (size_t i = 0; i < LEASE_REQUEST_FIELD_COUNT; i++) {
        snprintf(digits[i], sizeof digits[i], "%" PRId64, number[i]);
        word[WORDS_BEFORE_REQUEST + i] = digits[i];
    }
    for (size_t i = 0; i < WORDS_BEFORE_REQUEST + LEASE_REQUEST_FIELD_COUNT; i++)
        length[i] = strlen(word[i]);
    return fleet_connection_send(connection, (int)(WORDS_BEFORE_REQUEST + LEASE_REQUEST_FIELD_COUNT), word, length,
                                 pending->deadline_ns);
}

/* The final request of a member waits for the reply to its earlier request. */
static bool pending_must_wait(const struct fleet_node *node, const struct fleet_pending *pending)
{
    bool must_wait = false;
    for (uint32_t i = 0; i < node->sent; i++)
        must_wait |= pending->is_final && node->pending[i].precedes_final && node->pending[i].member == pending->member;
    return must_wait;
}

/* Sends waiting requests as far as there is room. Returns true if any was sent. */
static bool node_send_waiting(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns)
{
    uint32_t before = node->sent;
    while (node->sent < node->pending_count) {
        const struct fleet_pending *pending = &node->pending[node->sent];
        if (now_ns >= pending->deadline_ns) {
            struct fleet_pending expired = pending_remove(node, node->sent);
            if (expired.is_final)
                pending_drop_final(node, &expired);
            else
                member_fail_request(fleet, expired.member, "the request could not be sent in time", now_ns);
            continue;
        }
        if (pending_must_wait(node, pending) || !node_send_request(node->connection, pending->member->key, pending))
            break;
        node->sent++;
    }
    return node->sent > before;
}

static void node_make_due_requests(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns)
{
    uint32_t max = node->has_replied ? FLEET_PENDING_MAX : 1;
    pthread_mutex_lock(&fleet->members_lock);
    for (struct fleet_member *member = fleet->members; member != NULL && node->pending_count < max;
         member = member->next) {
        if (fleet_member_node(fleet, member) != node || !lease_member_try_claim(&member->lease, now_ns))
            continue;
        struct fleet_pending pending = {.member = member,
                                        .request = *lease_member_make_request(&member->lease, now_ns),
                                        .deadline_ns = core_sum(now_ns, fleet->url.terms.timeout_ns)};
        member->view.returned_milli += (uint64_t)pending.request.returned_milli;
        member->view.earned_milli += (uint64_t)pending.request.earned_milli;
        pending_append(node, &pending);
    }
    pthread_mutex_unlock(&fleet->members_lock);
}

/* ---- a turn ---- */

static bool node_try_claim_any(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns)
{
    bool claimed = false;
    pthread_mutex_lock(&fleet->members_lock);
    for (struct fleet_member *member = fleet->members; member != NULL && !claimed; member = member->next)
        claimed = fleet_member_node(fleet, member) == node && lease_member_try_claim(&member->lease, now_ns);
    pthread_mutex_unlock(&fleet->members_lock);
    return claimed;
}

static void node_open(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns)
{
    node->ever_opened = true;
    node->has_replied = node->closed_by_us = false;
    node->state = FLEET_CONNECTION_OPENING;
    fleet_connection_open(node->connection, node->endpoint[0] != 0 ? node->endpoint : NULL,
                          core_sum(now_ns, fleet->url.terms.timeout_ns));
    fleet_node_step(fleet, node, now_ns);
}

void fleet_node_serve(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns)
{
    fleet_node_step(fleet, node, now_ns);
    if (node->state == FLEET_CONNECTION_DOWN && now_ns >= node->retry_ns && node_try_claim_any(fleet, node, now_ns))
        node_open(fleet, node, now_ns);
    if (node->state != FLEET_CONNECTION_READY)
        return;
    node_make_due_requests(fleet, node, now_ns);
    while (node_send_waiting(fleet, node, now_ns)) /* a reply read at once may be NOSCRIPT: that request waits again */
        fleet_node_step(fleet, node, now_ns);
}

/* ---- leaving ---- */

/* Queues the final request; drops it if the connection is down. Opens a connection for it only if none was ever
 * attempted: a short-lived process would otherwise never report. If a connection is being opened, the request waits for
 * it. */
void fleet_node_send_final(struct bide_fleet *fleet, struct fleet_member *member, int64_t now_ns)
{
    struct fleet_node *node = fleet_member_node(fleet, member);
    assert(member_has_left(member));
    member_detach_pending(fleet, member, node);
    if (member->has_final_request && !node->ever_opened)
        node_open(fleet, node, now_ns);
    struct fleet_pending pending = {.member = member,
                                    .request = member->final_request,
                                    .deadline_ns = core_sum(now_ns, fleet->url.terms.timeout_ns),
                                    .is_final = true};
    if (member->has_final_request && node->state != FLEET_CONNECTION_DOWN && node->pending_count < FLEET_PENDING_MAX)
        pending_append(node, &pending);
    else
        pending_drop_final(node, &pending);
}

/* Returns true if the socket has taken all final requests and none can still get NOSCRIPT (the node has replied with
 * values before), or if the connection is down. */
bool fleet_node_finals_sent(const struct fleet_node *node)
{
    short events = 0;
    bool unsent = false;
    for (uint32_t i = 0; i < node->pending_count; i++)
        unsent |= node->pending[i].is_final && (i >= node->sent || !node->has_replied);
    if (node->state == FLEET_CONNECTION_READY)
        fleet_connection_fd(node->connection, &events);
    return node->state == FLEET_CONNECTION_DOWN || (!unsent && (events & POLLOUT) == 0);
}
