/* describe.c - a call in words for people: the error of the result, the owner's error buffer, verbose output.
 *
 * The texts have no part of a URL, a header or a body: they go to logs. */
#include "attempt.h"
#include "record.h"

#include <stdio.h>
#include <string.h>

const char *bide_curl_strerror(CURLcode code)
{
    if (code == BIDE_CURL_NOT_SENT)
        return "bide refused the call: nothing was sent";
    if (code == BIDE_CURL_NOT_RECORDED)
        return "the options of this handle are unknown to bide: include <bide/curl_record.h> where it is created";
    return curl_easy_strerror(code);
}

const char *bide_curl_mismatch_text(enum bide_curl_mismatch mismatch)
{
    switch (mismatch) {
    case BIDE_CURL_MISMATCH_NONE: break;
    case BIDE_CURL_MISMATCH_STATUS: return "instead of the rest of the body";
    case BIDE_CURL_MISMATCH_PARTS: return "with several ranges";
    case BIDE_CURL_MISMATCH_NO_RANGE: return "without a valid Content-Range";
    case BIDE_CURL_MISMATCH_ENCODED: return "with a Content-Encoding";
    case BIDE_CURL_MISMATCH_CHANGED: return "of a changed body";
    case BIDE_CURL_MISMATCH_UNKNOWN: return "with an unknown length";
    case BIDE_CURL_MISMATCH_LENGTH: return "with another length";
    case BIDE_CURL_MISMATCH_RANGE: return "with another range";
    }
    return "";
}

static const char *stop_text(enum http_stop stop)
{
    switch (stop) {
    case HTTP_STOP_REPLAY: return "libcurl was stopped from sending the request a second time by itself";
    case HTTP_STOP_LEGS: return "too many redirects and challenges";
    case HTTP_STOP_HEAD_TOO_LONG: return "the response head exceeds the limit";
    case HTTP_STOP_NO_MEMORY: return "no memory for the response head";
    case HTTP_STOP_SINK_FAILED: return "the write or header function returned an error";
    case HTTP_STOP_OTHER_ORIGIN: return "a redirect to another origin was refused";
    case HTTP_STOP_STALLED: return "no byte moved for the stall timeout";
    case HTTP_STOP_NONE:
    case HTTP_STOP_CUT:
    case HTTP_STOP_RECONNECT: break;
    }
    return NULL;
}

/* Describes how the last attempt ended. */
static void describe_last_attempt(char *text, size_t size, const struct http_call *call)
{
    const char *stopped = stop_text(call->last_stop);
    if (stopped)
        snprintf(text, size, "%s", stopped);
    else if (call->connect_status != 0)
        snprintf(text, size, "the proxy rejected CONNECT with status %d", call->connect_status);
    else if (call->code != CURLE_OK || call->status == 0)
        snprintf(text, size, "%s", curl_easy_strerror(call->code));
    else
        snprintf(text, size, "status %d%s%s", call->status, call->last_mismatch != BIDE_CURL_MISMATCH_NONE ? " " : "",
                 bide_curl_mismatch_text(call->last_mismatch));
}

void http_describe_failure(char *text, size_t size, const struct http_call *call)
{
    const char *why = bide_reason_text(call->verdict.reason), *label = bide_reason_label(call->verdict.reason);
    char last[128];
    if (call->attempts == 0) {
        snprintf(text, size, "nothing was sent: %s (%s)", why, label);
        return;
    }
    describe_last_attempt(last, sizeof last, call);
    snprintf(text, size, "%s after %u attempt%s: %s (%s)", last, call->attempts, call->attempts == 1 ? "" : "s", why,
             label);
}

void http_describe_about(void *context, struct bide_call_about *about)
{
    const struct http_call *call = context;
    char *url = NULL;
    const char *method = NULL;
    if (curl_easy_getinfo(call->easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK)
        about->url = url;
    if (curl_easy_getinfo(call->easy, CURLINFO_EFFECTIVE_METHOD, &method) == CURLE_OK)
        about->method = method;
    if (call->trace.parent != 0)
        about->trace_state = call->options->trace_state;
}

void http_trace_verdict(const struct http_call *call, int64_t now_ns)
{
    const struct bide_verdict *v = &call->verdict;
    const char *label = bide_reason_label(v->reason);
    char text[128];
    if (v->action == BIDE_ACTION_START)
        snprintf(text, sizeof text, "attempt %u (%s)", v->attempt, label);
    else if (v->action == BIDE_ACTION_WAIT)
        snprintf(text, sizeof text, "waiting %.3f s (%s)", (double)(v->wake_ns - now_ns) / (double)BIDE_S, label);
    else if (v->action == BIDE_ACTION_DONE)
        snprintf(text, sizeof text, "done after %u attempt%s", call->attempts, call->attempts == 1 ? "" : "s");
    else if (v->action == BIDE_ACTION_GIVE_UP)
        snprintf(text, sizeof text, "gave up after %u attempt%s (%s)", call->attempts, call->attempts == 1 ? "" : "s",
                 label);
    else
        return;
    http_record_trace(call->record, text);
}
