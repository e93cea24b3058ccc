/* member.c - the state machine of a fleet's member. See member.h for the model.
 *
 * Spending between two requests is measured, not counted: base_milli is the level that the target's bucket would have
 * without any spending, and the difference to its level is reported as spent. Refunds of charges, and the refill of a
 * disconnected target, make that difference smaller once. Only the estimate of demand suffers: tokens themselves are
 * counted in the target's bucket and nowhere else. */
#include "member.h"

#include <assert.h>

#include "bucket.h"
#include "core/random.h"
#include "core/saturate.h"

static int64_t ms_to_ns(int64_t ms)
{
    return ms * BIDE_MS;
}

/* ---- states ---- */

#define BIT(state) (1u << LEASE_MEMBER_##state)

/* Enters a state; the table has the arrows of the diagram in member.h. */
static void member_enter(struct lease_member *m, enum lease_member_state next)
{
    static const unsigned arrows[] = {
        [LEASE_MEMBER_JOINED] = BIT(JOINED) | BIT(LEASED) | BIT(FAILING) | BIT(LEAVING),
        [LEASE_MEMBER_LEASED] = BIT(LEASED) | BIT(JOINED) | BIT(FAILING) | BIT(LEAVING),
        [LEASE_MEMBER_FAILING] = BIT(FAILING) | BIT(LEASED) | BIT(JOINED) | BIT(LEAVING),
        [LEASE_MEMBER_LEAVING] = 0,
    };
    assert(arrows[m->state] >> next & 1);
    (void)arrows;
    m->state = next;
}

/* ---- configuration of the target ---- */

struct target_limits {
    int64_t unit_milli; /* cost of a retry */
    int64_t capacity_milli;
};

static struct target_limits target_limits_get(const struct bide_target *target)
{
    struct bide_target_config c;
    bide_target_config_get(target, &c);
    return (struct target_limits){core_max(1, c.budget.cost_milli), c.budget.capacity_milli};
}

/* Returns the level of the target's bucket. A budget of another kind, which another process may have stored in a shared
 * target, counts as a full bucket; its budget_left_milli is INT64_MAX. */
static int64_t target_level_milli(const struct bide_target *target, int64_t now_ns)
{
    return core_min(bide_target_get(target, now_ns).budget_left_milli, LEASE_MILLI_MAX);
}

static uint64_t target_refusals(const struct bide_target *target, int64_t now_ns)
{
    return bide_target_get(target, now_ns).refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)];
}

static int64_t round_up_to_units(int64_t milli, int64_t unit_milli)
{
    return (milli + unit_milli - 1) / unit_milli * unit_milli;
}

static int64_t round_down_to_units(int64_t milli, int64_t unit_milli)
{
    return milli / unit_milli * unit_milli;
}

/* ---- the claim on a shared target ---- */

/* Returns when a claim for an exchange at then_ns should end: the exchange takes up to the timeout, and the driver may
 * be late by as much and a second. */
static int64_t claim_end_ns(const struct lease_member *m, int64_t then_ns)
{
    return core_sum(then_ns, core_sum(2 * m->terms.timeout_ns, ms_to_ns(LEASE_INTERVAL_BUSY_MS)));
}

#define MEMO_ADVANCE_SHIFT 32

/* The memo: the lowest bit of progress is was_wanting, the rest is the serial; the low half of the other word is
 * base_milli, the high half is advance_milli. The serial is 0 until a reply was accepted. */
static void member_write_memo(const struct lease_member *m)
{
    uint64_t progress = (uint64_t)m->seen_serial << 1 | m->was_wanting;
    uint64_t milli = (uint64_t)m->advance_milli << MEMO_ADVANCE_SHIFT | (uint64_t)m->base_milli;
    assert(m->base_milli >= 0 && m->base_milli <= UINT32_MAX);
    assert(m->advance_milli >= 0 && m->advance_milli <= UINT32_MAX);
    if (m->terms.shared)
        core_lease_memo_set(m->target, (struct core_lease_memo){progress, milli});
}

/* No bucket reaches a higher serial by counting. A bucket adopts the serial that a member has seen (bucket.h, "Lost
 * writes"); at LEASE_COUNT_MAX it would stand still and count every request of the fleet as a new member, for ever. The
 * memo of a shared target, which each of its processes can write, must not bring the bucket there. */
#define MEMO_SERIAL_MAX (LEASE_COUNT_MAX / 2)

/* To the bucket the target is one member, whichever process exchanges for it, so the successor continues with its
 * predecessor's serial. A memo older than our own knowledge is ignored. The advance is the target's, whichever process
 * added it; it is never more than a retry, so neither is the damage of an invalid memo. */
static void member_read_memo(struct lease_member *m)
{
    if (!m->terms.shared)
        return;
    struct core_lease_memo memo = core_lease_memo_get(m->target);
    int64_t seen_serial = (int64_t)(memo.progress >> 1);
    m->advance_milli =
        core_min((int64_t)(memo.base_milli >> MEMO_ADVANCE_SHIFT), target_limits_get(m->target).unit_milli);
    if (seen_serial == 0 || seen_serial > MEMO_SERIAL_MAX || seen_serial < m->seen_serial)
        return;
    m->seen_serial = seen_serial;
    m->was_wanting = memo.progress & 1;
    m->base_milli = core_min((int64_t)(memo.base_milli & UINT32_MAX), LEASE_MILLI_MAX);
}

/* Starts anew when this process becomes the exchanger; seen_serial and overflow_milli are kept. A failing member stays
 * failing: it has no reply yet. */
static void member_become_exchanger(struct lease_member *m, int64_t now_ns)
{
    if (m->state == LEASE_MEMBER_LEASED)
        member_enter(m, LEASE_MEMBER_JOINED);
    m->base_milli = target_level_milli(m->target, now_ns);
    m->spent_milli = m->rate_milli_per_s = m->share_milli = 0;
    m->refusals = target_refusals(m->target, now_ns);
    m->next_ms = LEASE_INTERVAL_BUSY_MS;
    m->requested_ns = m->replied_ns = now_ns;
    m->reply = (struct lease_reply){0};
    member_read_memo(m);
}

static bool member_claim(struct lease_member *m, int64_t until_ns, int64_t now_ns)
{
    bool was_exchanger = m->exchanger;
    m->exchanger = core_lease_claim(m->target, m->claimant_id, until_ns, now_ns);
    if (m->exchanger && !was_exchanger)
        member_become_exchanger(m, now_ns);
    return m->exchanger;
}

static void member_release_claim(struct lease_member *m, int64_t now_ns)
{
    (void)core_lease_claim(m->target, m->claimant_id, 0, now_ns);
    m->exchanger = false;
}

/* ---- joining ---- */

/* Returns the time in which the floor earns one retry. */
static int64_t floor_accrual_ns(const struct bide_budget_config *c)
{
    assert(c->refill_per_minute_milli > 0);
    return core_share(BIDE_MINUTE, c->cost_milli, c->refill_per_minute_milli);
}

/* Adds the first retry of the floor at once, and starts the floor's refill when that retry would have accrued. See "The
 * advance" in member.h.
 *
 * This process has begun the lease. Only the holder of the claim writes the memo, so another process that claimed the
 * target first has no memo overwritten, and there is no advance then. A process killed between two of these steps
 * leaves a later floor, or an advance to repay that was never added: fewer retries, never more. */
static void member_advance_floor(struct lease_member *m, int64_t now_ns)
{
    struct bide_target_config c;
    bide_target_config_get(m->target, &c);
    if (c.budget.refill_per_minute_milli == 0 ||
        !core_lease_claim(m->target, m->claimant_id, claim_end_ns(m, now_ns), now_ns))
        return;
    int64_t accrual_ns = core_sum(floor_accrual_ns(&c.budget), 1); /* rounded up */
    core_lease_extend(m->target, core_sum(now_ns, accrual_ns), now_ns);
    m->advance_milli = core_min(c.budget.cost_milli, c.budget.capacity_milli);
    member_write_memo(m);
    (void)bide_budget_add_milli(m->target, m->advance_milli, now_ns);
}

/* The fleet pays for retries from now on. Repays the advance: the part that is not spent from the target's bucket, the
 * rest from the grant. Returns the rest of the grant. If the grant is too small, the next one repays the remainder. */
static int64_t member_repay_advance(struct lease_member *m, int64_t granted_milli, int64_t now_ns)
{
    m->advance_milli += bide_budget_add_milli(m->target, -m->advance_milli, now_ns);
    int64_t repaid_milli = core_min(m->advance_milli, granted_milli);
    assert(repaid_milli >= 0);
    m->advance_milli -= repaid_milli;
    return granted_milli - repaid_milli;
}

enum bide_err lease_member_join(struct lease_member *m, struct bide_target *target, const struct lease_terms *terms,
                                uint32_t claimant_id, int64_t now_ns, struct bide_problem *problem)
{
    assert(claimant_id != 0 && terms->timeout_ns > 0);
    assert(terms->capacity_milli > 0 && terms->capacity_milli <= LEASE_MILLI_MAX);
    assert(terms->per_minute_milli >= 0 && terms->per_minute_milli <= LEASE_MILLI_MAX);
    bool begins = core_lease_until(target) == 0;
    enum bide_err err = core_lease_begin(target, now_ns, problem);
    *m = (struct lease_member){
        .terms = *terms, .target = target, .claimant_id = claimant_id, .due_ns = now_ns, .earliest_ns = now_ns};
    /* The race: another process began the lease after `begins` was read. Then core_lease_begin has returned without
     * storing now_ns as the lease's end, and the advance is the other process's. */
    if (err == BIDE_OK && begins && core_lease_until(target) == core_max(now_ns, 1))
        member_advance_floor(m, now_ns);
    return err;
}

int64_t lease_member_leased_until_ns(const struct lease_member *m)
{
    bool replied = m->terms.shared ? core_lease_memo_get(m->target).progress >> 1 != 0 : m->seen_serial != 0;
    return replied ? core_lease_until(m->target) : 0;
}

/* ---- when to send ---- */

static bool member_is_short(const struct lease_member *m, int64_t now_ns)
{
    if (target_refusals(m->target, now_ns) > m->refusals)
        return true;
    int64_t level_milli = target_level_milli(m->target, now_ns);
    return 2 * level_milli < m->base_milli && m->base_milli - level_milli >= target_limits_get(m->target).unit_milli;
}

static bool member_is_due(const struct lease_member *m, int64_t now_ns)
{
    if (now_ns >= m->due_ns)
        return true;
    return m->exchanger && now_ns >= m->earliest_ns && member_is_short(m, now_ns);
}

int64_t lease_member_next_check_ns(const struct lease_member *m, int64_t now_ns)
{
    if (m->request_pending)
        return BIDE_NEVER;
    if (!m->exchanger)
        return m->due_ns;
    return core_min(m->due_ns, core_max(m->earliest_ns, core_sum(now_ns, ms_to_ns(LEASE_INTERVAL_MIN_MS))));
}

bool lease_member_try_claim(struct lease_member *m, int64_t now_ns)
{
    if (m->request_pending || !member_is_due(m, now_ns))
        return false;
    bool leased = core_lease_begin(m->target, now_ns, NULL) == BIDE_OK; /* another process may have ended the lease */
    if (leased && member_claim(m, claim_end_ns(m, now_ns), now_ns))
        return true;
    m->due_ns = core_sum(now_ns, ms_to_ns(LEASE_INTERVAL_BUSY_MS));
    return false;
}

/* ---- how much to hold ---- */

/* For a joined member: as many as most policies allow a call. A short-lived process makes no second request. */
#define JOIN_RETRIES 3

struct needs {
    int64_t demand_milli; /* twice the spending expected until the next exchange */
    int64_t share_milli;  /* the share that an idle member may hold besides */
    int64_t least_milli;  /* lower limit of the sum */
};

/* Averages the old rate and the rate since the last request. Values beyond LEASE_MILLI_MAX are cut: no bucket holds
 * more. */
static void member_update_rate(struct lease_member *m, int64_t refused_milli, int64_t now_ns)
{
    int64_t elapsed_ms = core_max(1, (now_ns - m->requested_ns) / BIDE_MS);
    int64_t used_milli = core_min(LEASE_MILLI_MAX, core_sum(m->spent_milli, refused_milli));
    int64_t rate = core_min(LEASE_MILLI_MAX, used_milli * 1000 / elapsed_ms);
    m->rate_milli_per_s = (m->rate_milli_per_s + rate) / 2;
}

/* Demand is rounded up to whole retries, so that a member with occasional retries keeps a token across several
 * exchanges. */
static struct needs member_compute_needs(const struct lease_member *m, const struct target_limits *limits,
                                         int64_t level_milli, bool refused)
{
    struct needs n = {.demand_milli =
                          round_up_to_units(m->rate_milli_per_s * 2 * m->next_ms / 1000, limits->unit_milli),
                      .share_milli = m->share_milli};
    if (refused)
        n.least_milli = level_milli + limits->unit_milli;
    else if (m->reply.serial == 0)
        n.least_milli = JOIN_RETRIES * limits->unit_milli;
    return n;
}

/* Returns how much the target should hold, in whole retries: a fraction cannot be spent. */
static int64_t needs_hold_milli(const struct needs *n, const struct target_limits *limits)
{
    return core_max(n->demand_milli + round_down_to_units(n->share_milli, limits->unit_milli), n->least_milli);
}

/* Returns the amount that the bucket lacks, as far as it has room. */
static int64_t needs_missing_milli(const struct needs *n, const struct target_limits *limits, int64_t level_milli)
{
    int64_t missing_milli =
        round_up_to_units(core_max(0, needs_hold_milli(n, limits) - level_milli), limits->unit_milli);
    return core_min(missing_milli,
                    round_down_to_units(core_max(0, limits->capacity_milli - level_milli), limits->unit_milli));
}

/* Returns the excess that the bucket holds. The share is half of the fleet's level divided by all members; taking it
 * lowers the level, by half at most. With twice the share as limit no member returns tokens that it has just taken, and
 * all idle members together hold no more than is left in the fleet's bucket. */
static int64_t needs_surplus_milli(const struct needs *n, const struct target_limits *limits, int64_t level_milli)
{
    int64_t most_milli = n->demand_milli + n->demand_milli / 2 + 2 * n->share_milli;
    return level_milli > core_max(most_milli, n->least_milli) ? level_milli - needs_hold_milli(n, limits) : 0;
}

/* ---- making a request ---- */

static int64_t clamp_count(uint64_t n)
{
    return n < (uint64_t)LEASE_COUNT_MAX ? (int64_t)n : LEASE_COUNT_MAX;
}

/* earned_milli is cut to LEASE_MILLI_MAX; no bucket holds more, so nothing of use is lost. */
static struct lease_request member_fill_request(const struct lease_member *m, const struct target_limits *limits,
                                                const struct core_lease_report *report)
{
    return (struct lease_request){
        .capacity_milli = m->terms.capacity_milli,
        .per_minute_milli = m->terms.per_minute_milli,
        .unit_milli = limits->unit_milli,
        .earned_milli = core_min(LEASE_MILLI_MAX, clamp_count(report->earned_milli)),
        .firsts = clamp_count(report->firsts),
        .successes = clamp_count(report->successes),
        .spent_milli = core_min(LEASE_COUNT_MAX, m->spent_milli),
        .seen_serial = m->seen_serial,
        .was_wanting = m->was_wanting,
    };
}

static void member_count_spending(struct lease_member *m, int64_t level_milli)
{
    m->spent_milli = core_sum(m->spent_milli, core_max(0, m->base_milli - level_milli));
    m->base_milli = level_milli;
}

/* Removes up to surplus_milli from the target's bucket. Returns the amount removed plus earlier overflow, for the
 * request. */
static int64_t member_return_tokens(struct lease_member *m, int64_t surplus_milli, int64_t now_ns)
{
    int64_t removed_milli = surplus_milli > 0 ? -bide_budget_add_milli(m->target, -surplus_milli, now_ns) : 0;
    int64_t returned_milli = core_min(LEASE_MILLI_MAX, removed_milli + m->overflow_milli);
    assert(removed_milli >= 0 && removed_milli <= surplus_milli);
    m->overflow_milli += removed_milli - returned_milli;
    assert(m->overflow_milli >= 0);
    m->base_milli = core_max(0, m->base_milli - removed_milli);
    return returned_milli;
}

/* Returns how many retries the budget refused since the last request, and resets that count. */
static uint64_t member_take_refusals(struct lease_member *m, int64_t now_ns)
{
    uint64_t all = target_refusals(m->target, now_ns);
    uint64_t since = all > m->refusals ? all - m->refusals : 0;
    m->refusals = all;
    return since;
}

const struct lease_request *lease_member_make_request(struct lease_member *m, int64_t now_ns)
{
    assert(m->exchanger && !m->request_pending && m->state != LEASE_MEMBER_LEAVING);
    struct target_limits limits = target_limits_get(m->target);
    struct core_lease_report report = core_lease_collect(m->target);
    int64_t level_milli = target_level_milli(m->target, now_ns);
    uint64_t refused = member_take_refusals(m, now_ns);
    member_count_spending(m, level_milli);
    if (m->reply.serial != 0) /* the first interval of an exchanger is unknown, so is the rate */
        member_update_rate(m, core_product(clamp_count(refused), limits.unit_milli), now_ns);
    int64_t held_milli = core_max(0, level_milli - m->advance_milli); /* the reply repays the advance */
    struct needs needs = member_compute_needs(m, &limits, held_milli, refused > 0);
    m->request = member_fill_request(m, &limits, &report);
    m->request.wanted_milli = needs_missing_milli(&needs, &limits, held_milli);
    if (m->state == LEASE_MEMBER_LEASED)
        m->request.returned_milli = member_return_tokens(m, needs_surplus_milli(&needs, &limits, held_milli), now_ns);
    m->spent_milli = 0;
    member_write_memo(m); /* spending up to here is in the request */
    assert(!lease_request_check(&m->request) && m->request.seen_serial == m->seen_serial);
    m->request_pending = true;
    m->requested_ns = now_ns;
    return &m->request;
}

/* ---- the reply ---- */

/* Returns 0.9 to 1.1 times ms. */
static int64_t jitter_tenth_ns(int64_t ms, uint64_t seed)
{
    int64_t tenth_ns = ms_to_ns(ms) / 10;
    return ms_to_ns(ms) - tenth_ns +
           (int64_t)core_bits_to_range(core_mix(seed + CORE_GOLDEN), (uint64_t)(2 * tenth_ns));
}

/* Counts the spending before it extends the lease and repays the advance: the extension forfeits refill of the
 * disconnected time, and neither must count as spending. */
static void member_add_grant(struct lease_member *m, int64_t granted_milli, int64_t until_ns, int64_t now_ns)
{
    member_count_spending(m, target_level_milli(m->target, now_ns));
    core_lease_extend(m->target, until_ns, now_ns);
    int64_t rest_milli = member_repay_advance(m, granted_milli, now_ns);
    int64_t added_milli = bide_budget_add_milli(m->target, rest_milli, now_ns);
    assert(added_milli >= 0 && added_milli <= rest_milli);
    m->overflow_milli += rest_milli - added_milli;
    m->base_milli = target_level_milli(m->target, now_ns);
}

const char *lease_member_accept_reply(struct lease_member *m, const struct lease_reply *reply, uint64_t seed,
                                      int64_t now_ns)
{
    const char *problem = m->request_pending ? lease_reply_check(reply, &m->request) : "late";
    if (problem)
        return problem;
    int64_t until_ns = core_sum(now_ns, ms_to_ns(reply->next_ms) * 5 / 2 + m->terms.timeout_ns);
    bool first_reply = lease_member_leased_until_ns(m) == 0;
    assert(m->request.seen_serial == m->seen_serial && m->seen_serial <= reply->serial);
    m->request_pending = false;
    m->seen_serial = reply->serial;
    m->was_wanting = m->request.wanted_milli > 0;
    m->reply = *reply;
    if (!member_claim(m, until_ns, now_ns)) { /* another process took over: leave the target alone */
        member_enter(m, LEASE_MEMBER_JOINED);
        m->overflow_milli += reply->granted_milli;
        m->due_ns = core_sum(now_ns, ms_to_ns(LEASE_INTERVAL_BUSY_MS));
        return NULL;
    }
    if (first_reply) /* the end so far only delays the floor, perhaps beyond until_ns */
        core_lease_extend(m->target, now_ns, now_ns);
    member_add_grant(m, reply->granted_milli, until_ns, now_ns);
    member_enter(m, LEASE_MEMBER_LEASED);
    m->next_ms = reply->next_ms;
    m->share_milli = reply->share_milli;
    m->replied_ns = now_ns;
    member_write_memo(m);
    m->due_ns = core_sum(now_ns, jitter_tenth_ns(reply->next_ms, seed));
    m->earliest_ns = core_sum(now_ns, jitter_tenth_ns(reply->earliest_ms, seed));
    return NULL;
}

/* Ends the lease, so that the target refills at its floor. All members lose Redis at the same moment; if their floors
 * started at once, the first retry of each would become available at the same moment too (thundering herd). So each
 * floor starts at a random offset within the time that a retry takes to accrue. */
static void member_start_floor(struct lease_member *m, int64_t now_ns)
{
    struct bide_target_config c;
    bide_target_config_get(m->target, &c);
    core_lease_extend(m->target, now_ns, now_ns);
    if (c.budget.refill_per_minute_milli == 0)
        return;
    uint64_t accrual_ns = (uint64_t)core_max(1, floor_accrual_ns(&c.budget));
    uint64_t phase = core_bits_to_range(core_mix((uint64_t)now_ns + m->claimant_id), accrual_ns - 1);
    core_lease_extend(m->target, core_sum(now_ns, (int64_t)phase), now_ns);
}

void lease_member_request_failed(struct lease_member *m, int64_t retry_ns, int64_t now_ns)
{
    bool was_leased = m->state == LEASE_MEMBER_LEASED;
    member_enter(m, LEASE_MEMBER_FAILING);
    m->request_pending = false;
    m->due_ns = m->earliest_ns = core_max(retry_ns, now_ns);
    if (!m->exchanger || !member_claim(m, claim_end_ns(m, m->due_ns), now_ns))
        return;
    if (was_leased)
        member_start_floor(m, now_ns);
    if (m->terms.shared && now_ns - m->replied_ns >= ms_to_ns(LEASE_INTERVAL_MAX_MS))
        member_release_claim(m, now_ns); /* another process may reach Redis */
}

/* ---- leaving ---- */

bool lease_member_leave(struct lease_member *m, int64_t now_ns, struct lease_request *request)
{
    struct target_limits limits = target_limits_get(m->target);
    struct core_lease_report report = {0};
    if (!m->terms.shared) {
        report = core_lease_collect(m->target);
        member_count_spending(m, target_level_milli(m->target, now_ns));
        (void)member_repay_advance(m, 0, now_ns);
    } else {
        m->advance_milli = 0; /* the memo has it, for the other processes */
    }
    *request = member_fill_request(m, &limits, &report);
    request->returned_milli = member_return_tokens(m, m->terms.shared ? 0 : LEASE_MILLI_MAX, now_ns);
    request->leaving = 1;
    if (m->terms.shared)
        request->seen_serial = 0; /* other processes keep the member: the bucket must not count it out */
    assert(!lease_request_check(request));
    bool was_pending = m->request_pending;
    member_release_claim(m, now_ns);
    member_enter(m, LEASE_MEMBER_LEAVING);
    m->request_pending = false;
    m->due_ns = m->earliest_ns = BIDE_NEVER;
    return !m->terms.shared || request->returned_milli > 0 || was_pending;
}
