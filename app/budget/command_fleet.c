/* budget_fleet.c - see budget_fleet.h. Words, units and rounding are those of app/budget: what is left is rounded down
 * to tenths, times are milliseconds, tokens are retries that cost one. */
#include "command_fleet.h"

#include "common/term.h"

#include "conf/unit.h"

#include <inttypes.h>

/* "3.4": tokens, rounded down to tenths. */
static const char *tokens(char text[CONF_VALUE_SIZE], int64_t milli)
{
    return conf_decimal_format(text, milli / 100, 10);
}

/* "3.2s"; a clock that was set may make it anything. */
static const char *duration(char text[CONF_VALUE_SIZE], int64_t ms)
{
    return conf_duration_format_short(text, ms < BIDE_DURATION_MAX / BIDE_MS ? ms * BIDE_MS : BIDE_DURATION_MAX);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void budget_fleet_page(FILE *out, const char *name, const struct bide_fleet_bucket *bank)
{
    char one[CONF_VALUE_SIZE], two[CONF_VALUE_SIZE], three[CONF_VALUE_SIZE];
    cli_print_sanitized(out, name);
    fprintf(out, "\n  budget     %s of %s retries left; %s a minute by time, and what successes earn\n",
            tokens(one, bank->left_milli), tokens(two, bank->capacity_milli),
            conf_decimal_format(three, bank->per_minute_milli, 1000));
    fprintf(out, "  instances  about %" PRIu64 "; %" PRIu64 " want%s tokens, %" PRIu64 " with an open breaker\n",
            bank->members, bank->wanting, bank->wanting == 1 ? "s" : "", bank->open);
    fprintf(out, "  breaker    the fleet's opinion is: %s\n", bank->is_open ? "open" : "closed");
    fprintf(out, "  quiet      %s\n", bank->hold_off_ms > 0 ? duration(one, bank->hold_off_ms) : "nobody asked for it");
    fprintf(out, "  calls      %" PRIu64 " first attempt%s, %" PRIu64 " success%s, %s spent on retries\n", bank->firsts,
            plural(bank->firsts), bank->successes, bank->successes == 1 ? "" : "es",
            tokens(one, (int64_t)bank->spent_milli));
    fprintf(out, "  exchanges  %" PRIu64 ", the last %s ago; %s granted\n", bank->exchanges,
            duration(two, bank->age_ms), tokens(one, (int64_t)bank->granted_milli));
}

/* Tokens as a number of retries. */
static void add_tokens(json_t *object, const char *name, int64_t milli)
{
    json_object_set_new(object, name, json_real((double)milli / 1000));
}

static void add_count(json_t *object, const char *name, uint64_t count)
{
    json_object_set_new(object, name, json_integer((json_int_t)count));
}

json_t *budget_fleet_json(const char *name, const struct bide_fleet_bucket *bank)
{
    json_t *object = json_object(), *budget = json_object();
    json_object_set_new(object, "target", json_string(name));
    add_tokens(budget, "left", bank->left_milli);
    add_tokens(budget, "capacity", bank->capacity_milli);
    add_tokens(budget, "per_minute", bank->per_minute_milli);
    json_object_set_new(object, "budget", budget);
    add_count(object, "members", bank->members);
    add_count(object, "wanting", bank->wanting);
    add_count(object, "breakers_open", bank->open);
    json_object_set_new(object, "breaker", json_string(bank->is_open ? "open" : "closed"));
    add_count(object, "quiet_for_ms", (uint64_t)bank->hold_off_ms);
    add_count(object, "first_attempts", bank->firsts);
    add_count(object, "successes", bank->successes);
    add_tokens(object, "spent", (int64_t)bank->spent_milli);
    add_tokens(object, "granted", (int64_t)bank->granted_milli);
    add_count(object, "exchanges", bank->exchanges);
    add_count(object, "age_ms", (uint64_t)bank->age_ms);
    return object;
}
