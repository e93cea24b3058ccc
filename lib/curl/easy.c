/* easy.c - bide_curl_perform: a single handle, attempts one after another in the calling thread.
 *
 * A loop that executes the engine's verdicts (call->verdict) and decides nothing: START performs an attempt, WAIT waits
 * until wake_ns, DONE and GIVE_UP end the call. It starts no hedges: the thread runs one attempt at a time. */
#include <bide/curl.h>

#include "attempt.h"

#include <bide/clock.h>

#include <string.h>

/* Performs an attempt until its outcome is reported; that stores the next verdict. After a 401 the refresh hook may
 * provide new credentials, once per call: then the same attempt is performed again. now_ns: when START was received. */
static void easy_perform_attempt(struct http_attempt *attempt, int64_t now_ns)
{
    struct http_call *call = attempt->call;
    const struct bide_curl_options *o = call->options;
    CURLcode code = http_attempt_start(attempt, &call->verdict, now_ns);
    while (code == CURLE_OK) {
        code = curl_easy_perform(attempt->easy);
        http_attempt_end(attempt, code, bide_now());
        if (attempt->state.reported)
            return;
        call->credentials_refreshed = true; /* the hook is called once per call, even if it fails */
        if (!o->refresh(o->context, attempt->easy)) {
            http_attempt_end_with_401(attempt, bide_now());
            return;
        }
        code = http_attempt_restart(attempt, bide_now());
    }
}

/* Waits as the verdict requires, then stores the next verdict. Returns the current time. */
static int64_t easy_wait(struct http_call *call)
{
    bool wait_completed = bide_wait_until(call->verdict.wake_ns, call->options->cancel);
    int64_t now_ns = bide_now();
    if (wait_completed)
        http_call_wake(call, now_ns);
    else
        http_call_cancel(call, now_ns);
    return now_ns;
}

/* The engine returns START only from begin and wake, never for an outcome, so now_ns is current when an attempt
 * starts. */
static CURLcode easy_run_call(struct http_attempt *attempt)
{
    struct http_call *call = attempt->call;
    int64_t now_ns = call->begin_ns;
    while (!call->is_over) {
        if (call->verdict.action == BIDE_START)
            easy_perform_attempt(attempt, now_ns);
        else
            now_ns = easy_wait(call);
    }
    return http_call_finish(call);
}

CURLcode bide_curl_perform(CURL *easy, struct bide_target *target, const struct bide_curl_options *options,
                           struct bide_curl_result *result)
{
    struct http_call call;
    struct http_attempt attempt = {.call = &call, .easy = easy};
    if (result)
        memset(result, 0, sizeof *result);
    if (!easy || http_call_begin(&call, easy, target, options, result, NULL) != BIDE_OK)
        return CURLE_BAD_FUNCTION_ARGUMENT;
    call.connection_unshared = true;
    CURLcode code = call.is_over ? CURLE_OK : http_attempt_install(&attempt);
    if (code != CURLE_OK)
        http_call_cancel(&call, bide_now());
    CURLcode end = easy_run_call(&attempt);
    http_attempt_uninstall(&attempt);
    http_attempt_free(&attempt);
    return code != CURLE_OK ? code : end;
}
