/* call.h - one job at work: a handle, the sink of its answer, and what is told of it.
 *
 * The sink gets the final answer only; whether that is a failure is known before its first byte, because the engine
 * gives up before the body is passed on. So a failure's body is dropped here, or written with fail_with_body. */
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
    struct bide_curl_options options;
    struct bide_curl_result result;
    struct fetch_output output;
    void (*on_over)(void *owner, struct fetch_call *call);
    void *owner;

    char *head; /* of the answer that is coming in */
    size_t head_length;
    int64_t content_length; /* as it says; -1: it does not */
    bool in_head;
    bool head_written;
    bool is_encoded; /* Content-Encoding: the length is not that of what we get */

    bool gave_up;       /* what comes now is a failure's */
    bool body_cut;      /* nobody wants the rest of it */
    bool upload_paused; /* the request's body is not there yet */
    long seen_status;   /* of the present attempt */
    bool has_event;     /* an event that is not told yet: libcurl's code is known a moment after the verdict */
    int64_t held_ns;
    struct bide_verdict held_verdict;
    struct bide_outcome held_outcome;
    bool held_ended;   /* an attempt has */
    uint32_t reported; /* attempts whose end was, one bit each */
    char error[CURL_ERROR_SIZE];
};

struct fetch_call_params {
    struct bide_multi *multi;
    struct bide_targets *targets;
    struct bide_target *target; /* NULL: by origin */
    bool is_next;               /* standard output is free */
};

/* Begins. `over` is called once, perhaps before this returns, and then the transfer is the owner's to finish and free.
 * False: it could not even begin; likewise, the job says why. */
bool fetch_call_start(struct fetch_call *call, const struct fetch_call_params *params);

/* Tells what is not told yet. */
void fetch_call_report(struct fetch_call *call);

/* Its request's body was not there: looks again. */
void fetch_call_resume_upload(struct fetch_call *call);

/* After `over`, and after its turn if it waits for one: tells the end. */
void fetch_call_finish(struct fetch_call *call);

void fetch_call_free(struct fetch_call *call); /* accepts NULL */

#endif
