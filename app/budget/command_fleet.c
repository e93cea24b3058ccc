/* command_fleet.c - see command_fleet.h. As for shared targets, tokens are rounded down to tenths and times are in
 * milliseconds. A retry costs one token. */
#include "command_fleet.h"

#include "common/term.h"

#include "conf/unit.h"

#include <inttypes.h>

/* "3.4": tokens, rounded down to tenths. */
static const char *tokens_text(char text[CONF_VALUE_SIZE], int64_t milli)
{
    return conf_decimal_format(text, milli / 100, 10);
}

/* "3.2s"; saturates, because a clock that was set may give any value. */
static const char *duration_text(char text[CONF_VALUE_SIZE], int64_t ms)
{
    return conf_duration_format_short(text, ms < BIDE_DURATION_MAX / BIDE_MS ? ms * BIDE_MS : BIDE_DURATION_MAX);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void budget_fleet_page(FILE *out, const char *name, const struct bide_fleet_bucket *bucket)
{
    char one[CONF_VALUE_SIZE], two[CONF_VALUE_SIZE], three[CONF_VALUE_SIZE];
    cli_print_sanitized(out, name);
    fprintf(out, "\n  budget     %s of %s retries left; refill %s per minute, plus earned tokens\n",
            tokens_text(one, bucket->left_milli), tokens_text(two, bucket->capacity_milli),
            conf_decimal_format(three, bucket->per_minute_milli, 1000));
    fprintf(out, "  members    about %" PRIu64 "; %" PRIu64 " want%s tokens, %" PRIu64 " with an open breaker\n",
            bucket->members, bucket->wanting, bucket->wanting == 1 ? "s" : "", bucket->open);
    fprintf(out, "  breaker    %s in the fleet's view\n", bucket->is_open ? "open" : "closed");
    fprintf(out, "  hold-off   %s\n", bucket->hold_off_ms > 0 ? duration_text(one, bucket->hold_off_ms) : "none");
    fprintf(out, "  calls      %" PRIu64 " first attempt%s, %" PRIu64 " success%s, %s spent on retries\n",
            bucket->firsts, plural(bucket->firsts), bucket->successes, bucket->successes == 1 ? "" : "es",
            tokens_text(one, (int64_t)bucket->spent_milli));
    fprintf(out, "  exchanges  %" PRIu64 ", the last %s ago; %s granted\n", bucket->exchanges,
            duration_text(two, bucket->age_ms), tokens_text(one, (int64_t)bucket->granted_milli));
}

/* As a number of retries. */
static void add_tokens(json_t *object, const char *name, int64_t milli)
{
    json_object_set_new(object, name, json_real((double)milli / 1000));
}

static void add_count(json_t *object, const char *name, uint64_t count)
{
    json_object_set_new(object, name, json_integer((json_int_t)count));
}

json_t *budget_fleet_json(const char *name, const struct bide_fleet_bucket *bucket)
{
    json_t *object = json_object(), *budget = json_object();
    json_object_set_new(object, "target", json_string(name));
    add_tokens(budget, "left", bucket->left_milli);
    add_tokens(budget, "capacity", bucket->capacity_milli);
    add_tokens(budget, "per_minute", bucket->per_minute_milli);
    json_object_set_new(object, "budget", budget);
    add_count(object, "members", bucket->members);
    add_count(object, "wanting", bucket->wanting);
    add_count(object, "breakers_open", bucket->open);
    json_object_set_new(object, "breaker", json_string(bucket->is_open ? "open" : "closed"));
    add_count(object, "hold_off_ms", (uint64_t)bucket->hold_off_ms);
    add_count(object, "first_attempts", bucket->firsts);
    add_count(object, "successes", bucket->successes);
    add_tokens(object, "spent", (int64_t)bucket->spent_milli);
    add_tokens(object, "granted", (int64_t)bucket->granted_milli);
    add_count(object, "exchanges", bucket->exchanges);
    add_count(object, "age_ms", (uint64_t)bucket->age_ms);
    return object;
}
