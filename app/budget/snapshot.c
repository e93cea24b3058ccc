/* snapshot.c - reads the state of a target and describes it in short texts; see snapshot.h. */
#include "snapshot.h"
#include "core/lease.h"

#include <inttypes.h>
#include <string.h>

/* ---- reading ---- */

static bool field_is_of_target(const struct conf_field *field)
{
    return field->of_target || strcmp(field->key, "observe") == 0; /* "observe" exists in policy and target */
}

/* The preset with this target configuration. */
static void pair_with_target(struct conf_pair *pair, enum bide_preset preset, const struct bide_target_config *config)
{
    conf_pair_init(pair, preset);
    pair->target = *config;
}

static unsigned preset_distance(const struct bide_target_config *config, enum bide_preset preset)
{
    struct conf_pair ours, theirs;
    const struct conf_field *field;
    unsigned differences = 0;
    conf_pair_init(&theirs, preset);
    pair_with_target(&ours, preset, config);
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++)
        differences += field_is_of_target(field) && !conf_field_equal(field, &ours, &theirs) &&
                       conf_field_has_effect(field, &ours);
    return differences;
}

/* Returns the preset with the fewest different fields; `service` wins a tie, then the first. */
static enum bide_preset preset_nearest(const struct bide_target_config *config)
{
    enum bide_preset best = BIDE_PRESET_SERVICE;
    unsigned least = preset_distance(config, best);
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT && least > 0; preset++) {
        unsigned differences = preset_distance(config, preset);
        if (differences < least) {
            least = differences;
            best = preset;
        }
    }
    return best;
}

static int64_t time_left(int64_t until_ns, int64_t now_ns)
{
    return until_ns > now_ns ? until_ns - now_ns : 0;
}

void budget_snapshot_take(struct budget_snapshot *snapshot, const struct bide_target *target, const char *name,
                          int64_t now_ns)
{
    static const uint32_t permille[BUDGET_QUANTILES] = {500, 950, 990};
    struct bide_target_view view = bide_target_get(target, now_ns);
    *snapshot = (struct budget_snapshot){.name = name,
                                         .left_milli = view.budget_left_milli,
                                         .breaker = view.breaker,
                                         .hold_off_for_ns = time_left(view.hold_off_until_ns, now_ns)};
    bide_target_config_get(target, &snapshot->config);
    if ((snapshot->leased = core_lease_is_on(target))) {
        snapshot->funded_for_ns = time_left(core_lease_until(target), now_ns);
        snapshot->disconnected_for_ns = time_left(now_ns, core_lease_until(target));
    }
    snapshot->preset = preset_nearest(&snapshot->config);
    snapshot->open_for_ns = time_left(snapshot->breaker.until_ns, now_ns);
    for (size_t i = 0; i < BUDGET_QUANTILES && snapshot->config.latency; i++)
        snapshot->latency_ns[i] = bide_target_latency_get(target, permille[i]);
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++) {
        snapshot->refused[i] = view.refused[i];
        snapshot->refused_all += snapshot->refused[i];
    }
}

const struct conf_field *budget_changed_setting(const struct budget_snapshot *snapshot, size_t i, char text[256])
{
    struct conf_pair ours, theirs;
    const struct conf_field *field;
    conf_pair_init(&theirs, snapshot->preset);
    pair_with_target(&ours, snapshot->preset, &snapshot->config);
    for (size_t f = 0; (field = conf_field(f)) != NULL; f++) {
        bool differs = field_is_of_target(field) && !conf_field_equal(field, &ours, &theirs);
        if (differs && conf_field_has_effect(field, &ours) && i-- == 0) {
            conf_field_format(text, field, &ours);
            return field;
        }
    }
    return NULL;
}

/* ---- texts ---- */

static const char *tenths_text(char text[TEXT_VALUE_SIZE], int64_t milli)
{
    return text_decimal_format(text, milli / 100, 10);
}

const char *budget_level_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot)
{
    char left[TEXT_VALUE_SIZE], capacity[TEXT_VALUE_SIZE];
    if (snapshot->left_milli == INT64_MAX)
        snprintf(text, BUDGET_TEXT_SIZE, "no limit");
    else if (snapshot->config.budget.kind == BIDE_BUDGET_TOKENS)
        snprintf(text, BUDGET_TEXT_SIZE, "%s of %s", tenths_text(left, snapshot->left_milli),
                 text_decimal_format(capacity, snapshot->config.budget.capacity_milli, 1000));
    else
        snprintf(text, BUDGET_TEXT_SIZE, "%s left", tenths_text(left, snapshot->left_milli));
    return text;
}

const char *budget_funding_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot)
{
    char level[BUDGET_TEXT_SIZE];
    const char *by = snapshot->funded_for_ns > 0 ? " leased" : " disconnected";
    snprintf(text, BUDGET_TEXT_SIZE, "%.100s%s", budget_level_text(level, snapshot), snapshot->leased ? by : "");
    return text;
}

static const char *breaker_state_text(const struct budget_snapshot *snapshot)
{
    enum bide_breaker_state state = snapshot->breaker.state;
    static const char *const text[] = {
        [BIDE_BREAKER_CLOSED] = "closed",       [BIDE_BREAKER_OPEN] = "open",
        [BIDE_BREAKER_HALF_OPEN] = "half open", [BIDE_BREAKER_HELD_CLOSED] = "held closed",
        [BIDE_BREAKER_HELD_OPEN] = "held open",
    };
    if (state == BIDE_BREAKER_CLOSED && snapshot->config.breaker.kind == BIDE_BREAKER_OFF)
        return "off";
    return (unsigned)state < sizeof text / sizeof *text ? text[state] : "unknown";
}

/* When its time is over, an open breaker admits the next call as a probe; that call makes it half open. */
const char *budget_breaker_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot)
{
    char left[TEXT_VALUE_SIZE];
    enum bide_breaker_state state = snapshot->breaker.state;
    if (state != BIDE_BREAKER_OPEN)
        snprintf(text, BUDGET_TEXT_SIZE, "%s", breaker_state_text(snapshot));
    else if (snapshot->open_for_ns > 0)
        snprintf(text, BUDGET_TEXT_SIZE, "open, %s to go", text_duration_format_short(left, snapshot->open_for_ns));
    else
        snprintf(text, BUDGET_TEXT_SIZE, "open, to be probed");
    return text;
}

const char *budget_hold_off_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot)
{
    char left[TEXT_VALUE_SIZE];
    snprintf(text, BUDGET_TEXT_SIZE, "%s%s",
             snapshot->hold_off_for_ns > 0 ? text_duration_format_short(left, snapshot->hold_off_for_ns) : "-",
             snapshot->hold_off_for_ns > 0 ? " to go" : "");
    return text;
}

double budget_share(const struct budget_snapshot *snapshot)
{
    double capacity = snapshot->config.budget.capacity_milli;
    if (snapshot->left_milli == INT64_MAX || snapshot->config.budget.kind != BIDE_BUDGET_TOKENS)
        return snapshot->left_milli > 0 ? 1 : 0;
    return capacity > 0 ? (double)snapshot->left_milli / capacity : 0;
}

const char *budget_summary_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot)
{
    char level[BUDGET_TEXT_SIZE];
    snprintf(text, BUDGET_TEXT_SIZE, "budget %.40s, breaker %s%s, refused %" PRIu64,
             budget_funding_text(level, snapshot), breaker_state_text(snapshot),
             snapshot->hold_off_for_ns > 0 ? ", hold-off" : "", snapshot->refused_all);
    return text;
}
