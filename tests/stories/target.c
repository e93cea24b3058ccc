/* target.c - the events of the target (hold, hold_off, add, lease, configure, crowd) and its expected state. */
#include "play.h"

#include "core/gates.h"
#include "core/lease.h"

#include <inttypes.h>
#include <string.h>

#include <bide/breaker.h>
#include <bide/budget.h>
#include <bide/classify.h>

/* -- events of the target ------------------------------------------------------------------------------------------ */

static bool run_hold(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    static const struct {
        const char *word;
        enum bide_hold hold;
    } hold_words[] = {{"open", BIDE_HOLD_OPEN}, {"closed", BIDE_HOLD_CLOSED}, {"release", BIDE_HOLD_RELEASE}};
    (void)expected_words;
    for (size_t i = 0; i < sizeof hold_words / sizeof *hold_words; i++) {
        if (story_take_word(c, hold_words[i].word)) {
            bide_breaker_hold(&s->target, hold_words[i].hold);
            return true;
        }
    }
    return story_fail(s, "expected hold open|closed|release");
}

static bool run_hold_off(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    int64_t until;
    (void)expected_words;
    if (!story_read_instant(s, story_next(c), &until))
        return story_fail(s, "expected hold_off TIME, the end of the hold-off");
    bide_target_hold_off(&s->target, until, s->now_ns);
    return true;
}

static bool run_add(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    const char *word = story_next(c);
    int64_t milli;
    bool negative = word != NULL && word[0] == '-';
    (void)expected_words;
    if (word == NULL || !text_decimal_parse(word + negative, strlen(word + negative), 1000, &milli))
        return story_fail(s, "expected add TOKENS, such as 2.5 or -1");
    bide_budget_add_milli(&s->target, negative ? -milli : milli, s->now_ns);
    return true;
}

/* `lease begin`, `lease until TIME` (the fleet replied), `lease failed` (it did not), `lease end`. */
static bool run_lease(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    int64_t until_ns = 0;
    (void)expected_words;
    if (story_take_word(c, "begin"))
        return core_lease_begin(&s->target, s->now_ns, NULL) == BIDE_OK ||
               story_fail(s, "a target with this budget cannot be leased");
    if (story_take_word(c, "end"))
        return core_lease_end(&s->target, s->now_ns) == BIDE_OK;
    if (!story_take_word(c, "failed") &&
        (!story_take_word(c, "until") || !story_read_instant(s, story_next(c), &until_ns)))
        return story_fail(s, "expected lease begin|until TIME|failed|end");
    core_lease_extend(&s->target, until_ns, s->now_ns);
    return true;
}

/* `collect firsts=N successes=N earned=TOKENS`: collects the records and compares them. */
static bool run_collect(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    struct core_lease_report report = core_lease_collect(&s->target);
    char expected[STORY_TEXT_MAX], got[STORY_TEXT_MAX], earned[TEXT_VALUE_SIZE];
    (void)expected_words;
    text_decimal_format(earned, (int64_t)report.earned_milli, 1000);
    snprintf(got, sizeof got, "firsts=%" PRIu64 " successes=%" PRIu64 " earned=%s", report.firsts, report.successes,
             earned);
    story_join_words(expected, sizeof expected, c);
    if (strcmp(expected, got) != 0)
        story_report_mismatch(s, expected, got);
    return true;
}

/* Gives the memory of the target to a new owner: calls in flight detect that. */
static bool run_reuse(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    struct bide_target_config config;
    (void)c, (void)expected_words;
    bide_target_config_get(&s->target, &config);
    return core_target_reuse(&s->target, &config, s->now_ns, NULL) == BIDE_OK ||
           story_fail(s, "the target's own configuration does not pass its check");
}

/* `configure key=value -> ok` (or nothing) and `-> refused FIELD`. */
static bool run_configure(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    struct bide_target_config config;
    struct bide_problem problem = {0};
    char expected[STORY_TEXT_MAX], got[STORY_TEXT_MAX];
    bide_target_config_get(&s->target, &config);
    if (!story_assign_all(s, &story_target_fields, &config, c))
        return false;
    if (bide_target_configure(&s->target, &config, s->now_ns, &problem) == BIDE_OK)
        snprintf(got, sizeof got, "ok");
    else
        snprintf(got, sizeof got, "refused %s", problem.field == NULL ? "" : problem.field);
    story_join_words(expected, sizeof expected, &expected_words);
    if (strcmp(expected[0] == '\0' ? "ok" : expected, got) != 0)
        story_report_mismatch(s, expected, got);
    return true;
}

/* -- a crowd: many short calls in one line ------------------------------------------------------------------------- */

struct crowd {
    uint32_t count;
    struct bide_outcome outcome;
    enum bide_safety safety;
    int64_t took_ns;
    int64_t every_ns;
};

static bool read_crowd_outcome(const char *word, struct bide_outcome *outcome)
{
    uint32_t status;
    if (story_read_kind(word, &outcome->kind))
        return true;
    if (!story_read_u32(word, &status) || status > 999)
        return false;
    *outcome = bide_classify_http((int)status, NULL);
    return true;
}

static bool read_crowd(struct story *s, struct story_cursor *c, struct crowd *crowd)
{
    const char *method, *value;
    *crowd = (struct crowd){0};
    if (!story_read_u32(story_next(c), &crowd->count) || (method = story_next(c)) == NULL ||
        !read_crowd_outcome(story_next(c), &crowd->outcome))
        return story_fail(s, "expected crowd COUNT METHOD STATUS|KIND [took=TIME] [every=TIME] -> REASON=COUNT ...");
    crowd->safety = bide_method_safety(method, strlen(method));
    if ((value = story_take_value(c, "took")) != NULL && !text_duration_parse(value, strlen(value), &crowd->took_ns))
        return story_fail(s, "expected took=TIME, not '%s'", value);
    if ((value = story_take_value(c, "every")) != NULL && !text_duration_parse(value, strlen(value), &crowd->every_ns))
        return story_fail(s, "expected every=TIME, not '%s'", value);
    return story_read_details(s, c, &crowd->outcome);
}

/* Runs the calls in sequence, each answered once. A call that would wait for its retry is cancelled at once; it
 * counts under the last reason before that. */
static void play_crowd(struct story *s, const struct crowd *crowd, uint32_t counts[BIDE_REASON_COUNT])
{
    for (uint32_t i = 0; i < crowd->count; i++) {
        struct bide_call call = {0};
        struct bide_request request = {.safety = crowd->safety, .seed = ++s->next_seed};
        struct bide_verdict v =
            bide_call_begin(&call, &s->policy[s->policies - 1], story_get_target(s), &request, s->now_ns);
        story_record_verdict(s, v);
        if (v.action == BIDE_ACTION_START) {
            s->now_ns += crowd->took_ns;
            v = bide_call_outcome(&call, v.attempt, &crowd->outcome, s->now_ns);
            story_record_verdict(s, v);
        }
        counts[v.reason]++;
        bide_call_cancel(&call, s->now_ns);
        s->now_ns += i + 1 < crowd->count ? crowd->every_ns : 0;
    }
}

/* Reads the expected count of one reason, REASON=N or REASON=N..M; 0 if it is absent. */
static bool read_expected_count(struct story *s, struct story_cursor expected_words, const char *reason,
                                struct story_range *range)
{
    const char *value = NULL;
    *range = (struct story_range){0, 0};
    while (value == NULL && story_peek(&expected_words) != NULL)
        if ((value = story_take_value(&expected_words, reason)) == NULL)
            story_next(&expected_words);
    if (value != NULL && !story_milli_range(value, range))
        return story_fail(s, "expected %s=COUNT or %s=COUNT..COUNT", reason, reason);
    return true;
}

static bool run_crowd(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    struct crowd crowd;
    struct story_range range;
    uint32_t counts[BIDE_REASON_COUNT] = {0};
    char expected[STORY_TEXT_MAX], got[STORY_TEXT_MAX] = "";
    size_t used = 0;
    bool matches_expected = true;
    if (!read_crowd(s, c, &crowd))
        return false;
    play_crowd(s, &crowd, counts);
    for (int i = 0; i < BIDE_REASON_COUNT; i++) {
        const char *reason = bide_reason_label((enum bide_reason)i);
        if (!read_expected_count(s, expected_words, reason, &range))
            return false;
        matches_expected = matches_expected && story_in_range(range, (int64_t)counts[i] * 1000);
        if (counts[i] > 0)
            used += (size_t)snprintf(got + used, sizeof got - used, "%s%s=%" PRIu32, used > 0 ? " " : "", reason,
                                     counts[i]);
    }
    story_join_words(expected, sizeof expected, &expected_words);
    if (!matches_expected)
        story_report_mismatch(s, expected, got);
    return true;
}

/* -- expectations about the target --------------------------------------------------------------------------------- */

static void expect_time(struct story *s, const char *word, const char *key, int64_t got_ns)
{
    struct story_range range;
    char text[32], line[STORY_TEXT_MAX];
    if (!story_read_instants(s, word + strlen(key) + 1, &range)) {
        story_fail(s, "expected %s=TIME or %s=TIME..TIME", key, key);
    } else if (!story_in_range(range, got_ns)) {
        story_print_duration(text, sizeof text, story_from_engine(s, got_ns));
        snprintf(line, sizeof line, "%s=%s", key, text);
        story_report_mismatch(s, word, line);
    }
}

static void expect_text(struct story *s, const char *word, const char *key, const char *got)
{
    char line[STORY_TEXT_MAX];
    snprintf(line, sizeof line, "%s=%s", key, got);
    if (strcmp(line, word) != 0)
        story_report_mismatch(s, word, line);
}

static void expect_number(struct story *s, const char *word, const char *key, uint64_t got)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, got);
    expect_text(s, word, key, text);
}

static void expect_budget(struct story *s, const char *word, const char *key)
{
    struct story_range range;
    int64_t got = bide_target_get(&s->target, s->now_ns).budget_left_milli;
    char text[TEXT_VALUE_SIZE], line[STORY_TEXT_MAX];
    if (strcmp(word, "budget=unlimited") == 0)
        range = (struct story_range){INT64_MAX, INT64_MAX};
    else if (!story_milli_range(word + strlen(key) + 1, &range))
        story_fail(s, "expected budget=TOKENS, budget=TOKENS..TOKENS or budget=unlimited");
    if (s->stopped || story_in_range(range, got))
        return;
    text_decimal_format(text, got, 1000);
    snprintf(line, sizeof line, "budget=%s", got == INT64_MAX ? "unlimited" : text);
    story_report_mismatch(s, word, line);
}

static void expect_breaker(struct story *s, const char *word, const char *key)
{
    expect_text(s, word, key, bide_breaker_state_label(bide_target_get(&s->target, s->now_ns).breaker.state));
}

static void expect_openings(struct story *s, const char *word, const char *key)
{
    expect_number(s, word, key, bide_target_get(&s->target, s->now_ns).breaker.openings);
}

static void expect_until(struct story *s, const char *word, const char *key)
{
    expect_time(s, word, key, bide_target_get(&s->target, s->now_ns).breaker.until_ns);
}

static void expect_hold_off(struct story *s, const char *word, const char *key)
{
    int64_t until = bide_target_get(&s->target, s->now_ns).hold_off_until_ns;
    if (until == 0)
        expect_text(s, word, key, "none");
    else
        expect_time(s, word, key, until);
}

static void expect_observed(struct story *s, const char *word, const char *key)
{
    char gates[96];
    story_print_gates(gates, sizeof gates, s->last.observed);
    expect_text(s, word, key, gates);
}

static void expect_evictable(struct story *s, const char *word, const char *key)
{
    expect_text(s, word, key, core_target_is_evictable(&s->target, s->now_ns) ? "yes" : "no");
}

/* The median latency. */
static void expect_p50(struct story *s, const char *word, const char *key)
{
    struct story_range range;
    char text[32], line[STORY_TEXT_MAX];
    int64_t got = bide_target_latency_get(&s->target, 500);
    if (!story_duration_range(word + strlen(key) + 1, &range)) {
        story_fail(s, "expected p50=TIME..TIME");
    } else if (!story_in_range(range, got)) {
        story_print_duration(text, sizeof text, got);
        snprintf(line, sizeof line, "p50=%s", text);
        story_report_mismatch(s, word, line);
    }
}

static const struct {
    const char *key;
    void (*check)(struct story *, const char *word, const char *key);
} expectations[] = {{"budget", expect_budget},       {"breaker", expect_breaker},
                    {"openings", expect_openings},   {"until", expect_until},
                    {"hold_off", expect_hold_off},   {"observed", expect_observed},
                    {"evictable", expect_evictable}, {"p50", expect_p50}};

static bool expect_one(struct story *s, const char *word)
{
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        const char *key = expectations[i].key;
        if (strlen(key) == length && memcmp(key, word, length) == 0 && word[length] == '=') {
            expectations[i].check(s, word, key);
            return true;
        }
    }
    return story_fail(s,
                      "expect takes budget= breaker= openings= until= hold_off= observed= evictable= p50=, or refused "
                      "GATE=N; not '%s'",
                      word);
}

/* `refused breaker=2 budget=0`: refusals per gate. */
static bool expect_refused(struct story *s, struct story_cursor *c)
{
    for (const char *word; (word = story_next(c)) != NULL;) {
        char gate[32];
        uint32_t bit;
        size_t length = strcspn(word, "=");
        snprintf(gate, sizeof gate, "%.*s", (int)length, word);
        if (word[length] != '=' || !story_gates(gate, &bit) || bit == 0)
            return story_fail(s, "expected refused GATE=COUNT, not '%s'", word);
        expect_number(s, word, gate, bide_target_get(&s->target, s->now_ns).refused[BIDE_GATE_INDEX(bit)]);
    }
    return true;
}

bool story_expect(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    (void)expected_words;
    if (story_take_word(c, "refused"))
        return expect_refused(s, c);
    for (const char *word; (word = story_next(c)) != NULL && !s->stopped;)
        if (!expect_one(s, word))
            return false;
    return true;
}

static const struct {
    const char *word;
    bool (*run)(struct story *, struct story_cursor *, struct story_cursor);
    bool takes_expected; /* may be followed by "-> ..." */
    bool needs_target;
} target_events[] = {{"hold", run_hold, false, true},      {"hold_off", run_hold_off, false, true},
                     {"add", run_add, false, true},        {"configure", run_configure, true, true},
                     {"reuse", run_reuse, false, true},    {"crowd", run_crowd, true, false},
                     {"lease", run_lease, false, true},    {"collect", run_collect, false, true},
                     {"expect", story_expect, false, true}};

bool story_target_event(struct story *s, struct story_cursor *c, struct story_cursor expected_words, bool *found)
{
    const char *word = story_peek(c);
    *found = false;
    for (size_t i = 0; word != NULL && i < sizeof target_events / sizeof *target_events; i++) {
        if (strcmp(target_events[i].word, word) == 0) {
            *found = true;
            story_next(c);
            if (target_events[i].needs_target && !story_require_target(s))
                return false;
            if (story_peek(&expected_words) != NULL && !target_events[i].takes_expected)
                return story_fail(s, "'%s' has no verdict: nothing may follow '->'", word);
            return target_events[i].run(s, c, expected_words);
        }
    }
    return false;
}
