/* member.c - the state machine of a fleet's member. See member.h for the model.
 *
 * Spending between two requests is measured, not counted: base_milli is the level that the target's bucket would have
 * without any spending, and the difference to its level is reported as spent. Refunds of charges, and the refill of a
 * disconnected target, make that difference smaller once. Only the estimate of demand suffers: tokens themselves are
 * counted in the target's bucket and nowhere else. */
#include "member.h"

#include "bucket.h"
#include "core/random.h"
#include "core/saturate.h"

static int64_t ms_to_ns(int64_t ms)
{
    return ms * BIDE_MS;
}

/* ---- configuration of the target ---- */

struct target_limits {
    int64_t unit_milli; /* cost of a retry */
    int64_t capacity_milli;
    int64_t hold_off_max_ns;
    bool has_breaker;
};

static struct target_limits target_limits_get(const struct bide_target *target)
{
    struct bide_target_config c;
    bide_target_config_get(target, &c);
    return (struct target_limits){core_max(1, c.budget.cost_milli), c.budget.capacity_milli, c.hold_off_max_ns,
                                  c.breaker.kind != BIDE_BREAKER_OFF};
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

#define COUNTED_AS_BITS 3 /* low bits of the memo's progress hold counted_as, the rest the serial */

static void member_write_memo(const struct lease_member *m)
{
    if (m->terms.shared)
        bide_lease_memo_set(m->target, (struct bide_lease_memo){(uint64_t)m->seen_serial << COUNTED_AS_BITS |
                                                                    (uint64_t)m->reply.counted_as,
                                                                (uint64_t)m->base_milli});
}

/* To the bucket the target is one member, whichever process exchanges for it, so the successor continues with its
 * predecessor's serial. A memo older than our own knowledge is ignored. */
static void member_read_memo(struct lease_member *m)
{
    struct bide_lease_memo memo = bide_lease_memo_get(m->target);
    int64_t seen_serial = (int64_t)(memo.progress >> COUNTED_AS_BITS);
    if (!m->terms.shared || seen_serial == 0 || seen_serial > LEASE_COUNT_MAX || seen_serial < m->seen_serial)
        return;
    m->seen_serial = seen_serial;
    m->reply.counted_as = (int64_t)(memo.progress & ((1u << COUNTED_AS_BITS) - 1));
    m->base_milli = core_min((int64_t)(memo.base_milli & INT64_MAX), LEASE_MILLI_MAX);
}

/* Enters the state joined, when this process becomes the exchanger. seen_serial and overflow_milli are kept. A hold-off
 * found in a shared target may be the fleet's, set by the previous exchanger, so it is treated as the fleet's and not
 * reported as the server's. */
static void member_become_exchanger(struct lease_member *m, int64_t now_ns)
{
    m->had_reply = m->connected = false;
    m->base_milli = bide_budget_left_milli(m->target, now_ns);
    m->spent_milli = m->rate_milli_per_s = m->share_milli = 0;
    m->refusals = bide_target_refused(m->target, BIDE_GATE_BUDGET);
    m->next_ms = LEASE_INTERVAL_BUSY_MS;
    m->requested_ns = m->replied_ns = now_ns;
    m->hold_off_until_ns = m->terms.shared ? bide_target_hold_off_until(m->target, now_ns) : 0;
    m->hold_off_number = 0;
    m->reply = (struct lease_reply){0};
    member_read_memo(m);
}

static bool member_claim(struct lease_member *m, int64_t until_ns, int64_t now_ns)
{
    bool was_exchanger = m->exchanger;
    m->exchanger = bide_lease_claim(m->target, m->claimant_id, until_ns, now_ns);
    if (m->exchanger && !was_exchanger)
        member_become_exchanger(m, now_ns);
    return m->exchanger;
}

enum bide_err lease_member_join(struct lease_member *m, struct bide_target *target, const struct lease_terms *terms,
                                uint32_t claimant_id, int64_t now_ns, struct bide_problem *problem)
{
    *m = (struct lease_member){
        .terms = *terms, .target = target, .claimant_id = claimant_id, .due_ns = now_ns, .earliest_ns = now_ns};
    return bide_lease_begin(target, now_ns, problem);
}

/* ---- when to send ---- */

static bool member_is_short(const struct lease_member *m, int64_t now_ns)
{
    if (bide_target_refused(m->target, BIDE_GATE_BUDGET) > m->refusals)
        return true;
    int64_t level_milli = bide_budget_left_milli(m->target, now_ns);
    return 2 * level_milli < m->base_milli && m->base_milli - level_milli >= target_limits_get(m->target).unit_milli;
}

int64_t lease_member_next_check_ns(const struct lease_member *m, int64_t now_ns)
{
    if (m->request_pending)
        return BIDE_NEVER;
    if (!m->exchanger || m->due_ns <= now_ns)
        return m->due_ns;
    return core_min(m->due_ns, core_max(m->earliest_ns, core_sum(now_ns, ms_to_ns(LEASE_INTERVAL_MIN_MS))));
}

bool lease_member_try_claim(struct lease_member *m, int64_t now_ns)
{
    bool soon = m->exchanger && now_ns >= m->earliest_ns;
    if (m->request_pending || (now_ns < m->due_ns && !(soon && member_is_short(m, now_ns))))
        return false;
    bool leased = bide_lease_begin(m->target, now_ns, NULL) == BIDE_OK; /* another process may have ended the lease */
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
    else if (!m->had_reply)
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
                                                const struct bide_lease_report *report)
{
    return (struct lease_request){
        .capacity_milli = m->terms.capacity_milli,
        .per_minute_milli = m->terms.per_minute_milli,
        .unit_milli = limits->unit_milli,
        .earned_milli = core_min(LEASE_MILLI_MAX, clamp_count(report->earned_milli)),
        .firsts = clamp_count(report->firsts),
        .successes = clamp_count(report->successes),
        .spent_milli = core_min(LEASE_COUNT_MAX, m->spent_milli),
        .open_permille = m->terms.open_permille,
        .seen_serial = m->seen_serial,
        .counted_as = m->reply.counted_as,
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
    m->overflow_milli += removed_milli - returned_milli;
    m->base_milli = core_max(0, m->base_milli - removed_milli);
    return returned_milli;
}

/* Reports hold-offs. If the target's hold-off ends before the fleet's, a success has ended it here: report that.
 * If it ends later, the server asked for more: report only that, or the fleet's own hold-off would come back as news
 * with every exchange and never end. */
static void member_report_hold_off(struct lease_member *m, int64_t now_ns)
{
    int64_t until_ns = bide_target_hold_off_until(m->target, now_ns);
    if (!m->terms.hold_off)
        return;
    if (m->hold_off_until_ns > now_ns && until_ns < m->hold_off_until_ns) {
        m->request.hold_off_ended = m->hold_off_number;
        m->hold_off_until_ns = 0;
    }
    if (until_ns > core_max(now_ns, m->hold_off_until_ns))
        m->request.hold_off_ms = core_min(LEASE_MS_MAX, (until_ns - now_ns + BIDE_MS - 1) / BIDE_MS);
}

/* Returns the vote: 2 open, 1 closed, 0 none. A closed breaker without calls since the last request does not vote, nor
 * does a target without a breaker, nor an open breaker whose open time is over without a call since. */
static int64_t member_breaker_vote(const struct lease_member *m, const struct target_limits *limits, int64_t now_ns)
{
    struct bide_breaker_view view = bide_breaker_get(m->target);
    bool traffic = m->request.firsts > 0 || m->request.successes > 0;
    switch (view.state) {
    case BIDE_BREAKER_HELD_OPEN:
    case BIDE_BREAKER_HALF_OPEN: return 2;
    case BIDE_BREAKER_OPEN: return traffic || now_ns < view.until_ns ? 2 : 0;
    case BIDE_BREAKER_CLOSED:
    case BIDE_BREAKER_HELD_CLOSED:
    default: break;
    }
    return traffic && limits->has_breaker ? 1 : 0;
}

/* Returns how many retries the budget refused since the last request, and resets that count. */
static uint64_t member_take_refusals(struct lease_member *m)
{
    uint64_t all = bide_target_refused(m->target, BIDE_GATE_BUDGET);
    uint64_t since = all > m->refusals ? all - m->refusals : 0;
    m->refusals = all;
    return since;
}

const struct lease_request *lease_member_make_request(struct lease_member *m, int64_t now_ns)
{
    struct target_limits limits = target_limits_get(m->target);
    struct bide_lease_report report = bide_lease_collect(m->target);
    int64_t level_milli = bide_budget_left_milli(m->target, now_ns);
    uint64_t refused = member_take_refusals(m);
    member_count_spending(m, level_milli);
    if (m->had_reply) /* the first interval of an exchanger is unknown, so is the rate */
        member_update_rate(m, core_product(clamp_count(refused), limits.unit_milli), now_ns);
    struct needs needs = member_compute_needs(m, &limits, level_milli, refused > 0);
    m->request = member_fill_request(m, &limits, &report);
    m->request.wanted_milli = needs_missing_milli(&needs, &limits, level_milli);
    if (m->connected)
        m->request.returned_milli = member_return_tokens(m, needs_surplus_milli(&needs, &limits, level_milli), now_ns);
    m->request.breaker_vote = member_breaker_vote(m, &limits, now_ns);
    member_report_hold_off(m, now_ns);
    m->spent_milli = 0;
    member_write_memo(m); /* spending up to here is in the request */
    m->request_pending = true;
    m->requested_ns = now_ns;
    return &m->request;
}

/* ---- the reply ---- */

/* Returns 0.9 to 1.1 times ms. (Biased by less than one part in 10^9, because 2^64 is no multiple of the range.) */
static int64_t jitter_tenth_ns(int64_t ms, uint64_t seed)
{
    int64_t tenth_ns = ms_to_ns(ms) / 10;
    return ms_to_ns(ms) - tenth_ns + (int64_t)(core_mix(seed + CORE_GOLDEN) % (uint64_t)(2 * tenth_ns + 1));
}

/* Obeys the fleet's hold-off. The reply's age is uncertain by the round-trip time: an end that is later by less than
 * that is the same end, not an extension. */
static void member_apply_hold_off(struct lease_member *m, const struct lease_reply *reply, int64_t hold_off_max_ns,
                                  int64_t now_ns)
{
    int64_t kept_ns = bide_target_hold_off_until(m->target, now_ns), unsure_ns = now_ns - m->requested_ns + BIDE_MS;
    int64_t until_ns = core_sum(now_ns, core_min(ms_to_ns(reply->hold_off_ms), hold_off_max_ns));
    bool ended = m->hold_off_until_ns > now_ns && kept_ns < m->hold_off_until_ns;
    if (!m->terms.hold_off || reply->hold_off_ms == 0 || (ended && reply->hold_off_number == m->hold_off_number))
        return; /* ended: by a success while the request was pending; the next request reports that */
    bool later = until_ns > kept_ns + unsure_ns;
    if (later)
        bide_target_hold_off(m->target, until_ns, now_ns);
    m->hold_off_until_ns = later ? until_ns : core_min(kept_ns, until_ns + unsure_ns);
    m->hold_off_number = reply->hold_off_number;
}

/* Opens the breaker if the fleet opened while this member was connected. A member that has just joined, or was
 * disconnected, ignores the current state: that opening may be old, and the member has seen no failures itself. */
static void member_follow_opening(struct lease_member *m, const struct lease_reply *reply, bool has_breaker,
                                  uint64_t seed, int64_t now_ns)
{
    bool fresh = m->had_reply && m->connected && reply->is_open && reply->opening > m->opening;
    m->opening = reply->opening;
    if (fresh && has_breaker && m->terms.open_permille > 0 && bide_breaker_trip(m->target, seed, now_ns))
        m->openings_followed++;
}

/* Counts the spending before it extends the lease: the extension forfeits refill of the disconnected time, and that
 * must not count as spending. */
static void member_add_grant(struct lease_member *m, int64_t granted_milli, int64_t until_ns, int64_t now_ns)
{
    member_count_spending(m, bide_budget_left_milli(m->target, now_ns));
    bide_lease_extend(m->target, until_ns, now_ns);
    m->overflow_milli += granted_milli - bide_budget_add_milli(m->target, granted_milli, now_ns);
    m->base_milli = bide_budget_left_milli(m->target, now_ns);
}

const char *lease_member_accept_reply(struct lease_member *m, const struct lease_reply *reply, uint64_t seed,
                                      int64_t now_ns)
{
    const char *problem = m->request_pending ? lease_reply_check(reply, &m->request) : "late";
    if (problem)
        return problem;
    int64_t until_ns = core_sum(now_ns, ms_to_ns(reply->next_ms) * 5 / 2 + m->terms.timeout_ns);
    struct target_limits limits = target_limits_get(m->target);
    m->request_pending = false;
    m->seen_serial = reply->serial;
    m->reply = *reply;
    if (!member_claim(m, until_ns, now_ns)) { /* another process took over: leave the target alone */
        m->overflow_milli += reply->granted_milli;
        m->due_ns = core_sum(now_ns, ms_to_ns(LEASE_INTERVAL_BUSY_MS));
        return NULL;
    }
    member_add_grant(m, reply->granted_milli, until_ns, now_ns);
    member_apply_hold_off(m, reply, limits.hold_off_max_ns, now_ns);
    member_follow_opening(m, reply, limits.has_breaker, seed, now_ns);
    m->had_reply = m->connected = true;
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
    bide_lease_extend(m->target, now_ns, now_ns);
    if (c.budget.refill_per_minute_milli == 0)
        return;
    int64_t accrual_ns = core_share(BIDE_MINUTE, c.budget.cost_milli, c.budget.refill_per_minute_milli);
    uint64_t phase = core_mix((uint64_t)now_ns + m->claimant_id) % (uint64_t)core_max(1, accrual_ns);
    bide_lease_extend(m->target, core_sum(now_ns, (int64_t)phase), now_ns);
}

void lease_member_request_failed(struct lease_member *m, int64_t retry_ns, int64_t now_ns)
{
    bool was_connected = m->connected;
    m->request_pending = m->connected = false;
    m->due_ns = m->earliest_ns = core_max(retry_ns, now_ns);
    if (!m->exchanger || !member_claim(m, claim_end_ns(m, m->due_ns), now_ns))
        return;
    if (was_connected)
        member_start_floor(m, now_ns);
    if (m->terms.shared && now_ns - m->replied_ns >= ms_to_ns(LEASE_INTERVAL_MAX_MS))
        (void)member_claim(m, 0, now_ns); /* release it: another process may reach Redis */
}

/* ---- leaving ---- */

bool lease_member_leave(struct lease_member *m, int64_t now_ns, struct lease_request *request)
{
    struct target_limits limits = target_limits_get(m->target);
    struct bide_lease_report report = {0};
    if (!m->terms.shared) {
        report = bide_lease_collect(m->target);
        member_count_spending(m, bide_budget_left_milli(m->target, now_ns));
    }
    *request = member_fill_request(m, &limits, &report);
    request->returned_milli = member_return_tokens(m, m->terms.shared ? 0 : LEASE_MILLI_MAX, now_ns);
    request->leaving = 1;
    if (m->terms.shared)
        request->seen_serial = 0; /* other processes keep the member: the bucket must not count it out */
    (void)member_claim(m, 0, now_ns);
    m->request_pending = m->connected = false;
    m->due_ns = m->earliest_ns = BIDE_NEVER;
    return !m->terms.shared || request->returned_milli > 0;
}
