/* easy.c - bide_curl_perform: a single handle, attempts one after another in the calling thread.
 *
 * A loop that executes the engine's verdicts (call->verdict) and decides nothing: START performs an attempt, WAIT waits
 * until wake_ns, DONE and GIVE_UP end the call. It starts no hedges: the thread runs one attempt at a time. */
#include <bide/curl.h>

#include "attempt.h"
#include "record.h"

#include <bide/clock.h>

#include <string.h>

/* A 401: the refresh hook may provide new credentials, once per call. Returns CURLE_OK if the same attempt is to be
 * performed again. */
static CURLcode easy_refresh(struct http_attempt *attempt)
{
    const struct bide_curl_options *o = attempt->call->options;
    attempt->call->credentials_refreshed = true; /* even if the hook fails */
    if (o->refresh(o->context, attempt->easy))
        return http_attempt_restart(attempt, bide_now());
    http_attempt_end_with_401(attempt, bide_now());
    return CURLE_LOGIN_DENIED;
}

/* Performs an attempt until its outcome is reported; that stores the next verdict. now_ns: when START was received. */
static void easy_perform_attempt(struct http_attempt *attempt, int64_t now_ns)
{
    CURLcode code = http_attempt_start(attempt, &attempt->call->verdict, now_ns);
    while (code == CURLE_OK) {
        code = curl_easy_perform(attempt->easy);
        switch (http_attempt_end(attempt, code, bide_now())) {
        case HTTP_NEXT_VERDICT: return;
        case HTTP_NEXT_REFRESH: code = easy_refresh(attempt); break;
        case HTTP_NEXT_RECONNECT: code = http_attempt_reconnect(attempt, bide_now()); break;
        }
    }
}

/* Waits until the verdict's instant. Returns false if the caller cancelled: also by the progress function of a recorded
 * handle, which is called each second, as libcurl does while nothing arrives. */
static bool easy_wait_until_wake(const struct http_call *call)
{
    int64_t wake_ns = call->verdict.wake_ns, until_ns;
    do {
        if (call->record && http_record_wants_cancel(call->record))
            return false;
        until_ns = call->record && wake_ns - bide_now() > BIDE_S ? bide_now() + BIDE_S : wake_ns;
        if (!bide_wait_until(until_ns, call->options->cancel))
            return false;
    } while (until_ns != wake_ns);
    return true;
}

/* Waits as the verdict requires, then stores the next verdict. Returns the current time. */
static int64_t easy_wait(struct http_call *call)
{
    bool wait_completed = easy_wait_until_wake(call);
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
        if (call->verdict.action == BIDE_ACTION_START)
            easy_perform_attempt(attempt, now_ns);
        else
            now_ns = easy_wait(call);
    }
    return http_call_finish(call);
}

/* Runs a call that has begun. A call that was refused at once leaves the handle as it is. */
static CURLcode easy_run(struct http_call *call, struct http_attempt *attempt)
{
    attempt->call = call;
    if (call->is_over)
        return http_call_finish(call);
    CURLcode code = http_attempt_install(attempt);
    if (code != CURLE_OK)
        http_call_cancel(call, bide_now());
    CURLcode end = easy_run_call(attempt);
    http_attempt_uninstall(attempt);
    return code != CURLE_OK ? code : end;
}

/* An adopted handle has an attempt of its own, to which its callbacks refer. Its buffers stay for the next call. */
static CURLcode easy_run_adopted(struct http_call *call, struct http_attempt *attempt)
{
    CURLcode code = easy_run(call, attempt);
    attempt->call = NULL;
    attempt->response.in_head = false;
    return code;
}

CURLcode bide_curl_perform(CURL *easy, struct bide_target *target, const struct bide_curl_options *options,
                           struct bide_curl_result *result)
{
    struct http_call call;
    struct bide_report report;
    call.report = http_call_is_watched(options, target) ? &report : NULL;
    if (result)
        memset(result, 0, sizeof *result);
    enum bide_err err = http_call_begin(&call, easy, target, options, result, NULL);
    if (err != BIDE_OK && easy && !options && !call.record)
        return BIDE_CURL_NOT_RECORDED;
    if (err != BIDE_OK)
        return err == BIDE_ERR_INVALID ? CURLE_BAD_FUNCTION_ARGUMENT : CURLE_FAILED_INIT;
    if (call.record && call.record->adopted)
        return easy_run_adopted(&call, call.record->adopted);
    struct http_attempt attempt = {.easy = easy};
    CURLcode code = easy_run(&call, &attempt);
    http_attempt_free(&attempt);
    return code;
}
