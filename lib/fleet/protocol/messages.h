/* messages.h - the request that a member sends to its fleet's bucket, and the reply.
 *
 * The fleet has a single token bucket, stored in Redis (bucket.h). A member is a target whose budget is leased from
 * that bucket: a private target of a process, or a shared target of all processes of a host. A member sends a request
 * from time to time: tokens it returns, tokens its calls earned, tokens it wants. The reply grants tokens and says when
 * to send the next request. A request and its reply are an exchange.
 *
 * The promise of the fleet, over any period:
 *
 *     cost of all retries <= fleet budget + outstanding leases + sum over members of local floor x time disconnected
 *
 * with one excess, the advance: at most one retry for each member with a floor that has got no grant, and was
 * disconnected for less than the time in which its floor earns a retry (an accrual, a minute by default) before its
 * first reply or its end.
 *
 * The fleet budget is the bucket's level at the start of the period, plus its refill, the earnings credited since, and
 * the initial tokens added since: one retry each time a member counts as new, in the life of a bucket at most its
 * capacity. Outstanding leases are the tokens outside of the bucket at the start: in targets, in messages, and charged
 * for retries that are not sent yet. A target is disconnected from the join until the first reply, and from the end of
 * its lease until the lease is extended; its floor is its own refill rate, which applies then. A join that begins the
 * lease of a target with a floor makes the floor's first retry available at once, and the refill starts one accrual
 * later; the first grant repays that retry (member.h, "The advance"). So a process with a private target that is
 * started in a crash loop, each time for less than an accrual and without a grant, makes one retry for each start. A
 * shared target is one member, and its lease begins once, however many processes join: one retry for a host.
 *
 * The promise holds because each token is in exactly one place: the fleet's bucket, a request or reply on its way, a
 * target's bucket, or the charge of a retry, which is refunded if the retry is not sent. Tokens come into being in five
 * ways only: the bucket refills over Redis' time, a new member adds its initial tokens, calls earn by their first
 * attempts and successes (recorded in the target, credited when a request reports them), a join adds the advance, and a
 * disconnected target refills at its floor. Every other step moves tokens or loses them: bucket.h (serving
 * a request), member.h (joining, making a request, accepting a reply) and node.c (sending at most once) each explain
 * why they never copy a token. A lost, late or garbled message loses tokens, so it can only lower the number of
 * retries. The one exception is a Redis that goes back to an earlier state (bucket.h, "Lost writes").
 * tests/property/test_fleet_promise.c adds up all tokens after every step.
 *
 * Wire format: all fields are integers, in the order of the lists below: the request as the arguments of the script,
 * the reply as the array that the script returns. Integers, so that Redis' Lua and bucket.c compute the same digits. A
 * reply is accepted only if it has the right length and every field is in its range (lease_reply_check): the peer may
 * be broken, or not be Redis at all. */
#ifndef LEASE_MESSAGES_H
#define LEASE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#define LEASE_VERSION 1 /* of the wire format and of the stored format: part of the key's name */

/* Ranges. Fields of the lists below are 0 to their maximum, X(field, max). New fields are appended, never inserted. */
#define LEASE_MILLI_MAX INT64_C(268435455)       /* = BIDE_CAPACITY_MAX_MILLI */
#define LEASE_MS_MAX    INT64_C(86400000)        /* a day */
#define LEASE_COUNT_MAX ((INT64_C(1) << 53) - 1) /* largest integer up to which Lua's doubles are exact */

/* Limits of the interval until the next exchange. A shorter interval would let a broken peer make us busy-loop; with a
 * longer interval the bucket would no longer count the member. */
#define LEASE_INTERVAL_MIN_MS 250
#define LEASE_INTERVAL_MAX_MS 60000

#define LEASE_REQUEST_FIELDS(X)                                                                                        \
    X(capacity_milli, LEASE_MILLI_MAX)   /* of the fleet's bucket */                                                   \
    X(per_minute_milli, LEASE_MILLI_MAX) /* its refill rate */                                                         \
    X(unit_milli, LEASE_MILLI_MAX)       /* cost of a retry: a smaller grant would be useless */                       \
    X(returned_milli, LEASE_MILLI_MAX)   /* tokens returned from an earlier lease */                                   \
    X(earned_milli, LEASE_MILLI_MAX)     /* tokens earned by successes and first attempts */                           \
    X(wanted_milli, LEASE_MILLI_MAX)     /* tokens requested; 0: none */                                               \
    X(firsts, LEASE_COUNT_MAX)           /* first attempts since the last request */                                   \
    X(successes, LEASE_COUNT_MAX)        /* successful calls since then */                                             \
    X(spent_milli, LEASE_COUNT_MAX)      /* tokens spent since then */                                                 \
    X(seen_serial, LEASE_COUNT_MAX)      /* highest serial of a reply received so far */                               \
    X(leaving, 1)                        /* this is the member's final request */                                      \
    X(was_wanting, 1)                    /* the request with the reply seen_serial wanted tokens */

#define LEASE_REPLY_FIELDS(X)                                                                                          \
    X(version, LEASE_VERSION)                                                                                          \
    X(serial, LEASE_COUNT_MAX) /* number of this exchange, one more than the last */                                   \
    X(granted_milli, LEASE_MILLI_MAX)                                                                                  \
    X(share_milli, LEASE_MILLI_MAX) /* share that an idle member may hold: level / 2 / members */                      \
    X(next_ms, LEASE_MS_MAX)        /* interval until the next request */                                              \
    X(earliest_ms, LEASE_MS_MAX)    /* shortest interval for a member short of tokens */                               \
    X(members, LEASE_COUNT_MAX)     /* members of this target, counted by the bucket */                                \
    X(level_milli, LEASE_MILLI_MAX) /* tokens left in the fleet's bucket */

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

/* Return NULL, or the name of the first invalid field ("granted_milli"). A reply must also match its request: our
 * version; a serial above seen_serial, which rejects a reply delivered twice; no more granted than wanted; intervals
 * within the limits, unless the member is leaving. */
const char *lease_request_check(const struct lease_request *request);
const char *lease_reply_check(const struct lease_reply *reply, const struct lease_request *request);

#endif
