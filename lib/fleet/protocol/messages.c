/* messages.c - range checks of requests and replies, and the check that a reply matches its request. */
#include "messages.h"

#include <stddef.h>

static bool number_is_within(int64_t number, int64_t max)
{
    return number >= 0 && number <= max;
}

const char *lease_request_check(const struct lease_request *request)
{
#define CHECK_FIELD(field, max)                                                                                        \
    if (!number_is_within(request->field, max))                                                                        \
        return #field;
    LEASE_REQUEST_FIELDS(CHECK_FIELD)
#undef CHECK_FIELD
    return NULL;
}

/* Not called for a leaving member, which sends no further request and so needs no valid interval. */
static const char *reply_check_intervals(const struct lease_reply *reply)
{
    if (reply->next_ms < LEASE_INTERVAL_MIN_MS || reply->next_ms > LEASE_INTERVAL_MAX_MS)
        return "next_ms";
    if (reply->earliest_ms < LEASE_INTERVAL_MIN_MS || reply->earliest_ms > reply->next_ms)
        return "earliest_ms";
    return NULL;
}

const char *lease_reply_check(const struct lease_reply *reply, const struct lease_request *request)
{
#define CHECK_FIELD(field, max)                                                                                        \
    if (!number_is_within(reply->field, max))                                                                          \
        return #field;
    LEASE_REPLY_FIELDS(CHECK_FIELD)
#undef CHECK_FIELD
    if (reply->version != LEASE_VERSION)
        return "version";
    if (reply->serial <= request->seen_serial &&
        request->seen_serial < LEASE_COUNT_MAX) /* at the largest serial the counter stands still */
        return "serial";
    if (reply->granted_milli > request->wanted_milli)
        return "granted_milli";
    return request->leaving ? NULL : reply_check_intervals(reply);
}
