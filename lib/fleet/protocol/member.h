/* member.h - a member of a fleet: the pure state machine that leases tokens for a target.
 *
 * No clock, no socket, no allocation. The driver (the thread of lib/fleet, or the simulator) calls
 * lease_member_try_claim when lease_member_next_check_ns says so; if that returns true, it sends the request of
 * lease_member_make_request and reports the result: lease_member_accept_reply or lease_member_request_failed.
 *
 *       lease_member_join; from any state but leaving: another process took over
 *              │
 *              ▼       reply accepted                      request failed
 *         ┌────────┐ ──────────────────────► ┌────────┐ ─────────────────► ┌─────────┐
 *         │ joined │                         │ leased │                    │ failing │
 *         └────────┘                         └────────┘ ◄───────────────── └─────────┘
 *              │                                           reply accepted       ▲
 *              │                                                                │
 *              └────────────────────────────────────────────────────────────────┘
 *                                        request failed
 *         ┌─────────┐
 *         │ leaving │ ◄── lease_member_leave, from any state
 *         └─────────┘
 *
 *     joined    no reply yet since the join, or since this process took over from another. A target whose lease this
 *               process has begun has the advance (below), and refills at its floor from one accrual after the join on.
 *               A shared target that was leased already is as the other process left it: it refills from the end of
 *               its lease on
 *     leased    the last request was replied to: no refill; the lease lasts 2.5 x next_ms + timeout beyond the reply
 *     failing   the last request failed. After leased, the lease is over, and the target refills at its floor, from a
 *               random offset on. After joined, the end of the lease stays: the target refills from there on
 *     leaving   the final request returns all tokens of a private target; the driver sends it
 *
 * A reply keeps a leased member leased, a failed request keeps a failing member failing. The late reply of a member
 * that another process has replaced makes it joined, from every state, also from joined itself; and a leased member
 * that another process has replaced is joined when it regains the claim. In each state but leaving at most one request
 * is pending (request_pending).
 *
 * Why no token is ever counted twice:
 * - lease_member_join empties the target (core_lease_begin). Only a shared target that another process has leased
 *   already keeps its tokens: they are the fleet's.
 * - The join that begins a lease may add one retry, the advance. It is repaid, and never gets into the fleet's bucket.
 * - Tokens leave the target before their request is sent: the earned counters are swapped with 0, returned tokens are
 *   removed from the bucket by an atomic operation that returns the amount removed. If the request is lost, they are
 *   lost.
 * - Granted tokens enter the target only with an accepted reply, and a reply is accepted only while a request is
 *   pending, at most one reply for each request. So a late or repeated reply is not applied, nor a reply with a serial
 *   already seen. The driver matches replies to requests (node.c: by their order on the connection).
 * - The target does not refill before the end of its lease, and the time disconnected counts from that end. When the
 *   lease is extended again, refill that no charge has credited to the bucket yet is forfeited. So floor x time
 *   disconnected is an upper bound.
 *
 * The advance (advance_milli). Without Redis, a short-lived process would never retry: its floor needs an accrual, the
 * time in which the floor earns one retry (a minute by default). So the join that begins the lease of a target with a
 * floor adds the floor's first retry at once, and the floor's refill starts one accrual later (core_lease_extend). A
 * member without Redis thus has the larger of one retry and floor x time since the join. A member with Redis repays the
 * advance: the first reply removes it from the target; if it is spent, the first grant repays it, and if that grant is
 * smaller, so do the grants that follow. Leaving removes it too; if it is spent, only a grant that is still on its way
 * repays it. So a member exceeds floor x time disconnected by one retry at most, and only if it has got no grant and
 * its first reply, or its end, came within one accrual after the join. A process with a private target that is started
 * again and again has that retry at each start.
 *
 * A shared target has the advance once for a lease, which outlives its processes. The memo (below) holds the amount to
 * repay, so the process that receives the next reply repays it, even if the process that joined first has left or was
 * killed. The race: of several processes that begin the lease at once, only the process whose now_ns became the end of
 * the lease, and which then holds the claim, adds an advance. Not even that process adds it if another process has
 * extended the lease or claimed the target meanwhile: fewer retries, never more.
 *
 * Shared targets (terms.shared): several processes have a member for the same target, and together they are a single
 * member to the bucket. Only the process that holds the claim (core_lease_claim, a compare-and-swap with an expiry)
 * makes requests: the exchanger. The others check every second whether the claim has expired. The exchanger keeps the
 * claim over failures for a minute, then releases it for another process to try. Its successor starts in state joined,
 * without emptying the target, and finds a memo there: the highest serial seen, was_wanting, base_milli and
 * advance_milli.
 *
 * The race: process A is stopped past the end of its claim, B takes over, A wakes up. If A then receives its reply, its
 * claim fails, and the tokens granted go into A's own overflow_milli, which A returns when it exchanges again or
 * leaves. If A was stopped between its claim and its writes, both write to the target. Tokens are added, removed and
 * collected by atomic operations, so none is copied; the reported spending and the memo can be wrong. Known weakness:
 * if A was stopped in lease_member_request_failed, it ends the lease that B has extended meanwhile, as of the time when
 * A was stopped, so the floor may be refilled for the time since then as well (docs/lease.md).
 *
 * How much to hold: the demand plus the share that an idle member may hold, in whole retries. The demand is twice the
 * spending expected until the next exchange, at the measured rate (refused retries included; an average of which each
 * request renews half). If retries were refused since the last request: at least a retry more than the bucket holds. A
 * joined member: at least three retries. Never more than fits into the target's bucket. The member requests the missing
 * amount. If it holds more than 1.5 x the demand plus twice the share, it returns the surplus; but only if leased,
 * because otherwise the tokens would probably be lost, and a disconnected member needs them.
 *
 * Short of tokens: a retry was refused since the last request, or more than half of base_milli is spent, at least the
 * cost of a retry. */
#ifndef LEASE_MEMBER_H
#define LEASE_MEMBER_H

#include "core/lease.h"
#include "messages.h"

struct lease_terms {
    int64_t capacity_milli; /* of the fleet's bucket */
    int64_t per_minute_milli;
    int64_t timeout_ns; /* for a request and its reply */
    bool shared;        /* other processes have members for the target too; the exchanger makes the requests */
};

enum lease_member_state { LEASE_MEMBER_JOINED = 0, LEASE_MEMBER_LEASED, LEASE_MEMBER_FAILING, LEASE_MEMBER_LEAVING };

/* Written by member.c only; may be read by its driver. */
struct lease_member {
    enum lease_member_state state;
    struct lease_terms terms;
    struct bide_target *target;
    uint32_t claimant_id;         /* of this process, for core_lease_claim; not 0 */
    bool exchanger;               /* this process held the claim when it last checked */
    bool request_pending;         /* a request was made, its result is not known yet */
    int64_t requested_ns;         /* time of the last request */
    int64_t replied_ns;           /* time of the last reply, or when we became the exchanger */
    int64_t due_ns, earliest_ns;  /* time of the next request; the earliest if short of tokens */
    int64_t base_milli;           /* level the target's bucket would have without spending */
    int64_t spent_milli;          /* spent, not yet reported, besides base_milli - level */
    int64_t advance_milli;        /* the floor's first retry, added at the join, as far as it is to be repaid */
    int64_t overflow_milli;       /* granted, but not added to the target: returned with a later request */
    uint64_t refusals;            /* retries refused by the budget, as of the last request */
    int64_t rate_milli_per_s;     /* of spending */
    int64_t next_ms;              /* of the last reply */
    int64_t share_milli;          /* of the last reply */
    int64_t seen_serial;          /* highest serial of a reply */
    bool was_wanting;             /* its request wanted tokens */
    struct lease_request request; /* the last made */
    struct lease_reply reply;     /* the last accepted since we became the exchanger; serial 0: none */
};

/* Begins leasing for the target; fails as core_lease_begin does. claimant_id is any number but 0 that no other process
 * uses. The first request is due at once. */
enum bide_err lease_member_join(struct lease_member *member, struct bide_target *target,
                                const struct lease_terms *terms, uint32_t claimant_id, int64_t now_ns,
                                struct bide_problem *problem);

/* Returns until when the last reply leases the target, as core_lease_until. 0: no reply was received since the lease
 * began; then the target is disconnected since the join, and the end in the target only delays the floor. */
int64_t lease_member_leased_until_ns(const struct lease_member *member);

/* Returns when to call lease_member_try_claim next: when the request is due, or every LEASE_INTERVAL_MIN_MS to see
 * whether tokens are short. BIDE_NEVER while a request is pending. The result is after now_ns unless the request is
 * due. */
int64_t lease_member_next_check_ns(const struct lease_member *member, int64_t now_ns);

/* Claims the target if a request is due, or tokens are short and earliest_ns has passed. Returns true if a request is
 * to be made now and this process holds the claim. Begins the lease again if another process ended it. */
bool lease_member_try_claim(struct lease_member *member, int64_t now_ns);

/* Makes the next request: removes returned and earned tokens from the target and puts them into the request. Only
 * directly after lease_member_try_claim returned true. The request is pending until lease_member_accept_reply or
 * lease_member_request_failed. */
const struct lease_request *lease_member_make_request(struct lease_member *member, int64_t now_ns);

/* Applies a reply. Returns NULL, or why it is rejected: the name of an invalid field, or "late" if no request is
 * pending. A rejected reply changes nothing; the driver then calls lease_member_request_failed. `seed` jitters the next
 * request by a tenth. */
const char *lease_member_accept_reply(struct lease_member *member, const struct lease_reply *reply, uint64_t seed,
                                      int64_t now_ns);

/* Records that no valid reply came or can come, or that Redis cannot be reached: tokens in the request are lost, the
 * target continues at its floor, and the next request is due at retry_ns. May be called without a pending request. */
void lease_member_request_failed(struct lease_member *member, int64_t retry_ns, int64_t now_ns);

/* Makes the final request: it returns all tokens of a private target, but of a shared target only overflow_milli,
 * because the other processes keep the target; then releases the claim. A pending request is given up: its reply may
 * still grant tokens, which the driver adds to the final request, less advance_milli. Returns false if there is nothing
 * to send: no tokens of a shared target, and no pending request. No reply to the final request is needed. The caller
 * ends the lease of a private target (core_lease_end). */
bool lease_member_leave(struct lease_member *member, int64_t now_ns, struct lease_request *request);

#endif
