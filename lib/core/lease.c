/* lease.c - a target whose budget a fleet funds. See lease.h for the model.
 *
 * The leased flag is a bit of the hot word, which every call reads anyway; each new configuration keeps it. The end of
 * the lease, the exchanger and its memo are words of their own.
 *
 * A lease begins in steps, and its process may be killed between any two: the end of the lease is set to 0, the leased
 * flag is published, the bucket is drained, the end is set. A leased target whose end is 0 counts as empty, even if its
 * bucket holds tokens, until a process begins the lease again: so tokens from before the lease are never spent under
 * it. A credit that was under way when the lease began, or the refund of a retry that was charged before it, is not
 * added: see bucket_add in budget.c. */

#include "lease.h"
#include "gates.h"
#include "problem.h"
#include "saturate.h"

/* ---- beginning and ending ---- */

bool core_lease_is_on(const struct bide_target *target)
{
    return (core_hot(target) & CORE_HOT_LEASED) != 0;
}

int64_t core_lease_until(const struct bide_target *target)
{
    return core_lease_is_on(target) ? (int64_t)core_load(&target->lease_end_ns) : 0;
}

enum bide_err core_lease_check(const struct bide_budget_config *budget, struct bide_problem *problem)
{
    if (budget->kind != BIDE_BUDGET_TOKENS)
        return core_problem_set(problem, "budget.kind", budget->kind,
                                "BIDE_BUDGET_TOKENS in a leased target: a fleet lends tokens");
    if (budget->threshold_milli != 0)
        return core_problem_set(problem, "budget.threshold_milli", budget->threshold_milli,
                                "0 in a leased target: tokens below it could not be spent");
    return BIDE_OK;
}

/* Begins the lease; the caller holds the claim. Another process may be at it too, if its claim was taken over as stale.
 * Then the bucket is drained twice, and tokens lent in between are lost: an error towards fewer retries. */
static void lease_start(struct bide_target *t, int64_t now_ns)
{
    core_store(&t->lease_end_ns, 0);
    core_target_set_leased(t, true, now_ns);
    core_budget_drain(t, now_ns);
    (void)core_lease_collect(t); /* counts of an earlier lease */
    core_lease_memo_set(t, (struct core_lease_memo){0});
    core_store_release(&t->lease_end_ns, (uint64_t)core_max(now_ns, 1));
}

enum bide_err core_lease_begin(struct bide_target *target, int64_t now_ns, struct bide_problem *problem)
{
    struct bide_budget_config budget;
    enum bide_err err = BIDE_OK;
    if (core_lease_until(target) != 0)
        return BIDE_OK;
    if (!core_target_claim(target, now_ns))
        return core_problem_set_busy(problem);
    if (core_lease_until(target) == 0) { /* else another process began the lease before this one had the claim */
        core_budget_config(target, &budget);
        err = core_lease_check(&budget, problem);
        if (err == BIDE_OK)
            lease_start(target, now_ns);
    }
    core_target_release(target);
    return err;
}

enum bide_err core_lease_end(struct bide_target *target, int64_t now_ns)
{
    if (!core_lease_is_on(target))
        return BIDE_OK;
    if (!core_target_claim(target, now_ns))
        return BIDE_ERR_BUSY;
    core_target_set_leased(target, false, now_ns);
    core_store(&target->lease_end_ns, 0);
    core_target_release(target);
    return BIDE_OK;
}

/* An until_ns in the future only moves the end forward: a process that was descheduled before this call may carry an
 * older value. Any other until_ns brings a future end back to now; an end that has passed stays, because the refill
 * counts from there. */
void core_lease_extend(struct bide_target *target, int64_t until_ns, int64_t now_ns)
{
    uint64_t end = core_load(&target->lease_end_ns), next;
    do {
        int64_t end_ns = (int64_t)end;
        next = (uint64_t)(until_ns > now_ns ? core_max(end_ns, until_ns) : core_min(end_ns, core_max(now_ns, 1)));
        if (end == 0 || next == end)
            return;
    } while (!core_cas(&target->lease_end_ns, &end, next));
}

/* ---- reporting ---- */

/* The atomic exchange with 0 gives each count to exactly one collector, and loses none that is added meanwhile. */
struct core_lease_report core_lease_collect(struct bide_target *target)
{
    struct core_lease_report all = {0};
    for (uint32_t i = 0; i < BIDE_LANES; i++) {
        all.firsts += core_exchange(&target->lane[i].firsts, 0);
        all.successes += core_exchange(&target->lane[i].successes, 0);
        all.earned_milli += core_exchange(&target->lane[i].earned_milli, 0);
    }
    return all;
}

/* ---- the exchanger ---- */

#define EXCHANGER_SHIFT 32
#define TICK_SHIFT      29 /* half a second: 32 bits of ticks reach 73 years, as far as instants do */

/* Rounds up: a claim never ends early. */
static uint64_t tick_not_before(int64_t ns)
{
    core_assert(ns >= 0);
    return (uint64_t)core_min(core_sum(ns, (INT64_C(1) << TICK_SHIFT) - 1) >> TICK_SHIFT, UINT32_MAX);
}

/* The word: number of the exchanger (32 bits), end of its claim in ticks (32). If two processes claim at once, the CAS
 * of the slower fails, and it does not have the claim. */
bool core_lease_claim(struct bide_target *target, uint32_t exchanger, int64_t until_ns, int64_t now_ns)
{
    uint64_t held = core_load(&target->lease_exchanger);
    core_assert(exchanger != 0); /* 0 is the claim of no exchanger */
    bool mine = held >> EXCHANGER_SHIFT == exchanger, past = until_ns <= now_ns;
    bool theirs = !mine && (int64_t)((held & UINT32_MAX) << TICK_SHIFT) > now_ns;
    if (theirs || (past && !mine))
        return false;
    uint64_t wanted = past ? 0 : (uint64_t)exchanger << EXCHANGER_SHIFT | tick_not_before(until_ns);
    return core_cas(&target->lease_exchanger, &held, wanted) && !past;
}

struct core_lease_memo core_lease_memo_get(const struct bide_target *target)
{
    return (struct core_lease_memo){core_load(&target->lease_progress), core_load(&target->lease_base_milli)};
}

void core_lease_memo_set(struct bide_target *target, struct core_lease_memo memo)
{
    core_store(&target->lease_progress, memo.progress);
    core_store(&target->lease_base_milli, memo.base_milli);
}
