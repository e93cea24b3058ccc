/* test_budget_change.c - `bide budget set` and `reset`: what is read, what is refused, what is done. */
#define _GNU_SOURCE
#include "budget/change.h"

#include <bide/lease.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW_NS (1000 * BIDE_S)

static struct bide_target target;
static struct budget_look look;
static struct budget_change change;
static char want[BUDGET_WANT];

static void begin(enum bide_preset preset)
{
    struct bide_target_config config;
    bide_target_config_init(&config, preset);
    assert_int_equal(bide_target_init(&target, &config, NOW_NS, NULL), BIDE_OK);
    budget_look(&look, &target, "payments", NOW_NS);
    budget_change_begin(&change, &look);
    want[0] = '\0';
}

/* Of the preset service: what would be right, or "" if all is well. */
static const char *wanted(const char *word)
{
    begin(BIDE_PRESET_SERVICE);
    if (budget_change_read(&change, word, want) && budget_change_check(&change, want))
        assert_string_equal(want, "");
    else
        assert_string_not_equal(want, "");
    return want;
}

static void a_level_is_set_exactly(void **state)
{
    assert_string_equal(wanted("budget=2.5"), "");
    assert_false(change.has_config);
    budget_change_do(&change, &target, NOW_NS);
    assert_int_equal(bide_budget_left_milli(&target, NOW_NS), 2500);
    budget_change_read(&change, "budget=7", want);
    budget_change_do(&change, &target, NOW_NS);
    assert_int_equal(bide_budget_left_milli(&target, NOW_NS), 7000);
    budget_change_read(&change, "budget=empty", want);
    budget_change_do(&change, &target, NOW_NS);
    assert_int_equal(bide_budget_left_milli(&target, NOW_NS), 0);
    budget_change_read(&change, "budget=full", want);
    budget_change_do(&change, &target, NOW_NS);
    assert_int_equal(bide_budget_left_milli(&target, NOW_NS), 10000);
}

static void a_level_must_fit_the_capacity_that_is_to_be(void **state)
{
    assert_string_equal(wanted("budget=10"), "");
    assert_non_null(strstr(wanted("budget=10.001"), "0 to 10, the capacity"));
    assert_true(budget_change_read(&change, "budget.capacity=20", want));
    assert_true(budget_change_check(&change, want));
    assert_non_null(strstr(wanted("budget=lots"), "such as 5"));
    assert_non_null(strstr(wanted("budget=-1"), "such as 5"));
    assert_non_null(strstr(wanted("budget="), "such as 5"));
}

static void what_has_no_level_cannot_be_set_to_one(void **state)
{
    begin(BIDE_PRESET_COMMAND);
    assert_true(budget_change_read(&change, "budget=1", want));
    assert_false(budget_change_check(&change, want));
    assert_non_null(strstr(want, "nothing limits retries"));
}

static void a_breaker_is_held_and_released(void **state)
{
    assert_string_equal(wanted("breaker=open"), "");
    budget_change_do(&change, &target, NOW_NS);
    assert_int_equal(bide_breaker_get(&target).state, BIDE_BREAKER_HELD_OPEN);
    assert_true(budget_change_read(&change, "breaker=closed", want));
    budget_change_do(&change, &target, NOW_NS);
    assert_int_equal(bide_breaker_get(&target).state, BIDE_BREAKER_HELD_CLOSED);
    assert_true(budget_change_read(&change, "breaker=auto", want));
    budget_change_do(&change, &target, NOW_NS);
    assert_int_equal(bide_breaker_get(&target).state, BIDE_BREAKER_CLOSED);
    assert_non_null(strstr(wanted("breaker=shut"), "open or closed"));
}

static void keys_of_a_target_are_taken_and_others_are_not(void **state)
{
    assert_string_equal(wanted("budget.capacity=20"), "");
    assert_true(change.has_config);
    assert_int_equal(change.config.budget.capacity_milli, 20000);
    assert_string_equal(wanted("observe=budget,breaker"), "");
    assert_int_equal(change.config.observe, BIDE_GATE_BUDGET | BIDE_GATE_BREAKER);
    assert_non_null(strstr(wanted("observe=repeat"), "gates of a target"));
    assert_non_null(strstr(wanted("observe=rubbish"), "none, or some of"));
    assert_non_null(strstr(wanted("attempts=3"), "part of each call's policy"));
    assert_non_null(strstr(wanted("budget.capacty=3"), "budget.capacity: there is no key budget.capacty"));
    assert_non_null(strstr(wanted("xyzzyxyzzy=3"), "bide help policy-file"));
    assert_non_null(strstr(wanted("budget.capacity"), "KEY=VALUE"));
    assert_non_null(strstr(wanted("budget.capacity=lots"), "an amount such as"));
}

static void keys_are_checked_together(void **state)
{
    assert_non_null(strstr(wanted("breaker.probes=99"), "breaker.probes"));
    assert_true(budget_change_read(&change, "breaker.probes=3", want));
    assert_true(budget_change_check(&change, want));
}

static void a_reset_fills_the_budget_and_closes_the_breaker(void **state)
{
    struct budget_look before, after;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    begin(BIDE_PRESET_SERVICE);
    bide_budget_add_milli(&target, -7500, NOW_NS);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    budget_look(&before, &target, "x", NOW_NS);
    budget_reset(&target, NOW_NS);
    budget_look(&after, &target, "x", NOW_NS);
    assert_int_equal(after.left_milli, 10000);
    assert_int_equal(after.breaker.state, BIDE_BREAKER_CLOSED);
    budget_change_tell(out, &before, &after);
    fclose(out);
    assert_string_equal(text, "budget 10 of 10 (was 2.5 of 10); breaker closed (was held open)");
    free(text);
}

/* ---- what a fleet lends ---- */

static void begin_leased(void)
{
    begin(BIDE_PRESET_SERVICE);
    assert_int_equal(bide_lease_begin(&target, NOW_NS, NULL), BIDE_OK);
    bide_lease_extend(&target, NOW_NS + BIDE_S, NOW_NS);
    bide_budget_add_milli(&target, 2000, NOW_NS);
    budget_look(&look, &target, "payments", NOW_NS);
    budget_change_begin(&change, &look);
}

static void nobody_but_its_fleet_fills_a_leased_budget(void **state)
{
    static const char *const words[] = {"budget=full", "budget=1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        begin_leased();
        assert_true(budget_change_read(&change, words[i], want));
        assert_false(budget_change_check(&change, want));
        assert_non_null(strstr(want, "a fleet lends"));
    }
    begin_leased();
    assert_true(budget_change_read(&change, "budget=empty", want));
    assert_true(budget_change_check(&change, want));
    budget_change_do(&change, &target, NOW_NS);
    assert_int_equal(bide_budget_left_milli(&target, NOW_NS), 0);
}

static void a_reset_leaves_a_lease_alone_and_ends_one_whose_fleet_does_not_answer(void **state)
{
    struct budget_look before, after;
    char text[256] = "";
    begin_leased();
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    budget_reset(&target, NOW_NS);
    assert_true(bide_lease_is_on(&target));
    assert_int_equal(bide_budget_left_milli(&target, NOW_NS), 2000);
    assert_int_equal(bide_breaker_get(&target).state, BIDE_BREAKER_CLOSED);

    budget_look(&before, &target, "x", NOW_NS + 2 * BIDE_S);
    budget_reset(&target, NOW_NS + 2 * BIDE_S);
    budget_look(&after, &target, "x", NOW_NS + 2 * BIDE_S);
    assert_false(bide_lease_is_on(&target));
    assert_int_equal(after.left_milli, 10000);
    FILE *out = fmemopen(text, sizeof text, "w");
    budget_change_tell(out, &before, &after);
    fclose(out);
    assert_string_equal(text, "budget 10 of 10 (was 2 of 10); the lease is over; breaker closed");
}

static void a_changed_key_is_told_with_what_it_was(void **state)
{
    struct budget_look before, after;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    begin(BIDE_PRESET_SERVICE);
    budget_look(&before, &target, "x", NOW_NS);
    after = before;
    after.config.breaker.probes = 7;
    budget_change_tell(out, &before, &after);
    fclose(out);
    assert_non_null(strstr(text, "breaker.probes = 7 (was "));
    assert_non_null(strstr(text, "; budget 10 of 10; breaker closed"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_is_set_exactly),
        cmocka_unit_test(a_level_must_fit_the_capacity_that_is_to_be),
        cmocka_unit_test(what_has_no_level_cannot_be_set_to_one),
        cmocka_unit_test(a_breaker_is_held_and_released),
        cmocka_unit_test(keys_of_a_target_are_taken_and_others_are_not),
        cmocka_unit_test(keys_are_checked_together),
        cmocka_unit_test(a_reset_fills_the_budget_and_closes_the_breaker),
        cmocka_unit_test(nobody_but_its_fleet_fills_a_leased_budget),
        cmocka_unit_test(a_reset_leaves_a_lease_alone_and_ends_one_whose_fleet_does_not_answer),
        cmocka_unit_test(a_changed_key_is_told_with_what_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
