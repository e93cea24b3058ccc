/* fleet.c - budgets leased from a common bucket: each target that leases is a member with the production code of
 * lib/fleet/protocol, on virtual time.
 *
 *     member                                  bucket
 *     poll ── is a request due? ── request ──►  exchange, unless the bucket is down
 *     poll ◄── reply, or the timeout
 *
 * Each member has one or two pending events: its next poll; or its request on the way, then the reply; or, if no
 * reply will come in time, the timeout. Which of them is known when the request is sent, because message delays are
 * drawn by key. A request that would arrive after the timeout does not arrive: a connection that is too slow is closed.
 * A reply that would arrive after the timeout is lost, and with it the tokens it granted.
 *
 * Known weakness: a single process sends the requests for all processes of a host, and it never dies; the takeover by
 * another process is not simulated.
 *
 * Members keep exchanging while calls are left that can end, or more calls will come; a run ends with its calls. */
#include <assert.h>
#include <stdlib.h>

#include <bide/backoff.h>

#include "fleet/protocol/bucket.h"
#include "fleet/protocol/member.h"
#include "os/memory.h"

#include "state.h"

#define EPOCH_MS    INT64_C(1000000000000) /* the bucket's clock is the wall clock, far from 0 */
#define RETRY_BASE  (500 * BIDE_MS)        /* backoff after failed exchanges: as in lib/fleet */
#define RETRY_CAP   (30 * BIDE_S)
#define RETRY_FLOOR (50 * BIDE_MS)

enum fleet_step { FLEET_POLL = 0, FLEET_REQUEST_ARRIVES, FLEET_REPLY_ARRIVES, FLEET_TIMEOUT };

struct sim_fleet_member {
    struct lease_member lease;
    struct lease_reply reply; /* the reply, while it travels */
    int64_t reply_ns;         /* when the reply arrives; BIDE_NEVER: not in time */
    uint32_t bucket;
    uint32_t requests, failures; /* requests so far; consecutive failures */
};

static void member_schedule(struct sim_state *state, int64_t at_ns, uint32_t id, enum fleet_step step)
{
    state->fleet.events++;
    sim_schedule(state, at_ns, id, step);
}

/* ---- the bucket ---- */

static bool bucket_is_down(const struct sim_fleet *fleet, int64_t at_ns)
{
    return at_ns >= fleet->down_from_ns && at_ns < fleet->down_until_ns;
}

static void bucket_count_exchange(struct sim_state *state, const struct lease_request *request,
                                  const struct lease_reply *reply)
{
    struct sim_fleet_state *fleet = &state->fleet;
    struct sim_result *result = state->result;
    if (state->now_ns / BIDE_S != fleet->second) {
        fleet->second = state->now_ns / BIDE_S;
        fleet->second_exchanges = 0;
    }
    fleet->second_exchanges++;
    result->fleet_exchanges++;
    if (fleet->second_exchanges > result->fleet_peak)
        result->fleet_peak = fleet->second_exchanges;
    result->fleet_leased_milli += reply->granted_milli - request->returned_milli;
    result->fleet_earned_milli += request->earned_milli;
}

static void bucket_exchange(struct sim_state *state, struct sim_fleet_member *member, uint32_t id)
{
    lease_bucket_serve(&state->fleet.bucket[member->bucket], &member->lease.request, EPOCH_MS + state->now_ns / BIDE_MS,
                       &member->reply);
    bucket_count_exchange(state, &member->lease.request, &member->reply);
    if (member->reply_ns != BIDE_NEVER)
        member_schedule(state, member->reply_ns, id, FLEET_REPLY_ARRIVES);
}

/* ---- members ---- */

static struct sim_random_key member_random_key(const struct sim_state *state, const struct sim_fleet_member *member,
                                               enum sim_stream stream)
{
    return (struct sim_random_key){state->options->seed, stream, (uint64_t)(member - state->fleet.member),
                                   member->requests};
}

static void member_schedule_poll(struct sim_state *state, struct sim_fleet_member *member, uint32_t id)
{
    int64_t at_ns = lease_member_next_check_ns(&member->lease, state->now_ns);
    member_schedule(state, at_ns > state->now_ns ? at_ns : state->now_ns + BIDE_MS, id, FLEET_POLL);
}

static void member_send_request(struct sim_state *state, struct sim_fleet_member *member, uint32_t id)
{
    const struct sim_fleet *fleet = &state->world->fleet;
    int64_t timeout_ns = state->now_ns + fleet->timeout_ns;
    member->requests++;
    int64_t arrival_ns =
        state->now_ns +
        sim_distribution_draw(&fleet->delay, member_random_key(state, member, SIM_FOR_FLEET_REQUEST_DELAY));
    int64_t reply_ns =
        arrival_ns + sim_distribution_draw(&fleet->delay, member_random_key(state, member, SIM_FOR_FLEET_REPLY_DELAY));
    bool arrives = arrival_ns <= timeout_ns && !bucket_is_down(fleet, arrival_ns);
    member->reply_ns = arrives && reply_ns <= timeout_ns ? reply_ns : BIDE_NEVER;
    lease_member_make_request(&member->lease, state->now_ns);
    if (arrives)
        member_schedule(state, arrival_ns, id, FLEET_REQUEST_ARRIVES);
    if (member->reply_ns == BIDE_NEVER)
        member_schedule(state, timeout_ns, id, FLEET_TIMEOUT);
}

static void member_poll(struct sim_state *state, struct sim_fleet_member *member, uint32_t id)
{
    if (lease_member_try_claim(&member->lease, state->now_ns))
        member_send_request(state, member, id);
    else
        member_schedule_poll(state, member, id);
}

/* Adds the time since the lease ended, or since the join at 0, during which the member was disconnected. */
static void member_count_disconnected(struct sim_state *state, const struct sim_fleet_member *member)
{
    int64_t until_ns = lease_member_leased_until_ns(&member->lease);
    if (until_ns < state->now_ns)
        state->result->fleet_disconnected_ns += state->now_ns - until_ns;
}

static int64_t member_retry_ns(const struct sim_state *state, const struct sim_fleet_member *member)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.base_ns = RETRY_BASE;
    policy.cap_ns = RETRY_CAP;
    policy.floor_ns = RETRY_FLOOR;
    struct bide_step step = {.step = member->failures};
    return state->now_ns +
           bide_backoff_wait(&policy, step, sim_random_bits(member_random_key(state, member, SIM_FOR_FLEET_RETRY)), 0);
}

static void member_on_timeout(struct sim_state *state, struct sim_fleet_member *member, uint32_t id)
{
    lease_member_request_failed(&member->lease, member_retry_ns(state, member), state->now_ns);
    member->failures++;
    state->result->fleet_lost++;
    member_schedule_poll(state, member, id);
}

static void member_on_reply(struct sim_state *state, struct sim_fleet_member *member, uint32_t id)
{
    member_count_disconnected(state, member);
    uint64_t seed = sim_random_bits(member_random_key(state, member, SIM_FOR_NEXT_FLEET_REQUEST));
    const char *problem = lease_member_accept_reply(&member->lease, &member->reply, seed, state->now_ns);
    assert(problem == NULL); /* the simulated bucket never sends a bad reply */
    (void)problem;
    member->failures = 0;
    member_schedule_poll(state, member, id);
}

void sim_fleet_event(struct sim_state *state, uint32_t id, uint32_t seq)
{
    struct sim_fleet_member *member = &state->fleet.member[id - SIM_ID_FLEET];
    state->fleet.events--;
    switch ((enum fleet_step)seq) {
    case FLEET_POLL: member_poll(state, member, id); break;
    case FLEET_REQUEST_ARRIVES: bucket_exchange(state, member, id); break;
    case FLEET_REPLY_ARRIVES: member_on_reply(state, member, id); break;
    case FLEET_TIMEOUT: member_on_timeout(state, member, id); break;
    }
}

/* ---- set-up ---- */

static bool group_leases(const struct sim_state *state, uint32_t g)
{
    return state->world->clients[g].fleet && state->caller[g].target != NULL;
}

/* Returns the index of the target's bucket. A service has a bucket for callers without shard scope, and a bucket for
 * each of its shards. */
static uint32_t bucket_index(const struct sim_state *state, const struct sim_caller *caller, uint32_t target)
{
    uint32_t bucket = 0;
    for (uint32_t s = 0; s < caller->service; s++)
        bucket += 1 + state->world->service[s].shards;
    return caller->shards == 1 ? bucket : bucket + 1 + target % caller->shards;
}

static bool member_join(struct sim_state *state, const struct sim_caller *caller, uint32_t target)
{
    const struct sim_fleet *fleet = &state->world->fleet;
    uint32_t i = state->fleet.members++;
    struct sim_fleet_member *member = &state->fleet.member[i];
    struct lease_terms terms = {.capacity_milli = fleet->capacity_milli,
                                .per_minute_milli = fleet->refill_per_minute_milli,
                                .timeout_ns = fleet->timeout_ns};
    *member = (struct sim_fleet_member){.bucket = bucket_index(state, caller, target)};
    if (lease_member_join(&member->lease, &caller->target[target], &terms, i + 1, 0, NULL) != BIDE_OK)
        return false;
    member_schedule(state, 0, SIM_ID_FLEET + i, FLEET_POLL);
    return true;
}

bool sim_fleet_open(struct sim_state *state)
{
    uint32_t buckets = 0;
    uint64_t members = 0;
    for (uint32_t s = 0; s < state->world->services; s++)
        buckets += 1 + state->world->service[s].shards;
    for (uint32_t g = 0; g < state->world->groups; g++)
        members += group_leases(state, g) ? state->caller[g].targets : 0;
    if (members == 0)
        return true;
    if (members > SIM_ID_END - SIM_ID_FLEET)
        return false;
    state->fleet.bucket = os_memory(buckets, sizeof *state->fleet.bucket);
    state->fleet.member = os_memory(members, sizeof *state->fleet.member);
    if (state->fleet.bucket == NULL || state->fleet.member == NULL)
        return false;
    for (uint32_t g = 0; g < state->world->groups; g++)
        for (uint32_t i = 0; group_leases(state, g) && i < state->caller[g].targets; i++)
            if (!member_join(state, &state->caller[g], i))
                return false;
    return true;
}

void sim_fleet_finish(struct sim_state *state)
{
    state->result->fleet_joins = state->fleet.members;
    for (uint32_t i = 0; i < state->fleet.members; i++)
        member_count_disconnected(state, &state->fleet.member[i]);
}

void sim_fleet_close(struct sim_state *state)
{
    free(state->fleet.bucket);
    free(state->fleet.member);
}
