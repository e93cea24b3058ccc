/* bank.h - the fleet's side of an exchange, as lib/fleet/script.lua does it inside Redis, to the digit.
 *
 * Here it is for the simulator, and as the script's oracle: a test plays both with the same asks.
 *
 * The bucket: begins empty; a trickle, as far as time has moved on, but an hour at most (a clock that jumps ahead mints
 * no more than that); what is given back and earned; never above the capacity that this ask names. A clock that goes
 * back mints nothing: the stamp stays where it is, unless it lies more than ten minutes ahead; then it is brought to
 * now, nothing is credited, and a quiet that was asked for by that other clock is forgotten.
 *
 * Lost writes: every exchange has a serial number, and every instance says the highest it has seen. One that has seen
 * more than the bank knows proves that the bank was put back to an earlier state (a failover, an old snapshot). Then
 * the bucket is emptied before anything is granted, counting begins anew, and the serial leaps beyond whatever others
 * may have seen, so that this happens once.
 *
 * How many instances there are: a window is twice the longest time that anybody is told to wait (20 s, more for fleets
 * of more than 10,000), so who lives is seen in each. The bank counts how many it has seen in this window, and how many
 * in the last one but not yet in this one; together that is how many there are, exactly, and at once. It keeps no list:
 * an instance says the serial number of its last answer, which tells in which window that was. Who has seen none of the
 * two windows is new; who dies without a word is forgotten in two windows. Likewise those that want tokens, those whose
 * breaker has an opinion, those whose opinion is "open": the bank says in the answer how it counted the instance
 * (mark), and is told with the next ask. After a gap of two windows counting begins anew.
 *
 * How much: who wants gets it, but no more than the bucket divided by those that want (a whole number of units, one at
 * least, if there is one). Who had less than one unit to ask for gets it while there is a whole one.
 *
 * When: an instance that had something to say in 1 s, one that had nothing in 10 s; later if that would be more than
 * 1,000 exchanges a second for the whole fleet, and 60 s at most. The first time of a new one lies anywhere between
 * half of that and half as much again: those that came together do not come together for ever. Who is short of tokens
 * may come after 250 ms, later if that would be more than 5,000 a second; 1,000 if there is nothing to be had.
 *
 * Quiet: the latest instant that any instance was asked for, numbered by the exchange; one that would end less than a
 * second after the present one is the same. A success anywhere ends the quiet of the number that it saw.
 *
 * Opinion: becomes "open" when open_permille of at least three opinions are, and ceases below half of that. It is
 * formed two seconds after counting began at the earliest: before, those that came first would speak for all. An
 * instance that does not want to know (open_permille 0) changes nothing.
 *
 * Known weaknesses: a new instance whose answers are lost is counted at each of its asks, so the numbers are too high
 * while Redis is too slow for its fleet (which makes everybody come less often) and for two windows afterwards. A clock
 * that goes back by more than ten minutes and is then put right again gives the trickle of that time twice. Nobody can
 * tell whether what is given back was ever granted: an instance that lies can fill the bucket, to its capacity. */
#ifndef LEASE_BUCKET_H
#define LEASE_BUCKET_H

#include "messages.h"

#define LEASE_INTERVAL_BUSY_MS   1000
#define LEASE_INTERVAL_IDLE_MS   10000
#define LEASE_FLEET_PER_S        1000 /* exchanges of the fleet */
#define LEASE_FLEET_URGENT_PER_S 5000 /* of instances that are short */
#define LEASE_VOTES_MIN          3
#define LEASE_VOTE_DELAY_MS      2000
#define LEASE_HOLD_OFF_STEP_MS   1000
#define LEASE_SERIAL_LEAP        1000000
#define LEASE_CLOCK_BACK_MAX_MS  600000
#define LEASE_REFILL_MAX_MS      3600000
#define LEASE_MEMBERS_MAX        1000000000 /* instances: what is beyond is not counted */

/* Numbers of instances. */
struct lease_counts {
    int64_t all, wanting, voting, open;
};

/* X(name, field, most): what is stored in Redis, in this order, 0 to most each. */
#define LEASE_BUCKET_FIELDS(X)                                                                                         \
    X("serial", serial, LEASE_COUNT_MAX)                                                                               \
    X("level_milli", level_milli, LEASE_MILLI_MAX)                                                                     \
    X("refill_rest", refill_rest, 59999)                                                                               \
    X("refilled_ms", refilled_ms, LEASE_COUNT_MAX)                                                                     \
    X("window_began_ms", window_began_ms, LEASE_COUNT_MAX)                                                             \
    X("window_serial", window_serial, LEASE_COUNT_MAX)                                                                 \
    X("last_window_serial", last_window_serial, LEASE_COUNT_MAX)                                                       \
    X("counting_began_ms", counting_began_ms, LEASE_COUNT_MAX)                                                         \
    X("this_window.all", this_window.all, LEASE_MEMBERS_MAX)                                                           \
    X("this_window.wanting", this_window.wanting, LEASE_MEMBERS_MAX)                                                   \
    X("this_window.voting", this_window.voting, LEASE_MEMBERS_MAX)                                                     \
    X("this_window.open", this_window.open, LEASE_MEMBERS_MAX)                                                         \
    X("last_window.all", last_window.all, LEASE_MEMBERS_MAX)                                                           \
    X("last_window.wanting", last_window.wanting, LEASE_MEMBERS_MAX)                                                   \
    X("last_window.voting", last_window.voting, LEASE_MEMBERS_MAX)                                                     \
    X("last_window.open", last_window.open, LEASE_MEMBERS_MAX)                                                         \
    X("hold_off_until_ms", hold_off_until_ms, LEASE_COUNT_MAX)                                                         \
    X("hold_off_number", hold_off_number, LEASE_COUNT_MAX)                                                             \
    X("opening", opening, LEASE_COUNT_MAX)                                                                             \
    X("is_open", is_open, 1)                                                                                           \
    X("firsts", firsts, LEASE_COUNT_MAX)                                                                               \
    X("successes", successes, LEASE_COUNT_MAX)                                                                         \
    X("spent_milli", spent_milli, LEASE_COUNT_MAX)                                                                     \
    X("granted_milli", granted_milli, LEASE_COUNT_MAX)                                                                 \
    X("capacity_milli", capacity_milli, LEASE_MILLI_MAX)                                                               \
    X("per_minute_milli", per_minute_milli, LEASE_MILLI_MAX)

/* In the order of the list. */
struct lease_bucket {
    int64_t serial; /* 0: nobody has been here yet, and all is 0 */
    int64_t level_milli;
    int64_t refill_rest; /* of the trickle: sixty-thousandths of a thousandth */
    int64_t refilled_ms;
    int64_t window_began_ms;                      /* when this window began, */
    int64_t window_serial, last_window_serial;    /* and the last serial number before it, and before the last one */
    int64_t counting_began_ms;                    /* when counting began */
    struct lease_counts this_window, last_window; /* seen in this window; in the last one and not in this one yet */
    int64_t hold_off_until_ms, hold_off_number;
    int64_t opening, is_open;
    int64_t firsts, successes, spent_milli, granted_milli; /* totals, as far as they can be counted */
    int64_t capacity_milli, per_minute_milli;              /* as the last ask said, for people who look */
};

#define LEASE_BUCKET_FIELD_COUNT (sizeof(struct lease_bucket) / sizeof(int64_t))

/* A bank that nobody has been at yet is all zeros. The ask must be in range, and the time: 0 to LEASE_COUNT_MAX less a
 * day. */
void lease_bucket_serve(struct lease_bucket *bucket, const struct lease_request *request, int64_t now_ms,
                        struct lease_reply *reply);

/* How things stand, for people who look. */
struct lease_bucket_view {
    struct lease_counts count; /* of instances */
    int64_t level_milli;       /* with the trickle until now */
    int64_t hold_off_ms;
    bool is_open;
};

struct lease_bucket_view lease_bucket_get(const struct lease_bucket *bucket, int64_t now_ms);

/* NULL, or which field is not in its range: a key may hold anything. */
const char *lease_bucket_check(const struct lease_bucket *bucket);

#endif
