/* field.c - the table of all keys of a policy file, over struct bide_policy and struct bide_target_config.
 *
 * A row has the key, the member, the form of its value and one line of documentation. Parsing and formatting depend on
 * the form alone. An error that the engine's checks report for a member is translated into the terms of a file: the
 * member becomes its key with its value, and a number gets the unit of its form. */
#include "field.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "duration.h"
#include "suggest.h"
#include "text/slice.h"

/* ---- the table ---- */

static const char *const backoff_words[] = {"exponential", "linear", "fixed", "none", NULL};
static const char *const jitter_words[] = {"full",         "equal",    "decorrelated", "decorrelated_aws",
                                           "proportional", "additive", "none",         NULL};
static const char *const hint_rule_words[] = {"floor", "exact", "pushback", "clamp", "ignore", NULL};
static const char *const hint_long_words[] = {"give_up", "clamp", "ignore", NULL};
static const char *const hint_step_words[] = {"keep", "advance", "reset", NULL};
static const char *const layer_words[] = {"outermost", "any", "never", NULL};
static const char *const when_refused_words[] = {"give_up", "wait", NULL};
static const char *const budget_words[] = {"tokens", "window", "concurrency", "none", NULL};
static const char *const on_empty_words[] = {"refuse", "open", NULL};
static const char *const breaker_words[] = {"time_window", "count_window", "consecutive", "off", NULL};
static const char *const gate_words[] = {"key",       "repeat",  "hint",      "layer",  "throttle",
                                         "in_flight", "breaker", "key_limit", "budget", NULL};
static const char *const unlimited_words[] = {"unlimited", NULL}; /* of a count: UINT32_MAX */
static const char *const trust_words[] = {"throttled", "unavailable", NULL};

#define WANT_CONF_TIME     "a duration such as 200ms"
#define WANT_OR_NEVER      "a duration such as 200ms, or never"
#define WANT_CONF_COUNT    "a whole number such as 3"
#define WANT_SMALLER       "4294967295 at most"
#define WANT_CONF_TOKENS   "an amount such as 10 or 0.1, with three decimals at most"
#define WANT_CONF_RATE     "a rate such as 5/s or 1/min that comes to whole thousandths per minute"
#define WANT_CONF_FACTOR   "a factor such as 2x or 1.5x"
#define WANT_CONF_PERMILLE "a share such as 80% or 12.5%"
#define WANT_CONF_PPM      "a share such as 10% or 0.5%"
#define WANT_CONF_FLAG     "yes or no"

#define P(key, name, form, about)                                                                                      \
    {                                                                                                                  \
        key, about, false, form, offsetof(struct bide_policy, name), NULL, WANT_##form, #name                          \
    }
#define P_WORD(key, name, form, words, want, about)                                                                    \
    {                                                                                                                  \
        key, about, false, form, offsetof(struct bide_policy, name), words, want, #name                                \
    }
#define T(key, name, form, about)                                                                                      \
    {                                                                                                                  \
        key, about, true, form, offsetof(struct bide_target_config, name), NULL, WANT_##form, #name                    \
    }
#define T_WORD(key, name, form, words, want, about)                                                                    \
    {                                                                                                                  \
        key, about, true, form, offsetof(struct bide_target_config, name), words, want, #name                          \
    }

static const struct conf_field fields[] = {
    P_WORD("attempts", attempts_max, CONF_COUNT, unlimited_words, "a whole number such as 3, or unlimited",
           "number of attempts, including the first; 1: no retry; or unlimited"),
    P_WORD("deadline", call_timeout_ns, CONF_TIME, NULL, WANT_OR_NEVER,
           "time limit of the call with all attempts and waits; never: no limit"),
    P_WORD("waits_max", waits_max_ns, CONF_TIME, NULL, WANT_OR_NEVER,
           "time limit of all waits of the call together; never: no limit"),
    P_WORD("attempt_timeout", attempt_timeout_ns, CONF_TIME, NULL, WANT_OR_NEVER,
           "time limit of an attempt; never: only the deadline"),
    P_WORD("connect_timeout", connect_timeout_ns, CONF_TIME, NULL, WANT_OR_NEVER,
           "time limit for connecting; never: only that of the attempt"),
    P("attempt_min", attempt_min_ns, CONF_TIME, "time that a useful attempt needs; 0: same as connect_timeout"),
    P("last_wait", last_wait, CONF_FLAG, "shorten a wait once, so that a last attempt fits before the deadline"),
    P_WORD("when_refused", when_refused, CONF_WORD, when_refused_words, "give_up or wait",
           "give up or wait when the breaker, the budget or another gate refuses"),
    P_WORD("backoff", backoff, CONF_WORD, backoff_words, "one of exponential, linear, fixed, none",
           "how the wait grows from one retry to the next"),
    P("base", base_ns, CONF_TIME, "wait before the first retry, before jitter"),
    P("cap", cap_ns, CONF_TIME, "longest wait, except for hints"),
    P("multiplier", multiplier_milli, CONF_FACTOR, "exponential backoff: growth from one wait to the next"),
    P_WORD("jitter", jitter, CONF_WORD, jitter_words,
           "one of full, equal, decorrelated, decorrelated_aws, proportional, additive, none",
           "how the wait is drawn, so that clients do not retry together"),
    P("floor", floor_ns, CONF_TIME, "shortest wait; 0 to base"),
    P("jitter_lo", jitter_lo_permille, CONF_PERMILLE, "proportional jitter: the smallest share of the wait"),
    P("jitter_hi", jitter_hi_permille, CONF_PERMILLE, "proportional jitter: the largest share of the wait"),
    P("jitter_past_cap", jitter_past_cap, CONF_FLAG, "proportional jitter may exceed the cap (gRPC)"),
    P("jitter_add", jitter_add_ns, CONF_TIME, "additive jitter: its width"),
    P("throttled_base", throttled_base_ns, CONF_TIME, "base after a throttled response (429); 0: same as base"),
    P("throttled_needs_hint", throttled_needs_hint, CONF_FLAG, "give up after a throttled response without a hint"),
    P("conflict_at_once", conflict_at_once, CONF_FLAG, "retry the first conflict without a wait"),
    P_WORD("hint_rule", hint_rule, CONF_WORD, hint_rule_words, "one of floor, exact, pushback, clamp, ignore",
           "effect of a server's Retry-After on the wait"),
    P_WORD("hint_max", hint_max_ns, CONF_TIME, NULL, WANT_OR_NEVER, "longest hint that is followed"),
    P_WORD("hint_long", hint_long, CONF_WORD, hint_long_words, "one of give_up, clamp, ignore",
           "effect of a longer hint"),
    P_WORD("hint_step", hint_step, CONF_WORD, hint_step_words, "one of keep, advance, reset",
           "effect of a hinted wait on the backoff sequence"),
    P("hint_jitter", hint_jitter_permille, CONF_PERMILLE, "floor rule: up to this much longer than the hint"),
    P("hint_over", hint_over_ns, CONF_TIME, "clamp rule: at most this much longer than the backoff"),
    P("hedges_max", hedges_max, CONF_COUNT, "concurrent attempts beside a slow attempt; 0: no hedging"),
    P("hedge_delay", hedge_delay_ns, CONF_TIME, "a hedge starts this long after the previous attempt"),
    P("hedge_quantile", hedge_quantile_permille, CONF_PERMILLE,
      "or after this latency quantile, once known; 0%: only the delay"),
    P_WORD("layer", layer, CONF_WORD, layer_words, "one of outermost, any, never",
           "may this layer retry if its caller retries as well"),
    P("require_key", require_key, CONF_FLAG, "refuse a mutating request without an idempotency key"),
    P("long_poll", long_poll, CONF_FLAG, "with an empty budget wait once more before giving up"),
    P_WORD("observe", observe, CONF_BITS, gate_words,
           "none, or some of key, repeat, hint, layer, throttle, in_flight, breaker, key_limit, budget",
           "gates in observe mode: they count refusals, but do not refuse"),
    T_WORD("trust", trust, CONF_BITS, trust_words, "none, or some of throttled, unavailable",
           "responses after which an unsafe request certainly did not run"),
    T("in_flight_max", in_flight_max, CONF_COUNT, "in-flight limit of attempts (bulkhead); 0: no limit"),
    T("hold_off_max", hold_off_max_ns, CONF_TIME, "longest hold-off of other calls after a hint; 0: none"),
    T("hold_off_first", hold_off_first, CONF_FLAG, "the hold-off applies to first attempts, too"),
    T("key_retries", key_retries, CONF_COUNT, "retries per retry key and key_interval; 0: no limit"),
    T("key_interval", key_interval_ns, CONF_TIME, "interval of key_retries"),
    T("throttle_k", throttle_k_milli, CONF_FACTOR,
      "adaptive throttling: requests may be this many times the accepted requests; 0: off"),
    T("throttle_max", throttle_max_permille, CONF_PERMILLE, "adaptive throttling: largest share that is refused"),
    T("throttle_min_volume", throttle_min_volume, CONF_COUNT,
      "adaptive throttling: number of requests before any is refused"),
    T("throttle_window", throttle_window_ns, CONF_TIME, "adaptive throttling: length of its window"),
    T("latency", latency, CONF_FLAG, "record latencies, for hedge_quantile"),
    T_WORD("budget.kind", budget.kind, CONF_WORD, budget_words, "one of tokens, window, concurrency, none",
           "how the retries of all calls are limited"),
    T_WORD("budget.on_empty", budget.on_empty, CONF_WORD, on_empty_words, "one of refuse, open",
           "an empty budget refuses the retry, or also opens the breaker"),
    T("budget.capacity", budget.capacity_milli, CONF_TOKENS, "tokens: capacity of the bucket; 0: no retry ever"),
    {"budget.initial", "tokens: initial number, or full", true, CONF_TOKENS,
     offsetof(struct bide_target_config, budget.initial_milli), NULL,
     "an amount such as 10 or 0.1, with three decimals at most, or full", "budget.initial_milli"},
    T("budget.cost", budget.cost_milli, CONF_TOKENS, "tokens: cost of a retry or hedge"),
    T("budget.cost_throttled", budget.cost_throttled_milli, CONF_TOKENS,
      "tokens: cost of a retry after a throttled response"),
    T("budget.cost_timeout", budget.cost_timeout_milli, CONF_TOKENS, "tokens: cost of a retry after a timeout"),
    T("budget.cost_failure", budget.cost_failure_milli, CONF_TOKENS, "tokens: cost of each retryable failure (gRPC)"),
    T("budget.threshold", budget.threshold_milli, CONF_TOKENS, "tokens: a retry needs more than this (gRPC: half)"),
    T("budget.earn_success", budget.earn_success_milli, CONF_TOKENS, "tokens: earned by a successful call"),
    T("budget.earn_first", budget.earn_first_milli, CONF_TOKENS,
      "tokens: earned by each first attempt, also in an outage"),
    T("budget.refill_per_minute", budget.refill_per_minute_milli, CONF_RATE, "tokens: refill over time"),
    T("budget.refund", budget.refund_permille, CONF_PERMILLE,
      "tokens: share of the last cost that is refunded when a retried call succeeds"),
    T("budget.ratio", budget.ratio_ppm, CONF_PPM, "window, concurrency: retries per request"),
    T("budget.reserve", budget.reserve, CONF_COUNT, "window: additional retries; concurrency: minimum limit"),
    T("budget.min_volume", budget.min_volume, CONF_COUNT,
      "window: below this number of requests every retry is allowed"),
    T("budget.window", budget.window_ns, CONF_TIME, "window: length"),
    T("budget.cooldown", budget.cooldown_ns, CONF_TIME, "window: no retry for this long after a refusal; 0: off"),
    T_WORD("breaker.kind", breaker.kind, CONF_WORD, breaker_words, "one of time_window, count_window, consecutive, off",
           "condition that opens the breaker"),
    T("breaker.consecutive", breaker.consecutive, CONF_COUNT, "consecutive: number of failures that opens the breaker"),
    T("breaker.ratio", breaker.ratio_permille, CONF_PERMILLE, "windows: share of failures that opens the breaker"),
    T("breaker.min_volume", breaker.min_volume, CONF_COUNT, "windows: number of votes before the ratio applies"),
    T("breaker.count_window", breaker.count_window, CONF_COUNT, "count_window: number of votes in the window"),
    T("breaker.window", breaker.window_ns, CONF_TIME, "time_window: length"),
    T_WORD("breaker.slow", breaker.slow_ns, CONF_TIME, NULL, WANT_OR_NEVER,
           "a success that takes this long counts as a failure"),
    T("breaker.open", breaker.open_ns, CONF_TIME, "open time of the first opening, before jitter"),
    T("breaker.open_growth", breaker.open_growth_milli, CONF_FACTOR,
      "growth of the open time from one opening to the next"),
    T("breaker.open_max", breaker.open_max_ns, CONF_TIME, "longest open time, before jitter"),
    T("breaker.open_jitter", breaker.open_jitter_permille, CONF_PERMILLE, "jitter of the open time, plus or minus"),
    T("breaker.probes", breaker.probes, CONF_COUNT, "number of probes while half open"),
    T("breaker.probe_timeout", breaker.probe_timeout_ns, CONF_TIME,
      "a probe without an outcome by then frees its slot"),
    T("breaker.ramp", breaker.ramp_ns, CONF_TIME, "ramp-up of traffic after closing; 0: at once"),
};
#define FIELDS (sizeof fields / sizeof *fields)

const struct conf_field *conf_field(size_t i)
{
    return i < FIELDS ? &fields[i] : NULL;
}

/* ---- lookup ---- */

const struct conf_field *conf_field_find(const char *key, size_t length)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (text_equals((struct bide_text){key, length}, fields[i].key))
            return &fields[i];
    return NULL;
}

/* Names that other libraries use. */
static const struct {
    const char *alias, *key;
} aliases[] = {
    {"retries", "attempts"},
    {"tries", "attempts"},
    {"max_attempts", "attempts"},
    {"max_retries", "attempts"},
    {"retry", "attempts"},
    {"timeout", "attempt_timeout"},
    {"per_try_timeout", "attempt_timeout"},
    {"total_timeout", "deadline"},
    {"max_time", "deadline"},
    {"max_elapsed_time", "deadline"},
    {"delay", "base"},
    {"interval", "base"},
    {"sleep", "base"},
    {"initial_backoff", "base"},
    {"initial_delay", "base"},
    {"initial_interval", "base"},
    {"max_backoff", "cap"},
    {"max_delay", "cap"},
    {"max_interval", "cap"},
    {"factor", "multiplier"},
    {"budget", "budget.capacity"},
    {"budget.tokens", "budget.capacity"},
    {"breaker", "breaker.kind"},
};

/* A key may be misspelt, lack its prefix (capacity), or be the name of the struct member (cap_ns). */
void conf_field_consider(struct conf_suggestion *suggestion)
{
    for (size_t i = 0; i < FIELDS; i++)
        conf_suggestion_consider(suggestion, fields[i].key, fields[i].key);
    for (size_t i = 0; i < FIELDS; i++) {
        const char *point = strchr(fields[i].key, '.');
        conf_suggestion_consider(suggestion, fields[i].member, fields[i].key);
        if (point != NULL)
            conf_suggestion_consider(suggestion, point + 1, fields[i].key);
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        conf_suggestion_consider(suggestion, aliases[i].alias, aliases[i].key);
}

static const struct conf_field *field_by_member(const char *member, size_t length, bool of_target)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].of_target == of_target && text_equals((struct bide_text){member, length}, fields[i].member))
            return &fields[i];
    return NULL;
}

/* ---- parsing ---- */

static void *field_member(const struct conf_field *field, struct conf_pair *pair)
{
    return (char *)pair + (field->of_target ? offsetof(struct conf_pair, target) : 0) + field->offset;
}

static const void *field_member_const(const struct conf_field *field, const struct conf_pair *pair)
{
    return (const char *)pair + (field->of_target ? offsetof(struct conf_pair, target) : 0) + field->offset;
}

static bool store_uint32(int64_t value, void *into)
{
    memcpy(into, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    return value <= UINT32_MAX;
}

static bool parse_uint32(const char *text, size_t length, int64_t scale, void *into)
{
    int64_t value;
    return text_decimal_parse(text, length, scale, &value) && store_uint32(value, into);
}

/* The x of a factor is optional. */
static bool parse_factor(const char *text, void *into)
{
    size_t length = strlen(text);
    return parse_uint32(text, length - (length > 0 && text[length - 1] == 'x'), 1000, into);
}

static bool parse_share(const char *text, int64_t whole, void *into)
{
    int64_t value;
    return text_share_parse(text, strlen(text), whole, &value) && store_uint32(value, into);
}

static bool parse_tokens(const struct conf_field *field, const char *text, void *into)
{
    if (strcmp(text, "full") != 0)
        return parse_uint32(text, strlen(text), 1000, into);
    memcpy(into, &(uint32_t){BIDE_FULL}, sizeof(uint32_t));
    return strcmp(field->key, "budget.initial") == 0;
}

static bool parse_rate(const char *text, void *into)
{
    int64_t per_minute_milli;
    return text_rate_parse(text, strlen(text), 60, &per_minute_milli) && store_uint32(per_minute_milli, into);
}

/* Returns the index of a word, or -1. */
static int word_index(const char *const *words, struct bide_text text)
{
    for (int i = 0; words[i] != NULL; i++)
        if (text_equals_word(text, words[i]))
            return i;
    return -1;
}

static bool parse_flag(const char *text, void *into)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", NULL};
    int number = word_index(words, text_from(text));
    if (number >= 0)
        memcpy(into, &(bool){number % 2 == 1}, sizeof(bool));
    return number >= 0;
}

static bool parse_word(const char *const *words, const char *text, void *into)
{
    int number = word_index(words, text_from(text));
    if (number >= 0)
        memcpy(into, &number, sizeof number); /* enums of the public headers have the size of int */
    return number >= 0;
}

/* Parses "budget, breaker", or "none". */
static bool parse_bits(const char *const *words, const char *text, uint32_t *bits)
{
    *bits = 0;
    if (text_equals_word(text_from(text), "none"))
        return true;
    for (struct bide_text rest = text_from(text); rest.at != NULL;) {
        struct bide_text word = text_take_item(&rest, ',', TEXT_OWS);
        int number = word_index(words, word);
        if (number < 0)
            return false;
        *bits |= 1u << number;
    }
    return true;
}

static bool field_is_observe(const struct conf_field *field)
{
    return field->words == gate_words;
}

static uint32_t field_bits(const struct conf_field *field, const struct conf_pair *pair)
{
    uint32_t bits;
    memcpy(&bits, field_member_const(field, pair), sizeof bits);
    return field_is_observe(field) ? bits | pair->target.observe : bits;
}

static bool field_set_bits(const struct conf_field *field, struct conf_pair *pair, const char *text)
{
    uint32_t bits;
    if (!parse_bits(field->words, text, &bits))
        return false;
    if (field_is_observe(field)) {
        pair->target.observe = bits & BIDE_TARGET_GATES;
        bits &= BIDE_POLICY_GATES;
    }
    memcpy(field_member(field, pair), &bits, sizeof bits);
    return true;
}

static bool parse_count(const struct conf_field *field, const char *value, uint32_t *into)
{
    if (field->words == NULL || strcmp(value, field->words[0]) != 0)
        return parse_uint32(value, strlen(value), 1, into);
    *into = UINT32_MAX;
    return true;
}

static bool field_parse(const struct conf_field *field, struct conf_pair *pair, const char *value)
{
    void *into = field_member(field, pair);
    switch (field->form) {
    case CONF_TIME: return text_duration_parse(value, strlen(value), into);
    case CONF_COUNT: return parse_count(field, value, into);
    case CONF_TOKENS: return parse_tokens(field, value, into);
    case CONF_RATE: return parse_rate(value, into);
    case CONF_FACTOR: return parse_factor(value, into);
    case CONF_PERMILLE: return parse_share(value, 1000, into);
    case CONF_PPM: return parse_share(value, 1000000, into);
    case CONF_FLAG: return parse_flag(value, into);
    case CONF_BITS: return field_set_bits(field, pair, value);
    case CONF_WORD: return parse_word(field->words, value, into);
    }
    return false;
}

const char *conf_field_assign(const struct conf_field *field, struct conf_pair *pair, const char *value)
{
    struct conf_pair changed = *pair;
    if (!field_parse(field, &changed, value)) {
        const char *duration = field->form == CONF_TIME ? conf_duration_want(value) : NULL;
        if (duration != NULL)
            return duration;
        bool large = field->form == CONF_COUNT && value[0] != '\0' && value[strspn(value, "0123456789")] == '\0';
        return large ? WANT_SMALLER : field->want;
    }
    *pair = changed;
    return NULL;
}

/* ---- formatting ---- */

/* Formats a number of the field's own unit as in a file. */
static const char *number_format(char text[TEXT_VALUE_SIZE], enum conf_form form, int64_t value)
{
    static const struct {
        int64_t scale;
        const char *unit;
    } forms[] = {
        [CONF_COUNT] = {1, ""},      [CONF_TOKENS] = {1000, ""},  [CONF_RATE] = {1000, "/min"},
        [CONF_FACTOR] = {1000, "x"}, [CONF_PERMILLE] = {10, "%"}, [CONF_PPM] = {10000, "%"},
    };
    bool per_second = form == CONF_RATE && value > 0 && value % 60000 == 0;
    text_decimal_format(text, per_second ? value / 60 : value, forms[form].scale);
    size_t length = strlen(text);
    snprintf(text + length, TEXT_VALUE_SIZE - length, "%s", per_second ? "/s" : forms[form].unit);
    return text;
}

static void bits_format(char text[256], const char *const *words, uint32_t bits)
{
    size_t used = 0;
    snprintf(text, 256, "none");
    for (size_t i = 0; words[i] != NULL && used < 256; i++)
        if ((bits >> i & 1u) != 0)
            used += (size_t)snprintf(text + used, 256 - used, "%s%s", used > 0 ? "," : "", words[i]);
}

static int64_t field_value(const struct conf_field *field, const struct conf_pair *pair)
{
    const void *from = field_member_const(field, pair);
    uint32_t number;
    int64_t ns;
    bool yes;
    switch (field->form) {
    case CONF_TIME: memcpy(&ns, from, sizeof ns); return ns;
    case CONF_FLAG: memcpy(&yes, from, sizeof yes); return yes;
    case CONF_BITS: return field_bits(field, pair);
    case CONF_COUNT:
    case CONF_TOKENS:
    case CONF_RATE:
    case CONF_FACTOR:
    case CONF_PERMILLE:
    case CONF_PPM:
    case CONF_WORD: break;
    }
    memcpy(&number, from, sizeof number); /* also for enums */
    return number;
}

static const char *word_name(const char *const *words, int64_t number)
{
    for (; number > 0 && *words != NULL; number--)
        words++;
    return *words != NULL ? *words : "?";
}

const char *conf_field_format(char text[256], const struct conf_field *field, const struct conf_pair *pair)
{
    int64_t value = field_value(field, pair);
    if (field->form == CONF_TIME)
        return text_duration_format(text, value);
    if (field->form == CONF_BITS)
        bits_format(text, field->words, (uint32_t)value);
    else if (field->form == CONF_FLAG)
        snprintf(text, 256, "%s", value != 0 ? "yes" : "no");
    else if (field->form == CONF_WORD)
        snprintf(text, 256, "%s", word_name(field->words, value));
    else if (field->form == CONF_TOKENS && value == BIDE_FULL)
        snprintf(text, 256, "full");
    else if (field->form == CONF_COUNT && field->words != NULL && value == UINT32_MAX)
        snprintf(text, 256, "%s", field->words[0]);
    else
        return number_format(text, field->form, value);
    return text;
}

bool conf_field_equal(const struct conf_field *field, const struct conf_pair *one, const struct conf_pair *other)
{
    return field_value(field, one) == field_value(field, other);
}

void conf_field_copy(const struct conf_field *field, struct conf_pair *to, const struct conf_pair *from)
{
    bool wide = field->form == CONF_TIME, flag_sized = field->form == CONF_FLAG;
    size_t size = wide ? sizeof(int64_t) : flag_sized ? sizeof(bool) : sizeof(uint32_t);
    memcpy(field_member(field, to), field_member_const(field, from), size);
    if (field_is_observe(field))
        to->target.observe = from->target.observe;
}

/* ---- effect ---- */

/* A key that begins with `prefix` has an effect only while `key` has this value, or, after '!', any other value. */
static const struct dependency {
    const char *prefix, *key, *value;
} dependencies[] = {
    {"multiplier", "backoff", "exponential"},
    {"jitter_lo", "jitter", "proportional"},
    {"jitter_hi", "jitter", "proportional"},
    {"jitter_past_cap", "jitter", "proportional"},
    {"jitter_add", "jitter", "additive"},
    {"hint_", "hint_rule", "!ignore"},
    {"hint_over", "hint_rule", "clamp"},
    {"hint_jitter", "hint_rule", "floor"},
    {"hint_long", "hint_max", "!never"},
    {"hedge_", "hedges_max", "!0"},
    {"hedge_quantile", "latency", "yes"},
    {"key_interval", "key_retries", "!0"},
    {"throttle_", "throttle_k", "!0x"},
    {"hold_off_first", "hold_off_max", "!0"},
    {"budget.", "budget.kind", "!none"},
    {"budget.capacity", "budget.kind", "tokens"},
    {"budget.initial", "budget.kind", "tokens"},
    {"budget.cost", "budget.kind", "tokens"},
    {"budget.threshold", "budget.kind", "tokens"},
    {"budget.earn", "budget.kind", "tokens"},
    {"budget.refund", "budget.kind", "tokens"},
    {"budget.ratio", "budget.kind", "!tokens"},
    {"budget.reserve", "budget.kind", "!tokens"},
    {"budget.min_volume", "budget.kind", "window"},
    {"budget.window", "budget.kind", "window"},
    {"budget.cooldown", "budget.kind", "window"},
    {"breaker.consecutive", "breaker.kind", "consecutive"},
    {"breaker.ratio", "breaker.kind", "!consecutive"},
    {"breaker.min_volume", "breaker.kind", "!consecutive"},
    {"breaker.count_window", "breaker.kind", "count_window"},
    {"breaker.window", "breaker.kind", "time_window"},
    {"breaker.", "breaker.kind", "!off"},
    {"base", "backoff", "!none"},
    {"cap", "backoff", "!none"},
    {"jitter", "backoff", "!none"},
    {"backoff", "attempts", "!1"},
    {"base", "attempts", "!1"},
    {"cap", "attempts", "!1"},
    {"multiplier", "attempts", "!1"},
    {"jitter", "attempts", "!1"},
    {"floor", "attempts", "!1"},
    {"throttled_", "attempts", "!1"},
    {"conflict_at_once", "attempts", "!1"},
    {"hint_", "attempts", "!1"},
    {"layer", "attempts", "!1"},
    {"long_poll", "attempts", "!1"},
    {"budget.", "attempts", "!1"},
};

static bool dependency_is_met(const struct dependency *dependency, const struct conf_pair *pair)
{
    const struct conf_field *other = conf_field_find(dependency->key, strlen(dependency->key));
    char text[256];
    bool unless = dependency->value[0] == '!';
    return (strcmp(conf_field_format(text, other, pair), dependency->value + unless) == 0) != unless;
}

/* Returns the first condition of the field that is not met; NULL: it has an effect. */
static const struct dependency *field_unmet(const struct conf_field *field, const struct conf_pair *pair)
{
    for (size_t i = 0; i < sizeof dependencies / sizeof *dependencies; i++)
        if (strncmp(field->key, dependencies[i].prefix, strlen(dependencies[i].prefix)) == 0 &&
            strcmp(field->key, dependencies[i].key) != 0 && !dependency_is_met(&dependencies[i], pair))
            return &dependencies[i];
    return NULL;
}

bool conf_field_has_effect(const struct conf_field *field, const struct conf_pair *pair)
{
    return field_unmet(field, pair) == NULL;
}

const struct conf_field *conf_field_obstacle(const struct conf_field *field, const struct conf_pair *pair)
{
    const struct dependency *unmet = field_unmet(field, pair);
    return unmet != NULL ? conf_field_find(unmet->key, strlen(unmet->key)) : NULL;
}

/* ---- checking a pair ---- */

void conf_pair_init(struct conf_pair *pair, enum bide_preset preset)
{
    (void)bide_policy_init(&pair->policy, preset);
    (void)bide_target_config_init(&pair->target, preset);
}

/* Text being built, truncated at the end of its buffer. */
struct sentence {
    char *text;
    size_t size, used;
};

static void sentence_append_bytes(struct sentence *s, const char *text, size_t length)
{
    for (; length > 0 && s->used + 1 < s->size; length--)
        s->text[s->used++] = *text++;
    s->text[s->used] = '\0';
}

static void sentence_append(struct sentence *s, const char *text)
{
    sentence_append_bytes(s, text, strlen(text));
}

/* Finds the field that a message names. Within a nested struct the engine's messages omit the prefix: capacity_milli in
 * a message about budget.cost_milli. */
static const struct conf_field *field_neighbour(const struct conf_field *field, const char *word, size_t length)
{
    const char *point = strchr(field->member, '.');
    char name[64];
    int used = snprintf(name, sizeof name, "%.*s%.*s", point == NULL ? 0 : (int)(point + 1 - field->member),
                        field->member, (int)length, word);
    return used > 0 && (size_t)used < sizeof name ? field_by_member(name, (size_t)used, field->of_target) : NULL;
}

/* Returns the word of a file for a constant of the engine, or NULL. */
static const char *engine_constant_name(const char *word, size_t length)
{
    static const char *const known[][2] = {
        {"BIDE_NEVER", "never"}, {"BIDE_FULL", "full"}, {"BIDE_BACKOFF_FIXED", "backoff = fixed"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (text_equals((struct bide_text){word, length}, known[i][0]))
            return known[i][1];
    return NULL;
}

/* Appends a key, and outside of parentheses its value: "base (200ms)". The value of a flag is left out. */
static void sentence_append_key(struct sentence *s, const struct conf_field *field, const struct conf_pair *pair,
                                bool nested)
{
    char text[256];
    sentence_append(s, field->key);
    if (nested || field->form == CONF_FLAG)
        return;
    sentence_append(s, " (");
    sentence_append(s, conf_field_format(text, field, pair));
    sentence_append(s, ")");
}

static void sentence_append_word(struct sentence *s, const struct conf_field *field, const struct conf_pair *pair,
                                 const char *word, size_t length, bool nested)
{
    const struct conf_field *other = field_neighbour(field, word, length);
    const char *known = engine_constant_name(word, length);
    if (other != NULL && memchr(word, '_', length) != NULL) /* a plain English word is not a member: "floor" */
        sentence_append_key(s, other, pair, nested);
    else if (known != NULL)
        sentence_append(s, known);
    else
        sentence_append_bytes(s, word, length);
}

static void sentence_append_number(struct sentence *s, const struct conf_field *field, const char *digits,
                                   size_t length)
{
    char text[TEXT_VALUE_SIZE];
    int64_t value;
    bool has_unit = field->form == CONF_TOKENS || field->form == CONF_RATE || field->form == CONF_FACTOR ||
                    field->form == CONF_PERMILLE || field->form == CONF_PPM;
    if (has_unit && text_decimal_parse(digits, length, 1, &value))
        sentence_append(s, number_format(text, field->form, value));
    else
        sentence_append_bytes(s, digits, length);
}

/* Appends the engine's description of the valid values, translated into the terms of a file. */
static void sentence_translate(struct sentence *s, const struct conf_field *field, const struct conf_pair *pair,
                               const char *want)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.";
    static const char digits[] = "0123456789";
    int depth = 0;
    while (*want != '\0') {
        size_t word = strspn(want, letters), number = strspn(want, digits);
        depth += (*want == '(') - (*want == ')');
        if (word > 0)
            sentence_append_word(s, field, pair, want, word, depth > 0);
        else if (number > 0)
            sentence_append_number(s, field, want, number);
        else
            sentence_append_bytes(s, want, 1);
        want += word > 0 ? word : number > 0 ? number : 1;
    }
}

bool conf_pair_check(const struct conf_pair *pair, struct conf_problem *problem)
{
    struct bide_problem engine_problem;
    bool of_target = bide_policy_check(&pair->policy, &engine_problem) == BIDE_OK;
    if (of_target && bide_target_config_check(&pair->target, &engine_problem) == BIDE_OK)
        return true;
    if (problem == NULL)
        return false;
    struct sentence sentence = {problem->want, sizeof problem->want, 0};
    problem->field = field_by_member(engine_problem.field, strlen(engine_problem.field), of_target);
    if (problem->field != NULL)
        sentence_translate(&sentence, problem->field, pair, engine_problem.want);
    if (problem->field != NULL && pair->policy.base_ns == 0 && strcmp(problem->field->key, "base") == 0)
        sentence_append(&sentence, "; backoff = none has no waits");
    else if (problem->field == NULL)
        snprintf(problem->want, sizeof problem->want, "a policy whose %s is %s", engine_problem.field,
                 engine_problem.want);
    return false;
}
