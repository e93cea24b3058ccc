/* test_conf_field.c - the one table of keys: complete, readable both ways, complaining in the words of a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conf/field.h"

static const struct conf_field *field_of(const char *key)
{
    const struct conf_field *field = conf_field_find(key, strlen(key));
    assert_non_null(field);
    return field;
}

static struct conf_pair pair;

static void service(void)
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

static void keys_and_members_are_there_once(void **state)
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

/* Bytes of a struct that no field sets. */
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

/* Neither struct has padding. If this fails, one has a new field: give it a key. */
static void every_field_of_both_structs_has_a_key(void **state)
{
    const struct bide_policy *p = NULL;
    const struct bide_target_config *c = NULL;
    assert_int_equal(uncovered(sizeof *p, false),
                     sizeof p->struct_size + sizeof p->reserved_flags_ + sizeof p->reserved_);
    assert_int_equal(uncovered(sizeof *c, true), sizeof c->struct_size + sizeof c->observe + sizeof c->reserved_flags_);
}

static void gates_are_called_as_the_engine_calls_them(void **state)
{
    const char *const *words = field_of("observe")->words;
    for (unsigned i = 0; i < BIDE_GATE_COUNT; i++)
        assert_string_equal(words[i], bide_gate_label((enum bide_gate)(1u << i)));
    assert_null(words[BIDE_GATE_COUNT]);
}

static void what_is_wanted_names_every_word(void **state)
{
    for (size_t i = 0; conf_field(i) != NULL; i++)
        for (const char *const *word = conf_field(i)->words; word != NULL && *word != NULL; word++)
            assert_non_null(strstr(conf_field(i)->want, *word));
}

/* ---- reading ---- */

static void each_form_reads_as_it_is_written(void **state)
{
    service();
    assert_true(reads("attempts", "7") && pair.policy.attempts_max == 7);
    assert_true(reads("base", "1.5s") && pair.policy.base_ns == 1500 * BIDE_MS);
    assert_true(reads("deadline", "never") && pair.policy.deadline_ns == BIDE_NEVER);
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

static void flags_are_yes_or_no_in_six_words(void **state)
{
    static const char *const yes[] = {"yes", "true", "on", "YES"}, *const no[] = {"no", "false", "off", "No"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(reads("require_key", yes[i]) && pair.policy.require_key);
        assert_true(reads("require_key", no[i]) && !pair.policy.require_key);
    }
    assert_false(reads("require_key", "") || reads("require_key", "1") || reads("require_key", "y"));
}

static void a_rate_is_exact_or_refused(void **state)
{
    assert_true(reads("budget.refill_per_minute", "5/s") && pair.target.budget.refill_per_minute_milli == 300000);
    assert_true(reads("budget.refill_per_minute", "1/min") && pair.target.budget.refill_per_minute_milli == 1000);
    assert_true(reads("budget.refill_per_minute", "6/h") && pair.target.budget.refill_per_minute_milli == 100);
    assert_true(reads("budget.refill_per_minute", "2") && pair.target.budget.refill_per_minute_milli == 2000);
    assert_false(reads("budget.refill_per_minute", "10/h")); /* a sixth of a token a minute */
    assert_false(reads("budget.refill_per_minute", "1/") || reads("budget.refill_per_minute", "/s"));
    assert_false(reads("budget.refill_per_minute", "1/week") || reads("budget.refill_per_minute", "9999999999/s"));
    assert_int_equal(pair.target.budget.refill_per_minute_milli, 2000);
}

static void a_value_of_another_form_is_refused_and_changes_nothing(void **state)
{
    static const char *const bad[][2] = {
        {"attempts", "3.5"},
        {"attempts", "-1"},
        {"attempts", ""},
        {"base", "200"},
        {"base", "200 ms"},
        {"base", ""},
        {"multiplier", "2y"},
        {"multiplier", "x"},
        {"hint_jitter", "10"},
        {"hint_jitter", "0.05%"},
        {"budget.ratio", "%"},
        {"budget.capacity", "full"},
        {"budget.cost", "0.0001"},
        {"jitter", "half"},
        {"jitter", ""},
        {"observe", "budget,"},
        {"observe", ""},
        {"observe", "budgets"},
        {"trust", "none,throttled"},
    };
    struct conf_pair before;
    service();
    before = pair;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_ptr_equal(conf_field_assign(field_of(bad[i][0]), &pair, bad[i][1]), field_of(bad[i][0])->want);
        assert_memory_equal(&pair, &before, sizeof pair);
    }
}

static void one_key_observes_gates_of_policy_and_target(void **state)
{
    service();
    assert_true(reads("observe", "budget, breaker,hint"));
    assert_int_equal(pair.policy.observe, BIDE_GATE_HINT);
    assert_int_equal(pair.target.observe, BIDE_GATE_BUDGET | BIDE_GATE_BREAKER);
    assert_string_equal(text_of("observe"), "hint,breaker,budget");
    assert_true(conf_pair_check(&pair, NULL));
    assert_true(reads("observe", "none") && pair.policy.observe == 0 && pair.target.observe == 0);
}

/* ---- writing ---- */

static void every_preset_reads_back_from_its_own_words(void **state)
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

static void a_field_can_be_taken_from_another_pair(void **state)
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

static const char *near(const char *key)
{
    const char *found = conf_field_suggest(key, strlen(key));
    return found != NULL ? found : "(none)";
}

static void a_misspelt_key_finds_the_one_that_was_meant(void **state)
{
    assert_string_equal(near("attemps"), "attempts");
    assert_string_equal(near("atempts"), "attempts");
    assert_string_equal(near("attmepts"), "attempts");
    assert_string_equal(near("capacity"), "budget.capacity");
    assert_string_equal(near("cap_ns"), "cap");
    assert_string_equal(near("attempts_max"), "attempts");
    assert_string_equal(near("breaker.openmax"), "breaker.open_max");
    assert_string_equal(near("max_retries"), "attempts");
    assert_string_equal(near("timeout"), "attempt_timeout");
    assert_string_equal(near("max_interval"), "cap");
    assert_string_equal(near("budget"), "budget.capacity");
    assert_string_equal(near("breaker"), "breaker.kind");
}

static void capitals_and_dashes_are_no_distance(void **state)
{
    static const char *const words[] = {"payments", "p", NULL};
    assert_string_equal(near("ATTEMPTS"), "attempts");
    assert_string_equal(near("Attempt-Timeout"), "attempt_timeout");
    assert_string_equal(near("maxAttempts"), "attempts");
    assert_string_equal(conf_suggest("PAYMENTS", 8, words), "payments");
    assert_string_equal(conf_suggest("P", 1, words), "p");
}

static void a_word_from_elsewhere_finds_none(void **state)
{
    char longest[4096];
    memset(longest, 'a', sizeof longest);
    assert_string_equal(near("frobnicate"), "(none)");
    assert_string_equal(near(""), "(none)");
    assert_string_equal(near("zz"), "(none)");
    assert_null(conf_field_suggest(longest, sizeof longest));
}

static void the_nearest_of_some_words_is_found(void **state)
{
    static const char *const words[] = {"payments", "payment", "search", NULL};
    assert_string_equal(conf_suggest("paymets", 7, words), "payments");
    assert_string_equal(conf_suggest("serach", 6, words), "search");
    assert_null(conf_suggest("orders", 6, words));
    assert_string_equal(conf_suggest("ab", 2, (const char *const[]){"ba", NULL}), "ba"); /* a swap is one mistake */
}

/* ---- checks ---- */

static void wrong_is(const char *key, const char *value, const char *at, const char *want)
{
    struct conf_problem wrong = {.field = NULL};
    service();
    assert_true(reads(key, value));
    assert_false(conf_pair_check(&pair, &wrong));
    assert_non_null(wrong.field);
    assert_string_equal(wrong.field->key, at);
    assert_string_equal(wrong.want, want);
}

static void a_problem_is_told_in_the_words_of_a_file(void **state)
{
    wrong_is("attempts", "0", "attempts", "1 or more (1 means no retry)");
    wrong_is("cap", "100ms", "cap", "base (200ms) or more");
    wrong_is("base", "40s", "cap", "base (40s) or more");
    wrong_is("floor", "1s", "floor", "base (200ms) or less");
    wrong_is("throttled_base", "1h", "throttled_base", "cap (30s) or less");
    wrong_is("multiplier", "1x", "multiplier", "1.001x to 1000x (2x doubles; for a constant wait use backoff = fixed)");
    wrong_is("deadline", "0", "deadline", "more than 0, at most about 31 years, or never for none");
}

static void hedges_are_attempts_too(void **state)
{
    service();
    assert_true(reads("hedges_max", "3") && conf_pair_check(&pair, NULL));
    struct conf_problem wrong;
    assert_true(reads("attempts", "3") && !conf_pair_check(&pair, &wrong));
    assert_string_equal(wrong.want, "less than attempts (3): a hedge is an attempt too");
}

static void numbers_in_a_problem_have_the_unit_of_a_file(void **state)
{
    wrong_is("breaker.open_jitter", "95%", "breaker.open_jitter", "0% to 90%");
    wrong_is("budget.ratio", "200%", "budget.ratio", "0% to 100% (one retry for each request)");
    wrong_is("budget.capacity", "300000", "budget.capacity", "0 (no retry ever) to 268435.455");
    wrong_is("budget.refill_per_minute", "200000/min", "budget.refill_per_minute", "0/min to 100000/min");
    wrong_is("throttle_k", "1x", "throttle_k", "0x (off), or 1.001x to 1000x (2x in the SRE book)");
    wrong_is("budget.cost", "11", "budget.cost",
             "budget.capacity (10) or less: else no retry is ever allowed (use a capacity of 0 for that)");
    wrong_is("budget.cost", "0", "budget.cost",
             "more than 0 (unless budget.cost_failure is): else the budget never refuses a retry");
    wrong_is("budget.initial", "11", "budget.initial", "budget.capacity (10) or less, or full");
    wrong_is("breaker.open_max", "500ms", "breaker.open_max", "breaker.open (1s) or more");
}

static void a_flag_in_a_problem_is_named_without_its_value(void **state)
{
    struct conf_problem wrong;
    service();
    assert_true(reads("jitter", "proportional") && reads("jitter_hi", "120%") && !conf_pair_check(&pair, &wrong));
    assert_string_equal(wrong.want, "100% or less (or set jitter_past_cap)");
}

/* Sets one field to each value of a few and looks at every complaint. */
static void no_problem_shows_a_name_of_the_structs(void **state)
{
    static const char *const values[] = {"0",      "1",          "999999h", "0x",       "1x",
                                         "99999x", "0%",         "99%",     "9999%",    "1000",
                                         "999999", "4000000000", "never",   "additive", "proportional"};
    static const char *const inner[] = {"_ns", "_milli", "_permille", "_ppm", "BIDE_", "attempts_max", "bide_", "enum"};
    unsigned seen = 0;
    for (size_t i = 0; conf_field(i) != NULL; i++)
        for (size_t j = 0; j < sizeof values / sizeof *values; j++) {
            struct conf_problem wrong;
            service();
            if (conf_field_assign(conf_field(i), &pair, values[j]) != NULL || conf_pair_check(&pair, &wrong))
                continue;
            seen++;
            assert_non_null(wrong.field);
            for (size_t k = 0; k < sizeof inner / sizeof *inner; k++)
                assert_null(strstr(wrong.want, inner[k]));
        }
    assert_true(seen > 60);
}

static void never_is_offered_where_it_is_taken(void **state)
{
    for (size_t i = 0; conf_field(i) != NULL; i++) {
        const struct conf_field *field = conf_field(i);
        struct conf_problem wrong;
        if (field->form != CONF_TIME)
            continue;
        service();
        assert_null(conf_field_assign(field, &pair, "never"));
        bool offered = strstr(conf_field_assign(field, &pair, "x"), "never") != NULL;
        if (conf_pair_check(&pair, &wrong) != offered)
            fail_msg("%s: never is %s", field->key, offered ? "offered" : "taken");
    }
}

static void a_number_that_is_too_large_is_told_with_the_largest(void **state)
{
    service();
    assert_string_equal(conf_field_assign(field_of("attempts"), &pair, "4294967296"), "4294967295 at most");
    assert_int_equal(pair.policy.attempts_max, 4);
    assert_null(conf_field_assign(field_of("attempts"), &pair, "4294967295"));
    assert_string_equal(conf_field_assign(field_of("attempts"), &pair, "-1"), "a whole number such as 3");
    assert_string_equal(conf_field_assign(field_of("attempts"), &pair, ""), "a whole number such as 3");
}

static void a_policy_that_was_never_begun_is_told_without_a_key(void **state)
{
    struct conf_problem wrong;
    service();
    pair.policy.struct_size = 0;
    assert_false(conf_pair_check(&pair, &wrong));
    assert_null(wrong.field);
    assert_true(wrong.want[0] != '\0');
}

/* ---- what matters ---- */

static bool matters(const char *key)
{
    return conf_field_has_effect(field_of(key), &pair);
}

static void what_another_field_switches_off_does_not_matter(void **state)
{
    service();
    assert_true(matters("multiplier") && matters("breaker.ratio") && matters("breaker.kind"));
    assert_false(matters("jitter_lo") || matters("hedge_delay") || matters("budget.window") || matters("throttle_max"));
    assert_true(reads("breaker.kind", "off"));
    assert_true(matters("breaker.kind"));
    assert_false(matters("breaker.ratio") || matters("breaker.open"));
    assert_true(reads("attempts", "1"));
    assert_false(matters("base") || matters("budget.kind") || matters("jitter"));
    assert_true(matters("attempts") && matters("deadline"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_members_are_there_once),
        cmocka_unit_test(every_field_of_both_structs_has_a_key),
        cmocka_unit_test(gates_are_called_as_the_engine_calls_them),
        cmocka_unit_test(what_is_wanted_names_every_word),
        cmocka_unit_test(each_form_reads_as_it_is_written),
        cmocka_unit_test(flags_are_yes_or_no_in_six_words),
        cmocka_unit_test(a_rate_is_exact_or_refused),
        cmocka_unit_test(a_value_of_another_form_is_refused_and_changes_nothing),
        cmocka_unit_test(one_key_observes_gates_of_policy_and_target),
        cmocka_unit_test(every_preset_reads_back_from_its_own_words),
        cmocka_unit_test(a_field_can_be_taken_from_another_pair),
        cmocka_unit_test(a_misspelt_key_finds_the_one_that_was_meant),
        cmocka_unit_test(capitals_and_dashes_are_no_distance),
        cmocka_unit_test(a_word_from_elsewhere_finds_none),
        cmocka_unit_test(the_nearest_of_some_words_is_found),
        cmocka_unit_test(a_problem_is_told_in_the_words_of_a_file),
        cmocka_unit_test(hedges_are_attempts_too),
        cmocka_unit_test(numbers_in_a_problem_have_the_unit_of_a_file),
        cmocka_unit_test(a_flag_in_a_problem_is_named_without_its_value),
        cmocka_unit_test(no_problem_shows_a_name_of_the_structs),
        cmocka_unit_test(never_is_offered_where_it_is_taken),
        cmocka_unit_test(a_number_that_is_too_large_is_told_with_the_largest),
        cmocka_unit_test(a_policy_that_was_never_begun_is_told_without_a_key),
        cmocka_unit_test(what_another_field_switches_off_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
