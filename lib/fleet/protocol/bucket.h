/* bucket.h - the fleet's token bucket: how it serves a request.
 *
 * In production lib/fleet/script.lua does this inside Redis, atomically; bucket.c is its twin, to the digit. The twin
 * serves the simulator, and is the script's oracle: tests/live/fleet/test_script.c sends the same requests to both and
 * compares every number.
 *
 * Tokens. The bucket starts empty. Serving a request adds the refill since the last request, then the tokens that the
 * member returns and earned, cuts the level to the capacity that the request names, and subtracts the grant. So a token
 * that a member returned or was granted is counted on exactly one side; the capacity can only discard tokens.
 *
 * Initial tokens. So that a new fleet can retry its first failures, each new member adds one retry to the bucket, until
 * these have added up to the capacity (initial_milli): once in the life of the key. Members that come and go thus add
 * no more than a bucket that starts full, and a small fleet adds less.
 *
 * Clock. The refill of a single step is limited to an hour, so a clock that jumps ahead adds at most that. When the
 * clock goes back, nothing is added and refilled_ms stays, unless it is more than ten minutes ahead: then it is set to
 * now, still without adding tokens.
 *
 * Lost writes. Each exchange has a serial, and each request carries the highest serial that the member has seen. A
 * member that has seen a higher serial than the bucket knows proves that Redis went back to an earlier state (a
 * failover, an old snapshot), so tokens that were granted since are in the level once more. The bucket is emptied
 * before anything is granted, no initial tokens are added any more, counting restarts, and the serial leaps ahead of
 * all serials that other members may have seen, so that a rollback empties the bucket once. Until such a member comes,
 * the rolled-back level can be granted again: this is the only exception to the promise, at most a full bucket per
 * rollback; and new members may add initial tokens that were added before.
 *
 * Counting members, without a list of them. A window is twice the interval of an idle member (20 s, more above 10,000
 * members), and no interval is longer than three quarters of a window, so each live member appears in every window.
 * The bucket counts the members seen in this window, and those seen in the last window but not yet in this window; the
 * sum is exact at any time. seen_serial tells in which of the two windows the member was counted last; if in neither,
 * it is new. A member that dies without a final request is forgotten after two windows. Members that want tokens are
 * counted the same way: a request repeats whether the member's last request wanted tokens (was_wanting), so the old
 * count can be removed. After a whole window without any request, counting restarts.
 *
 * Grant. A member gets the amount it wants, but at most the level divided by the members that want tokens, rounded down
 * to whole units; if there is at least one unit left, at least one unit.
 *
 * Interval. 1 s for a member whose request reported something, 10 s for an idle member; longer if the whole fleet would
 * otherwise make more than 1,000 exchanges per second, and at most 60 s. The first interval of a new member is spread
 * between 0.5 and 1.5 of that, so that members which joined together do not stay in step (thundering herd). A member
 * short of tokens may come after 250 ms, later if that would be more than 5,000 exchanges per second for the fleet;
 * 1,000 if the bucket is empty.
 *
 * Known weaknesses. A new member whose replies are lost is counted at each of its requests, so the count is too high
 * while Redis is too slow for its fleet (which lengthens all intervals) and for two windows afterwards. A clock that
 * goes back by more than ten minutes and is later corrected refills that span twice, at most an hour of it. The bucket
 * cannot check whether returned tokens were ever granted: a member that lies can fill the bucket up to its capacity. */
#ifndef LEASE_BUCKET_H
#define LEASE_BUCKET_H

#include "messages.h"

#define LEASE_INTERVAL_BUSY_MS   1000
#define LEASE_INTERVAL_IDLE_MS   10000
#define LEASE_FLEET_PER_S        1000 /* exchanges of the whole fleet */
#define LEASE_FLEET_URGENT_PER_S 5000 /* of the members short of tokens */
#define LEASE_SERIAL_LEAP        1000000
#define LEASE_CLOCK_BACK_MAX_MS  600000
#define LEASE_REFILL_MAX_MS      3600000
#define LEASE_MEMBERS_MAX        1000000000 /* further members are not counted */

/* Numbers of members. */
struct lease_counts {
    int64_t all, wanting;
};

/* X(name, field, max): the stored format, in this order; each field is 0 to max. */
#define LEASE_BUCKET_FIELDS(X)                                                                                         \
    X("serial", serial, LEASE_COUNT_MAX)                                                                               \
    X("level_milli", level_milli, LEASE_MILLI_MAX)                                                                     \
    X("refill_rest", refill_rest, 59999)                                                                               \
    X("refilled_ms", refilled_ms, LEASE_COUNT_MAX)                                                                     \
    X("initial_milli", initial_milli, LEASE_MILLI_MAX)                                                                 \
    X("window_began_ms", window_began_ms, LEASE_COUNT_MAX)                                                             \
    X("window_serial", window_serial, LEASE_COUNT_MAX)                                                                 \
    X("last_window_serial", last_window_serial, LEASE_COUNT_MAX)                                                       \
    X("this_window.all", this_window.all, LEASE_MEMBERS_MAX)                                                           \
    X("this_window.wanting", this_window.wanting, LEASE_MEMBERS_MAX)                                                   \
    X("last_window.all", last_window.all, LEASE_MEMBERS_MAX)                                                           \
    X("last_window.wanting", last_window.wanting, LEASE_MEMBERS_MAX)                                                   \
    X("firsts", firsts, LEASE_COUNT_MAX)                                                                               \
    X("successes", successes, LEASE_COUNT_MAX)                                                                         \
    X("spent_milli", spent_milli, LEASE_COUNT_MAX)                                                                     \
    X("granted_milli", granted_milli, LEASE_COUNT_MAX)                                                                 \
    X("capacity_milli", capacity_milli, LEASE_MILLI_MAX)                                                               \
    X("per_minute_milli", per_minute_milli, LEASE_MILLI_MAX)

/* The fields of the list, in its order. */
struct lease_bucket {
    int64_t serial; /* of the last exchange; 0: no exchange yet, all fields are 0 */
    int64_t level_milli;
    int64_t refill_rest;                          /* fraction of the refill, in 1/60000 of a millitoken */
    int64_t refilled_ms;                          /* time up to which the refill is credited */
    int64_t initial_milli;                        /* initial tokens added so far */
    int64_t window_began_ms;                      /* start of this window */
    int64_t window_serial, last_window_serial;    /* last serial before this window, before the last window */
    struct lease_counts this_window, last_window; /* seen in this window; in the last window, not yet in this window */
    int64_t firsts, successes, spent_milli, granted_milli; /* totals, saturating */
    int64_t capacity_milli, per_minute_milli;              /* of the last request, for bide_fleet_read */
};

#define LEASE_BUCKET_FIELD_COUNT (sizeof(struct lease_bucket) / sizeof(int64_t))

/* Serves a request. A bucket without any exchange yet is all zeros. The request must have passed lease_request_check;
 * now_ms must be 0 to LEASE_COUNT_MAX less a day. */
void lease_bucket_serve(struct lease_bucket *bucket, const struct lease_request *request, int64_t now_ms,
                        struct lease_reply *reply);

/* The bucket's state at now_ms, for bide_fleet_read and the simulator. */
struct lease_bucket_view {
    struct lease_counts count; /* of members */
    int64_t level_milli;       /* including the refill up to now */
};

struct lease_bucket_view lease_bucket_get(const struct lease_bucket *bucket, int64_t now_ms);

/* Returns NULL, or the name of a field out of its range: the key may hold anything. */
const char *lease_bucket_check(const struct lease_bucket *bucket);

#endif
