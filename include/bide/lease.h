/* lease.h - a token budget that is funded from outside: by a fleet, which lends it a few tokens at a time.
 *
 * A target's own budget bounds one process, or one host; a thousand of them add up. While a target is leased, it earns
 * nothing for itself. What successes and first attempts would have earned is put down, for whoever leases to collect
 * and report, and tokens come only by bide_budget_add_milli. Calls notice nothing: they spend what is there.
 *
 * The lease has an end, which whoever leases keeps moving ahead. When it is not moved (the other side cannot be
 * reached, or that process is dead) the target goes on alone, from that instant, with its trickle and nothing else:
 * refill_per_minute_milli is its floor. So the floor is all that a fleet whose bank is gone adds up to.
 *
 * One exchanger at a time: processes that share a target (bide/shared.h) all may want to lease for it, and the claim says
 * who does. It expires, so that a killed one is followed by another.
 *
 * This is the engine's side, pure. bide/fleet.h is the other one. */
#ifndef BIDE_LEASE_H
#define BIDE_LEASE_H

#include <bide/target.h>

BIDE_BEGIN_DECLS

/* What was put down since it was last collected. */
struct bide_lease_report {
    uint64_t firsts;       /* first attempts */
    uint64_t successes;    /* calls that succeeded */
    uint64_t earned_milli; /* what these, and refunds, would have put into the bucket */
};

/* From now on the target is leased, and its bucket is empty: what was in it was not the fleet's. One that is leased
 * already keeps what it has. BIDE_ERR_INVALID: its budget is not of tokens, or has a threshold, and what lies below one
 * would be lent for nothing. BIDE_ERR_BUSY: somebody is just configuring it; try again. A new configuration, given by
 * whomever, does not end a lease, and must be one that can be leased. */
BIDE_API enum bide_err bide_lease_begin(struct bide_target *target, int64_t now_ns, struct bide_problem *problem);

/* The other side answers: no trickle until then, or until a later instant that was said before. What had trickled and
 * was not spent is forfeited. An instant that is not after now says that the other side does not answer: the trickle
 * runs from now, or goes on. */
BIDE_API void bide_lease_extend(struct bide_target *target, int64_t until_ns, int64_t now_ns);

/* The target earns for itself again. It keeps what is in the bucket. BIDE_ERR_BUSY: try again. */
BIDE_API enum bide_err bide_lease_end(struct bide_target *target, int64_t now_ns);

BIDE_API bool bide_lease_is_on(const struct bide_target *target);

/* When the lease ends or has ended, unless it is extended; of one never extended, when it began. 0: not leased. */
BIDE_API int64_t bide_lease_until(const struct bide_target *target);

/* Takes what was put down: nobody else gets it. What is collected and not reported is lost, which is the safe side. */
BIDE_API struct bide_lease_report bide_lease_collect(struct bide_target *target);

/* True if `who` (a number of its own, not 0) may exchange for this target until then: it is the one already, nobody is,
 * or whoever was has let its time pass, which is told to half a second, upwards. until_ns <= now_ns gives it up. */
BIDE_API bool bide_lease_claim(struct bide_target *target, uint32_t exchanger, int64_t until_ns, int64_t now_ns);

/* What whoever exchanges leaves for whoever does after it, of a target that processes share: how far it had come. It
 * means nothing to the engine, and is zeros when a lease begins. */
struct bide_lease_memo {
    uint64_t progress;
    uint64_t base_milli;
};

BIDE_API struct bide_lease_memo bide_lease_memo_get(const struct bide_target *target);
BIDE_API void bide_lease_memo_set(struct bide_target *target, struct bide_lease_memo memo);

BIDE_END_DECLS
#endif
