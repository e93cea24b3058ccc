/* hint.c - parsing the time that a server asks for in its header fields.
 *
 * A parser turns a field value into an amount of seconds, milliseconds or nanoseconds from now. An absent value, or a
 * value outside the grammar, gives NONE, which leaves the caller's own backoff in force. Numbers of any length
 * saturate: even the shortest wait that 400 digits could mean is longer than any policy allows. Instants are turned
 * into waits by the server's own clock, its Date field, so that a difference between the clocks cancels out. Rounding
 * is always up: a retry never comes before the time that was asked for. */
#include <bide/hint.h>

#include "date.h"
#include "saturate.h"
#include "structured_field.h"
#include "text.h"

static const struct bide_hint none = {BIDE_HINT_NONE, 0};
static const struct bide_hint stop = {BIDE_HINT_STOP, 0};

static struct bide_hint wait_hint(int64_t amount, int64_t unit_ns)
{
    return (struct bide_hint){BIDE_HINT_WAIT, core_product(amount, unit_ns)};
}

/* Returns the seconds from now to then; 0 if that is past. Saturates for any wall clock. */
static int64_t seconds_until(int64_t then_s, int64_t now_s)
{
    if (then_s <= now_s)
        return 0;
    uint64_t apart = (uint64_t)then_s - (uint64_t)now_s;
    return apart > (uint64_t)BIDE_NEVER ? BIDE_NEVER : (int64_t)apart;
}

/* RFC 9110 6.6.1: when the response was generated, by the clock that also produced the instants in it. */
static int64_t server_time(struct bide_text date, int64_t wall_s)
{
    int64_t seconds;
    return bide_http_date(date, wall_s, &seconds) ? seconds : wall_s;
}

/* 1*DIGIT, and a fraction, which is outside every grammar here but still a request for time: rounded up. */
static bool parse_seconds(struct core_cursor *cursor, int64_t *seconds)
{
    int64_t up;
    if (core_parse_digits(cursor, seconds) == 0 || !core_parse_fraction(cursor, &up))
        return false;
    *seconds = core_sum(*seconds, up);
    return true;
}

/* RFC 9110 10.2.3: Retry-After = HTTP-date / delay-seconds. */
static bool parse_retry_after(struct core_cursor *cursor, int64_t now_s, int64_t *seconds)
{
    int64_t then_s;
    if (!core_parse_http_date(cursor, now_s, &then_s))
        return parse_seconds(cursor, seconds);
    *seconds = seconds_until(then_s, now_s);
    return true;
}

/* The field is a singleton, but an intermediary may have joined several lines of it with commas (RFC 9110 5.3). The
 * longest wait wins, as in bide_hint_merge. The values are separated by their grammar, not by commas, since dates
 * contain a comma; if any value is malformed, so is the field. */
struct bide_hint bide_hint_retry_after(struct bide_text value, struct bide_text date, int64_t wall_s)
{
    struct core_cursor cursor = core_cursor_over(value);
    int64_t now_s = server_time(date, wall_s);
    int64_t longest = 0;
    int64_t seconds;
    do {
        core_parse_blanks(&cursor);
        if (!parse_retry_after(&cursor, now_s, &seconds))
            return none;
        longest = core_max(longest, seconds);
        core_parse_blanks(&cursor);
    } while (core_parse_char(&cursor, ','));
    return core_cursor_at_end(&cursor) ? wait_hint(longest, BIDE_S) : none;
}

/* Parses an item of RateLimit: the name of a policy with its remaining quota. *seconds is -1 if it asks for no wait. */
static bool parse_limit(struct core_cursor *cursor, int64_t *seconds)
{
    enum { REMAINING, TIME, PARTITION, KEYS };
    static const char *const keys[KEYS] = {"r", "t", "pk"};
    struct core_item name, value[KEYS];
    if (!core_parse_item(cursor, &name) || name.type != CORE_ITEM_STRING ||
        !core_parse_parameters(cursor, keys, KEYS, value))
        return false;
    bool asks = value[REMAINING].number == 0 && value[TIME].type == CORE_ITEM_INTEGER;
    *seconds = asks ? value[TIME].number : -1;
    return core_item_is_count(&value[REMAINING], 0) && core_item_is_optional_count(&value[TIME], 0) &&
           core_item_is_optional(&value[PARTITION], CORE_ITEM_BYTES);
}

/* draft-ietf-httpapi-ratelimit-headers: a List (RFC 9651 4.2.1) of Strings; a malformed field MUST be ignored. */
struct bide_hint bide_hint_ratelimit(struct bide_text value)
{
    struct core_cursor cursor = core_cursor_over(value);
    int64_t longest = -1;
    int64_t seconds;
    do {
        core_parse_blanks(&cursor);
        if (!parse_limit(&cursor, &seconds))
            return none;
        longest = core_max(longest, seconds);
        core_parse_blanks(&cursor);
    } while (core_parse_char(&cursor, ','));
    if (core_cursor_at_end(&cursor) && longest >= 0)
        return wait_hint(longest, BIDE_S);
    return none;
}

static bool read_seconds(struct bide_text value, int64_t now_s, int64_t *seconds)
{
    struct core_cursor cursor = core_cursor_over(value);
    (void)now_s;
    return parse_seconds(&cursor, seconds) && core_cursor_at_end(&cursor);
}

static bool read_milliseconds(struct bide_text value, int64_t now_s, int64_t *milliseconds)
{
    struct core_cursor cursor = core_cursor_over(value);
    (void)now_s;
    return core_parse_digits(&cursor, milliseconds) > 0 && core_cursor_at_end(&cursor);
}

static bool read_unix(struct bide_text value, int64_t now_s, int64_t *seconds)
{
    bool ok = read_seconds(value, now_s, seconds);
    *seconds = seconds_until(*seconds, now_s);
    return ok;
}

static bool read_http_date(struct bide_text value, int64_t now_s, int64_t *seconds)
{
    int64_t then_s = 0;
    bool ok = bide_http_date(value, now_s, &then_s);
    *seconds = seconds_until(then_s, now_s);
    return ok;
}

static bool read_rfc3339(struct bide_text value, int64_t now_s, int64_t *seconds)
{
    int64_t then_s = 0;
    bool ok = core_parse_rfc3339(value, &then_s);
    *seconds = seconds_until(then_s, now_s);
    return ok;
}

/* Returns 0.DIGITS of the unit, rounded up, for any number of digits: from the last digit on, each step adds a digit
 * and divides by ten. Rounding up at each step does not change the result, since only integers are added in between. */
static int64_t fraction_of_unit(const char *digits, size_t count, int64_t unit_ns)
{
    int64_t ns = 0;
    while (count > 0)
        ns = ((digits[--count] - '0') * unit_ns + ns + 9) / 10;
    return ns;
}

/* A term of a duration: *DIGIT [ "." *DIGIT ] unit, with at least one digit. "ms" is tried before its prefix "m". */
static bool parse_duration_term(struct core_cursor *cursor, int64_t *ns)
{
    static const char *const names[] = {"ns", "us", "\xc2\xb5s" /* U+00B5 */, "\xce\xbcs" /* U+03BC */, "ms", "s",
                                        "m",  "h"};
    static const int64_t unit_ns[] = {1, BIDE_US, BIDE_US, BIDE_US, BIDE_MS, BIDE_S, BIDE_MINUTE, 60 * BIDE_MINUTE};
    int64_t whole, ignored;
    size_t digits = core_parse_digits(cursor, &whole);
    size_t fraction_digits = core_parse_char(cursor, '.') ? core_parse_digits(cursor, &ignored) : 0;
    const char *fraction_end = cursor->at;
    int unit = core_parse_one_of(cursor, names, sizeof names / sizeof *names);
    if (digits + fraction_digits == 0 || unit < 0)
        return false;
    *ns = core_sum(core_product(whole, unit_ns[unit]),
                   fraction_of_unit(fraction_end - fraction_digits, fraction_digits, unit_ns[unit]));
    return true;
}

/* ParseDuration of Go without its sign: "0", or terms such as 1h2m3.5s, whose units may come in any order and again. */
static bool read_duration(struct bide_text value, int64_t now_s, int64_t *ns)
{
    struct core_cursor cursor = core_cursor_over(value);
    int64_t term;
    (void)now_s;
    *ns = 0;
    if (core_text_equals((struct bide_text){cursor.at, cursor.left}, "0"))
        return true;
    do {
        if (!parse_duration_term(&cursor, &term))
            return false;
        *ns = core_sum(*ns, term);
    } while (!core_cursor_at_end(&cursor));
    return true;
}

/* The parser of each unit, and the unit of its amount. */
static const struct {
    bool (*read)(struct bide_text value, int64_t now_s, int64_t *amount);
    int64_t unit_ns;
} units[] = {
    [BIDE_RESET_IGNORE] = {NULL, 0},
    [BIDE_RESET_SECONDS] = {read_seconds, BIDE_S},
    [BIDE_RESET_MILLISECONDS] = {read_milliseconds, BIDE_MS},
    [BIDE_RESET_UNIX_SECONDS] = {read_unix, BIDE_S},
    [BIDE_RESET_HTTP_DATE] = {read_http_date, BIDE_S},
    [BIDE_RESET_RFC3339] = {read_rfc3339, BIDE_S},
    [BIDE_RESET_DURATION] = {read_duration, 1},
};

struct bide_hint bide_hint_reset(struct bide_text value, enum bide_reset_unit unit, struct bide_text date,
                                 int64_t wall_s)
{
    int64_t amount;
    if ((size_t)unit >= sizeof units / sizeof *units || units[unit].read == NULL)
        return none;
    if (!units[unit].read(value, server_time(date, wall_s), &amount))
        return none;
    return wait_hint(amount, units[unit].unit_ns);
}

struct bide_hint bide_hint_milliseconds(struct bide_text value)
{
    return bide_hint_reset(value, BIDE_RESET_MILLISECONDS, (struct bide_text){NULL, 0}, 0);
}

/* gRFC A6, Pushback: an ASCII signed 32-bit integer without unnecessary leading zeros; a negative or unreadable value
 * asks that the call not be retried. Blanks around it may be stripped (PROTOCOL-HTTP2.md, ASCII-Value). */
struct bide_hint bide_hint_grpc_pushback(struct bide_text value)
{
    if (value.at == NULL)
        return none;
    struct core_cursor cursor = core_cursor_over(value);
    bool zero = core_cursor_peek(&cursor) == '0';
    int64_t ms;
    size_t digits = core_parse_digits(&cursor, &ms);
    if (digits == 0 || (zero && digits > 1) || ms > INT32_MAX || !core_cursor_at_end(&cursor))
        return stop;
    return wait_hint(ms, BIDE_MS);
}

_Static_assert(BIDE_HINT_STOP > BIDE_HINT_WAIT && BIDE_HINT_WAIT > BIDE_HINT_NONE, "kinds are in order of weight");

struct bide_hint bide_hint_merge(struct bide_hint a, struct bide_hint b)
{
    if (a.kind != b.kind)
        return a.kind > b.kind ? a : b;
    return a.wait_ns > b.wait_ns ? a : b;
}
