/* snapshot.c - see snapshot.h: reading a target, and the words for what was read. */
#include "snapshot.h"

#include <bide/lease.h>

#include <inttypes.h>
#include <string.h>

/* ---- looking ---- */

static bool is_of_target(const struct conf_field *field)
{
    return field->of_target || strcmp(field->key, "observe") == 0; /* one key, two fields */
}

/* A pair that differs from the preset's in nothing but the target. */
static void pair_of(struct conf_pair *pair, enum bide_preset preset, const struct bide_target_config *config)
{
    conf_pair_init(pair, preset);
    pair->target = *config;
}

static unsigned distance(const struct bide_target_config *config, enum bide_preset preset)
{
    struct conf_pair ours, theirs;
    const struct conf_field *field;
    unsigned far = 0;
    conf_pair_init(&theirs, preset);
    pair_of(&ours, preset, config);
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++)
        far += is_of_target(field) && !conf_field_equal(field, &ours, &theirs) && conf_field_has_effect(field, &ours);
    return far;
}

/* Of those as near, the first: `service`, if it is among them. */
static enum bide_preset nearest(const struct bide_target_config *config)
{
    enum bide_preset best = BIDE_PRESET_SERVICE;
    unsigned least = distance(config, best);
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT && least > 0; preset++) {
        unsigned far = distance(config, preset);
        if (far < least) {
            least = far;
            best = preset;
        }
    }
    return best;
}

static int64_t left_of(int64_t until_ns, int64_t now_ns)
{
    return until_ns > now_ns ? until_ns - now_ns : 0;
}

void budget_look(struct budget_look *look, const struct bide_target *target, const char *name, int64_t now_ns)
{
    static const uint32_t permille[BUDGET_QUANTILES] = {500, 950, 990};
    *look = (struct budget_look){.name = name,
                                 .left_milli = bide_budget_left_milli(target, now_ns),
                                 .breaker = bide_breaker_get(target),
                                 .hold_off_for_ns = left_of(bide_target_hold_off_until(target, now_ns), now_ns)};
    bide_target_config_get(target, &look->config);
    if ((look->leased = bide_lease_is_on(target))) {
        look->funded_for_ns = left_of(bide_lease_until(target), now_ns);
        look->alone_for_ns = left_of(now_ns, bide_lease_until(target));
    }
    look->preset = nearest(&look->config);
    look->open_for_ns = left_of(look->breaker.until_ns, now_ns);
    for (size_t i = 0; i < BUDGET_QUANTILES && look->config.latency; i++)
        look->latency_ns[i] = bide_target_latency_ns(target, permille[i]);
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++) {
        look->refused[i] = bide_target_refused(target, (enum bide_gate)(1u << i));
        look->refused_all += look->refused[i];
    }
}

const struct conf_field *budget_differs(const struct budget_look *look, size_t i, char text[256])
{
    struct conf_pair ours, theirs;
    const struct conf_field *field;
    conf_pair_init(&theirs, look->preset);
    pair_of(&ours, look->preset, &look->config);
    for (size_t f = 0; (field = conf_field(f)) != NULL; f++) {
        bool differs = is_of_target(field) && !conf_field_equal(field, &ours, &theirs);
        if (differs && conf_field_has_effect(field, &ours) && i-- == 0) {
            conf_field_format(text, field, &ours);
            return field;
        }
    }
    return NULL;
}

/* ---- words ---- */

static const char *tenths(char text[CONF_VALUE_SIZE], int64_t milli)
{
    return conf_decimal_format(text, milli / 100, 10);
}

const char *budget_level_words(char words[BUDGET_WORDS], const struct budget_look *look)
{
    char left[CONF_VALUE_SIZE], capacity[CONF_VALUE_SIZE];
    if (look->left_milli == INT64_MAX)
        snprintf(words, BUDGET_WORDS, "no limit");
    else if (look->config.budget.kind == BIDE_BUDGET_TOKENS)
        snprintf(words, BUDGET_WORDS, "%s of %s", tenths(left, look->left_milli),
                 conf_decimal_format(capacity, look->config.budget.capacity_milli, 1000));
    else
        snprintf(words, BUDGET_WORDS, "%s left", tenths(left, look->left_milli));
    return words;
}

const char *budget_funds_words(char words[BUDGET_WORDS], const struct budget_look *look)
{
    char level[BUDGET_WORDS];
    const char *by = look->funded_for_ns > 0 ? " leased" : " alone";
    snprintf(words, BUDGET_WORDS, "%.100s%s", budget_level_words(level, look), look->leased ? by : "");
    return words;
}

static const char *state_words(const struct budget_look *look)
{
    enum bide_breaker_state state = look->breaker.state;
    static const char *const words[] = {
        [BIDE_BREAKER_CLOSED] = "closed",       [BIDE_BREAKER_OPEN] = "open",
        [BIDE_BREAKER_HALF_OPEN] = "half open", [BIDE_BREAKER_HELD_CLOSED] = "held closed",
        [BIDE_BREAKER_HELD_OPEN] = "held open",
    };
    if (state == BIDE_BREAKER_CLOSED && look->config.breaker.kind == BIDE_BREAKER_OFF)
        return "off";
    return (unsigned)state < sizeof words / sizeof *words ? words[state] : "unknown";
}

/* An open one whose time is over lets the next call probe, and becomes half open by that call. */
const char *budget_breaker_words(char words[BUDGET_WORDS], const struct budget_look *look)
{
    char left[CONF_VALUE_SIZE];
    enum bide_breaker_state state = look->breaker.state;
    if (state != BIDE_BREAKER_OPEN)
        snprintf(words, BUDGET_WORDS, "%s", state_words(look));
    else if (look->open_for_ns > 0)
        snprintf(words, BUDGET_WORDS, "open, %s to go", conf_duration_format_short(left, look->open_for_ns));
    else
        snprintf(words, BUDGET_WORDS, "open, to be probed");
    return words;
}

const char *budget_hold_off_words(char words[BUDGET_WORDS], const struct budget_look *look)
{
    char left[CONF_VALUE_SIZE];
    snprintf(words, BUDGET_WORDS, "%s%s",
             look->hold_off_for_ns > 0 ? conf_duration_format_short(left, look->hold_off_for_ns) : "-",
             look->hold_off_for_ns > 0 ? " to go" : "");
    return words;
}

double budget_share(const struct budget_look *look)
{
    double capacity = look->config.budget.capacity_milli;
    if (look->left_milli == INT64_MAX || look->config.budget.kind != BIDE_BUDGET_TOKENS)
        return look->left_milli > 0 ? 1 : 0;
    return capacity > 0 ? (double)look->left_milli / capacity : 0;
}

const char *budget_change_words(char words[BUDGET_WORDS], const struct budget_look *look)
{
    char level[BUDGET_WORDS];
    snprintf(words, BUDGET_WORDS, "budget %.40s, breaker %s%s, refused %" PRIu64, budget_funds_words(level, look),
             state_words(look), look->hold_off_for_ns > 0 ? ", quiet" : "", look->refused_all);
    return words;
}
