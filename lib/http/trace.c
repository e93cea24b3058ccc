/* trace.c - W3C trace context: parses, continues and writes the traceparent field.
 *
 * Four numbers in lower-case hexadecimal, separated by dashes: version, trace id, parent id, flags. Parsing is strict,
 * because a misread id would join two unrelated traces. Of an unknown version only the first four numbers are parsed,
 * which later versions guarantee to keep. bide always writes version 00.
 *
 * Ids are drawn from bide_seed: different in every thread and after fork, never 0, and without a system call, since
 * every attempt needs an id. They are random, as the specification requires, but not secret. */
#include <bide/entropy.h>
#include <bide/event.h>
#include <bide/trace.h>

#include "text/slice.h"
#include "value.h"

#include <assert.h>
#include <string.h>

#define VALUE_LENGTH      (BIDE_TRACE_TEXT_SIZE - 1)
#define KNOWN_FLAGS       (BIDE_TRACE_SAMPLED | BIDE_TRACE_RANDOM)
#define FORBIDDEN_VERSION 0xffu /* section 3.2.2.1 */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses the given number of hexadecimal digits, at most 16. */
static bool take_hex_digits(const char **at, int digits, uint64_t *number)
{
    *number = 0;
    for (; digits > 0; digits--, (*at)++) {
        int digit = hex_digit(**at);
        if (digit < 0)
            return false;
        *number = *number << 4 | (uint64_t)digit;
    }
    return true;
}

static bool take_dash(const char **at)
{
    return *(*at)++ == '-';
}

/* Sections 3.2.2.1 and 4.3: version 00 ends after the flags; in later versions a dash separates them from later
 * fields. */
static bool version_allows_length(struct bide_text value, uint64_t version)
{
    if (version == FORBIDDEN_VERSION)
        return false;
    return value.length == VALUE_LENGTH || (version > 0 && value.at[VALUE_LENGTH] == '-');
}

static bool trace_read(struct bide_text value, struct bide_trace *trace)
{
    const char *at = value.at;
    uint64_t version, flags;
    if (value.length < VALUE_LENGTH)
        return false;
    if (!take_hex_digits(&at, 2, &version) || !take_dash(&at) || !version_allows_length(value, version))
        return false;
    if (!take_hex_digits(&at, 16, &trace->trace_hi) || !take_hex_digits(&at, 16, &trace->trace_lo) || !take_dash(&at))
        return false;
    if (!take_hex_digits(&at, 16, &trace->parent) || !take_dash(&at) || !take_hex_digits(&at, 2, &flags))
        return false;
    trace->flags = (uint8_t)(flags & KNOWN_FLAGS);
    return true;
}

/* Sections 3.2.2.3 and 3.2.2.4: an id of all zeros is invalid. */
static bool trace_is_complete(const struct bide_trace *trace)
{
    return (trace->trace_hi | trace->trace_lo) != 0 && trace->parent != 0;
}

bool bide_trace_parse(struct bide_text value, struct bide_trace *trace)
{
    bool is_valid = trace_read(text_trim(value, TEXT_OWS), trace) && trace_is_complete(trace);
    if (!is_valid)
        *trace = (struct bide_trace){0};
    return is_valid;
}

struct bide_trace bide_trace_child(const struct bide_trace *trace)
{
    struct bide_trace child = *trace;
    if ((child.trace_hi | child.trace_lo) == 0)
        return (struct bide_trace){0};
    child.parent = bide_seed();
    return child;
}

void bide_trace_format(char text[BIDE_TRACE_TEXT_SIZE], const struct bide_trace *trace)
{
    char *at = text;
    if (trace_is_complete(trace)) {
        memcpy(at, "00-", 3);
        at = http_write_hex(at + 3, trace->trace_hi, 16);
        at = http_write_hex(at, trace->trace_lo, 16);
        *at++ = '-';
        at = http_write_hex(at, trace->parent, 16);
        *at++ = '-';
        at = http_write_hex(at, trace->flags & KNOWN_FLAGS, 2);
        assert(at == text + VALUE_LENGTH);
    }
    *at = '\0';
}
