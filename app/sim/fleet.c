/* fleet.c - budgets leased from one bucket: every instance an account of lib/fleet/protocol, on virtual time.
 *
 *     instance                         bucket
 *     look ── is it due? ── ask ──►    exchange, unless it is down
 *     look ◄── answer, or nothing once the timeout is over
 *
 * What is in the queue for an instance: its next look; or its ask on the way, then the answer; or, if none will come,
 * the end of its timeout. Which of these is known when the ask leaves, for how long messages take is drawn by name.
 * What would arrive after the timeout does not arrive: a link that is too slow is closed. An answer that would come
 * after it is lost, and what it granted is spent.
 *
 * A weakness: of the processes of a host, one exchanges for all and never dies.
 *
 * Accounts go on while there are calls that can end, or more of them to come; a world ends when its calls do. */
#include <assert.h>
#include <stdlib.h>

#include <bide/backoff.h>

#include "fleet/protocol/bucket.h"
#include "fleet/protocol/member.h"
#include "os/memory.h"

#include "state.h"

#define EPOCH_MS     INT64_C(1000000000000) /* the bucket's clock is the wall's, far from 0 */
#define OPEN_SHARE   500             /* per mille of instances whose open breakers open the others': the default */
#define RETURN_BASE  (500 * BIDE_MS) /* waits after exchanges that fail: as in lib/fleet */
#define RETURN_CAP   (30 * BIDE_S)
#define RETURN_LEAST (50 * BIDE_MS)

enum step { LOOK = 0, ARRIVE, ANSWER, NOTHING };

struct sim_instance {
    struct lease_member lease;
    struct lease_reply reply; /* on its way */
    int64_t answer_ns;        /* the answer comes then; BIDE_NEVER: none will */
    uint32_t bucket;
    uint32_t asks, failures; /* so far; one after the other */
};

static void plan(struct sim_play *play, int64_t at_ns, uint32_t id, enum step step)
{
    play->fleet.events++;
    sim_play_at(play, at_ns, id, step);
}

/* ---- the bucket ---- */

static bool is_down(const struct sim_fleet *fleet, int64_t at_ns)
{
    return at_ns >= fleet->down_from_ns && at_ns < fleet->down_until_ns;
}

static void count(struct sim_play *play, const struct lease_request *request, const struct lease_reply *reply)
{
    struct sim_fleet_play *fleet = &play->fleet;
    struct sim_result *result = play->result;
    if (play->now_ns / BIDE_S != fleet->second) {
        fleet->second = play->now_ns / BIDE_S;
        fleet->this_second = 0;
    }
    fleet->this_second++;
    result->fleet_exchanges++;
    if (fleet->this_second > result->fleet_peak)
        result->fleet_peak = fleet->this_second;
    result->fleet_leased_milli += reply->granted_milli - request->returned_milli;
    result->fleet_earned_milli += request->earned_milli;
}

static void arrive(struct sim_play *play, struct sim_instance *it, uint32_t id)
{
    lease_bucket_serve(&play->fleet.bucket[it->bucket], &it->lease.request, EPOCH_MS + play->now_ns / BIDE_MS, &it->reply);
    count(play, &it->lease.request, &it->reply);
    if (it->answer_ns != BIDE_NEVER)
        plan(play, it->answer_ns, id, ANSWER);
}

/* ---- an instance ---- */

static struct sim_name name_of(const struct sim_play *play, const struct sim_instance *it, enum sim_stream stream)
{
    return (struct sim_name){play->how->seed, stream, (uint64_t)(it - play->fleet.instance), it->asks};
}

static void plan_look(struct sim_play *play, struct sim_instance *it, uint32_t id)
{
    int64_t at_ns = lease_member_next_check_ns(&it->lease, play->now_ns);
    plan(play, at_ns > play->now_ns ? at_ns : play->now_ns + BIDE_MS, id, LOOK);
}

static void request(struct sim_play *play, struct sim_instance *it, uint32_t id)
{
    const struct sim_fleet *fleet = &play->world->fleet;
    int64_t over_ns = play->now_ns + fleet->timeout_ns;
    it->asks++;
    int64_t there_ns = play->now_ns + sim_time_draw(&fleet->delay, name_of(play, it, SIM_FOR_ASK_DELAY));
    int64_t back_ns = there_ns + sim_time_draw(&fleet->delay, name_of(play, it, SIM_FOR_ANSWER_DELAY));
    bool arrives = there_ns <= over_ns && !is_down(fleet, there_ns);
    it->answer_ns = arrives && back_ns <= over_ns ? back_ns : BIDE_NEVER;
    lease_member_make_request(&it->lease, play->now_ns);
    if (arrives)
        plan(play, there_ns, id, ARRIVE);
    if (it->answer_ns == BIDE_NEVER)
        plan(play, over_ns, id, NOTHING);
}

static void look(struct sim_play *play, struct sim_instance *it, uint32_t id)
{
    if (lease_member_try_claim(&it->lease, play->now_ns))
        request(play, it, id);
    else
        plan_look(play, it, id);
}

/* From the end of its lease on it has been going on alone. */
static void count_alone(struct sim_play *play, const struct sim_instance *it)
{
    int64_t until_ns = bide_lease_until(it->lease.target);
    if (until_ns < play->now_ns)
        play->result->fleet_alone_ns += play->now_ns - until_ns;
}

static int64_t return_ns(const struct sim_play *play, const struct sim_instance *it)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.base_ns = RETURN_BASE;
    policy.cap_ns = RETURN_CAP;
    policy.floor_ns = RETURN_LEAST;
    struct bide_step step = {.step = it->failures};
    return play->now_ns + bide_backoff_wait(&policy, step, sim_bits(name_of(play, it, SIM_FOR_RETURN)), 0);
}

static void nothing(struct sim_play *play, struct sim_instance *it, uint32_t id)
{
    lease_member_request_failed(&it->lease, return_ns(play, it), play->now_ns);
    it->failures++;
    play->result->fleet_lost++;
    plan_look(play, it, id);
}

static void reply(struct sim_play *play, struct sim_instance *it, uint32_t id)
{
    count_alone(play, it);
    uint64_t seed = sim_bits(name_of(play, it, SIM_FOR_NEXT_ASK));
    const char *wrong = lease_member_accept_reply(&it->lease, &it->reply, seed, play->now_ns);
    assert(wrong == NULL); /* the bucket is ours, and in its right mind */
    (void)wrong;
    it->failures = 0;
    plan_look(play, it, id);
}

void sim_fleet_event(struct sim_play *play, uint32_t id, uint32_t seq)
{
    struct sim_instance *it = &play->fleet.instance[id - SIM_ID_FLEET];
    play->fleet.events--;
    switch ((enum step)seq) {
    case LOOK: look(play, it, id); break;
    case ARRIVE: arrive(play, it, id); break;
    case ANSWER: reply(play, it, id); break;
    case NOTHING: nothing(play, it, id); break;
    }
}

/* ---- the whole ---- */

static bool leases(const struct sim_play *play, uint32_t g)
{
    return play->world->clients[g].fleet && play->caller[g].target != NULL;
}

/* Of a service there is a bucket for those who see it as one, and one for each of its shards. */
static uint32_t bank_of(const struct sim_play *play, const struct sim_caller *caller, uint32_t target)
{
    uint32_t bucket = 0;
    for (uint32_t s = 0; s < caller->service; s++)
        bucket += 1 + play->world->service[s].shards;
    return caller->shards == 1 ? bucket : bucket + 1 + target % caller->shards;
}

static bool join(struct sim_play *play, const struct sim_caller *caller, uint32_t target)
{
    const struct sim_fleet *fleet = &play->world->fleet;
    uint32_t i = play->fleet.instances++;
    struct sim_instance *it = &play->fleet.instance[i];
    struct lease_terms terms = {.capacity_milli = fleet->capacity_milli,
                                .per_minute_milli = fleet->per_minute_milli,
                                .open_permille = OPEN_SHARE,
                                .timeout_ns = fleet->timeout_ns,
                                .hold_off = true};
    *it = (struct sim_instance){.bucket = bank_of(play, caller, target)};
    if (lease_member_join(&it->lease, &caller->target[target], &terms, i + 1, 0, NULL) != BIDE_OK)
        return false;
    plan(play, 0, SIM_ID_FLEET + i, LOOK);
    return true;
}

bool sim_fleet_open(struct sim_play *play)
{
    uint32_t buckets = 0;
    uint64_t instances = 0;
    for (uint32_t s = 0; s < play->world->services; s++)
        buckets += 1 + play->world->service[s].shards;
    for (uint32_t g = 0; g < play->world->groups; g++)
        instances += leases(play, g) ? play->caller[g].targets : 0;
    if (instances == 0)
        return true;
    if (instances > SIM_ID_END - SIM_ID_FLEET)
        return false;
    play->fleet.bucket = os_memory(buckets, sizeof *play->fleet.bucket);
    play->fleet.instance = os_memory(instances, sizeof *play->fleet.instance);
    if (play->fleet.bucket == NULL || play->fleet.instance == NULL)
        return false;
    for (uint32_t g = 0; g < play->world->groups; g++)
        for (uint32_t i = 0; leases(play, g) && i < play->caller[g].targets; i++)
            if (!join(play, &play->caller[g], i))
                return false;
    return true;
}

void sim_fleet_finish(struct sim_play *play)
{
    for (uint32_t i = 0; i < play->fleet.instances; i++)
        count_alone(play, &play->fleet.instance[i]);
}

void sim_fleet_close(struct sim_play *play)
{
    free(play->fleet.bucket);
    free(play->fleet.instance);
}
