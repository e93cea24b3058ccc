/* reset.c - the fields of older rate limits; see reset.h. */
#include "reset.h"

#include "text/slice.h"
#include "text/unit.h"

#define YEAR_S (INT64_C(365) * 24 * 3600)

static const struct bide_hint none = {BIDE_HINT_NONE, 0};

static struct bide_hint seconds_hint(struct bide_text value)
{
    return bide_hint_reset(value, BIDE_RESET_SECONDS, (struct bide_text){NULL, 0}, 0);
}

/* Returns true if the limit has requests remaining. An absent or malformed number is no proof of that. */
static bool has_remaining(struct bide_text value)
{
    return seconds_hint(value).wait_ns > 0;
}

/* Returns the wait until an instant, from the server's own time; 0 if it has passed. */
static struct bide_hint instant_hint(int64_t instant_ms, int64_t now_s)
{
    int64_t left_ms = instant_ms - now_s * 1000;
    return (struct bide_hint){BIDE_HINT_WAIT, left_ms > 0 ? left_ms * BIDE_MS : 0};
}

static struct bide_hint reset_hint(const struct fetch_reset *fields, struct bide_text value)
{
    struct bide_hint wait = seconds_hint(value);
    struct bide_text digits = text_trim(value, TEXT_OWS);
    uint64_t whole;
    int64_t number, now_s;
    if (wait.kind != BIDE_HINT_WAIT || wait.wait_ns < YEAR_S * BIDE_S)
        return wait;
    size_t used = text_number_take(digits.at, digits.length, &whole);
    if (used == 0 || whole > INT64_MAX / 1000 - 1)
        return none;
    number = (int64_t)whole + (used < digits.length); /* a fraction is rounded upwards */
    if (!bide_http_date(fields->date, fields->wall_s, &now_s))
        now_s = fields->wall_s;
    if (number >= now_s - YEAR_S && number <= now_s + YEAR_S)
        return instant_hint(number * 1000, now_s);
    if (number / 1000 >= now_s - YEAR_S && number / 1000 <= now_s + YEAR_S)
        return instant_hint(number, now_s);
    return none;
}

struct bide_hint fetch_reset_hint(const struct fetch_reset *fields)
{
    struct bide_hint x_hint = has_remaining(fields->x_remaining) ? none : reset_hint(fields, fields->x_reset);
    struct bide_hint hint = has_remaining(fields->remaining) ? none : reset_hint(fields, fields->reset);
    return bide_hint_merge(x_hint, hint);
}
