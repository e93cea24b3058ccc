/* retry_after.c - Retry-After for servers, spread at random so that refused callers do not return as a thundering herd.
 *
 * The seconds are a function of the struct alone, its seed included: the same struct always produces the same field.
 * All rounding is up, because a caller that returns too early finds the server still overloaded. */
#include <bide/retry_after.h>

#include "core/random.h"
#include "core/saturate.h"
#include "text/slice.h"
#include "value.h"

#include <assert.h>
#include <stdio.h>

#define SECONDS_MAX INT64_C(2147483647) /* the largest value that every parser of Retry-After can hold */

static int64_t whole_seconds(int64_t ns)
{
    return core_min(ns / BIDE_S + (ns % BIDE_S > 0), SECONDS_MAX);
}

int64_t bide_retry_after_seconds(const struct bide_retry_after *retry_after)
{
    int64_t wait_ns = core_max(retry_after->wait_ns, 0);
    int64_t min_s = whole_seconds(wait_ns);
    int64_t max_s = whole_seconds(core_sum(wait_ns, core_max(retry_after->spread_ns, 0)));
    assert(min_s <= max_s);
    return min_s + (int64_t)core_bits_to_range(core_mix(retry_after->seed + CORE_GOLDEN), (uint64_t)(max_s - min_s));
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
    struct bide_text trimmed = text_trim(value, TEXT_OWS);
    bool stop =
        is_structured_false(trimmed) || (trimmed.length > 0 && http_prefix_length(trimmed, "false") == trimmed.length);
    return (struct bide_hint){stop ? BIDE_HINT_STOP : BIDE_HINT_NONE, 0};
}
