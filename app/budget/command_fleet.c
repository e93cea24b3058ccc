/* command_fleet.c - see command_fleet.h. As for shared targets, tokens are rounded down to tenths and times are in
 * milliseconds. A retry costs one token. */
#include "command_fleet.h"

#include "common/term.h"

#include "text/unit.h"

#include <inttypes.h>

/* "3.4": tokens, rounded down to tenths. */
static const char *tokens_text(char text[TEXT_VALUE_SIZE], int64_t milli)
{
    return text_decimal_format(text, milli / 100, 10);
}

/* "3.2s"; saturates, because a clock that was set may give any value. */
static const char *duration_text(char text[TEXT_VALUE_SIZE], int64_t ms)
{
    return text_duration_format_short(text, ms < BIDE_DURATION_MAX / BIDE_MS ? ms * BIDE_MS : BIDE_DURATION_MAX);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void budget_fleet_page(FILE *out, const char *name, const struct bide_fleet_bucket *bucket)
{
    char one[TEXT_VALUE_SIZE], two[TEXT_VALUE_SIZE], three[TEXT_VALUE_SIZE];
    cli_print_sanitized(out, name);
    fprintf(out, "\n  budget     %s of %s retries left; refill %s per minute, plus earned tokens\n",
            tokens_text(one, bucket->left_milli), tokens_text(two, bucket->capacity_milli),
            text_decimal_format(three, bucket->per_minute_milli, 1000));
    fprintf(out, "  members    about %" PRIu64 "; %" PRIu64 " want%s tokens\n", bucket->members, bucket->wanting,
            bucket->wanting == 1 ? "s" : "");
    fprintf(out, "  calls      %" PRIu64 " first attempt%s, %" PRIu64 " success%s, %s spent on retries\n",
            bucket->firsts, plural(bucket->firsts), bucket->successes, bucket->successes == 1 ? "" : "es",
            tokens_text(one, (int64_t)bucket->spent_milli));
    fprintf(out, "  exchanges  %" PRIu64 ", the last %s ago; %s granted\n", bucket->exchanges,
            duration_text(two, bucket->age_ms), tokens_text(one, (int64_t)bucket->granted_milli));
}

void budget_fleet_json(struct text_json *json, const char *name, const struct bide_fleet_bucket *bucket)
{
    text_json_object(json, NULL);
    text_json_string(json, "target", name);
    text_json_object(json, "budget");
    budget_json_tokens(json, "left", bucket->left_milli);
    budget_json_tokens(json, "capacity", bucket->capacity_milli);
    budget_json_tokens(json, "per_minute", bucket->per_minute_milli);
    text_json_end(json);
    text_json_unsigned(json, "members", bucket->members);
    text_json_unsigned(json, "wanting", bucket->wanting);
    text_json_unsigned(json, "first_attempts", bucket->firsts);
    text_json_unsigned(json, "successes", bucket->successes);
    budget_json_tokens(json, "spent", (int64_t)bucket->spent_milli);
    budget_json_tokens(json, "granted", (int64_t)bucket->granted_milli);
    text_json_unsigned(json, "exchanges", bucket->exchanges);
    text_json_integer(json, "age_ms", bucket->age_ms);
    text_json_end(json);
}
