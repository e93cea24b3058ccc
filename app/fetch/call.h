/* call.h - a running job: libcurl handle, output of the response, pending event.
 *
 * The sink gets only the final response. Whether that is a failure is known before its first byte, because the engine
 * gives up before the body is delivered. The body of a failure is dropped here, or written with fail_with_body.
 *
 * call.c writes all fields, except those that batch.c sets before fetch_call_start: request, listener, job, index,
 * on_over, owner. */
#ifndef FETCH_CALL_H
#define FETCH_CALL_H

#include "fetch.h"
#include "output.h"

struct fetch_call {
    const struct fetch_request *request;
    const struct fetch_listener *listener;
    struct fetch_job *job;
    size_t index;
    CURL *easy;
    struct bide_multi_call *running; /* valid until the call is over */
    bool in_outage;                  /* set by batch.c before it cancels the call: the server is down */
    struct bide_curl_options options;
    struct bide_curl_result result;
    struct bide_curl_resume_from resume_from; /* of a partial file */
    struct fetch_output output;
    void (*on_over)(void *owner, struct fetch_call *call);
    void *owner;

    char *head; /* of the response being received */
    size_t head_length;
    int64_t content_length; /* as announced; -1: not announced */
    bool in_head;
    bool head_written;
    bool is_encoded; /* Content-Encoding: content_length is not the length of the decoded body */

    bool gave_up;       /* the response being received is a final failure */
    bool body_cut;      /* the rest of the failure's body is not wanted */
    bool upload_paused; /* the request body is not available yet */
    long seen_status;   /* of the current attempt */
    bool has_event;     /* an event is held back: libcurl's code becomes known shortly after the verdict */
    struct bide_event held;
    struct bide_verdict held_verdict; /* copies of what it points to */
    struct bide_outcome held_outcome;
    char error[CURL_ERROR_SIZE];
};

struct fetch_call_params {
    struct bide_multi *multi;
    struct bide_targets *targets;
    struct bide_target *target; /* NULL: by origin */
    bool is_next;               /* this job is next on standard output */
};

/* Starts the call. `on_over` is called exactly once, possibly before this returns; then the owner must finish and free
 * the call. Returns false if the call could not be started; the job has the reason. */
bool fetch_call_start(struct fetch_call *call, const struct fetch_call_params *params);

/* Reports the held back event, if any. */
void fetch_call_report(struct fetch_call *call);

/* Resumes a paused upload if its input is readable. */
void fetch_call_resume_upload(struct fetch_call *call);

/* After `on_over`, and for a spool when the job is next: reports the result. */
void fetch_call_finish(struct fetch_call *call);

void fetch_call_free(struct fetch_call *call); /* accepts NULL */

#endif
