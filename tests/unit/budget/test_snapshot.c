/* test_snapshot.c - the state of a target as `bide budget` shows it: texts, pages, JSON. */
#define _GNU_SOURCE
#include "budget/list.h"
#include "budget/mapping.h"
#include "core/lease.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW_NS (1000 * BIDE_S)

static struct bide_target target;
static struct bide_target_config config;
static struct budget_snapshot snapshot;
static char shown[BUDGET_TEXT_SIZE];

static void config_from_preset(enum bide_preset preset)
{
    bide_target_config_init(&config, preset);
}

static const struct budget_snapshot *take(int64_t now_ns)
{
    budget_snapshot_take(&snapshot, &target, "payments", now_ns);
    return &snapshot;
}

static const struct budget_snapshot *take_of_new_target(void)
{
    assert_int_equal(bide_target_init(&target, &config, NOW_NS, NULL), BIDE_OK);
    return take(NOW_NS);
}

static void level_is_rounded_down_to_tenths(void **state)
{
    config_from_preset(BIDE_PRESET_SERVICE);
    assert_string_equal(budget_level_text(shown, take_of_new_target()), "10 of 10");
    bide_budget_add_milli(&target, -2511, NOW_NS);
    assert_string_equal(budget_level_text(shown, take(NOW_NS)), "7.4 of 10");
    assert_float_equal(budget_share(&snapshot), 0.7489, 1e-9);
    bide_budget_add_milli(&target, -7450, NOW_NS);
    assert_string_equal(budget_level_text(shown, take(NOW_NS)), "0 of 10");
}

static void unlimited_budget_is_shown_as_no_limit(void **state)
{
    config_from_preset(BIDE_PRESET_COMMAND);
    assert_string_equal(budget_level_text(shown, take_of_new_target()), "no limit");
    assert_string_equal(budget_breaker_text(shown, &snapshot), "off");
    assert_float_equal(budget_share(&snapshot), 1, 1e-9);
}

static void window_budget_shows_remaining_retries_without_capacity(void **state)
{
    config_from_preset(BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.reserve = 3;
    config.budget.min_volume = 0;
    assert_string_equal(budget_level_text(shown, take_of_new_target()), "3 left");
}

static const char *page(void)
{
    static char text[2048];
    FILE *out = fmemopen(text, sizeof text, "w");
    budget_page(out, &snapshot);
    fclose(out);
    return text;
}

static void leased_budget_shows_state_of_its_lease(void **state)
{
    config_from_preset(BIDE_PRESET_SERVICE);
    assert_string_equal(budget_funding_text(shown, take_of_new_target()), "10 of 10");
    assert_null(strstr(page(), "lease"));
    assert_int_equal(core_lease_begin(&target, NOW_NS, NULL), BIDE_OK);
    core_lease_extend(&target, NOW_NS + 4 * BIDE_S, NOW_NS);
    bide_budget_add_milli(&target, 2500, NOW_NS);
    assert_string_equal(budget_funding_text(shown, take(NOW_NS + BIDE_S)), "2.5 of 10 leased");
    assert_non_null(
        strstr(page(), "  budget    2.5 of 10 retries left; leased from a fleet, which gets earned tokens"));
    assert_non_null(strstr(page(), "  lease     valid; expires in 3s unless the fleet renews it\n"));
    assert_string_equal(budget_funding_text(shown, take(NOW_NS + 6 * BIDE_S)), "2.5 of 10 disconnected");
    assert_non_null(strstr(page(), "  lease     expired 2s ago: the fleet cannot be reached"));
    assert_string_equal(budget_summary_text(shown, &snapshot),
                        "budget 2.5 of 10 disconnected, breaker closed, refused 0");
}

static void open_breaker_shows_remaining_time(void **state)
{
    config_from_preset(BIDE_PRESET_SERVICE);
    assert_string_equal(budget_breaker_text(shown, take_of_new_target()), "closed");
    snapshot.breaker.state = BIDE_BREAKER_OPEN;
    snapshot.open_for_ns = 4200 * BIDE_MS;
    assert_string_equal(budget_breaker_text(shown, &snapshot), "open, 4.2s to go");
    snapshot.open_for_ns = 0;
    assert_string_equal(budget_breaker_text(shown, &snapshot), "open, to be probed");
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_string_equal(budget_breaker_text(shown, take(NOW_NS)), "held open");
}

static void hold_off_is_told_as_what_is_left_of_it(void **state)
{
    config_from_preset(BIDE_PRESET_SERVICE);
    assert_string_equal(budget_hold_off_text(shown, take_of_new_target()), "-");
    bide_target_hold_off(&target, NOW_NS + 3 * BIDE_S, NOW_NS);
    assert_string_equal(budget_hold_off_text(shown, take(NOW_NS + BIDE_S)), "2s to go");
    assert_string_equal(budget_hold_off_text(shown, take(NOW_NS + 4 * BIDE_S)), "-");
}

static void nearest_preset_and_changed_settings_are_found(void **state)
{
    char text[256];
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        config_from_preset(preset);
        if (config.in_flight_max > 0 || config.budget.kind == BIDE_BUDGET_CONCURRENCY)
            continue;
        assert_null(budget_changed_setting(take_of_new_target(), 0, text)); /* some preset with the same gates */
    }
    config_from_preset(BIDE_PRESET_SERVICE);
    config.budget.capacity_milli = 5000;
    take_of_new_target();
    assert_int_equal(snapshot.preset, BIDE_PRESET_SERVICE);
    assert_string_equal(budget_changed_setting(&snapshot, 0, text)->key, "budget.capacity");
    assert_string_equal(text, "5");
    assert_null(budget_changed_setting(&snapshot, 1, text));
}

static void page_shows_all_fields(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    config_from_preset(BIDE_PRESET_SERVICE);
    config.breaker.probes = 2;
    take_of_new_target();
    snapshot.refused[8] = 3;
    snapshot.breaker.openings_total = 2;
    budget_page(out, &snapshot);
    fclose(out);
    assert_non_null(strstr(text, "  budget    10 of 10 retries left; 0.1 per success, refill 1 per minute\n"));
    assert_non_null(strstr(text, "  breaker   closed; opened 2 times so far\n"));
    assert_non_null(strstr(text, "  hold-off  none\n"));
    assert_non_null(strstr(text, "  refused   3 by budget\n"));
    assert_non_null(
        strstr(text, "  settings  those of the preset service, except\n              breaker.probes = 2\n"));
    free(text);
}

static void page_shows_latencies_if_measured(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    config_from_preset(BIDE_PRESET_SERVICE);
    config.latency = true;
    budget_page(out, take_of_new_target());
    snapshot.latency_ns[BUDGET_P50] = 2 * BIDE_MS;
    snapshot.latency_ns[BUDGET_P95] = 30 * BIDE_MS;
    snapshot.latency_ns[BUDGET_P99] = BIDE_NEVER;
    budget_page(out, &snapshot);
    fclose(out);
    assert_non_null(strstr(text, "  latency   fewer than 20 attempts so far\n"));
    assert_non_null(strstr(text, "  latency   p50 2ms, p95 30ms, p99 3.7s or more\n"));
    free(text);
}

/* Writes the snapshot as JSON and parses the text. */
static json_t *parsed(const struct budget_snapshot *written)
{
    static char text[4096];
    struct text_json json = text_json_to_buffer(text, sizeof text);
    text_json_object(&json, NULL);
    budget_json(&json, written);
    text_json_end(&json);
    assert_true(text_json_finish(&json) > 0);
    json_t *tree = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(tree);
    return tree;
}

static double number(const json_t *object, const char *one, const char *other)
{
    const json_t *value = json_object_get(object, one);
    return json_number_value(other != NULL ? json_object_get(value, other) : value);
}

static void json_has_all_fields(void **state)
{
    config_from_preset(BIDE_PRESET_SERVICE);
    take_of_new_target();
    bide_budget_add_milli(&target, -2500, NOW_NS);
    bide_target_hold_off(&target, NOW_NS + 3 * BIDE_S, NOW_NS);
    json_t *tree = parsed(take(NOW_NS));
    assert_string_equal(json_string_value(json_object_get(tree, "target")), "payments");
    assert_true(json_is_null(json_object_get(tree, "file")));
    assert_float_equal(number(tree, "budget", "left"), 7.5, 1e-9);
    assert_float_equal(number(tree, "budget", "capacity"), 10, 1e-9);
    assert_float_equal(number(tree, "hold_off_ms", NULL), 3000, 1e-9);
    assert_string_equal(json_string_value(json_object_get(json_object_get(tree, "breaker"), "state")), "closed");
    assert_true(json_is_null(json_object_get(tree, "latency_ms")));
    assert_true(json_is_null(json_object_get(tree, "lease")));
    json_decref(tree);
    assert_int_equal(core_lease_begin(&target, NOW_NS, NULL), BIDE_OK);
    core_lease_extend(&target, NOW_NS + 4 * BIDE_S, NOW_NS);
    tree = parsed(take(NOW_NS + BIDE_S));
    assert_float_equal(number(tree, "lease", "funded_for_ms"), 3000, 1e-9);
    assert_float_equal(number(tree, "lease", "disconnected_for_ms"), 0, 1e-9);
    json_decref(tree);
    tree = parsed(take(NOW_NS + 5 * BIDE_S));
    assert_float_equal(number(tree, "lease", "funded_for_ms"), 0, 1e-9);
    assert_float_equal(number(tree, "lease", "disconnected_for_ms"), 1000, 1e-9);
    json_decref(tree);
}

static void json_has_replacement_characters_for_bytes_that_are_not_utf8(void **state)
{
    config_from_preset(BIDE_PRESET_SERVICE);
    take_of_new_target();
    snapshot.name = "a\xff";
    json_t *tree = parsed(&snapshot);
    assert_string_equal(json_string_value(json_object_get(tree, "target")), "a\xef\xbf\xbd");
    json_decref(tree);
}

/* ---- changes ---- */

static void unchanged_text_is_not_reported_again(void **state)
{
    struct budget_history history = {0};
    assert_true(budget_history_update(&history, "a", "full"));
    assert_true(budget_history_update(&history, "b", "full"));
    assert_null(budget_history_next_removed(&history));
    assert_false(budget_history_update(&history, "a", "full"));
    assert_true(budget_history_update(&history, "b", "empty"));
    assert_null(budget_history_next_removed(&history));
    budget_history_free(&history);
}

static void removal_is_reported_once_and_return_is_a_change(void **state)
{
    struct budget_history history = {0};
    budget_history_update(&history, "a", "full");
    budget_history_update(&history, "b", "full");
    assert_null(budget_history_next_removed(&history));
    budget_history_update(&history, "b", "full");
    assert_string_equal(budget_history_next_removed(&history), "a");
    assert_null(budget_history_next_removed(&history));
    assert_false(budget_history_update(&history, "b", "full"));
    assert_null(budget_history_next_removed(&history));
    assert_true(budget_history_update(&history, "a", "full"));
    budget_history_free(&history);
}

static void passing_time_alone_is_no_change(void **state)
{
    char later[BUDGET_TEXT_SIZE];
    config_from_preset(BIDE_PRESET_SERVICE);
    take_of_new_target();
    bide_target_hold_off(&target, NOW_NS + 3 * BIDE_S, NOW_NS);
    budget_summary_text(shown, take(NOW_NS));
    assert_string_equal(shown, "budget 10 of 10, breaker closed, hold-off, refused 0");
    assert_string_equal(budget_summary_text(later, take(NOW_NS + BIDE_S)), shown);
    assert_string_not_equal(budget_summary_text(later, take(NOW_NS + 9 * BIDE_S)), shown);
}

/* ---- mapped file ---- */

static const char *mapped_path(const char *maps, uintptr_t address)
{
    static char path[64];
    char copy[512];
    snprintf(copy, sizeof copy, "%s", maps);
    FILE *file = fmemopen(copy, strlen(copy), "r");
    assert_true(budget_mapping_path_in(file, path, sizeof path, (const void *)address));
    fclose(file);
    return path;
}

static void file_of_address_is_found_in_maps(void **state)
{
    static const char maps[] = "1000-2000 r--p 00000000 00:00 0 \n"
                               "2000-3000 rw-s 00000000 00:19 42                  /dev/shm/a b@1 (deleted)\n"
                               "3000-4000 rw-p 00000000 00:00 0                   [heap]\n";
    assert_string_equal(mapped_path(maps, 0x2000), "/dev/shm/a b@1 (deleted)");
    assert_string_equal(mapped_path(maps, 0x2fff), "/dev/shm/a b@1 (deleted)");
    assert_string_equal(mapped_path(maps, 0x1fff), "");
    assert_string_equal(mapped_path(maps, 0x3000), "");
    assert_string_equal(mapped_path(maps, 0x4000), "");
    assert_string_equal(mapped_path("garbage\n", 0x4000), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_is_rounded_down_to_tenths),
        cmocka_unit_test(unlimited_budget_is_shown_as_no_limit),
        cmocka_unit_test(window_budget_shows_remaining_retries_without_capacity),
        cmocka_unit_test(leased_budget_shows_state_of_its_lease),
        cmocka_unit_test(open_breaker_shows_remaining_time),
        cmocka_unit_test(hold_off_is_told_as_what_is_left_of_it),
        cmocka_unit_test(nearest_preset_and_changed_settings_are_found),
        cmocka_unit_test(page_shows_all_fields),
        cmocka_unit_test(page_shows_latencies_if_measured),
        cmocka_unit_test(json_has_all_fields),
        cmocka_unit_test(json_has_replacement_characters_for_bytes_that_are_not_utf8),
        cmocka_unit_test(unchanged_text_is_not_reported_again),
        cmocka_unit_test(removal_is_reported_once_and_return_is_a_change),
        cmocka_unit_test(passing_time_alone_is_no_change),
        cmocka_unit_test(file_of_address_is_found_in_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
