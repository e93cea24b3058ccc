/* outage.h - ends the waits of a batch for a server that is down.
 *
 * A URL that waits for a gate (when_refused) waits up to waits_max. Without a common limit, a list of URLs of one dead
 * server waits that long for each `parallel` of them, one group after the other.
 *
 * An outage of an origin begins with a failure and ends with a response that shows a working server (2xx to 4xx, except
 * those that are retried). When it has lasted waits_max, the waiting URLs of the origin give up and the next URLs get
 * the same time, because the first may be broken on their own. When also `parallel` and FETCH_OUTAGE_URLS more URLs
 * have given up, the origin is down: the URLs that are left give up at once. URLs that give up without waiting, such as
 * each POST that may have run, show nothing in less time.
 *
 * Time is an argument. A job is an index into the list of jobs. */
#ifndef FETCH_OUTAGE_H
#define FETCH_OUTAGE_H

#include "fetch.h"

#define FETCH_OUTAGE_URLS 4u

struct fetch_outage;

struct fetch_outages {
    struct fetch_outage *outage; /* of each origin */
    size_t *origin;              /* of each job: index into `outage` */
    size_t count;                /* of origins; 0: no outage is noticed */
    size_t urls_min;
    int64_t limit_ns;
};

/* Prepares for the jobs of a batch, unless its URLs do not wait. Returns false if out of memory; fetch_outages_free is
 * required in either case. */
bool fetch_outages_init(struct fetch_outages *outages, const struct fetch_batch *batch);
void fetch_outages_free(struct fetch_outages *outages);

/* Records the outcome of an attempt. */
void fetch_outages_note(struct fetch_outages *outages, const struct fetch_event *event, int64_t now_ns);

/* Records that a job gave up. */
void fetch_outages_note_end(struct fetch_outages *outages, size_t job);

/* Returns true if the job must not wait any longer; all jobs of the origin get the same answer until
 * fetch_outages_restart. */
bool fetch_outages_ends_wait(const struct fetch_outages *outages, size_t job, int64_t now_ns);

/* Returns true if the server of the job is down: the job is not started. */
bool fetch_outages_is_down(const struct fetch_outages *outages, size_t job);

/* Gives the next URLs the same time, where the time has passed: after the waiting jobs gave up. */
void fetch_outages_restart(struct fetch_outages *outages, int64_t now_ns);

/* Returns the instant at which the time of an outage has passed; BIDE_NEVER: none. */
int64_t fetch_outages_due(const struct fetch_outages *outages);

#endif
