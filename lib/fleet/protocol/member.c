/* ledger.c - an instance's side of the exchange. See ledger.h for the model.
 *
 * Between two asks the bucket is only watched: base_milli is what it would hold if nothing had been spent, and what is
 * missing from it was. Charges that calls give back look like less spending; a trickle, while the target is alone, too.
 * Both only make the estimate smaller for once: tokens themselves are counted in the bucket and nowhere else. */
#include "member.h"

#include "bucket.h"
#include "core/random.h"
#include "core/saturate.h"

static int64_t ns_of(int64_t ms)
{
    return ms * BIDE_MS;
}

/* ---- what the target is like ---- */

struct prices {
    int64_t unit_milli; /* of a retry */
    int64_t capacity_milli;
    int64_t hold_off_max_ns;
    bool has_breaker;
};

static struct prices prices_of(const struct bide_target *target)
{
    struct bide_target_config c;
    bide_target_config_get(target, &c);
    return (struct prices){core_max(1, c.budget.cost_milli), c.budget.capacity_milli, c.hold_off_max_ns,
                           c.breaker.kind != BIDE_BREAKER_OFF};
}

static int64_t whole_units_up(int64_t milli, int64_t unit_milli)
{
    return (milli + unit_milli - 1) / unit_milli * unit_milli;
}

static int64_t whole_units(int64_t milli, int64_t unit_milli)
{
    return milli / unit_milli * unit_milli;
}

/* ---- who exchanges ---- */

/* Long enough for an exchange that is about to begin then, and for whoever drives us to be late. */
static int64_t past_exchange_ns(const struct lease_ledger *l, int64_t then_ns)
{
    return core_sum(then_ns, core_sum(2 * l->terms.timeout_ns, ns_of(LEASE_BUSY_MS)));
}

#define MARK_BITS 3 /* of a memo's progress: how the bank counts us, below the serial number */

static void write_memo(const struct lease_ledger *l)
{
    if (l->terms.shared)
        bide_lease_memo_set(l->target,
                            (struct bide_lease_memo){(uint64_t)l->seen << MARK_BITS | (uint64_t)l->answer.mark,
                                                     (uint64_t)l->base_milli});
}

/* To the bank the target is one instance, whoever exchanges for it. A memo from before our own time is no news. */
static void read_memo(struct lease_ledger *l)
{
    struct bide_lease_memo memo = bide_lease_memo_get(l->target);
    int64_t seen = (int64_t)(memo.progress >> MARK_BITS);
    if (!l->terms.shared || seen == 0 || seen > LEASE_COUNT_MAX || seen < l->seen)
        return;
    l->seen = seen;
    l->answer.mark = (int64_t)(memo.progress & ((1u << MARK_BITS) - 1));
    l->base_milli = core_min((int64_t)(memo.base_milli & INT64_MAX), LEASE_MILLI_MAX);
}

/* What was known is of another time, or another process'. A quiet that is there may be an echo of the fleet's, set by
 * whoever exchanged before: it is not told as the server's. */
static void start_over(struct lease_ledger *l, int64_t now_ns)
{
    l->began = l->connected = false;
    l->base_milli = bide_budget_left_milli(l->target, now_ns);
    l->spent_milli = l->rate_milli_per_s = l->share_milli = 0;
    l->refused = bide_target_refused(l->target, BIDE_GATE_BUDGET);
    l->next_ms = LEASE_BUSY_MS;
    l->asked_ns = l->answered_ns = now_ns;
    l->hold_off_until_ns = l->terms.shared ? bide_target_hold_off_until(l->target, now_ns) : 0;
    l->hold_off_number = 0;
    l->answer = (struct lease_answer){0};
    read_memo(l);
}

static bool claim(struct lease_ledger *l, int64_t until_ns, int64_t now_ns)
{
    bool before = l->exchanger;
    l->exchanger = bide_lease_claim(l->target, l->who, until_ns, now_ns);
    if (l->exchanger && !before)
        start_over(l, now_ns);
    return l->exchanger;
}

enum bide_err lease_ledger_begin(struct lease_ledger *l, struct bide_target *target, const struct lease_terms *terms,
                                 uint32_t who, int64_t now_ns, struct bide_problem *problem)
{
    *l = (struct lease_ledger){.terms = *terms, .target = target, .who = who, .due_ns = now_ns, .soon_ns = now_ns};
    return bide_lease_begin(target, now_ns, problem);
}

/* ---- when to ask ---- */

static bool is_short(const struct lease_ledger *l, int64_t now_ns)
{
    if (bide_target_refused(l->target, BIDE_GATE_BUDGET) > l->refused)
        return true;
    int64_t level_milli = bide_budget_left_milli(l->target, now_ns);
    return 2 * level_milli < l->base_milli && l->base_milli - level_milli >= prices_of(l->target).unit_milli;
}

int64_t lease_ledger_look_ns(const struct lease_ledger *l, int64_t now_ns)
{
    if (l->asked)
        return BIDE_NEVER;
    if (!l->exchanger || l->due_ns <= now_ns)
        return l->due_ns;
    return core_min(l->due_ns, core_max(l->soon_ns, core_sum(now_ns, ns_of(LEASE_SOON_MS))));
}

bool lease_ledger_is_due(struct lease_ledger *l, int64_t now_ns)
{
    bool soon = l->exchanger && now_ns >= l->soon_ns;
    if (l->asked || (now_ns < l->due_ns && !(soon && is_short(l, now_ns))))
        return false;
    bool leased = bide_lease_begin(l->target, now_ns, NULL) == BIDE_OK; /* somebody may have ended it */
    if (leased && claim(l, past_exchange_ns(l, now_ns), now_ns))
        return true;
    l->due_ns = core_sum(now_ns, ns_of(LEASE_BUSY_MS));
    return false;
}

/* ---- how much to hold ---- */

#define FIRST_RETRIES 3 /* who comes: as many as most policies allow a call, for it may be gone after that */

struct needs {
    int64_t demand_milli; /* for what is expected to be spent */
    int64_t share_milli;  /* for what is not */
    int64_t least_milli;  /* whatever these say */
};

/* The rate is new by half. A sum too large to be true is as good as one that is more than any bucket holds. */
static void learn_rate(struct lease_ledger *l, int64_t refused_milli, int64_t now_ns)
{
    int64_t elapsed_ms = core_max(1, (now_ns - l->asked_ns) / BIDE_MS);
    int64_t used_milli = core_min(LEASE_MILLI_MAX, core_sum(l->spent_milli, refused_milli));
    int64_t rate = core_min(LEASE_MILLI_MAX, used_milli * 1000 / elapsed_ms);
    l->rate_milli_per_s = (l->rate_milli_per_s + rate) / 2;
}

/* Demand is rounded up, so that who needs one now and then keeps one for some exchanges. */
static struct needs needs_of(const struct lease_ledger *l, const struct prices *p, int64_t level_milli, bool refused)
{
    struct needs n = {.demand_milli = whole_units_up(l->rate_milli_per_s * 2 * l->next_ms / 1000, p->unit_milli),
                      .share_milli = l->share_milli};
    if (refused)
        n.least_milli = level_milli + p->unit_milli;
    else if (!l->began)
        n.least_milli = FIRST_RETRIES * p->unit_milli;
    return n;
}

/* In whole retries: less is of no use. */
static int64_t hold_milli(const struct needs *n, const struct prices *p)
{
    return core_max(n->demand_milli + whole_units(n->share_milli, p->unit_milli), n->least_milli);
}

/* What the bucket lacks, as far as it has place for it. */
static int64_t lacking(const struct needs *n, const struct prices *p, int64_t level_milli)
{
    int64_t lacks_milli = whole_units_up(core_max(0, hold_milli(n, p) - level_milli), p->unit_milli);
    return core_min(lacks_milli, whole_units(core_max(0, p->capacity_milli - level_milli), p->unit_milli));
}

/* What the bucket has too much. The share is half of what is left, by all: who takes it lowers it, by half at most. So
 * nobody has to give back what it has just taken, and all the idle ones together hold no more than is left. */
static int64_t surplus(const struct needs *n, const struct prices *p, int64_t level_milli)
{
    int64_t most_milli = n->demand_milli + n->demand_milli / 2 + 2 * n->share_milli;
    return level_milli > core_max(most_milli, n->least_milli) ? level_milli - hold_milli(n, p) : 0;
}

/* ---- asking ---- */

static int64_t as_count(uint64_t n)
{
    return n < (uint64_t)LEASE_COUNT_MAX ? (int64_t)n : LEASE_COUNT_MAX;
}

/* No bucket holds more than the largest amount, so cutting what was earned there takes nothing away. */
static struct lease_ask say(const struct lease_ledger *l, const struct prices *p,
                            const struct bide_lease_report *report)
{
    return (struct lease_ask){
        .capacity_milli = l->terms.capacity_milli,
        .per_minute_milli = l->terms.per_minute_milli,
        .unit_milli = p->unit_milli,
        .earned_milli = core_min(LEASE_MILLI_MAX, as_count(report->earned_milli)),
        .firsts = as_count(report->firsts),
        .successes = as_count(report->successes),
        .spent_milli = core_min(LEASE_COUNT_MAX, l->spent_milli),
        .open_permille = l->terms.open_permille,
        .seen = l->seen,
        .mark = l->answer.mark,
    };
}

/* What is missing from the base was spent. */
static void settle(struct lease_ledger *l, int64_t level_milli)
{
    l->spent_milli = core_sum(l->spent_milli, core_max(0, l->base_milli - level_milli));
    l->base_milli = level_milli;
}

/* Takes it out of the bucket, as far as it is still there, and out of what is owed. */
static int64_t give_back(struct lease_ledger *l, int64_t surplus_milli, int64_t now_ns)
{
    int64_t taken_milli = surplus_milli > 0 ? -bide_budget_add_milli(l->target, -surplus_milli, now_ns) : 0;
    int64_t give_milli = core_min(LEASE_MILLI_MAX, taken_milli + l->owed_milli);
    l->owed_milli += taken_milli - give_milli;
    l->base_milli = core_max(0, l->base_milli - taken_milli);
    return give_milli;
}

/* A quiet that is shorter than the fleet's was there has been ended by a success; one that is longer is the server's
 * own. Only that is told: else the fleet would hear its own echo for ever. */
static void tell_hold_off(struct lease_ledger *l, int64_t now_ns)
{
    int64_t until_ns = bide_target_hold_off_until(l->target, now_ns);
    if (!l->terms.hold_off)
        return;
    if (l->hold_off_until_ns > now_ns && until_ns < l->hold_off_until_ns) {
        l->ask.hold_off_over = l->hold_off_number;
        l->hold_off_until_ns = 0;
    }
    if (until_ns > core_max(now_ns, l->hold_off_until_ns))
        l->ask.hold_off_ms = core_min(LEASE_MS_MAX, (until_ns - now_ns + BIDE_MS - 1) / BIDE_MS);
}

/* Who has no calls, or no breaker, has no opinion; nor has one that opened long ago and was not asked since. */
static int64_t opinion(const struct lease_ledger *l, const struct prices *p, int64_t now_ns)
{
    struct bide_breaker_view view = bide_breaker_get(l->target);
    bool traffic = l->ask.firsts > 0 || l->ask.successes > 0;
    switch (view.state) {
    case BIDE_BREAKER_HELD_OPEN:
    case BIDE_BREAKER_HALF_OPEN: return 2;
    case BIDE_BREAKER_OPEN: return traffic || now_ns < view.until_ns ? 2 : 0;
    case BIDE_BREAKER_CLOSED:
    case BIDE_BREAKER_HELD_CLOSED:
    default: break;
    }
    return traffic && p->has_breaker ? 1 : 0;
}

/* How often the budget refused since the last ask. */
static uint64_t refusals(struct lease_ledger *l)
{
    uint64_t all = bide_target_refused(l->target, BIDE_GATE_BUDGET);
    uint64_t since = all > l->refused ? all - l->refused : 0;
    l->refused = all;
    return since;
}

const struct lease_ask *lease_ledger_ask(struct lease_ledger *l, int64_t now_ns)
{
    struct prices p = prices_of(l->target);
    struct bide_lease_report report = bide_lease_collect(l->target);
    int64_t level_milli = bide_budget_left_milli(l->target, now_ns);
    uint64_t refused = refusals(l);
    settle(l, level_milli);
    if (l->began) /* else nobody knows how long it took */
        learn_rate(l, core_product(as_count(refused), p.unit_milli), now_ns);
    struct needs needs = needs_of(l, &p, level_milli, refused > 0);
    l->ask = say(l, &p, &report);
    l->ask.want_milli = lacking(&needs, &p, level_milli);
    if (l->connected)
        l->ask.give_milli = give_back(l, surplus(&needs, &p, level_milli), now_ns);
    l->ask.breaker = opinion(l, &p, now_ns);
    tell_hold_off(l, now_ns);
    l->spent_milli = 0;
    write_memo(l); /* what was spent up to here is told */
    l->asked = true;
    l->asked_ns = now_ns;
    return &l->ask;
}

/* ---- hearing ---- */

/* Between 0.9 and 1.1 of it. (Uneven by one part in a thousand million, for 2^64 is no multiple of the range.) */
static int64_t spread_ns(int64_t ms, uint64_t seed)
{
    int64_t tenth_ns = ns_of(ms) / 10;
    return ns_of(ms) - tenth_ns + (int64_t)(core_mix(seed + CORE_GOLDEN) % (uint64_t)(2 * tenth_ns + 1));
}

/* As long as the answer was on its way, nobody knows when it was said: what is later by less than that is the same. */
static void hear_hold_off(struct lease_ledger *l, const struct lease_answer *a, int64_t hold_off_max_ns, int64_t now_ns)
{
    int64_t kept_ns = bide_target_hold_off_until(l->target, now_ns), unsure_ns = now_ns - l->asked_ns + BIDE_MS;
    int64_t until_ns = core_sum(now_ns, core_min(ns_of(a->hold_off_ms), hold_off_max_ns));
    bool ended = l->hold_off_until_ns > now_ns && kept_ns < l->hold_off_until_ns;
    if (!l->terms.hold_off || a->hold_off_ms == 0 || (ended && a->hold_off_number == l->hold_off_number))
        return; /* a success while we asked: told the next time */
    bool later = until_ns > kept_ns + unsure_ns;
    if (later)
        bide_target_hold_off(l->target, until_ns, now_ns);
    l->hold_off_until_ns = later ? until_ns : core_min(kept_ns, until_ns + unsure_ns);
    l->hold_off_number = a->hold_off_number;
}

/* Who comes while the fleet's opinion is "open" does not open: it has seen nothing yet. Nor does who comes back: the
 * opening may be old to everybody else. A new one is followed. */
static void hear_opinion(struct lease_ledger *l, const struct lease_answer *a, bool has_breaker, uint64_t seed,
                         int64_t now_ns)
{
    bool fresh = l->began && l->connected && a->is_open && a->opening > l->opening;
    l->opening = a->opening;
    if (fresh && has_breaker && l->terms.open_permille > 0 && bide_breaker_trip(l->target, seed, now_ns))
        l->openings_followed++;
}

/* The lease first: what trickled while we were alone is forfeited, and must not be taken for something spent. */
static void fund(struct lease_ledger *l, int64_t granted_milli, int64_t until_ns, int64_t now_ns)
{
    settle(l, bide_budget_left_milli(l->target, now_ns));
    bide_lease_extend(l->target, until_ns, now_ns);
    l->owed_milli += granted_milli - bide_budget_add_milli(l->target, granted_milli, now_ns);
    l->base_milli = bide_budget_left_milli(l->target, now_ns);
}

const char *lease_ledger_answer(struct lease_ledger *l, const struct lease_answer *a, uint64_t seed, int64_t now_ns)
{
    const char *wrong = l->asked ? lease_answer_check(a, &l->ask) : "late";
    if (wrong)
        return wrong;
    int64_t until_ns = core_sum(now_ns, ns_of(a->next_ms) * 5 / 2 + l->terms.timeout_ns);
    struct prices p = prices_of(l->target);
    l->asked = false;
    l->seen = a->serial;
    l->answer = *a;
    if (!claim(l, until_ns, now_ns)) { /* somebody else has taken over */
        l->owed_milli += a->granted_milli;
        l->due_ns = core_sum(now_ns, ns_of(LEASE_BUSY_MS));
        return NULL;
    }
    fund(l, a->granted_milli, until_ns, now_ns);
    hear_hold_off(l, a, p.hold_off_max_ns, now_ns);
    hear_opinion(l, a, p.has_breaker, seed, now_ns);
    l->began = l->connected = true;
    l->next_ms = a->next_ms;
    l->share_milli = a->share_milli;
    l->answered_ns = now_ns;
    write_memo(l);
    l->due_ns = core_sum(now_ns, spread_ns(a->next_ms, seed));
    l->soon_ns = core_sum(now_ns, spread_ns(a->soon_ms, seed));
    return NULL;
}

/* The trickle begins. A fleet loses its bank all at once, and a floor that began at once for all would ripen for all at
 * once: so somewhere in the time that a retry's worth takes. */
static void go_alone(struct lease_ledger *l, int64_t now_ns)
{
    struct bide_target_config c;
    bide_target_config_get(l->target, &c);
    bide_lease_extend(l->target, now_ns, now_ns);
    if (c.budget.refill_per_minute_milli == 0)
        return;
    int64_t ripens_ns = core_share(BIDE_MINUTE, c.budget.cost_milli, c.budget.refill_per_minute_milli);
    uint64_t phase = core_mix((uint64_t)now_ns + l->who) % (uint64_t)core_max(1, ripens_ns);
    bide_lease_extend(l->target, core_sum(now_ns, (int64_t)phase), now_ns);
}

void lease_ledger_nothing(struct lease_ledger *l, int64_t retry_ns, int64_t now_ns)
{
    bool was_connected = l->connected;
    l->asked = l->connected = false;
    l->due_ns = l->soon_ns = core_max(retry_ns, now_ns);
    if (!l->exchanger || !claim(l, past_exchange_ns(l, l->due_ns), now_ns))
        return;
    if (was_connected)
        go_alone(l, now_ns);
    if (l->terms.shared && now_ns - l->answered_ns >= ns_of(LEASE_SLOWEST_MS))
        (void)claim(l, 0, now_ns);
}

/* ---- leaving ---- */

bool lease_ledger_leave(struct lease_ledger *l, int64_t now_ns, struct lease_ask *ask)
{
    struct prices p = prices_of(l->target);
    struct bide_lease_report report = {0};
    if (!l->terms.shared) {
        report = bide_lease_collect(l->target);
        settle(l, bide_budget_left_milli(l->target, now_ns));
    }
    *ask = say(l, &p, &report);
    ask->give_milli = give_back(l, l->terms.shared ? 0 : LEASE_MILLI_MAX, now_ns);
    ask->leaving = 1;
    if (l->terms.shared)
        ask->seen = 0; /* the instance goes on, with another process: a stranger is not counted out */
    (void)claim(l, 0, now_ns);
    l->asked = l->connected = false;
    l->due_ns = l->soon_ns = BIDE_NEVER;
    return !l->terms.shared || ask->give_milli > 0;
}
