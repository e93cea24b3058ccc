/* reply.c - for a server: how to ask callers for time, so that they do not all come back together.
 *
 * The number of seconds is a function of the reply alone, its seed included: the same reply is written the same way
 * twice. Whatever is rounded is rounded up, since a caller that comes too early finds the server still overloaded. */
#include <bide/retry_after.h>

#include "core/random.h"
#include "core/saturate.h"
#include "value.h"

#include <stdio.h>

#define SECONDS_MAX INT64_C(2147483647) /* what every reader of Retry-After can hold */

static int64_t whole_seconds(int64_t ns)
{
    return core_min(ns / BIDE_S + (ns % BIDE_S > 0), SECONDS_MAX);
}

/* Uniform in 0 ... most, most < 2^63. The few numbers at the top that would favour some results are drawn again. */
static uint64_t uniform(uint64_t seed, uint64_t most)
{
    uint64_t range = most + 1, fair = UINT64_MAX - UINT64_MAX % range;
    uint64_t x = core_mix(seed + CORE_GOLDEN);
    while (x >= fair)
        x = core_mix(x + CORE_GOLDEN);
    return x % range;
}

int64_t bide_retry_after_seconds(const struct bide_retry_after *reply)
{
    int64_t wait_ns = core_max(reply->wait_ns, 0);
    int64_t least = whole_seconds(wait_ns);
    int64_t most = whole_seconds(core_sum(wait_ns, core_max(reply->spread_ns, 0)));
    return least + (int64_t)uniform(reply->seed, (uint64_t)(most - least));
}

/* Both, if both are said: whoever does not know the one may know the other. */
static int put(char *text, size_t size, const struct bide_retry_after *reply)
{
    const char *stop = reply->no_retry ? BIDE_RETRY_HEADER ": ?0\r\n" : "";
    if (reply->wait_ns == BIDE_NEVER)
        return snprintf(text, size, "%s", stop);
    return snprintf(text, size, "%sRetry-After: %lld\r\n", stop, (long long)bide_retry_after_seconds(reply));
}

/* Half a field would run into the next one: what does not fit is not written at all. */
size_t bide_retry_after_format(char *text, size_t size, const struct bide_retry_after *reply)
{
    int length = put(text, size, reply);
    if (length > 0 && (size_t)length < size)
        return (size_t)length;
    if (size > 0)
        text[0] = '\0';
    return 0;
}

/* RFC 9651 3.3.6, with or without parameters. They are not looked at: a damaged one does not turn a no into a yes. */
static bool is_no(struct bide_text value)
{
    size_t length = http_begins(value, "?0");
    struct bide_text rest = http_from(value, length);
    return length > 0 && (rest.length == 0 || rest.at[0] == ';');
}

struct bide_hint bide_hint_should_retry(struct bide_text value)
{
    struct bide_text trimmed = http_trim(value);
    bool stop = is_no(trimmed) || (trimmed.length > 0 && http_begins(trimmed, "false") == trimmed.length);
    return (struct bide_hint){stop ? BIDE_HINT_STOP : BIDE_HINT_NONE, 0};
}
