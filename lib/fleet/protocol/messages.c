/* exchange.c - is every number in its range, and does an answer fit its ask. */
#include "messages.h"

#include <stddef.h>

static bool is_within(int64_t number, int64_t most)
{
    return number >= 0 && number <= most;
}

const char *lease_ask_check(const struct lease_ask *ask)
{
#define LEASE_CHECK(field, most)                                                                                       \
    if (!is_within(ask->field, most))                                                                                  \
        return #field;
    LEASE_ASK_LIST(LEASE_CHECK)
#undef LEASE_CHECK
    return NULL;
}

/* Nobody comes again who is leaving. */
static const char *check_times(const struct lease_answer *answer)
{
    if (answer->next_ms < LEASE_SOON_MS || answer->next_ms > LEASE_SLOWEST_MS)
        return "next_ms";
    if (answer->soon_ms < LEASE_SOON_MS || answer->soon_ms > answer->next_ms)
        return "soon_ms";
    return NULL;
}

const char *lease_answer_check(const struct lease_answer *answer, const struct lease_ask *ask)
{
#define LEASE_CHECK(field, most)                                                                                       \
    if (!is_within(answer->field, most))                                                                               \
        return #field;
    LEASE_ANSWER_LIST(LEASE_CHECK)
#undef LEASE_CHECK
    if (answer->version != LEASE_VERSION)
        return "version";
    if (answer->serial <= ask->seen && ask->seen < LEASE_COUNT_MAX) /* the last number is never followed by another */
        return "serial";
    if (answer->granted_milli > ask->want_milli)
        return "granted_milli";
    return ask->leaving ? NULL : check_times(answer);
}
