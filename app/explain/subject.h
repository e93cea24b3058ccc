/* subject.h - what is to be explained: one policy with the gates of its target, and what was said of the traffic.
 *
 * What nobody said is 0 and means unknown, never a guess: findings that need it are then not made. */
#ifndef EXPLAIN_SUBJECT_H
#define EXPLAIN_SUBJECT_H

#include "conf/conf.h"

struct explain_subject {
    const struct conf_pair *pair;
    int64_t slo_ns;                /* what a user may wait in all; 0: not said */
    int64_t rate_per_minute_milli; /* first attempts of one process to the target, thousandths a minute; 0: not said */
    uint32_t layers;               /* that retry, one calling the next; at least 1 */
    uint64_t clients;              /* that may fail at the same moment; 0: not said */
    int64_t min_wait_ns;           /* no retry may come sooner; 0: no such wish */
    bool shared;                   /* the rate is that of all processes of a host, which share the target */
};

/* First attempts a second; 0: not known. */
static inline double explain_rate(const struct explain_subject *subject)
{
    return (double)subject->rate_per_minute_milli / 60000.0;
}

#endif
