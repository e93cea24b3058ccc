/* reset.c - the fields of older rate limits; see reset.h. */
#include "reset.h"

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

static struct bide_hint x_reset_hint(const struct fetch_reset *fields)
{
    struct bide_hint wait = seconds_hint(fields->x_reset);
    int64_t number = wait.wait_ns / BIDE_S, now_s;
    if (!bide_http_date(fields->date, fields->wall_s, &now_s))
        now_s = fields->wall_s;
    if (number >= now_s - YEAR_S && number <= now_s + YEAR_S)
        return bide_hint_reset(fields->x_reset, BIDE_RESET_UNIX_SECONDS, fields->date, fields->wall_s);
    return number < YEAR_S ? wait : none;
}

struct bide_hint fetch_reset_hint(const struct fetch_reset *fields)
{
    struct bide_hint x_hint = has_remaining(fields->x_remaining) ? none : x_reset_hint(fields);
    struct bide_hint hint = has_remaining(fields->remaining) ? none : seconds_hint(fields->reset);
    return bide_hint_merge(x_hint, hint);
}
