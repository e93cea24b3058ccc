/* test_meters.c - a call is counted under the name of its target, and names beyond the limit together. */
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "telemetry/meters.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NAMES_MAX 8u

static uint64_t calls_of(const char *name)
{
    struct bide_meter_view view = {0};
    for (uint32_t i = 0; i < telemetry_meters_count(); i++)
        if (strcmp(telemetry_meters_at(i)->name, name) == 0)
            bide_meter_get(&telemetry_meters_at(i)->meter, &view);
    return view.calls[BIDE_METER_FIRST];
}

static struct bide_outcome succeed(void *context, const struct bide_verdict *start)
{
    (void)context;
    (void)start;
    return bide_classify_http(200, NULL);
}

static void call(const char *name, struct bide_target *target)
{
    struct bide_job job = {.name = name, .target = target, .request.safety = BIDE_SAFE, .attempt = succeed};
    assert_int_equal(bide_run(&job).action, BIDE_ACTION_DONE);
}

static void a_target_of_the_name_of_the_rest_is_counted_with_it(void **state)
{
    (void)state;
    call(TELEMETRY_OTHER, NULL);
    assert_int_equal(calls_of(TELEMETRY_OTHER), 1); /* names_beyond_the_limit... adds to it */
}

static void each_name_has_its_meter(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        call("inventory", NULL);
    call("payments", NULL);
    assert_int_equal(calls_of("inventory"), 3);
    assert_int_equal(calls_of("payments"), 1);
}

static void calls_without_a_target_are_counted_by_their_name(void **state)
{
    (void)state;
    call("search", BIDE_NO_TARGET);
    call(NULL, BIDE_NO_TARGET);
    assert_int_equal(calls_of("search"), 1);
    assert_int_equal(calls_of(TELEMETRY_UNNAMED), 1);
}

static void one_target_may_serve_several_names(void **state)
{
    static struct bide_target target;
    (void)state;
    assert_int_equal(bide_target_init(&target, NULL, bide_now(), NULL), BIDE_OK);
    for (int i = 0; i < 2; i++) {
        call("left", &target);
        call("right", &target);
        call("right", &target);
    }
    assert_int_equal(calls_of("left"), 2);
    assert_int_equal(calls_of("right"), 4);
}

/* Reports a call that succeeds at once on a target that was found in a table under that name. */
static void report(const char *name, const struct bide_target *target)
{
    struct bide_report report;
    struct bide_outcome outcome = bide_classify_http(200, NULL);
    struct bide_verdict start = {.action = BIDE_ACTION_START, .attempt = 1};
    struct bide_verdict done = {.action = BIDE_ACTION_DONE, .attempt = 1};
    struct bide_attempt_end end = {.outcome = &outcome, .attempt = 1};
    struct bide_report_call of = {.target_name = name, .target = target, .is_of_table = true};
    assert_true(bide_report_begin(&report, &of, 1));
    bide_report_verdict(&report, &start, NULL, 1);
    bide_report_verdict(&report, &done, &end, 2);
}

static void a_call_on_an_evicted_target_leaves_its_meter_to_no_other_name(void **state)
{
    struct bide_targets *table;
    (void)state;
    assert_int_equal(bide_targets_new(&table, 1, NULL, NULL), BIDE_OK);
    const struct bide_target *first = bide_targets_get(table, "early", BIDE_S);
    const struct bide_target *second = bide_targets_get(table, "late", 3600 * BIDE_S);
    assert_ptr_equal(first, second);
    report("early", first); /* its target was looked up before the eviction */
    report("late", second);
    report("late", second);
    assert_int_equal(calls_of("early"), 1);
    assert_int_equal(calls_of("late"), 2);
    bide_targets_free(table);
}

static void names_beyond_the_limit_are_counted_together(void **state)
{
    char name[32];
    (void)state;
    uint64_t calls = 0, all = calls_of(TELEMETRY_OTHER);
    for (unsigned i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "shard-%u", i);
        call(name, i % 2 == 0 ? NULL : BIDE_NO_TARGET);
        call(name, NULL);
        all += 2;
    }
    for (unsigned i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "shard-%u", i);
        calls += calls_of(name);
    }
    assert_int_equal(calls + calls_of(TELEMETRY_OTHER), all);
    assert_true(calls_of(TELEMETRY_OTHER) > 1);
    assert_int_equal(telemetry_meters_count(), NAMES_MAX + 1);
}

static void call_names(unsigned first, unsigned count)
{
    char name[32];
    for (unsigned i = first; i < first + count; i++) {
        snprintf(name, sizeof name, "user-%u", i);
        call(name, i % 2 == 0 ? NULL : BIDE_NO_TARGET);
    }
}

static void a_million_names_need_no_more_memory_than_some(void **state)
{
    (void)state;
    call_names(0, 10000); /* the default table of targets is full then */
    uint64_t calls = calls_of(TELEMETRY_OTHER);
    size_t heap = mallinfo2().uordblks + mallinfo2().hblkhd;
    call_names(10000, 1000000);
    assert_int_equal(calls_of(TELEMETRY_OTHER), calls + 1000000);
    assert_int_equal(telemetry_meters_count(), NAMES_MAX + 1);
    assert_true(mallinfo2().uordblks + mallinfo2().hblkhd <= heap + 4096);
}

static void calls_are_not_counted_after_the_stop_and_a_start_goes_on(void **state)
{
    (void)state;
    uint64_t before = calls_of("inventory");
    bide_telemetry_stop();
    call("inventory", NULL);
    assert_int_equal(calls_of("inventory"), before);
    assert_int_equal(bide_telemetry_start(NULL, NULL), BIDE_OK);
    call("inventory", NULL);
    assert_int_equal(calls_of("inventory"), before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_of_the_name_of_the_rest_is_counted_with_it),
        cmocka_unit_test(each_name_has_its_meter),
        cmocka_unit_test(calls_without_a_target_are_counted_by_their_name),
        cmocka_unit_test(one_target_may_serve_several_names),
        cmocka_unit_test(a_call_on_an_evicted_target_leaves_its_meter_to_no_other_name),
        cmocka_unit_test(names_beyond_the_limit_are_counted_together),
        cmocka_unit_test(a_million_names_need_no_more_memory_than_some),
        cmocka_unit_test(calls_are_not_counted_after_the_stop_and_a_start_goes_on),
    };
    if (bide_telemetry_start(&(struct bide_telemetry_options){.targets_max = NAMES_MAX}, NULL) != BIDE_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
