/* exit.c - exit status of a job: codes of curl where they exist, otherwise those of timeout(1) and bide. */
#include "fetch.h"

#define EXIT_REFUSED  75 /* a gate refused before anything was sent */
#define EXIT_DEADLINE 124
#define EXIT_INTERNAL 125

/* The deadline ended the attempt, or passed before another attempt or the first. If there is a response, its status is
 * reported even though the next wait would have exceeded the deadline. */
static bool job_hit_deadline(const struct fetch_job *job)
{
    return job->verdict.reason == BIDE_REASON_DEADLINE ||
           (job->verdict.reason == BIDE_REASON_DEADLINE_NEAR &&
            (job->code == CURLE_OPERATION_TIMEDOUT || job->code == BIDE_CURL_NOT_SENT));
}

static bool job_was_rejected(const struct fetch_job *job)
{
    return job->verdict.reason == BIDE_REASON_KEY_REQUIRED;
}

int fetch_exit_status(const struct fetch_job *job)
{
    if (job->cancelled)
        return 128 + (int)fetch_signal;
    if (job->error != 0 || job->is_binary)
        return CURLE_WRITE_ERROR;
    if (job->verdict.action == BIDE_ACTION_DONE)
        return 0;
    if (job_was_rejected(job))
        return EXIT_INTERNAL;
    if (job_hit_deadline(job))
        return EXIT_DEADLINE;
    if (job->code == BIDE_CURL_NOT_SENT)
        return EXIT_REFUSED;
    if (job->status >= 400 || job->code == CURLE_OK)
        return CURLE_HTTP_RETURNED_ERROR;
    return (int)job->code;
}
