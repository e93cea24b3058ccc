/* test_fleet_promise.c - whole fleets in virtual time: the promise, whatever is killed; and fair shares when nothing
 * fails.
 *
 * Everything is real except network and Redis: targets with calls on them, members, the bucket. Messages are lost, late
 * or invalid; processes and hosts are killed between any two steps and others join; the bucket loses its state or goes
 * back to an old state, its clock jumps. After every step all tokens anywhere (the cost of retries so far, the buckets,
 * messages in transit) are added up, and must not exceed the supply:
 *
 *     the bucket's refill, as its clock moved on  +  its initial tokens: a retry per new member, a bucketful at most
 *     +  earnings of calls  +  floor x time disconnected, of each target
 *     +  a full bucket for each time the bucket went back to an old state
 *     +  for each target with a floor that got no grant: a retry minus floor x time before its first reply, if positive
 *
 * So the fleet's retries are within the promise at every instant, and the sum of tokens can only drift down.
 *
 * Each world comes from a number. A failure prints it; BIDE_TEST_SEED=NUMBER begins with that world (seed.h). */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/bide.h>

#include "fleet/protocol/bucket.h"
#include "fleet/protocol/member.h"

#include "dice.h"
#include "seed.h"

#define WORLDS    50
#define INSTANCES 300    /* of a world */
#define STEPS     150000 /* of all its instances together */
#define PROCESSES 3
#define PENDING   4
#define MS        BIDE_MS
#define S         BIDE_S
#define RETRY     1000 /* its cost */
#define EARN      100  /* by a success */

static uint64_t first_seed = 1;

/* ---- chance ---- */

static bool one_in_a_million(struct dice *d, uint32_t n)
{
    return below(d, 1000000) < n;
}

/* ---- the world ---- */

/* A process with a member for a target. Its number is never reused, so that messages for a dead process are
 * recognised. */
struct process {
    uint64_t number; /* 0: no process */
    int64_t check_ns, timeout_ns;
    struct lease_member lease;
};

/* A call with a retry that is charged and not sent yet. */
struct pending {
    bool is_there;
    int64_t at_ns;
    struct bide_call call;
};

/* A target, and the processes that have it. */
struct instance {
    struct bide_target target;
    struct process process[PROCESSES];
    struct pending pending[PENDING];
    int64_t until_ns;     /* up to which time is accounted for */
    int64_t unreplied_ns; /* time before its first reply */
    bool replied, got_grant;
    uint32_t calls_per_s;
    uint64_t granted; /* retries */
    bool is_here;
};

struct message {
    bool is_reply;
    bool is_copy; /* of a reply: its grant is counted once */
    bool is_forged;
    uint64_t to; /* number of the process */
    uint32_t instance;
    int64_t at_ns;
    struct lease_request request;
    struct lease_reply reply;
};

/* Rates of faults, in millionths per step (or message). */
struct chaos {
    uint32_t lost, late, forge, twice;          /* of messages */
    uint32_t cut, heal;                         /* the network as a whole */
    uint32_t down, up;                          /* the server that is called */
    uint32_t kill_host, kill_process, leave;    /* per instance */
    uint32_t join, echo;                        /* per instance; echo: the request fails, twice */
    uint32_t lose_state, save, roll_back, jump; /* the bucket */
};

struct world {
    struct dice dice;
    struct bide_policy policy;
    struct bide_target_config config;
    struct lease_terms terms;
    struct chaos chaos;
    struct instance *instance;
    uint32_t size;
    struct message *message; /* in transit, in no order */
    uint32_t messages, room;
    uint64_t numbers;
    int64_t now_ns;
    bool is_cut, is_down;
    /* the bucket */
    struct lease_bucket bucket, saved;
    bool has_saved;
    int64_t clock_ms; /* its clock minus ours */
    uint64_t exchanges;
    /* the account */
    int64_t highest_ms, moved_ms; /* of the bucket's clock */
    int64_t disconnected_ns;
    int64_t earned_milli, rolled_back_milli;
    int64_t initial_milli;      /* of new members, in the bucket */
    int64_t ended_excess_milli; /* of targets that are gone */
    int64_t paid_milli;         /* for retries so far */
    uint64_t retries, refused, forged_replies, late, rollbacks;
};

static struct bide_target_config config_of(uint32_t capacity, uint32_t floor_per_minute)
{
    struct bide_target_config c;
    assert_int_equal(bide_target_config_init(&c, BIDE_PRESET_SERVICE), BIDE_OK);
    c.budget.capacity_milli = capacity * RETRY;
    c.budget.cost_milli = c.budget.cost_throttled_milli = c.budget.cost_timeout_milli = RETRY;
    c.budget.earn_success_milli = EARN;
    c.budget.refill_per_minute_milli = floor_per_minute * RETRY;
    c.breaker.kind = BIDE_BREAKER_OFF;
    return c;
}

static void open_world(struct world *w, uint64_t seed, uint32_t size)
{
    memset(w, 0, sizeof *w);
    w->dice.state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    w->size = size;
    w->now_ns = 1000 * S;
    w->clock_ms = INT64_C(1700000000000);
    w->terms =
        (struct lease_terms){.capacity_milli = 1000 * RETRY, .per_minute_milli = 60 * RETRY, .timeout_ns = 500 * MS};
    w->config = config_of(100, 1);
    assert_int_equal(bide_policy_init(&w->policy, BIDE_PRESET_SERVICE), BIDE_OK);
    w->instance = aligned_alloc(64, size * sizeof *w->instance);
    assert_non_null(w->instance);
    memset(w->instance, 0, size * sizeof *w->instance);
}

static void close_world(struct world *w)
{
    free(w->instance);
    free(w->message);
}

/* ---- joining and leaving ---- */

static void start_process(struct world *w, struct instance *i, uint32_t place, bool shared)
{
    struct process *p = &i->process[place];
    struct lease_terms terms = w->terms;
    terms.shared = shared;
    *p = (struct process){.number = ++w->numbers, .check_ns = w->now_ns};
    assert_int_equal(lease_member_join(&p->lease, &i->target, &terms, (uint32_t)p->number, w->now_ns, NULL), BIDE_OK);
}

static void join(struct world *w, uint32_t place, uint32_t processes)
{
    struct instance *i = &w->instance[place];
    *i = (struct instance){.is_here = true, .until_ns = w->now_ns};
    assert_int_equal(bide_target_init(&i->target, &w->config, w->now_ns, NULL), BIDE_OK);
    for (uint32_t p = 0; p < processes; p++)
        start_process(w, i, p, processes > 1);
}

/* Returns the tokens that the floor will not have earned: one retry at the join, however many processes, that no grant
 * has repaid, minus the floor in the time before the first reply. */
static int64_t excess_milli(const struct world *w, const struct instance *i)
{
    int64_t floor = w->config.budget.refill_per_minute_milli;
    int64_t earned_milli = i->unreplied_ns * floor / BIDE_MINUTE;
    return floor == 0 || i->got_grant || earned_milli >= RETRY ? 0 : RETRY - earned_milli;
}

/* Ends an instance, with all tokens in it. */
static void end_instance(struct world *w, struct instance *i)
{
    w->ended_excess_milli += excess_milli(w, i);
    i->is_here = false;
}

static void message_post(struct world *w, const struct message *m)
{
    if (w->messages == w->room) {
        w->room = 2 * w->room + 64;
        w->message = realloc(w->message, w->room * sizeof *w->message);
        assert_non_null(w->message);
    }
    w->message[w->messages++] = *m;
}

static int64_t travel_ns(struct world *w)
{
    if (one_in_a_million(&w->dice, w->chaos.late))
        return below(&w->dice, 3000000) * BIDE_US;
    return below(&w->dice, 20000) * BIDE_US;
}

static void message_send(struct world *w, uint32_t place, uint64_t number, const struct lease_request *request)
{
    assert_null(lease_request_check(request));
    if (w->is_cut || one_in_a_million(&w->dice, w->chaos.lost))
        return;
    message_post(
        w, &(struct message){.to = number, .instance = place, .at_ns = w->now_ns + travel_ns(w), .request = *request});
}

/* Leaves in good order: returns all tokens, without waiting for the reply. */
static void leave(struct world *w, uint32_t place)
{
    struct instance *i = &w->instance[place];
    struct lease_request request;
    for (uint32_t p = 0; p < PROCESSES; p++)
        if (i->process[p].number && lease_member_leave(&i->process[p].lease, w->now_ns, &request))
            message_send(w, place, i->process[p].number, &request);
    end_instance(w, i);
}

/* ---- the bucket ---- */

/* Adds up how far its clock moved on, by the rules of bucket.h. */
static void account_for_clock(struct world *w, int64_t now_ms)
{
    int64_t passed_ms = now_ms - w->highest_ms;
    if (w->bucket.serial == 0 || passed_ms < -LEASE_CLOCK_BACK_MAX_MS)
        w->highest_ms = now_ms;
    else if (passed_ms > 0) {
        w->moved_ms += passed_ms < LEASE_REFILL_MAX_MS ? passed_ms : LEASE_REFILL_MAX_MS;
        w->highest_ms = now_ms;
    }
}

static void account_for_initial(struct world *w, int64_t added_milli)
{
    assert_in_range(added_milli, 0, RETRY);
    assert_true(w->bucket.initial_milli <= w->terms.capacity_milli);
    w->initial_milli += added_milli;
}

static void disturb_bucket(struct world *w)
{
    const struct chaos *c = &w->chaos;
    if (one_in_a_million(&w->dice, c->save)) {
        w->saved = w->bucket;
        w->has_saved = true;
    }
    if (one_in_a_million(&w->dice, c->lose_state))
        w->bucket = (struct lease_bucket){0};
    if (w->has_saved && one_in_a_million(&w->dice, c->roll_back)) {
        w->bucket = w->saved;
        w->rolled_back_milli += w->terms.capacity_milli + 1; /* a millitoken for the rest of a division */
        w->rollbacks++;
    }
    if (one_in_a_million(&w->dice, c->jump))
        w->clock_ms += ((int64_t)below(&w->dice, 7200) - 3600) * (below(&w->dice, 4) == 0 ? 1000 : 10);
}

/* Forges a reply: makes a field invalid, or grants more than any member wants (the reply may arrive when the member
 * already waits for the reply to a later request, so one token too many might be no more than that one wants). */
static void forge(struct world *w, struct lease_reply *a)
{
    int64_t *field = (int64_t *)a + below(&w->dice, LEASE_REPLY_FIELD_COUNT);
    static const int64_t forged_replies[] = {-1, INT64_MIN, INT64_MAX, LEASE_COUNT_MAX + 1};
    *field = forged_replies[below(&w->dice, 4)];
    if (below(&w->dice, 3) == 0)
        a->granted_milli = LEASE_MILLI_MAX;
    w->forged_replies++;
}

static void bucket_receive(struct world *w, const struct message *m)
{
    struct lease_reply reply;
    int64_t bucket_ms = w->now_ns / MS + w->clock_ms;
    struct lease_bucket before = w->bucket;
    account_for_clock(w, bucket_ms);
    lease_bucket_serve(&w->bucket, &m->request, bucket_ms, &reply);
    assert_null(lease_bucket_check(&w->bucket));
    if (m->request.seen_serial <= before.serial)
        account_for_initial(w, w->bucket.initial_milli - before.initial_milli);
    w->exchanges++;
    if (m->request.leaving || w->is_cut || one_in_a_million(&w->dice, w->chaos.lost))
        return;
    struct message back = *m;
    back.is_reply = true;
    back.reply = reply;
    back.is_forged = one_in_a_million(&w->dice, w->chaos.forge);
    if (back.is_forged)
        forge(w, &back.reply);
    back.at_ns = w->now_ns + travel_ns(w);
    message_post(w, &back);
    back.is_copy = true;
    back.at_ns = w->now_ns + travel_ns(w);
    if (one_in_a_million(&w->dice, w->chaos.twice))
        message_post(w, &back);
}

/* ---- processes ---- */

static void fail_request(struct world *w, struct process *p)
{
    lease_member_request_failed(&p->lease, w->now_ns + (100 + below(&w->dice, 4000)) * MS, w->now_ns);
    p->check_ns = lease_member_next_check_ns(&p->lease, w->now_ns);
}

static void process_receive(struct world *w, const struct message *m)
{
    struct instance *i = &w->instance[m->instance];
    for (uint32_t p = 0; p < PROCESSES; p++) {
        struct process *process = &i->process[p];
        if (!i->is_here || process->number != m->to)
            continue;
        const char *wrong = lease_member_accept_reply(&process->lease, &m->reply, roll(&w->dice), w->now_ns);
        assert_true(wrong || !m->is_forged);
        w->late += wrong && !m->is_forged;
        bool applied = !wrong && process->lease.state == LEASE_MEMBER_LEASED;
        i->replied |= applied;
        i->got_grant |= applied && m->reply.granted_milli > 0;
        if (wrong && process->lease.request_pending)
            fail_request(w, process);
        process->check_ns = lease_member_next_check_ns(&process->lease, w->now_ns);
    }
}

static void process_step(struct world *w, uint32_t place, struct process *p)
{
    if (p->lease.request_pending && w->now_ns >= p->timeout_ns)
        fail_request(w, p);
    if (p->lease.request_pending || w->now_ns < p->check_ns)
        return;
    if (lease_member_try_claim(&p->lease, w->now_ns)) {
        if (w->is_cut && below(&w->dice, 2)) {
            fail_request(w, p); /* no connection */
            return;
        }
        message_send(w, place, p->number, lease_member_make_request(&p->lease, w->now_ns));
        p->timeout_ns = w->now_ns + w->terms.timeout_ns;
    }
    p->check_ns = lease_member_next_check_ns(&p->lease, w->now_ns);
    if (one_in_a_million(&w->dice, w->chaos.echo)) {
        fail_request(w, p);
        fail_request(w, p);
    }
}

/* Returns the first message that is due, or NULL. */
static struct message *earliest_message(const struct world *w)
{
    struct message *first = NULL;
    for (uint32_t i = 0; i < w->messages; i++) {
        struct message *m = &w->message[i];
        if (m->at_ns <= w->now_ns && (!first || m->at_ns < first->at_ns))
            first = m;
    }
    return first;
}

/* Whichever arrives first, the reply or its copy: its grant is no longer in transit. */
static void mark_copies(struct world *w, const struct message *m)
{
    for (uint32_t i = 0; i < w->messages; i++)
        if (w->message[i].is_reply && w->message[i].to == m->to && w->message[i].reply.serial == m->reply.serial)
            w->message[i].is_copy = true;
}

static void deliver(struct world *w)
{
    struct message *first;
    while ((first = earliest_message(w)) != NULL) {
        struct message m = *first;
        *first = w->message[--w->messages];
        if (!m.is_reply) {
            bucket_receive(w, &m);
            continue;
        }
        mark_copies(w, &m);
        process_receive(w, &m);
    }
}

/* ---- calls ---- */

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

static void keep_pending(struct instance *i, const struct bide_call *call, int64_t at_ns)
{
    for (uint32_t p = 0; p < PENDING; p++)
        if (!i->pending[p].is_there) {
            i->pending[p] = (struct pending){true, at_ns, *call};
            return;
        }
    /* No room: forgotten with its charge, as by a killed thread. */
}

static void make_call(struct world *w, struct instance *i)
{
    struct bide_call call;
    struct bide_request request = {.safety = BIDE_SAFE, .seed = roll(&w->dice), .lane = below(&w->dice, BIDE_LANES)};
    struct bide_verdict v = bide_call_begin(&call, &w->policy, &i->target, &request, w->now_ns);
    if (v.action != BIDE_ACTION_START) {
        bide_call_cancel(&call, w->now_ns);
        return;
    }
    bool fails = below(&w->dice, 100) < (w->is_down ? 95 : 2);
    struct bide_outcome outcome = fails ? failed : ok;
    if (fails && one_in_a_million(&w->dice, 20000)) {
        outcome.kind = BIDE_KIND_THROTTLED;
        outcome.hint = (struct bide_hint){BIDE_HINT_WAIT, below(&w->dice, 5000) * MS};
    }
    v = bide_call_outcome(&call, 1, &outcome, w->now_ns);
    if (v.action == BIDE_ACTION_DONE)
        w->earned_milli += EARN;
    w->refused += v.reason == BIDE_REASON_BUDGET_EMPTY;
    if (v.action != BIDE_ACTION_WAIT)
        return;
    w->paid_milli += RETRY;
    w->retries++;
    i->granted++;
    keep_pending(i, &call, v.wake_ns);
}

/* Sends a retry, or refunds it. */
static void end_pending(struct world *w, struct pending *p)
{
    struct bide_verdict v;
    if (below(&w->dice, 2))
        v = bide_call_cancel(&p->call, w->now_ns);
    else
        v = bide_call_wake(&p->call, w->now_ns);
    if (v.action == BIDE_ACTION_GIVE_UP) { /* cancelled, or a gate has closed meanwhile: refunded */
        w->paid_milli -= RETRY;
        w->retries--;
    } else if (v.action == BIDE_ACTION_START) {
        v = bide_call_outcome(&p->call, v.attempt, &ok, w->now_ns);
        w->earned_milli += v.action == BIDE_ACTION_DONE ? EARN : 0;
    } else if (v.action == BIDE_ACTION_WAIT) {
        p->at_ns = v.wake_ns;
        return;
    }
    p->is_there = false;
}

static void traffic(struct world *w, struct instance *i, int64_t step_ns)
{
    for (uint32_t p = 0; p < PENDING; p++)
        if (i->pending[p].is_there && w->now_ns >= i->pending[p].at_ns)
            end_pending(w, &i->pending[p]);
    uint64_t calls_milli = i->calls_per_s * (uint64_t)(step_ns / MS);
    uint64_t calls = calls_milli / 1000 + (below(&w->dice, 1000) < calls_milli % 1000);
    for (; calls > 0; calls--)
        make_call(w, i);
}

/* ---- the account ---- */

/* Adds the time since the last step that the lease did not cover. Before the first reply there is no lease: the end in
 * the target only delays the floor. */
static void account_for_time(struct world *w, struct instance *i)
{
    int64_t until_ns = i->replied ? core_lease_until(&i->target) : 0;
    int64_t from_ns = until_ns > i->until_ns ? until_ns : i->until_ns;
    w->disconnected_ns += w->now_ns > from_ns ? w->now_ns - from_ns : 0;
    i->unreplied_ns += i->replied ? 0 : w->now_ns - i->until_ns;
    i->until_ns = w->now_ns;
}

static int64_t all_excess_milli(const struct world *w)
{
    int64_t sum = w->ended_excess_milli;
    for (uint32_t n = 0; n < w->size; n++)
        sum += w->instance[n].is_here ? excess_milli(w, &w->instance[n]) : 0;
    return sum;
}

static int64_t supplied_milli(const struct world *w)
{
    int64_t floor = w->config.budget.refill_per_minute_milli, minutes = w->disconnected_ns / BIDE_MINUTE;
    return w->moved_ms * w->terms.per_minute_milli / 60000 + w->earned_milli + w->initial_milli + all_excess_milli(w) +
           w->rolled_back_milli + minutes * floor + w->disconnected_ns % BIDE_MINUTE * floor / BIDE_MINUTE;
}

static int64_t held_milli(const struct world *w)
{
    int64_t sum = 0;
    for (uint32_t n = 0; n < w->size; n++)
        sum += w->instance[n].is_here ? bide_target_get(&w->instance[n].target, w->now_ns).budget_left_milli : 0;
    return sum;
}

/* Returns overflow of members, and earnings of calls that are not reported yet. */
static int64_t overflow_milli(const struct world *w)
{
    int64_t sum = 0;
    for (uint32_t n = 0; n < w->size; n++) {
        const struct instance *i = &w->instance[n];
        for (uint32_t p = 0; i->is_here && p < PROCESSES; p++)
            sum += i->process[p].number ? i->process[p].lease.overflow_milli : 0;
        for (uint32_t lane = 0; i->is_here && lane < BIDE_LANES; lane++)
            sum += (int64_t)i->target.lane[lane].earned_milli;
    }
    return sum;
}

/* A forged reply carries no tokens. */
static int64_t in_transit_milli(const struct world *w)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < w->messages; i++) {
        const struct message *m = &w->message[i];
        if (!m->is_reply)
            sum += m->request.returned_milli + m->request.earned_milli;
        else if (!m->is_copy && !lease_reply_check(&m->reply, &m->request))
            sum += m->reply.granted_milli;
    }
    return sum;
}

/* All tokens, wherever they are. */
static int64_t total_milli(const struct world *w)
{
    return w->paid_milli + held_milli(w) + overflow_milli(w) + in_transit_milli(w) + w->bucket.level_milli;
}

static void check_account(const struct world *w, uint64_t seed)
{
    int64_t total = total_milli(w), supplied = supplied_milli(w);
    if (total > supplied)
        fail_msg("seed %" PRIu64 ", %" PRId64 " ms: %" PRId64 " thousandths are held or spent, but only %" PRId64
                 " were supplied",
                 seed, w->now_ns / MS - 1000000, total, supplied);
}

/* ---- steps ---- */

static void disturb_instance(struct world *w, uint32_t place)
{
    const struct chaos *c = &w->chaos;
    struct instance *i = &w->instance[place];
    if (!i->is_here) {
        if (one_in_a_million(&w->dice, c->join)) {
            join(w, place, below(&w->dice, 4) == 0 ? 1 + below(&w->dice, PROCESSES) : 1);
            i->calls_per_s = below(&w->dice, 3) * below(&w->dice, 40);
        }
        return;
    }
    if (one_in_a_million(&w->dice, c->kill_host))
        end_instance(w, i);
    else if (one_in_a_million(&w->dice, c->leave))
        leave(w, place);
    struct process *p = &i->process[below(&w->dice, PROCESSES)];
    if (!i->is_here || !i->process[0].lease.terms.shared || !one_in_a_million(&w->dice, c->kill_process))
        return;
    if (p->number)
        *p = (struct process){0};
    else
        start_process(w, i, (uint32_t)(p - i->process), true);
}

static void world_step(struct world *w, int64_t step_ns)
{
    w->now_ns += step_ns;
    for (uint32_t n = 0; n < w->size; n++)
        if (w->instance[n].is_here)
            account_for_time(w, &w->instance[n]);
    w->is_cut = w->is_cut ? !one_in_a_million(&w->dice, w->chaos.heal) : one_in_a_million(&w->dice, w->chaos.cut);
    w->is_down = w->is_down ? !one_in_a_million(&w->dice, w->chaos.up) : one_in_a_million(&w->dice, w->chaos.down);
    disturb_bucket(w);
    deliver(w);
    for (uint32_t n = 0; n < w->size; n++) {
        struct instance *i = &w->instance[n];
        disturb_instance(w, n);
        for (uint32_t p = 0; i->is_here && p < PROCESSES; p++)
            if (i->process[p].number)
                process_step(w, n, &i->process[p]);
        if (i->is_here)
            traffic(w, i, step_ns);
    }
}

/* ---- the promise ---- */

/* Returns a rate: 0, or about this. */
static uint32_t draw_rate(struct world *w, uint32_t millionths)
{
    return below(&w->dice, 3) == 0 ? 0 : 1 + below(&w->dice, 2 * millionths);
}

static void choose_chaos(struct world *w)
{
    w->chaos = (struct chaos){.lost = draw_rate(w, 50000),
                              .late = draw_rate(w, 50000),
                              .forge = draw_rate(w, 20000),
                              .twice = draw_rate(w, 50000),
                              .cut = draw_rate(w, 2000),
                              .heal = 10000,
                              .down = 1 + draw_rate(w, 10000),
                              .up = 5000,
                              .kill_host = draw_rate(w, 500),
                              .kill_process = draw_rate(w, 5000),
                              .leave = draw_rate(w, 500),
                              .join = 20000,
                              .echo = draw_rate(w, 1000),
                              .lose_state = draw_rate(w, 500),
                              .save = draw_rate(w, 2000),
                              .roll_back = draw_rate(w, 500),
                              .jump = draw_rate(w, 1000)};
}

static void run_chaos(uint64_t seed, struct world *sum)
{
    struct world w;
    struct dice dice = {seed * 7919};
    uint32_t size = 1 + below(&dice, 1 + below(&dice, INSTANCES));
    open_world(&w, seed, size);
    w.terms.capacity_milli = (1 + below(&w.dice, 1000)) * RETRY;
    w.terms.per_minute_milli = below(&w.dice, 3) * below(&w.dice, 600) * RETRY;
    w.config = config_of(1 + below(&w.dice, 200), below(&w.dice, 30));
    w.config.breaker.kind = below(&w.dice, 2) ? BIDE_BREAKER_BY_TIME : BIDE_BREAKER_OFF;
    choose_chaos(&w);
    int64_t step_ns = (1 + below(&w.dice, 60)) * MS + below(&w.dice, 1000000);
    uint32_t steps = STEPS / size < 6000 ? STEPS / size : 6000;
    for (uint32_t i = 0; i < steps; i++) {
        world_step(&w, step_ns);
        check_account(&w, seed);
    }
    sum->retries += w.retries;
    sum->exchanges += w.exchanges;
    sum->forged_replies += w.forged_replies;
    sum->late += w.late;
    sum->rollbacks += w.rollbacks;
    close_world(&w);
}

static void retries_never_exceed_budget_leases_and_floors(void **state)
{
    struct world sum = {0};
    for (uint32_t i = 0; i < WORLDS; i++)
        run_chaos(first_seed + i, &sum);
    print_message("%d worlds from seed %" PRIu64 ": %" PRIu64 " retries, %" PRIu64 " exchanges, %" PRIu64
                  " forged replies, %" PRIu64 " late replies, %" PRIu64 " rollbacks\n",
                  WORLDS, first_seed, sum.retries, sum.exchanges, sum.forged_replies, sum.late, sum.rollbacks);
    assert_true(sum.retries > 1000 && sum.forged_replies > 100 && sum.late > 100 && sum.rollbacks > 2);
}

/* ---- fair shares ---- */

struct funds {
    uint32_t tokens, per_minute;
};

/* Opens a world in which the bucket has served before and holds so much. */
static void open_calm_world(struct world *w, uint32_t size, struct funds funds)
{
    open_world(w, first_seed, size);
    w->terms.per_minute_milli = funds.per_minute * RETRY;
    w->bucket.serial = 1;
    w->bucket.initial_milli = w->terms.capacity_milli;
    w->bucket.level_milli = w->earned_milli = funds.tokens * RETRY;
    w->bucket.refilled_ms = w->highest_ms = w->now_ns / MS + w->clock_ms;
    for (uint32_t i = 0; i < size; i++)
        join(w, i, 1);
}

static void run_for(struct world *w, int64_t time_ns, int64_t step_ns)
{
    for (int64_t end_ns = w->now_ns + time_ns; w->now_ns < end_ns;)
        world_step(w, step_ns);
    check_account(w, first_seed);
}

static void idle_fleet_of_10000_holds_nothing_and_makes_1000_exchanges_per_second(void **state)
{
    struct world w;
    open_calm_world(&w, 10000, (struct funds){1000, 0});
    run_for(&w, 60 * S, 250 * MS);
    uint64_t before = w.exchanges;
    run_for(&w, 30 * S, 250 * MS);
    uint64_t per_s = (w.exchanges - before) / 30;
    print_message("%" PRIu64 " exchanges a second, %" PRId64 " held, %" PRId64 " left\n", per_s, held_milli(&w),
                  w.bucket.level_milli);
    assert_int_equal(held_milli(&w), 0);
    assert_in_range(per_s, 800, 1000);
    assert_int_equal(w.bucket.level_milli, 1000 * RETRY);
    close_world(&w);
}

static void idle_fleet_of_100_holds_at_most_half_the_bucket(void **state)
{
    struct world w;
    open_calm_world(&w, 100, (struct funds){1000, 60});
    run_for(&w, 60 * S, 50 * MS);
    uint64_t before = w.exchanges;
    for (int i = 0; i < 60; i++) {
        run_for(&w, S, 50 * MS);
        assert_in_range(held_milli(&w), 100 * RETRY, 500 * RETRY);
    }
    assert_true((w.exchanges - before) / 60 <= 11); /* idle: an exchange per instance in 10 s */
    close_world(&w);
}

static void single_busy_instance_gets_its_demand_within_two_seconds(void **state)
{
    for (uint32_t per_s = 1; per_s <= 40; per_s *= 2) {
        struct world w;
        open_calm_world(&w, 100, (struct funds){1000, 60});
        run_for(&w, 60 * S + below(&w.dice, 10000) * MS, 50 * MS);
        w.is_down = true;
        w.instance[42].calls_per_s = per_s;
        run_for(&w, 2 * S, 50 * MS);
        uint64_t refused = w.refused, retries = w.retries;
        run_for(&w, 8 * S, 50 * MS);
        print_message("%u calls a second: %" PRIu64 " refused in 2 s, then %" PRIu64 " of %" PRIu64 "\n", per_s,
                      refused, w.refused - refused, w.refused - refused + w.retries - retries);
        assert_true(w.refused - refused <= 2 + (w.retries - retries) / 20); /* two: calls may come in a burst */
        close_world(&w);
    }
}

static void scarce_tokens_are_shared_fairly(void **state)
{
    struct world w;
    open_calm_world(&w, 20, (struct funds){.per_minute = 3000});
    w.is_down = true;
    for (uint32_t i = 0; i < 20; i++)
        w.instance[i].calls_per_s = 20 + 20 * (i % 4); /* all want more than there is */
    run_for(&w, 20 * S, 50 * MS);
    uint64_t least = UINT64_MAX, most = 0, sum = 0, before[20];
    for (uint32_t i = 0; i < 20; i++)
        before[i] = w.instance[i].granted;
    run_for(&w, 60 * S, 50 * MS);
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t got = w.instance[i].granted - before[i];
        least = got < least ? got : least;
        most = got > most ? got : most;
        sum += got;
    }
    print_message("%" PRIu64 " to %" PRIu64 " retries, %" PRIu64 " in all\n", least, most, sum);
    assert_true(most <= 2 * least);
    close_world(&w);
}

static void tokens_return_when_demand_ends(void **state)
{
    struct world w;
    open_calm_world(&w, 8, (struct funds){1000, 0});
    w.is_down = true;
    for (uint32_t i = 0; i < 8; i++)
        w.instance[i].calls_per_s = 30;
    while (w.bucket.level_milli > 200 * RETRY)
        run_for(&w, 100 * MS, 50 * MS);
    int64_t held = held_milli(&w), left = w.bucket.level_milli;
    for (uint32_t i = 0; i < 8; i++)
        w.instance[i].calls_per_s = 0;
    run_for(&w, 60 * S, 50 * MS);
    print_message("%" PRId64 " were held and %" PRId64 " left, then %" PRId64 " and %" PRId64 "\n", held, left,
                  held_milli(&w), w.bucket.level_milli);
    assert_true(held > left);
    assert_true(held_milli(&w) <= w.bucket.level_milli);
    close_world(&w);
}

static void disconnected_instance_continues_at_its_floor_and_reconnects(void **state)
{
    struct world w;
    open_calm_world(&w, 5, (struct funds){0, 0});
    run_for(&w, 10 * S, 50 * MS);
    w.is_cut = w.is_down = true;
    for (uint32_t i = 0; i < 5; i++)
        w.instance[i].calls_per_s = 5;
    run_for(&w, 301 * S, 50 * MS);
    print_message("%" PRIu64 " retries of 5 instances disconnected for 5 minutes\n", w.retries);
    assert_in_range(w.retries, 5 * 3, 5 * 5); /* a retry per minute each, from an instant of the first minute on */
    w.is_cut = false;
    run_for(&w, 10 * S, 50 * MS);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(core_lease_until(&w.instance[i].target) > w.now_ns);
    close_world(&w);
}

static void fleet_without_redis_makes_one_retry_each_or_its_floors(void **state)
{
    struct world w;
    open_calm_world(&w, 5, (struct funds){1000, 0});
    w.is_cut = w.is_down = true;
    for (uint32_t i = 0; i < 5; i++)
        w.instance[i].calls_per_s = 5;
    run_for(&w, 59 * S, 50 * MS);
    assert_int_equal(w.retries, 5); /* at once */
    run_for(&w, 60 * S, 50 * MS);
    assert_int_equal(w.retries, 5);
    run_for(&w, 182 * S, 50 * MS);
    assert_in_range(w.retries, 5 * 5 - 1, 5 * 5); /* in five minutes */
    close_world(&w);
}

static void no_token_is_lost_when_nothing_fails(void **state)
{
    struct world w;
    open_calm_world(&w, 20, (struct funds){100, 600});
    run_for(&w, S, 50 * MS);               /* the first reply repays the first retry of each floor */
    int64_t excess = all_excess_milli(&w); /* of members that got a reply without a grant */
    for (uint32_t i = 0; i < 20; i++)
        w.instance[i].calls_per_s = 5 * (i % 3);
    for (int i = 0; i < 12; i++) {
        w.is_down = i % 2 == 1;
        run_for(&w, 5 * S, 50 * MS);
    }
    int64_t forfeited =
        w.disconnected_ns / MS * w.config.budget.refill_per_minute_milli / 60000; /* before the first reply */
    assert_true(w.retries > 100 && w.bucket.level_milli < w.terms.capacity_milli);
    assert_in_range(total_milli(&w), supplied_milli(&w) - excess - forfeited - 1, supplied_milli(&w));
    close_world(&w);
}

static int play_seed(uint64_t seed)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries_never_exceed_budget_leases_and_floors),
        cmocka_unit_test(idle_fleet_of_10000_holds_nothing_and_makes_1000_exchanges_per_second),
        cmocka_unit_test(idle_fleet_of_100_holds_at_most_half_the_bucket),
        cmocka_unit_test(single_busy_instance_gets_its_demand_within_two_seconds),
        cmocka_unit_test(scarce_tokens_are_shared_fairly),
        cmocka_unit_test(tokens_return_when_demand_ends),
        cmocka_unit_test(disconnected_instance_continues_at_its_floor_and_reconnects),
        cmocka_unit_test(fleet_without_redis_makes_one_retry_each_or_its_floors),
        cmocka_unit_test(no_token_is_lost_when_nothing_fails),
    };
    first_seed = seed > 0 ? seed : 1; /* with 0 nothing would ever happen */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    return seed_main(argv[0], 1, play_seed);
}
