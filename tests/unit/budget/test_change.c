/* test_change.c - `bide budget set` and `reset`: parsing, validation, application. */
#define _GNU_SOURCE
#include "budget/change.h"
#include "core/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW_NS (1000 * BIDE_S)

static struct bide_target target;
static struct budget_snapshot snapshot;
static struct budget_change change;
static char error_text[BUDGET_ERROR_SIZE];

static void begin(enum bide_preset preset)
{
    struct bide_target_config config;
    bide_target_config_init(&config, preset);
    assert_int_equal(bide_target_init(&target, &config, NOW_NS, NULL), BIDE_OK);
    budget_snapshot_take(&snapshot, &target, "payments", NOW_NS);
    budget_change_begin(&change, &snapshot);
    error_text[0] = '\0';
}

/* Applies one argument to a target of the preset service. Returns the error, "" if there is none. */
static const char *error_for(const char *word)
{
    begin(BIDE_PRESET_SERVICE);
    if (budget_change_read(&change, word, error_text) && budget_change_check(&change, error_text))
        assert_string_equal(error_text, "");
    else
        assert_string_not_equal(error_text, "");
    return error_text;
}

static void set_level_is_exact(void **state)
{
    assert_string_equal(error_for("budget=2.5"), "");
    assert_false(change.has_config);
    budget_change_apply(&change, &target, NOW_NS);
    assert_int_equal(bide_target_get(&target, NOW_NS).budget_left_milli, 2500);
    budget_change_read(&change, "budget=7", error_text);
    budget_change_apply(&change, &target, NOW_NS);
    assert_int_equal(bide_target_get(&target, NOW_NS).budget_left_milli, 7000);
    budget_change_read(&change, "budget=empty", error_text);
    budget_change_apply(&change, &target, NOW_NS);
    assert_int_equal(bide_target_get(&target, NOW_NS).budget_left_milli, 0);
    budget_change_read(&change, "budget=full", error_text);
    budget_change_apply(&change, &target, NOW_NS);
    assert_int_equal(bide_target_get(&target, NOW_NS).budget_left_milli, 10000);
}

static void set_level_must_fit_new_capacity(void **state)
{
    assert_string_equal(error_for("budget=10"), "");
    assert_non_null(strstr(error_for("budget=10.001"), "0 to 10, the capacity"));
    assert_true(budget_change_read(&change, "budget.capacity=20", error_text));
    assert_true(budget_change_check(&change, error_text));
    assert_non_null(strstr(error_for("budget=lots"), "such as 5"));
    assert_non_null(strstr(error_for("budget=-1"), "such as 5"));
    assert_non_null(strstr(error_for("budget="), "such as 5"));
}

static void set_level_is_rejected_without_token_budget(void **state)
{
    begin(BIDE_PRESET_COMMAND);
    assert_true(budget_change_read(&change, "budget=1", error_text));
    assert_false(budget_change_check(&change, error_text));
    assert_non_null(strstr(error_text, "nothing limits retries"));
}

static void set_breaker_holds_and_releases(void **state)
{
    assert_string_equal(error_for("breaker=open"), "");
    budget_change_apply(&change, &target, NOW_NS);
    assert_int_equal(bide_target_get(&target, NOW_NS).breaker.state, BIDE_BREAKER_HELD_OPEN);
    assert_true(budget_change_read(&change, "breaker=closed", error_text));
    budget_change_apply(&change, &target, NOW_NS);
    assert_int_equal(bide_target_get(&target, NOW_NS).breaker.state, BIDE_BREAKER_HELD_CLOSED);
    assert_true(budget_change_read(&change, "breaker=auto", error_text));
    budget_change_apply(&change, &target, NOW_NS);
    assert_int_equal(bide_target_get(&target, NOW_NS).breaker.state, BIDE_BREAKER_CLOSED);
    assert_non_null(strstr(error_for("breaker=shut"), "open or closed"));
}

static void set_accepts_only_keys_of_target(void **state)
{
    assert_string_equal(error_for("budget.capacity=20"), "");
    assert_true(change.has_config);
    assert_int_equal(change.config.budget.capacity_milli, 20000);
    assert_string_equal(error_for("observe=budget,breaker"), "");
    assert_int_equal(change.config.observe, BIDE_GATE_BUDGET | BIDE_GATE_BREAKER);
    assert_non_null(strstr(error_for("observe=repeat"), "gates of a target"));
    assert_non_null(strstr(error_for("observe=rubbish"), "none, or some of"));
    assert_non_null(strstr(error_for("attempts=3"), "part of each call's policy"));
    assert_string_equal(error_for("budget.capacty=3"), "no such key; did you mean budget.capacity?");
    assert_string_equal(error_for("budgt=3"), "no such key; did you mean budget?");
    assert_null(strstr(error_for("attemps=3"), "attempts")); /* a key of the policy, which set rejects */
    assert_non_null(strstr(error_for("xyzzyxyzzy=3"), "bide help policy-file"));
    assert_non_null(strstr(error_for("budget.capacity"), "KEY=VALUE"));
    assert_non_null(strstr(error_for("budget.capacity=lots"), "an amount such as"));
}

static void set_validates_keys_together(void **state)
{
    assert_non_null(strstr(error_for("breaker.probes=99"), "breaker.probes=99: must be"));
    assert_true(budget_change_read(&change, "breaker.probes=3", error_text));
    assert_true(budget_change_check(&change, error_text));
}

static void reset_fills_budget_and_closes_breaker(void **state)
{
    struct budget_snapshot before, after;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    begin(BIDE_PRESET_SERVICE);
    bide_budget_add_milli(&target, -7500, NOW_NS);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    budget_snapshot_take(&before, &target, "x", NOW_NS);
    budget_reset(&target, NOW_NS);
    budget_snapshot_take(&after, &target, "x", NOW_NS);
    assert_int_equal(after.left_milli, 10000);
    assert_int_equal(after.breaker.state, BIDE_BREAKER_CLOSED);
    budget_change_print(out, &before, &after);
    fclose(out);
    assert_string_equal(text, "budget 10 of 10 (was 2.5 of 10); breaker closed (was held open)");
    free(text);
}

/* ---- leased budgets ---- */

static void begin_leased(void)
{
    begin(BIDE_PRESET_SERVICE);
    assert_int_equal(core_lease_begin(&target, NOW_NS, NULL), BIDE_OK);
    core_lease_extend(&target, NOW_NS + BIDE_S, NOW_NS);
    bide_budget_add_milli(&target, 2000, NOW_NS);
    budget_snapshot_take(&snapshot, &target, "payments", NOW_NS);
    budget_change_begin(&change, &snapshot);
}

static void leased_budget_can_only_be_emptied(void **state)
{
    static const char *const arguments[] = {"budget=full", "budget=1"};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        begin_leased();
        assert_true(budget_change_read(&change, arguments[i], error_text));
        assert_false(budget_change_check(&change, error_text));
        assert_non_null(strstr(error_text, "leased from a fleet"));
    }
    begin_leased();
    assert_true(budget_change_read(&change, "budget=empty", error_text));
    assert_true(budget_change_check(&change, error_text));
    budget_change_apply(&change, &target, NOW_NS);
    assert_int_equal(bide_target_get(&target, NOW_NS).budget_left_milli, 0);
}

static void reset_keeps_valid_lease_and_ends_expired_one(void **state)
{
    struct budget_snapshot before, after;
    char text[256] = "";
    begin_leased();
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    budget_reset(&target, NOW_NS);
    assert_true(core_lease_is_on(&target));
    assert_int_equal(bide_target_get(&target, NOW_NS).budget_left_milli, 2000);
    assert_int_equal(bide_target_get(&target, NOW_NS).breaker.state, BIDE_BREAKER_CLOSED);

    budget_snapshot_take(&before, &target, "x", NOW_NS + 2 * BIDE_S);
    budget_reset(&target, NOW_NS + 2 * BIDE_S);
    budget_snapshot_take(&after, &target, "x", NOW_NS + 2 * BIDE_S);
    assert_false(core_lease_is_on(&target));
    assert_int_equal(after.left_milli, 10000);
    FILE *out = fmemopen(text, sizeof text, "w");
    budget_change_print(out, &before, &after);
    fclose(out);
    assert_string_equal(text, "budget 10 of 10 (was 2 of 10); the lease has ended; breaker closed");
}

static void changed_key_is_printed_with_old_value(void **state)
{
    struct budget_snapshot before, after;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    begin(BIDE_PRESET_SERVICE);
    budget_snapshot_take(&before, &target, "x", NOW_NS);
    after = before;
    after.config.breaker.probes = 7;
    budget_change_print(out, &before, &after);
    fclose(out);
    assert_non_null(strstr(text, "breaker.probes = 7 (was "));
    assert_non_null(strstr(text, "; budget 10 of 10; breaker closed"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_level_is_exact),
        cmocka_unit_test(set_level_must_fit_new_capacity),
        cmocka_unit_test(set_level_is_rejected_without_token_budget),
        cmocka_unit_test(set_breaker_holds_and_releases),
        cmocka_unit_test(set_accepts_only_keys_of_target),
        cmocka_unit_test(set_validates_keys_together),
        cmocka_unit_test(reset_fills_budget_and_closes_breaker),
        cmocka_unit_test(leased_budget_can_only_be_emptied),
        cmocka_unit_test(reset_keeps_valid_lease_and_ends_expired_one),
        cmocka_unit_test(changed_key_is_printed_with_old_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
