/* test_budget_look.c - a target as `bide budget` shows it: words, pages, JSON. */
#define _GNU_SOURCE
#include "budget/list.h"
#include "budget/mapping.h"

#include <bide/lease.h>

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
static struct budget_look look;
static char words[BUDGET_WORDS];

static void make(enum bide_preset preset)
{
    bide_target_config_init(&config, preset);
}

static const struct budget_look *see(int64_t now_ns)
{
    budget_look(&look, &target, "payments", now_ns);
    return &look;
}

static const struct budget_look *fresh(void)
{
    assert_int_equal(bide_target_init(&target, &config, NOW_NS, NULL), BIDE_OK);
    return see(NOW_NS);
}

static void a_level_is_told_in_tenths_and_never_too_high(void **state)
{
    make(BIDE_PRESET_SERVICE);
    assert_string_equal(budget_level_words(words, fresh()), "10 of 10");
    bide_budget_add_milli(&target, -2511, NOW_NS);
    assert_string_equal(budget_level_words(words, see(NOW_NS)), "7.4 of 10");
    assert_float_equal(budget_share(&look), 0.7489, 1e-9);
    bide_budget_add_milli(&target, -7450, NOW_NS);
    assert_string_equal(budget_level_words(words, see(NOW_NS)), "0 of 10");
}

static void what_has_no_limit_says_so(void **state)
{
    make(BIDE_PRESET_COMMAND);
    assert_string_equal(budget_level_words(words, fresh()), "no limit");
    assert_string_equal(budget_breaker_words(words, &look), "off");
    assert_float_equal(budget_share(&look), 1, 1e-9);
}

static void a_window_has_a_number_left_and_no_capacity(void **state)
{
    make(BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.reserve = 3;
    config.budget.min_volume = 0;
    assert_string_equal(budget_level_words(words, fresh()), "3 left");
}

static const char *page(void)
{
    static char text[2048];
    FILE *out = fmemopen(text, sizeof text, "w");
    budget_page(out, &look);
    fclose(out);
    return text;
}

static void a_leased_budget_says_so_and_whether_its_fleet_answers(void **state)
{
    make(BIDE_PRESET_SERVICE);
    assert_string_equal(budget_funds_words(words, fresh()), "10 of 10");
    assert_null(strstr(page(), "lease"));
    assert_int_equal(bide_lease_begin(&target, NOW_NS, NULL), BIDE_OK);
    bide_lease_extend(&target, NOW_NS + 4 * BIDE_S, NOW_NS);
    bide_budget_add_milli(&target, 2500, NOW_NS);
    assert_string_equal(budget_funds_words(words, see(NOW_NS + BIDE_S)), "2.5 of 10 leased");
    assert_non_null(strstr(page(), "  budget    2.5 of 10 retries left; a fleet lends them, and gets what is earned"));
    assert_non_null(strstr(page(), "  lease     its fleet answers; if it does not again, alone in 3s\n"));
    assert_string_equal(budget_funds_words(words, see(NOW_NS + 6 * BIDE_S)), "2.5 of 10 alone");
    assert_non_null(strstr(page(), "  lease     alone for 2s: no fleet answers"));
    assert_string_equal(budget_change_words(words, &look), "budget 2.5 of 10 alone, breaker closed, refused 0");
}

static void an_open_breaker_tells_how_long(void **state)
{
    make(BIDE_PRESET_SERVICE);
    assert_string_equal(budget_breaker_words(words, fresh()), "closed");
    look.breaker.state = BIDE_BREAKER_OPEN;
    look.open_for_ns = 4200 * BIDE_MS;
    assert_string_equal(budget_breaker_words(words, &look), "open, 4.2s to go");
    look.open_for_ns = 0;
    assert_string_equal(budget_breaker_words(words, &look), "open, to be probed");
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_string_equal(budget_breaker_words(words, see(NOW_NS)), "held open");
}

static void hold_off_is_told_as_what_is_left_of_it(void **state)
{
    make(BIDE_PRESET_SERVICE);
    assert_string_equal(budget_hold_off_words(words, fresh()), "-");
    bide_target_hold_off(&target, NOW_NS + 3 * BIDE_S, NOW_NS);
    assert_string_equal(budget_hold_off_words(words, see(NOW_NS + BIDE_S)), "2s to go");
    assert_string_equal(budget_hold_off_words(words, see(NOW_NS + 4 * BIDE_S)), "-");
}

static void the_nearest_preset_is_named_and_what_differs_from_it(void **state)
{
    char text[256];
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        make(preset);
        if (config.in_flight_max > 0 || config.budget.kind == BIDE_BUDGET_CONCURRENCY)
            continue;
        assert_null(budget_differs(fresh(), 0, text)); /* one of those that have the same gates */
    }
    make(BIDE_PRESET_SERVICE);
    config.budget.capacity_milli = 5000;
    fresh();
    assert_int_equal(look.preset, BIDE_PRESET_SERVICE);
    assert_string_equal(budget_differs(&look, 0, text)->key, "budget.capacity");
    assert_string_equal(text, "5");
    assert_null(budget_differs(&look, 1, text));
}

static void a_page_says_everything(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    make(BIDE_PRESET_SERVICE);
    config.breaker.probes = 2;
    fresh();
    look.refused[8] = 3;
    look.breaker.openings_total = 2;
    budget_page(out, &look);
    fclose(out);
    assert_non_null(strstr(text, "  budget    10 of 10 retries left; 0.1 earned by a success, 1 a minute by time\n"));
    assert_non_null(strstr(text, "  breaker   closed; opened 2 times so far\n"));
    assert_non_null(strstr(text, "  quiet     nobody asked for it\n"));
    assert_non_null(strstr(text, "  refused   3 by budget\n"));
    assert_non_null(strstr(text, "  settings  those of the preset service, but\n              breaker.probes = 2\n"));
    free(text);
}

static void latencies_are_told_if_they_are_gathered(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    make(BIDE_PRESET_SERVICE);
    config.latency = true;
    budget_page(out, fresh());
    look.latency_ns[BUDGET_P50] = 2 * BIDE_MS;
    look.latency_ns[BUDGET_P95] = 30 * BIDE_MS;
    look.latency_ns[BUDGET_P99] = BIDE_NEVER;
    budget_page(out, &look);
    fclose(out);
    assert_non_null(strstr(text, "  latency   fewer than 20 attempts seen\n"));
    assert_non_null(strstr(text, "  latency   p50 2ms, p95 30ms, p99 3.7s or more\n"));
    free(text);
}

static double number(const json_t *object, const char *one, const char *other)
{
    const json_t *value = json_object_get(object, one);
    return json_number_value(other != NULL ? json_object_get(value, other) : value);
}

static void json_has_the_same_under_names_that_stay(void **state)
{
    make(BIDE_PRESET_SERVICE);
    fresh();
    bide_budget_add_milli(&target, -2500, NOW_NS);
    bide_target_hold_off(&target, NOW_NS + 3 * BIDE_S, NOW_NS);
    json_t *tree = budget_json(see(NOW_NS));
    assert_non_null(tree);
    assert_string_equal(json_string_value(json_object_get(tree, "target")), "payments");
    assert_true(json_is_null(json_object_get(tree, "file")));
    assert_float_equal(number(tree, "budget", "left"), 7.5, 1e-9);
    assert_float_equal(number(tree, "budget", "capacity"), 10, 1e-9);
    assert_float_equal(number(tree, "quiet_for_ms", NULL), 3000, 1e-9);
    assert_string_equal(json_string_value(json_object_get(json_object_get(tree, "breaker"), "state")), "closed");
    assert_true(json_is_null(json_object_get(tree, "latency_ms")));
    assert_true(json_is_null(json_object_get(tree, "lease")));
    json_decref(tree);
    assert_int_equal(bide_lease_begin(&target, NOW_NS, NULL), BIDE_OK);
    bide_lease_extend(&target, NOW_NS + 4 * BIDE_S, NOW_NS);
    tree = budget_json(see(NOW_NS + BIDE_S));
    assert_float_equal(number(tree, "lease", "funded_for_ms"), 3000, 1e-9);
    assert_float_equal(number(tree, "lease", "alone_for_ms"), 0, 1e-9);
    json_decref(tree);
    tree = budget_json(see(NOW_NS + 5 * BIDE_S));
    assert_float_equal(number(tree, "lease", "funded_for_ms"), 0, 1e-9);
    assert_float_equal(number(tree, "lease", "alone_for_ms"), 1000, 1e-9);
    json_decref(tree);
}

static void a_name_that_is_no_text_leaves_json_whole(void **state)
{
    make(BIDE_PRESET_SERVICE);
    fresh();
    look.name = "\xff\xfe";
    json_t *tree = budget_json(&look);
    assert_non_null(tree);
    assert_true(json_is_null(json_object_get(tree, "target")));
    json_decref(tree);
}

/* ---- what is new ---- */

static void words_that_were_told_are_no_news(void **state)
{
    struct budget_told told = {0};
    assert_true(budget_told_news(&told, "a", "full"));
    assert_true(budget_told_news(&told, "b", "full"));
    assert_null(budget_told_gone(&told));
    assert_false(budget_told_news(&told, "a", "full"));
    assert_true(budget_told_news(&told, "b", "empty"));
    assert_null(budget_told_gone(&told));
    budget_told_free(&told);
}

static void what_is_gone_is_told_once_and_is_news_when_it_returns(void **state)
{
    struct budget_told told = {0};
    budget_told_news(&told, "a", "full");
    budget_told_news(&told, "b", "full");
    assert_null(budget_told_gone(&told));
    budget_told_news(&told, "b", "full");
    assert_string_equal(budget_told_gone(&told), "a");
    assert_null(budget_told_gone(&told));
    assert_false(budget_told_news(&told, "b", "full"));
    assert_null(budget_told_gone(&told));
    assert_true(budget_told_news(&told, "a", "full"));
    budget_told_free(&told);
}

static void time_alone_is_no_change(void **state)
{
    char later[BUDGET_WORDS];
    make(BIDE_PRESET_SERVICE);
    fresh();
    bide_target_hold_off(&target, NOW_NS + 3 * BIDE_S, NOW_NS);
    budget_change_words(words, see(NOW_NS));
    assert_string_equal(words, "budget 10 of 10, breaker closed, quiet, refused 0");
    assert_string_equal(budget_change_words(later, see(NOW_NS + BIDE_S)), words);
    assert_string_not_equal(budget_change_words(later, see(NOW_NS + 9 * BIDE_S)), words);
}

/* ---- where it lies ---- */

static const char *where(const char *maps, uintptr_t address)
{
    static char path[64];
    char copy[512];
    snprintf(copy, sizeof copy, "%s", maps);
    FILE *file = fmemopen(copy, strlen(copy), "r");
    bool found = budget_where_in(file, path, sizeof path, (const void *)address);
    fclose(file);
    assert_int_equal(found, path[0] != '\0');
    return path;
}

static void the_file_of_an_address_is_found_in_the_list_of_mappings(void **state)
{
    static const char maps[] = "1000-2000 r--p 00000000 00:00 0 \n"
                               "2000-3000 rw-s 00000000 00:19 42                  /dev/shm/a b@1 (deleted)\n"
                               "3000-4000 rw-p 00000000 00:00 0                   [heap]\n";
    assert_string_equal(where(maps, 0x2000), "/dev/shm/a b@1 (deleted)");
    assert_string_equal(where(maps, 0x2fff), "/dev/shm/a b@1 (deleted)");
    assert_string_equal(where(maps, 0x1fff), "");
    assert_string_equal(where(maps, 0x3000), "");
    assert_string_equal(where(maps, 0x4000), "");
    assert_string_equal(where("garbage\n", 0x4000), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_is_told_in_tenths_and_never_too_high),
        cmocka_unit_test(what_has_no_limit_says_so),
        cmocka_unit_test(a_window_has_a_number_left_and_no_capacity),
        cmocka_unit_test(a_leased_budget_says_so_and_whether_its_fleet_answers),
        cmocka_unit_test(an_open_breaker_tells_how_long),
        cmocka_unit_test(hold_off_is_told_as_what_is_left_of_it),
        cmocka_unit_test(the_nearest_preset_is_named_and_what_differs_from_it),
        cmocka_unit_test(a_page_says_everything),
        cmocka_unit_test(latencies_are_told_if_they_are_gathered),
        cmocka_unit_test(json_has_the_same_under_names_that_stay),
        cmocka_unit_test(a_name_that_is_no_text_leaves_json_whole),
        cmocka_unit_test(words_that_were_told_are_no_news),
        cmocka_unit_test(what_is_gone_is_told_once_and_is_news_when_it_returns),
        cmocka_unit_test(time_alone_is_no_change),
        cmocka_unit_test(the_file_of_an_address_is_found_in_the_list_of_mappings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
