/* lease.h - private: a token budget that is funded from outside: by a fleet, which lends it a few tokens at a time.
 *
 * The budget of a target bounds a process or a host; a thousand of them add up. A leased target earns nothing for
 * itself: the tokens that successes and first attempts would have earned are recorded, for the exchanger to collect and
 * report, and tokens arrive only by bide_budget_add_milli. Calls see no difference: they spend the tokens in the
 * bucket.
 *
 * A lease has an end, which the exchanger keeps extending. If it is not extended (the fleet cannot be reached, or the
 * process died), the target continues on its own from that instant, with its refill and nothing else:
 * refill_per_minute_milli is its floor. So a fleet without its bucket retries at the sum of the floors.
 *
 * One exchanger at a time: all processes that share a target (bide/shared.h) may want to exchange for it, and the claim
 * decides which of them does. The claim expires, so that another process follows an exchanger that was killed.
 *
 * This is the engine's side, pure; bide/fleet.h is the other side. The functions with BIDE_API are exported for
 * libbide-fleet alone, by the symbol version BIDE_PRIVATE_0.1 (cmake/bide.map). Threads: all functions may be called
 * from any thread. */
#ifndef CORE_LEASE_H
#define CORE_LEASE_H

#include <bide/target.h>

/* Counts since the last collection. */
struct core_lease_report {
    uint64_t firsts;       /* first attempts */
    uint64_t successes;    /* calls that succeeded */
    uint64_t earned_milli; /* tokens that these, and refunds, would have earned */
};

/* Begins a lease. The bucket is emptied: its tokens were not the fleet's. A target that is leased already keeps its
 * tokens. BIDE_ERR_INVALID: its budget is not of kind tokens, or has a threshold (tokens below it would be lent in
 * vain). BIDE_ERR_BUSY: the target is being configured; try again. A new configuration does not end a lease, and must
 * be valid for a lease. */
BIDE_API enum bide_err core_lease_begin(struct bide_target *target, int64_t now_ns, struct bide_problem *problem);

/* Extends the lease after a reply from the fleet: no refill until until_ns, or until a later end that was set before.
 * Refill that accrued since the last end is forfeited, except the part that a charge has already credited to the
 * bucket. An until_ns that is not after now_ns means that the fleet does not reply: the refill runs from now on, or
 * continues. */
BIDE_API void core_lease_extend(struct bide_target *target, int64_t until_ns, int64_t now_ns);

/* Ends the lease: the target earns for itself again and keeps its tokens. BIDE_ERR_BUSY: try again. */
BIDE_API enum bide_err core_lease_end(struct bide_target *target, int64_t now_ns);

bool core_lease_is_on(const struct bide_target *target);

/* Returns when the lease ends or has ended, unless it is extended; if it was never extended, when it began. 0: not
 * leased, or a process is still beginning the lease or was killed while it did so. */
BIDE_API int64_t core_lease_until(const struct bide_target *target);

/* Returns the counts and resets them to 0; each count is returned once. Counts that are collected and not reported are
 * lost, which errs towards fewer retries. */
BIDE_API struct core_lease_report core_lease_collect(struct bide_target *target);

/* Returns true if other processes use the target too (bide/shared.h): they may lease for it. */
BIDE_API bool core_target_is_shared(const struct bide_target *target);

/* Claims the target for an exchanger (a number that the process chose for itself, not 0), or renews its claim, until
 * until_ns (to half a second, rounded up). Returns false if another exchanger holds a claim that has not expired.
 * until_ns <= now_ns releases the exchanger's own claim, and returns false. */
BIDE_API bool core_lease_claim(struct bide_target *target, uint32_t exchanger, int64_t until_ns, int64_t now_ns);

/* A memo from an exchanger to its successor, for a target that processes share: how far it had come. The engine does
 * not interpret it; it is zero when a lease begins. */
struct core_lease_memo {
    uint64_t progress;
    uint64_t base_milli;
};

BIDE_API struct core_lease_memo core_lease_memo_get(const struct bide_target *target);
BIDE_API void core_lease_memo_set(struct bide_target *target, struct core_lease_memo memo);

#endif
