/* test_field.c - the table of keys: complete, parsing and formatting, problems in the terms of a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "conf/field.h"

static const struct conf_field *field_of(const char *key)
{
    const struct conf_field *field = conf_field_find(key, strlen(key));
    assert_non_null(field);
    return field;
}

static struct conf_pair pair;

static void reset_to_service(void)
{
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
}

static bool reads(const char *key, const char *value)
{
    return conf_field_assign(field_of(key), &pair, value) == NULL;
}

static const char *text_of(const char *key)
{
    static char text[256];
    return conf_field_format(text, field_of(key), &pair);
}

/* ---- the table ---- */

static void keys_and_members_are_unique(void **state)
{
    for (size_t i = 0; conf_field(i) != NULL; i++)
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(conf_field(i)->key, conf_field(j)->key);
            assert_string_not_equal(conf_field(i)->member, conf_field(j)->member);
        }
}

static size_t size_of(const struct conf_field *field)
{
    return field->form == CONF_TIME ? sizeof(int64_t) : field->form == CONF_FLAG ? sizeof(bool) : sizeof(uint32_t);
}

/* Returns the number of bytes of a struct that no field covers. */
static size_t uncovered(size_t size, bool of_target)
{
    static unsigned char covered[1024];
    size_t bytes = 0;
    memset(covered, 0, sizeof covered);
    for (size_t i = 0; conf_field(i) != NULL; i++)
        if (conf_field(i)->of_target == of_target)
            memset(covered + conf_field(i)->offset, 1, size_of(conf_field(i)));
    for (size_t i = 0; i < size; i++)
        bytes += covered[i] == 0;
    return bytes;
}

/* Neither struct has padding. If this fails, a struct has a new field that needs a key. */
static void every_struct_field_has_a_key(void **state)
{
    const struct bide_policy *p = NULL;
    const struct bide_target_config *c = NULL;
    assert_int_equal(uncovered(sizeof *p, false), sizeof p->reserved_flags_ + sizeof p->reserved_);
    assert_int_equal(uncovered(sizeof *c, true), sizeof c->observe + sizeof c->reserved_flags_ + sizeof c->reserved_);
}

static void gate_words_are_the_labels_of_the_engine(void **state)
{
    const char *const *words = field_of("observe")->words;
    for (unsigned i = 0; i < BIDE_GATE_COUNT; i++)
        assert_string_equal(words[i], bide_gate_label((enum bide_gate)(1u << i)));
    assert_null(words[BIDE_GATE_COUNT]);
}

static void expected_form_names_every_word(void **state)
{
    for (size_t i = 0; conf_field(i) != NULL; i++)
        for (const char *const *word = conf_field(i)->words; word != NULL && *word != NULL; word++)
            assert_non_null(strstr(conf_field(i)->want, *word));
}

/* ---- reading ---- */

static void each_form_parses(void **state)
{
    reset_to_service();
    assert_true(reads("attempts", "7") && pair.policy.attempts_max == 7);
    assert_true(reads("base", "1.5s") && pair.policy.base_ns == 1500 * BIDE_MS);
    assert_true(reads("deadline", "never") && pair.policy.call_timeout_ns == BIDE_NEVER);
    assert_true(reads("multiplier", "1.5x") && pair.policy.multiplier_milli == 1500);
    assert_true(reads("multiplier", "3") && pair.policy.multiplier_milli == 3000);
    assert_true(reads("hint_jitter", "12.5%") && pair.policy.hint_jitter_permille == 125);
    assert_true(reads("hint_jitter", "0") && pair.policy.hint_jitter_permille == 0);
    assert_true(reads("budget.ratio", "0.5%") && pair.target.budget.ratio_ppm == 5000);
    assert_true(reads("budget.capacity", "0.1") && pair.target.budget.capacity_milli == 100);
    assert_true(reads("budget.initial", "full") && pair.target.budget.initial_milli == BIDE_FULL);
    assert_true(reads("jitter", "decorrelated-aws") && pair.policy.jitter == BIDE_JITTER_DECORRELATED_AWS);
    assert_true(reads("jitter", "None") && pair.policy.jitter == BIDE_JITTER_NONE);
    assert_true(reads("trust", "throttled , unavailable") && pair.target.trust == 3);
    assert_true(reads("trust", "none") && pair.target.trust == 0);
}

static void flags_accept_six_words(void **state)
{
    static const char *const yes[] = {"yes", "true", "on", "YES"}, *const no[] = {"no", "false", "off", "No"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(reads("require_key", yes[i]) && pair.policy.require_key);
        assert_true(reads("require_key", no[i]) && !pair.policy.require_key);
    }
    assert_false(reads("require_key", "") || reads("require_key", "1") || reads("require_key", "y"));
}

static void rate_is_exact_or_rejected(void **state)
{
    assert_true(reads("budget.refill_per_minute", "5/s") && pair.target.budget.refill_per_minute_milli == 300000);
    assert_true(reads("budget.refill_per_minute", "1/min") && pair.target.budget.refill_per_minute_milli == 1000);
    assert_true(reads("budget.refill_per_minute", "6/h") && pair.target.budget.refill_per_minute_milli == 100);
    assert_true(reads("budget.refill_per_minute", "2") && pair.target.budget.refill_per_minute_milli == 2000);
    assert_false(reads("budget.refill_per_minute", "10/h")); /* a sixth of a token per minute */
    assert_false(reads("budget.refill_per_minute", "1/") || reads("budget.refill_per_minute", "/s"));
    assert_false(reads("budget.refill_per_minute", "1/week") || reads("budget.refill_per_minute", "9999999999/s"));
    assert_int_equal(pair.target.budget.refill_per_minute_milli, 2000);
}

static void malformed_value_is_rejected_and_changes_nothing(void **state)
{
    static const char *const bad[][2] = {
        {"attempts", "3.5"},         {"attempts", "-1"},    {"attempts", ""},
        {"base", "200 mm"},          {"base", "1.2.3"},     {"base", ""},
        {"multiplier", "2y"},        {"multiplier", "x"},   {"hint_jitter", "10"},
        {"hint_jitter", "0.05%"},    {"budget.ratio", "%"}, {"budget.capacity", "full"},
        {"budget.cost", "0.0001"},   {"jitter", "half"},    {"jitter", ""},
        {"observe", "budget,"},      {"observe", ""},       {"observe", "budgets"},
        {"trust", "none,throttled"},
    };
    struct conf_pair before;
    reset_to_service();
    before = pair;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_ptr_equal(conf_field_assign(field_of(bad[i][0]), &pair, bad[i][1]), field_of(bad[i][0])->want);
        assert_memory_equal(&pair, &before, sizeof pair);
    }
}

static void number_without_a_unit_is_rejected_with_the_number_and_units(void **state)
{
    reset_to_service();
    assert_string_equal(conf_field_assign(field_of("base"), &pair, "200"),
                        "a duration with a unit, such as 200s or 200ms");
    assert_string_equal(conf_field_assign(field_of("base"), &pair, "1.5"),
                        "a duration with a unit, such as 1.5s or 1.5ms");
}

static const char *want_of(const char *value)
{
    return conf_field_assign(field_of("base"), &pair, value);
}

static void duration_in_another_notation_is_translated(void **state)
{
    reset_to_service();
    assert_string_equal(want_of("60sec"), "written 60s");
    assert_string_equal(want_of("60S"), "written 60s");
    assert_string_equal(want_of(" 1.5 Minutes "), "written 1.5m");
    assert_string_equal(want_of("200 ms"), "written 200ms");
    assert_string_equal(want_of("1h30m"), "one number with one unit, such as 90m");
    assert_string_equal(want_of("1 min 30 secs"), "one number with one unit, such as 90s");
    assert_string_equal(want_of("99999999999999999999s"), "a duration of at most 11574d, about 31 years");
    assert_string_equal(want_of("11574d1d"), "a duration of at most 11574d, about 31 years");
}

static void word_that_is_no_duration_is_not_translated(void **state)
{
    static const char *const words[] = {"",   " ", "s", "60x", "1h30", "h1", "1..5sec", "1h 2h 3h 4h 5h 6h 7h 8h 9h x",
                                        "-5s"};
    reset_to_service();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_ptr_equal(want_of(words[i]), field_of("base")->want);
}

static void observe_sets_gates_of_policy_and_target(void **state)
{
    reset_to_service();
    assert_true(reads("observe", "budget, breaker,hint"));
    assert_int_equal(pair.policy.observe, BIDE_GATE_HINT);
    assert_int_equal(pair.target.observe, BIDE_GATE_BUDGET | BIDE_GATE_BREAKER);
    assert_string_equal(text_of("observe"), "hint,breaker,budget");
    assert_true(conf_pair_check(&pair, NULL));
    assert_true(reads("observe", "none") && pair.policy.observe == 0 && pair.target.observe == 0);
}

/* ---- writing ---- */

static void every_preset_round_trips_through_text(void **state)
{
    for (unsigned preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        struct conf_pair from, to;
        conf_pair_init(&from, (enum bide_preset)preset);
        conf_pair_init(&to, (enum bide_preset)((preset + 5) % BIDE_PRESET_COUNT));
        for (size_t i = 0; conf_field(i) != NULL; i++) {
            char text[256];
            assert_null(conf_field_assign(conf_field(i), &to, conf_field_format(text, conf_field(i), &from)));
            assert_true(conf_field_equal(conf_field(i), &from, &to));
        }
        assert_memory_equal(&from, &to, sizeof from);
    }
}

static void field_copy_copies_every_field(void **state)
{
    struct conf_pair from, to;
    conf_pair_init(&from, BIDE_PRESET_GRPC);
    conf_pair_init(&to, BIDE_PRESET_PAYMENT);
    assert_null(conf_field_assign(field_of("observe"), &from, "hint,budget"));
    for (size_t i = 0; conf_field(i) != NULL; i++)
        conf_field_copy(conf_field(i), &to, &from);
    assert_memory_equal(&from, &to, sizeof from);
}

/* ---- near misses ---- */

static const char *suggestion_for(const char *key)
{
    const char *found = conf_key_suggest(key, strlen(key), "");
    return found != NULL ? found : "(none)";
}

static void misspelt_key_suggests_the_intended_key(void **state)
{
    assert_string_equal(suggestion_for("attemps"), "attempts");
    assert_string_equal(suggestion_for("atempts"), "attempts");
    assert_string_equal(suggestion_for("attmepts"), "attempts");
    assert_string_equal(suggestion_for("capacity"), "budget.capacity");
    assert_string_equal(suggestion_for("cap_ns"), "cap");
    assert_string_equal(suggestion_for("attempts_max"), "attempts");
    assert_string_equal(suggestion_for("breaker.openmax"), "breaker.open_max");
    assert_string_equal(suggestion_for("max_retries"), "attempts");
    assert_string_equal(suggestion_for("timeout"), "attempt_timeout");
    assert_string_equal(suggestion_for("max_interval"), "cap");
    assert_string_equal(suggestion_for("budget"), "budget.capacity");
    assert_string_equal(suggestion_for("breaker"), "breaker.kind");
}

static void case_and_dashes_do_not_count_as_distance(void **state)
{
    static const char *const words[] = {"payments", "p", NULL};
    assert_string_equal(suggestion_for("ATTEMPTS"), "attempts");
    assert_string_equal(suggestion_for("Attempt-Timeout"), "attempt_timeout");
    assert_string_equal(suggestion_for("maxAttempts"), "attempts");
    assert_string_equal(conf_suggest("PAYMENTS", 8, words), "payments");
    assert_string_equal(conf_suggest("P", 1, words), "p");
}

static void unrelated_word_has_no_suggestion(void **state)
{
    char longest[4096];
    memset(longest, 'a', sizeof longest);
    assert_string_equal(suggestion_for("frobnicate"), "(none)");
    assert_string_equal(suggestion_for(""), "(none)");
    assert_string_equal(suggestion_for("zz"), "(none)");
    assert_null(conf_key_suggest(longest, sizeof longest, ""));
}

static void beginning_of_words_suggests_all_that_fit(void **state)
{
    char many[24][8];
    const char *list[sizeof many / sizeof *many + 1] = {NULL};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        snprintf(many[i], sizeof many[i], "word-%c", (char)('a' + i));
        list[i] = many[i];
    }
    assert_string_equal(conf_suggest("word", 4, list), "word-a, word-b, word-c, word-d, word-e or 19 others");
    static const char *const words[] = {"attempts", "base", "attempt-timeout", "attach", "attend", "set", NULL};
    assert_string_equal(conf_suggest("attemp", 6, words), "attempts or attempt-timeout");
    assert_string_equal(conf_suggest("att", 3, words), "attempts, attempt-timeout, attach or attend");
    assert_string_equal(conf_suggest("ba", 2, words), "base");
    assert_string_equal(suggestion_for("breaker.open_m"), "breaker.open_max");
}

static void two_changes_make_another_word_of_a_short_word(void **state)
{
    assert_null(conf_suggest("strict", 6, (const char *const[]){"script", NULL}));
    assert_null(conf_suggest("att", 3, (const char *const[]){"set", NULL}));
    assert_null(conf_suggest("dead", 4, (const char *const[]){"seed", NULL}));
    assert_null(conf_suggest("retry", 5, (const char *const[]){"netrc", NULL}));
    assert_string_equal(conf_suggest("attmpt", 6, (const char *const[]){"attempts", NULL}), "attempts");
}

static void nearest_of_several_words_is_suggested(void **state)
{
    static const char *const words[] = {"payments", "payment", "search", NULL};
    assert_string_equal(conf_suggest("paymets", 7, words), "payments");
    assert_string_equal(conf_suggest("serach", 6, words), "search");
    assert_null(conf_suggest("orders", 6, words));
    assert_string_equal(conf_suggest("ab", 2, (const char *const[]){"ba", NULL}),
                        "ba"); /* a swap is a single mistake */
}

/* ---- checks ---- */

static void assert_problem(const char *key, const char *value, const char *at, const char *want)
{
    struct conf_problem problem = {.field = NULL};
    reset_to_service();
    assert_true(reads(key, value));
    assert_false(conf_pair_check(&pair, &problem));
    assert_non_null(problem.field);
    assert_string_equal(problem.field->key, at);
    assert_string_equal(problem.want, want);
}

static void engine_problem_is_translated_to_keys_and_units(void **state)
{
    assert_problem("attempts", "0", "attempts", "1 or more (1 means no retry)");
    assert_problem("cap", "100ms", "cap", "base (200ms) or more");
    assert_problem("base", "40s", "cap", "base (40s) or more");
    assert_problem("floor", "1s", "floor", "base (200ms) or less");
    assert_problem("throttled_base", "1h", "throttled_base", "cap (30s) or less");
    assert_problem("multiplier", "1x", "multiplier",
                   "1.001x to 1000x (2x doubles; for a constant wait use backoff = fixed)");
    assert_problem("deadline", "0", "deadline", "more than 0, at most about 31 years, or never for none");
}

static void hedges_count_as_attempts(void **state)
{
    reset_to_service();
    assert_true(reads("hedges_max", "3") && conf_pair_check(&pair, NULL));
    struct conf_problem problem;
    assert_true(reads("attempts", "3") && !conf_pair_check(&pair, &problem));
    assert_string_equal(problem.want, "less than attempts (3): a hedge is an attempt too");
}

static void numbers_in_a_problem_carry_units(void **state)
{
    assert_problem("breaker.open_jitter", "95%", "breaker.open_jitter", "0% to 90%");
    assert_problem("budget.ratio", "200%", "budget.ratio", "0% to 100% (one retry for each request)");
    assert_problem("budget.capacity", "300000", "budget.capacity", "0 (no retry ever) to 268435.455");
    assert_problem("budget.refill_per_minute", "200000/min", "budget.refill_per_minute", "0/min to 100000/min");
    assert_problem("throttle_k", "1x", "throttle_k", "0x (off), or 1.001x to 1000x (2x in the SRE book)");
    assert_problem("budget.cost", "11", "budget.cost",
                   "budget.capacity (10) or less: else no retry is ever allowed (use a capacity of 0 for that)");
    assert_problem("budget.cost", "0", "budget.cost",
                   "more than 0 (unless budget.cost_failure is): else the budget never refuses a retry");
    assert_problem("budget.initial", "11", "budget.initial", "budget.capacity (10) or less, or full");
    assert_problem("breaker.open_max", "500ms", "breaker.open_max", "breaker.open (1s) or more");
}

static void flag_in_a_problem_is_named_without_its_value(void **state)
{
    struct conf_problem problem;
    reset_to_service();
    assert_true(reads("jitter", "proportional") && reads("jitter_hi", "120%") && !conf_pair_check(&pair, &problem));
    assert_string_equal(problem.want, "100% or less (or set jitter_past_cap)");
}

/* Sets each field to several values and inspects every problem. */
static void no_problem_mentions_struct_members(void **state)
{
    static const char *const values[] = {"0",      "1",          "999999h", "0x",       "1x",
                                         "99999x", "0%",         "99%",     "9999%",    "1000",
                                         "999999", "4000000000", "never",   "additive", "proportional"};
    static const char *const inner[] = {"_ns", "_milli", "_permille", "_ppm", "BIDE_", "attempts_max", "bide_", "enum"};
    unsigned seen = 0;
    for (size_t i = 0; conf_field(i) != NULL; i++)
        for (size_t j = 0; j < sizeof values / sizeof *values; j++) {
            struct conf_problem problem;
            reset_to_service();
            if (conf_field_assign(conf_field(i), &pair, values[j]) != NULL || conf_pair_check(&pair, &problem))
                continue;
            seen++;
            assert_non_null(problem.field);
            for (size_t k = 0; k < sizeof inner / sizeof *inner; k++)
                assert_null(strstr(problem.want, inner[k]));
        }
    assert_true(seen > 60);
}

static void never_is_offered_exactly_where_it_is_accepted(void **state)
{
    for (size_t i = 0; conf_field(i) != NULL; i++) {
        const struct conf_field *field = conf_field(i);
        struct conf_problem problem;
        if (field->form != CONF_TIME)
            continue;
        reset_to_service();
        assert_null(conf_field_assign(field, &pair, "never"));
        bool offered = strstr(conf_field_assign(field, &pair, "x"), "never") != NULL;
        if (conf_pair_check(&pair, &problem) != offered)
            fail_msg("%s: never is %s", field->key, offered ? "offered" : "taken");
    }
}

static void too_large_number_is_reported_with_the_maximum(void **state)
{
    reset_to_service();
    assert_string_equal(conf_field_assign(field_of("attempts"), &pair, "4294967296"), "4294967295 at most");
    assert_int_equal(pair.policy.attempts_max, 4);
    assert_null(conf_field_assign(field_of("attempts"), &pair, "4294967295"));
    assert_string_equal(conf_field_assign(field_of("attempts"), &pair, "-1"), "a whole number such as 3, or unlimited");
    assert_string_equal(conf_field_assign(field_of("attempts"), &pair, ""), "a whole number such as 3, or unlimited");
}

static void field_of_a_newer_version_is_reported_without_a_key(void **state)
{
    struct conf_problem problem;
    reset_to_service();
    pair.policy.reserved_[0] = 1;
    assert_false(conf_pair_check(&pair, &problem));
    assert_null(problem.field);
    assert_true(problem.want[0] != '\0');
}

/* ---- what matters ---- */

static bool has_effect(const char *key)
{
    return conf_field_has_effect(field_of(key), &pair);
}

static void field_disabled_by_another_has_no_effect(void **state)
{
    reset_to_service();
    assert_true(has_effect("multiplier") && has_effect("breaker.ratio") && has_effect("breaker.kind"));
    assert_false(has_effect("jitter_lo") || has_effect("hedge_delay") || has_effect("budget.window") ||
                 has_effect("throttle_max"));
    assert_true(reads("breaker.kind", "off"));
    assert_true(has_effect("breaker.kind"));
    assert_false(has_effect("breaker.ratio") || has_effect("breaker.open"));
    assert_true(reads("attempts", "1"));
    assert_false(has_effect("base") || has_effect("budget.kind") || has_effect("jitter"));
    assert_true(has_effect("attempts") && has_effect("deadline"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_members_are_unique),
        cmocka_unit_test(every_struct_field_has_a_key),
        cmocka_unit_test(gate_words_are_the_labels_of_the_engine),
        cmocka_unit_test(expected_form_names_every_word),
        cmocka_unit_test(each_form_parses),
        cmocka_unit_test(flags_accept_six_words),
        cmocka_unit_test(rate_is_exact_or_rejected),
        cmocka_unit_test(malformed_value_is_rejected_and_changes_nothing),
        cmocka_unit_test(number_without_a_unit_is_rejected_with_the_number_and_units),
        cmocka_unit_test(duration_in_another_notation_is_translated),
        cmocka_unit_test(word_that_is_no_duration_is_not_translated),
        cmocka_unit_test(observe_sets_gates_of_policy_and_target),
        cmocka_unit_test(every_preset_round_trips_through_text),
        cmocka_unit_test(field_copy_copies_every_field),
        cmocka_unit_test(misspelt_key_suggests_the_intended_key),
        cmocka_unit_test(case_and_dashes_do_not_count_as_distance),
        cmocka_unit_test(unrelated_word_has_no_suggestion),
        cmocka_unit_test(beginning_of_words_suggests_all_that_fit),
        cmocka_unit_test(two_changes_make_another_word_of_a_short_word),
        cmocka_unit_test(nearest_of_several_words_is_suggested),
        cmocka_unit_test(engine_problem_is_translated_to_keys_and_units),
        cmocka_unit_test(hedges_count_as_attempts),
        cmocka_unit_test(numbers_in_a_problem_carry_units),
        cmocka_unit_test(flag_in_a_problem_is_named_without_its_value),
        cmocka_unit_test(no_problem_mentions_struct_members),
        cmocka_unit_test(never_is_offered_exactly_where_it_is_accepted),
        cmocka_unit_test(too_large_number_is_reported_with_the_maximum),
        cmocka_unit_test(field_of_a_newer_version_is_reported_without_a_key),
        cmocka_unit_test(field_disabled_by_another_has_no_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
