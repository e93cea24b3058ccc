/* multi.h - thousands of calls in flight in one thread, over curl_multi.
 *
 *     struct bide_multi *multi;
 *     bide_multi_new(&multi);
 *     bide_multi_start(multi, &(struct bide_multi_job){.easy = h, .done = done}, NULL, NULL);
 *     while (bide_multi_poll(multi, BIDE_NEVER) > 0)
 *         ;
 *     bide_multi_free(multi);
 *
 * A call that waits for its next attempt is a timer and nothing else: its handle is out of libcurl's sight. Hedged
 * attempts run on copies of the handle (with its cookies, without its CURLOPT_SHARE); the first whose answer can be
 * kept wins, and the others are cut. They need a sink, a body that two can read at once (not a stream), and no
 * refresh hook.
 *
 * With an event loop of your own: set CURLMOPT_SOCKETFUNCTION on bide_multi_handle, have bide_multi_on_timer tell
 * when to come back, and hand both kinds of event to bide_multi_action.
 *
 * One thread uses a multi; only bide_multi_wakeup may be called from others. All callbacks run in that thread,
 * inside poll, action, start, cancel, drain or free. They may start and cancel calls, and nothing else. */
#ifndef BIDE_MULTI_H
#define BIDE_MULTI_H

#include <bide/curl.h>

BIDE_BEGIN_DECLS

struct bide_multi;
struct bide_multi_call; /* one call in a multi; valid until its done has returned */

/* How a call ended. */
struct bide_multi_end {
    CURL *easy;      /* the owner's handle; out of the multi again, and the owner's to reuse or clean up */
    CURL *last_easy; /* the handle that made the last attempt, for curl_easy_getinfo: a copy if a hedge won. Until done
                      returns */
    CURLcode code;   /* as bide_curl_perform returns it */
    struct bide_verdict verdict;
};

struct bide_multi_job {
    CURL *easy;
    struct bide_target *target;              /* NULL: by origin */
    const struct bide_curl_options *options; /* NULL: those of init. Must stay as it is until done */
    struct bide_curl_result *result;         /* NULL: not wanted. Filled until done */
    void (*done)(void *context, const struct bide_multi_end *end); /* exactly once for each start that was OK */
    void *context;
};

/* BIDE_ERR_NOMEM: no memory. */
BIDE_API enum bide_err bide_multi_new(struct bide_multi **multi);

/* Cancels what is still running; its done is called. Accepts NULL. */
BIDE_API void bide_multi_free(struct bide_multi *multi);

/* libcurl's own handle below, for its options: connection limits, the socket function. Its timer function is bide's. */
BIDE_API CURLM *bide_multi_handle(struct bide_multi *multi);

/* Begins a call. transfer may be NULL. A call that is refused at once (an open breaker, a deadline that has passed)
 * is done before this returns, with *transfer NULL; if this is called from a callback, soon after that has returned.
 * BIDE_ERR_INVALID: the options are wrong, see the problem (may be NULL); BIDE_ERR_BUSY: draining; BIDE_ERR_NOMEM:
 * no memory. A handle must not be in use: neither here nor elsewhere. */
BIDE_API enum bide_err bide_multi_start(struct bide_multi *multi, const struct bide_multi_job *job,
                                        struct bide_multi_call **call, struct bide_problem *problem);

/* Ends a call, with BIDE_REASON_CANCELLED (unless its last answer was on the way to the sink already): done is called,
 * before this returns or, from a callback, soon after that has returned. The sink gets no more. */
BIDE_API void bide_multi_cancel(struct bide_multi *multi, struct bide_multi_call *call);
BIDE_API void bide_multi_cancel_all(struct bide_multi *multi);

/* Calls not yet done, waiting ones included. */
BIDE_API size_t bide_multi_running(const struct bide_multi *multi);

/* Waits until something happens, at most until until_ns, and does what is to be done. Returns the calls not yet
 * done. */
BIDE_API size_t bide_multi_poll(struct bide_multi *multi, int64_t until_ns);
BIDE_API void bide_multi_wakeup(struct bide_multi *multi); /* ends a poll, from any thread */

/* Starts nothing new from now on, lets what runs go on until until_ns, then cancels the rest. Returns how many were
 * cancelled. Afterwards calls may be started again. */
BIDE_API size_t bide_multi_drain(struct bide_multi *multi, int64_t until_ns);

/* For a loop of your own: `timer` is told when to call bide_multi_action(multi, CURL_SOCKET_TIMEOUT, 0); BIDE_NEVER:
 * not at all. It replaces what was told before. */
BIDE_API void bide_multi_on_timer(struct bide_multi *multi, void (*timer)(void *context, int64_t due_ns),
                                  void *context);

/* As curl_multi_socket_action: something happened on fd, or the timer fired. Returns the calls not yet done. */
BIDE_API size_t bide_multi_action(struct bide_multi *multi, curl_socket_t fd, int events);

BIDE_END_DECLS
#endif
