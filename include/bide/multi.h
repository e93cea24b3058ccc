/* multi.h - thousands of calls in flight in one thread, over curl_multi.
 *
 *     struct bide_multi *multi;
 *     bide_multi_new(&multi);
 *     bide_multi_start(multi, &(struct bide_multi_job){.easy = h, .options = &options, .done = done}, NULL, NULL);
 *     while (bide_multi_poll(multi, BIDE_NEVER) > 0)
 *         ;
 *     bide_multi_free(multi);
 *
 * A call that waits for its next attempt is only a timer: its handle is not in libcurl's multi. Hedged attempts run on
 * copies of the handle (with its cookies, without its CURLOPT_SHARE); the first with a usable response wins, and the
 * others are stopped. Hedging needs a sink, a body that two attempts can read at once (not a stream), and no refresh
 * hook.
 *
 * The timeout of an attempt counts from the moment its request is about to be sent: time in libcurl's own queue
 * (CURLMOPT_MAX_HOST_CONNECTIONS) is no attempt time. Before that moment the policy's connect timeout and the call's
 * deadline apply.
 *
 * With your own event loop: set CURLMOPT_SOCKETFUNCTION on bide_multi_handle_get, let bide_multi_on_timer set your
 * timer, and pass both kinds of event to bide_multi_action.
 *
 * Threads: one thread uses a multi; only bide_multi_wakeup may be called from others. All callbacks run in that thread,
 * inside poll, action, start, cancel, drain or free. They may start and cancel calls, and nothing else. */
#ifndef BIDE_MULTI_H
#define BIDE_MULTI_H

#include <bide/curl.h>

BIDE_BEGIN_DECLS

struct bide_multi;
struct bide_multi_call; /* a call in a multi; valid until its done has returned */

/* The end of a call. */
struct bide_multi_end {
    CURL *easy;      /* the owner's handle; no longer in the multi, and free to reuse or clean up */
    CURL *last_easy; /* handle of the last attempt, for curl_easy_getinfo: a copy if a hedge won. Valid until done
                      * returns */
    CURLcode code;   /* as bide_curl_perform returns it */
    struct bide_verdict verdict;
    uint64_t reserved_[2]; /* zero: room to grow */
};

struct bide_multi_job {
    CURL *easy;
    struct bide_target *target;              /* as for bide_curl_perform: NULL: by origin; BIDE_NO_TARGET: no gates */
    const struct bide_curl_options *options; /* NULL: as for bide_curl_perform. Must not change until done */
    struct bide_curl_result *result;         /* NULL: not wanted. Complete when done is called */
    void (*done)(void *context, const struct bide_multi_end *end); /* called exactly once for each successful start */
    void *context;
    uint64_t reserved_[4]; /* zero: room to grow */
};

/* Creates a multi with a CURLM of its own. BIDE_ERR_NOMEM: no memory. */
BIDE_API enum bide_err bide_multi_new(struct bide_multi **multi);

/* Cancels all running calls (done is called for each) and frees the multi. Accepts NULL. */
BIDE_API void bide_multi_free(struct bide_multi *multi);

/* Creates a multi on a CURLM of the caller, which must outlive it and is not cleaned up by bide_multi_free. Transfers
 * that the caller adds to it himself progress beside bide's calls; from now on bide_multi_poll or bide_multi_action
 * runs libcurl, and bide reads its messages: see bide_multi_on_message. BIDE_ERR_NOMEM: no memory, or curl is NULL. */
BIDE_API enum bide_err bide_multi_adopt(struct bide_multi **multi, CURLM *curl);

/* `message` is called for each message of libcurl about a transfer that is not bide's. It may add and remove such
 * transfers, and start and cancel calls. Without it these messages are dropped. */
BIDE_API void bide_multi_on_message(struct bide_multi *multi, void (*message)(void *context, CURLMsg *message),
                                    void *context);

/* Returns libcurl's handle, for its options (connection limits, socket function) and for transfers of the caller's own.
 * Its timer function is bide's once bide_multi_on_timer was called. */
BIDE_API CURLM *bide_multi_handle_get(struct bide_multi *multi);

/* Begins a call. *call (NULL: not wanted) receives it. A call that is refused at once (an open breaker, a deadline that
 * has passed) is done before this returns, with *call set to NULL; if this is called from a callback, soon after the
 * callback has returned. BIDE_ERR_INVALID: invalid options; BIDE_ERR_BUSY: draining; BIDE_ERR_NOMEM: no memory;
 * BIDE_ERR_SYSTEM: no idempotency key could be generated. After an error done is not called. The handle must not be in
 * use elsewhere; a handle whose call here is not done is BIDE_ERR_INVALID. */
BIDE_API enum bide_err bide_multi_start(struct bide_multi *multi, const struct bide_multi_job *job,
                                        struct bide_multi_call **call, struct bide_problem *problem);

/* Ends a call, with BIDE_REASON_CANCELLED (unless its last response is already on its way to the sink): done is called
 * before this returns or, from a callback, soon after the callback has returned. The sink receives no more data. */
BIDE_API void bide_multi_cancel(struct bide_multi *multi, struct bide_multi_call *call);
BIDE_API void bide_multi_cancel_all(struct bide_multi *multi); /* ends all calls in the same way */

/* Returns the number of calls that are not yet done, including waiting calls. */
BIDE_API size_t bide_multi_running_get(const struct bide_multi *multi);

/* Waits for an event, at most until until_ns, and handles it. Returns the number of calls that are not yet done. With
 * neither a call nor a transfer of the caller's own it does not wait. */
BIDE_API size_t bide_multi_poll(struct bide_multi *multi, int64_t until_ns);

/* Returns the instant at which bide_multi_poll has something to do even if no socket is ready; BIDE_NEVER: none. For a
 * loop with select: curl_multi_fdset on bide_multi_handle_get, select until this instant, bide_multi_poll(multi, 0). */
BIDE_API int64_t bide_multi_due_get(const struct bide_multi *multi);
BIDE_API void bide_multi_wakeup(struct bide_multi *multi); /* ends a poll, from any thread */

/* Refuses new calls, lets the running calls continue until until_ns, then cancels the rest. Returns how many were
 * cancelled. Afterwards calls may be started again. */
BIDE_API size_t bide_multi_drain(struct bide_multi *multi, int64_t until_ns);

/* For your own event loop: `timer` is called with the instant at which to call bide_multi_action(multi,
 * CURL_SOCKET_TIMEOUT, 0); BIDE_NEVER: not at all. Each call replaces the earlier instant. */
BIDE_API void bide_multi_on_timer(struct bide_multi *multi, void (*timer)(void *context, int64_t due_ns),
                                  void *context);

/* As curl_multi_socket_action: an event on fd, or the timer. Returns the number of calls that are not yet done. */
BIDE_API size_t bide_multi_action(struct bide_multi *multi, curl_socket_t fd, int events);

BIDE_END_DECLS
#endif
