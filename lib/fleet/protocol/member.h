/* ledger.h - an instance's side of the exchange: what to ask for one target, and what an answer does to it.
 *
 * Pure: no clock, no socket, no memory of its own. Whoever drives it (a thread in lib/fleet, the simulator) looks with
 * lease_ledger_is_due, asks with lease_ledger_ask, sends that, and brings what came of it: an answer, or nothing.
 *
 * Whatever an ask gives back or reports has left the target when the ask is made; if no answer comes, it is spent.
 * Tokens come only with an answer. So nothing is ever counted twice, whatever is lost on the way.
 *
 * How much to hold: twice what is expected to be spent until the next exchange (the rate, refused retries included,
 * half of it new at each exchange), and the share that an idle instance may keep, in whole retries; one retry more than
 * there is if some were refused; who comes asks for three. At most what the target's bucket holds. What is missing is
 * wanted. When there is half as much again as expected, and twice the share, what is beyond is given back; but not by
 * who had no answer the last time: it would probably be lost, and who is alone needs it.
 *
 * Short of tokens: a retry was refused since the last ask, or more than half of what was there is spent.
 *
 * Connected: after an answer the lease is extended to two and a half times next_ms plus the timeout from now: whoever
 * takes over from a killed exchanger comes in time. An exchange that failed ends it, and the target goes on alone: at a
 * time that is drawn, within what the floor needs for one retry, so that the floors of a fleet do not ripen together.
 *
 * One of many (terms.shared): only who holds the claim touches the target, the others look now and then whether it has
 * expired. It is held over failures, for a minute; then another may try. Who takes over finds a memo in the target:
 * which serial number was seen and what was in the bucket then, so that to the bank it is the same instance. */
#ifndef LEASE_MEMBER_H
#define LEASE_MEMBER_H

#include <bide/lease.h>

#include "messages.h"

struct lease_terms {
    int64_t capacity_milli; /* of the fleet's bucket */
    int64_t per_minute_milli;
    int64_t open_permille; /* 0: the fleet's opinion is not followed */
    int64_t timeout_ns;    /* how long an exchange may take */
    bool hold_off;         /* the fleet's quiet is kept, and ours told */
    bool shared;           /* other processes have the target too, and lease for it when we do not */
};

/* To be read by anybody, written by ledger.c. */
struct lease_member {
    struct lease_terms terms;
    struct bide_target *target;
    uint32_t claimant_id;         /* of the claim */
    bool exchanger;               /* the claim is ours, as far as we know */
    bool request_pending;         /* an ask is under way */
    bool had_reply;               /* there was an answer since we are the exchanger */
    bool connected;               /* the last exchange was answered */
    int64_t requested_ns;         /* when the last ask was made */
    int64_t replied_ns;           /* when the last answer came, or we became the exchanger */
    int64_t due_ns, earliest_ns;  /* come again then; when short of tokens not before this */
    int64_t base_milli;           /* what the bucket would hold if nothing had been spent */
    int64_t spent_milli;          /* not reported yet, besides what is missing from the base */
    int64_t overflow_milli;       /* granted, but there was no place for it: given back with the next ask */
    uint64_t refusals;            /* by the budget, at the last ask */
    int64_t rate_milli_per_s;     /* of spending */
    int64_t next_ms;              /* as the last answer said */
    int64_t share_milli;          /* likewise */
    int64_t seen_serial;          /* highest serial number */
    int64_t hold_off_until_ns;    /* the fleet's, as we set it */
    int64_t hold_off_number;      /* of that */
    int64_t opening;              /* as the last answer said */
    uint64_t openings_followed;   /* how often that opened our breaker */
    struct lease_request request; /* the last one */
    struct lease_reply reply;     /* the last one that was believed */
};

/* Begins leasing for that target: see bide_lease_begin for what is refused. `who`: any number but 0, of one's own. The
 * first ask is due at once. */
enum bide_err lease_member_join(struct lease_member *member, struct bide_target *target,
                                const struct lease_terms *terms, uint32_t claimant_id, int64_t now_ns,
                                struct bide_problem *problem);

/* When to look again, with lease_ledger_is_due: due, or (each LEASE_SOON_MS) whether tokens are short. BIDE_NEVER while
 * an ask is under way. Later than now, unless it is due. */
int64_t lease_member_next_check_ns(const struct lease_member *member, int64_t now_ns);

/* Is it time to ask: due, or short of tokens and soon enough; and are we the one who exchanges? Takes or keeps the
 * claim. */
bool lease_member_try_claim(struct lease_member *member, int64_t now_ns);

/* Takes from the target what is to be said, and says it. Only when lease_ledger_is_due has just said so. Until
 * lease_ledger_answer or _nothing there is no other. */
const struct lease_request *lease_member_make_request(struct lease_member *member, int64_t now_ns);

/* Believes the answer, or not: NULL, or what is wrong with it: a field's name, or "late" if no ask is under way. Then
 * it is as if none had come, and lease_ledger_nothing is the caller's to call. The seed spreads the next time by a
 * tenth, and the time for which the breaker opens. */
const char *lease_member_accept_reply(struct lease_member *member, const struct lease_reply *reply, uint64_t seed,
                                      int64_t now_ns);

/* No answer came, or none will, or there is nobody to ask: what was asked is spent; next at retry_ns, not earlier. The
 * target goes on alone. May be called without an ask under way. */
void lease_member_request_failed(struct lease_member *member, int64_t retry_ns, int64_t now_ns);

/* The last ask: everything back, but of a shared target only what is not in it; the claim is given up. Nobody waits for
 * its answer, and an ask under way is spent. False: nothing to say. The lease itself is the caller's to end, if nobody
 * shares the target. */
bool lease_member_leave(struct lease_member *member, int64_t now_ns, struct lease_request *request);

#endif
