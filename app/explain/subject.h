/* subject.h - the input of a report: a policy with the gates of its target, and the traffic as far as it is known.
 *
 * 0 means unknown and is never replaced by a guess: checks that need the value then find nothing. */
#ifndef EXPLAIN_SUBJECT_H
#define EXPLAIN_SUBJECT_H

#include "conf/conf.h"

struct explain_subject {
    const struct conf_pair *pair;
    const struct conf_policy *policy; /* the preset and the lists of the pair; NULL: unknown */
    int64_t slo_ns;                   /* time that a user may wait in total; 0: unknown */
    int64_t
        rate_per_minute_milli; /* first attempts of a process to the target, in thousandths per minute; 0: unknown */
    uint32_t layers;           /* number of layers that retry, each calling the next; at least 1 */
    uint64_t clients;          /* number of clients that may fail at the same moment; 0: unknown */
    int64_t min_wait_ns;       /* minimum wait before a retry; 0: none required */
    bool shared;               /* the rate is that of all processes of a host, which share the target */
};

/* Returns first attempts per second; 0: unknown. */
static inline double explain_rate(const struct explain_subject *subject)
{
    return (double)subject->rate_per_minute_milli / 60000.0;
}

#endif
