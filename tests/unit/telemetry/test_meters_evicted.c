/* test_meters_evicted.c - a target of a table remembers its meter, but its memory may get another name: then the calls
 * of that name are counted by a meter of its own. */
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "telemetry/meters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NAMES 1500u /* more than the default table holds, so that it evicts */

static struct bide_outcome succeed(void *context, const struct bide_verdict *start)
{
    (void)context;
    (void)start;
    return bide_classify_http(200, NULL);
}

static void call(unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "shard-%u", number);
    struct bide_job job = {.name = name, .request.safety = BIDE_SAFE, .attempt = succeed};
    assert_int_equal(bide_run(&job).action, BIDE_ACTION_DONE);
}

static void each_name_is_counted_alone_though_names_share_memory(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < NAMES; i++)
            for (unsigned k = 0; k <= i % 3; k++)
                call(i);
    assert_true(bide_targets_view_get(bide_targets_default()).evicted > NAMES);
    assert_int_equal(telemetry_meters_count(), NAMES);
    for (uint32_t i = 0; i < NAMES; i++) {
        const struct telemetry_meter *meter = telemetry_meters_at(i);
        struct bide_meter_view view;
        unsigned number = 0;
        bide_meter_get(&meter->meter, &view);
        assert_int_equal(sscanf(meter->name, "shard-%u", &number), 1);
        assert_int_equal(view.calls[BIDE_METER_FIRST], 3 * (number % 3 + 1));
        assert_int_equal(view.attempts[BIDE_METER_ATTEMPT_1], 3 * (number % 3 + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_is_counted_alone_though_names_share_memory),
    };
    if (bide_telemetry_start(&(struct bide_telemetry_options){.targets_max = NAMES}, NULL) != BIDE_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
