/* call.h - one job at work: a handle, the sink of its answer, and what is told of it.
 *
 * The sink gets the final answer only; whether that is a failure is known before its first byte, because the engine
 * gives up before the body is passed on. So a failure's body is dropped here, or written with fail_with_body. */
#ifndef FETCH_TRANSFER_H
#define FETCH_TRANSFER_H

#include "fetch.h"
#include "output.h"

struct fetch_transfer {
    const struct fetch_request *request;
    const struct fetch_listener *listener;
    struct fetch_job *job;
    size_t index;
    CURL *easy;
    struct bide_curl_options options;
    struct bide_curl_result result;
    struct fetch_place place;
    void (*over)(void *owner, struct fetch_transfer *transfer);
    void *owner;

    char *head; /* of the answer that is coming in */
    size_t head_length;
    int64_t content_length; /* as it says; -1: it does not */
    bool in_head;
    bool head_written;
    bool encoded; /* Content-Encoding: the length is not that of what we get */

    bool gave_up;     /* what comes now is a failure's */
    bool cut;         /* nobody wants the rest of it */
    bool fed_later;   /* the request's body is not there yet */
    long seen_status; /* of the present attempt */
    bool has_note;    /* an event that is not told yet: libcurl's code is known a moment after the verdict */
    int64_t note_ns;
    struct bide_verdict note;
    struct bide_outcome note_outcome;
    bool note_ended; /* an attempt has */
    uint32_t told;   /* attempts whose end was, one bit each */
    char error[CURL_ERROR_SIZE];
};

struct fetch_start {
    struct bide_multi *multi;
    struct bide_targets *targets;
    struct bide_target *target; /* NULL: by origin */
    bool now;                   /* standard output is free */
};

/* Begins. `over` is called once, perhaps before this returns, and then the transfer is the owner's to finish and free.
 * False: it could not even begin; likewise, the job says why. */
bool fetch_transfer_begin(struct fetch_transfer *transfer, const struct fetch_start *start);

/* Tells what is not told yet. */
void fetch_transfer_tell(struct fetch_transfer *transfer);

/* Its request's body was not there: looks again. */
void fetch_transfer_feed(struct fetch_transfer *transfer);

/* After `over`, and after its turn if it waits for one: tells the end. */
void fetch_transfer_finish(struct fetch_transfer *transfer);

void fetch_transfer_free(struct fetch_transfer *transfer); /* accepts NULL */

#endif
