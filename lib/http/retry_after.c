/* retry_after.c - Retry-After for servers, spread at random so that refused callers do not return as a thundering herd.
 *
 * The seconds are a function of the struct alone, its seed included: the same struct always produces the same field.
 * All rounding is up, because a caller that returns too early finds the server still overloaded. */
#include <bide/retry_after.h>

#include "core/random.h"
#include "core/saturate.h"
#include "value.h"

#include <stdio.h>

#define SECONDS_MAX INT64_C(2147483647) /* the largest value that every parser of Retry-After can hold */

static int64_t whole_seconds(int64_t ns)
{
    return core_min(ns / BIDE_S + (ns % BIDE_S > 0), SECONDS_MAX);
}

/* Returns a uniform number in 0 ... max, max < 2^63. Values at the top of the range that would bias the result are
 * drawn again (rejection sampling). */
static uint64_t draw_uniform(uint64_t seed, uint64_t max)
{
    uint64_t count = max + 1, fair_limit = UINT64_MAX - UINT64_MAX % count;
    uint64_t x = core_mix(seed + CORE_GOLDEN);
    while (x >= fair_limit)
        x = core_mix(x + CORE_GOLDEN);
    return x % count;
}

int64_t bide_retry_after_seconds(const struct bide_retry_after *retry_after)
{
    int64_t wait_ns = core_max(retry_after->wait_ns, 0);
    int64_t min_s = whole_seconds(wait_ns);
    int64_t max_s = whole_seconds(core_sum(wait_ns, core_max(retry_after->spread_ns, 0)));
    return min_s + (int64_t)draw_uniform(retry_after->seed, (uint64_t)(max_s - min_s));
}

/* Writes both fields if both are set: a caller may understand only one of the two. */
static int write_fields(char *text, size_t size, const struct bide_retry_after *retry_after)
{
    const char *stop = retry_after->no_retry ? BIDE_RETRY_HEADER ": ?0\r\n" : "";
    if (retry_after->wait_ns == BIDE_NEVER)
        return snprintf(text, size, "%s", stop);
    return snprintf(text, size, "%sRetry-After: %lld\r\n", stop, (long long)bide_retry_after_seconds(retry_after));
}

/* A truncated field would run into the next field: a text that does not fit is not written at all. */
size_t bide_retry_after_format(char *text, size_t size, const struct bide_retry_after *retry_after)
{
    int length = write_fields(text, size, retry_after);
    if (length > 0 && (size_t)length < size)
        return (size_t)length;
    if (size > 0)
        text[0] = '\0';
    return 0;
}

/* RFC 9651 section 3.3.6, with or without parameters. Parameters are not parsed: a malformed parameter must not turn
 * "do not retry" into "retry". */
static bool is_structured_false(struct bide_text value)
{
    size_t length = http_prefix_length(value, "?0");
    struct bide_text rest = http_text_from(value, length);
    return length > 0 && (rest.length == 0 || rest.at[0] == ';');
}

struct bide_hint bide_hint_should_retry(struct bide_text value)
{
    struct bide_text trimmed = http_trim(value);
    bool stop =
        is_structured_false(trimmed) || (trimmed.length > 0 && http_prefix_length(trimmed, "false") == trimmed.length);
    return (struct bide_hint){stop ? BIDE_HINT_STOP : BIDE_HINT_NONE, 0};
}
