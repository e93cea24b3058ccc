/* exchange.h - what an instance and the bank of its fleet say to each other: one ask, one answer.
 *
 * The bank holds one bucket for the whole fleet. An instance (a process, or the processes of a host that share a
 * target) asks now and then: what it gives back, what its calls earned, how much it would like; and is told how much it
 * got and when to come again. All numbers are whole, so that Redis' Lua and our C agree to the digit (bank.c).
 *
 * Both travel as arrays of integers, in the order of the lists below: an ask as the arguments of the script, an answer
 * as its reply. An answer is believed only if it is of the right length and every number in its range
 * (lease_answer_check): whoever sits at the other end may be broken, or not be Redis at all. */
#ifndef LEASE_MESSAGES_H
#define LEASE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#define LEASE_VERSION 1 /* of what is said, and of what is stored: part of the key's name */

/* X(field, most): 0 to most each. Append only. */
#define LEASE_MILLI_MAX INT64_C(268435455)       /* BIDE_CAPACITY_MAX_MILLI */
#define LEASE_MS_MAX    INT64_C(86400000)        /* a day */
#define LEASE_COUNT_MAX ((INT64_C(1) << 53) - 1) /* as far as Lua's numbers are whole */

/* Between these lies the time until the next exchange: who says less would have us run hot, who says more is lost. */
#define LEASE_INTERVAL_MIN_MS 250
#define LEASE_INTERVAL_MAX_MS 60000

/* Of the mark. */
#define LEASE_COUNTED_WANTING 1
#define LEASE_COUNTED_VOTING  2
#define LEASE_COUNTED_OPEN    4

#define LEASE_REQUEST_FIELDS(X)                                                                                        \
    X(capacity_milli, LEASE_MILLI_MAX)   /* of the fleet's bucket */                                                   \
    X(per_minute_milli, LEASE_MILLI_MAX) /* its trickle */                                                             \
    X(unit_milli, LEASE_MILLI_MAX)       /* what a retry costs: less than that is of no use to anybody */              \
    X(returned_milli, LEASE_MILLI_MAX)   /* back from an earlier lease */                                              \
    X(earned_milli, LEASE_MILLI_MAX)     /* by successes and first attempts */                                         \
    X(wanted_milli, LEASE_MILLI_MAX)     /* 0: nothing */                                                              \
    X(firsts, LEASE_COUNT_MAX)           /* since the last exchange: first attempts, */                                \
    X(successes, LEASE_COUNT_MAX)        /* calls that succeeded, */                                                   \
    X(spent_milli, LEASE_COUNT_MAX)      /* tokens spent */                                                            \
    X(hold_off_ms, LEASE_MS_MAX)       /* the server asked us, not the fleet, for so much more quiet; 0: it did not */ \
    X(hold_off_ended, LEASE_COUNT_MAX) /* the fleet's quiet of that number was ended by a success here; 0: none */     \
    X(breaker_vote, 2)                 /* 0: no opinion (no traffic); 1: closed; 2: open */                            \
    X(open_permille, 1000)             /* the share of opinions from which the fleet's is "open"; 0: never */          \
    X(seen_serial, LEASE_COUNT_MAX)    /* the highest serial number of an answer seen so far */                        \
    X(leaving, 1)                      /* not coming back */                                                           \
    X(counted_as, 7)                   /* as the last answer said; 0: there was none */

#define LEASE_REPLY_FIELDS(X)                                                                                          \
    X(version, LEASE_VERSION)                                                                                          \
    X(serial, LEASE_COUNT_MAX) /* of this exchange: grows by one each */                                               \
    X(granted_milli, LEASE_MILLI_MAX)                                                                                  \
    X(share_milli, LEASE_MILLI_MAX)     /* what an idle instance may take: half of what is left, by all instances */   \
    X(next_ms, LEASE_MS_MAX)            /* come again then, */                                                         \
    X(earliest_ms, LEASE_MS_MAX)        /* or, if tokens are short, not before this */                                 \
    X(hold_off_ms, LEASE_MS_MAX)        /* the fleet keeps quiet for so long; 0: it does not */                        \
    X(hold_off_number, LEASE_COUNT_MAX) /* of that quiet; another one, another number */                               \
    X(opening, LEASE_COUNT_MAX)         /* the number of the last time when the fleet's opinion became "open" */       \
    X(is_open, 1)                       /* that is its opinion now */                                                  \
    X(members, LEASE_COUNT_MAX)         /* about so many there are */                                                  \
    X(level_milli, LEASE_MILLI_MAX)     /* left in the fleet's bucket */                                               \
    X(counted_as, 7)                    /* how the bank has counted this instance: to be said with the next ask */

struct lease_request {
#define LEASE_DECLARE_FIELD(field, max) int64_t field;
    LEASE_REQUEST_FIELDS(LEASE_DECLARE_FIELD)
};

struct lease_reply {
    LEASE_REPLY_FIELDS(LEASE_DECLARE_FIELD)
#undef LEASE_DECLARE_FIELD
};

#define LEASE_REQUEST_FIELD_COUNT (sizeof(struct lease_request) / sizeof(int64_t))
#define LEASE_REPLY_FIELD_COUNT   (sizeof(struct lease_reply) / sizeof(int64_t))

/* NULL, or which number is wrong: "granted_milli". An answer must also fit its ask: of our version, newer than what was
 * seen (one that is brought twice is refused), no more granted than wanted, the next time neither at once nor never. */
const char *lease_request_check(const struct lease_request *request);
const char *lease_reply_check(const struct lease_reply *reply, const struct lease_request *request);

#endif
