/* test_world.c - the keys of a world, the text form of values, and checks of a world as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/scenario_key.h"
#include "sim/shape.h"

static struct sim_world world;
static struct conf_policy policy;

static int setup(void **state)
{
    sim_world_init(&world);
    conf_policy_init(&policy, BIDE_PRESET_SERVICE);
    world.clients[0].rate_micro = 10000000;
    for (unsigned i = 0; i < SIM_GROUPS_MAX; i++)
        world.policy_of_clients[i] = &policy;
    return 0;
}

/* ---- values ---- */

static const char *read_key(const char *section, const char *key, const char *value)
{
    const struct sim_field *field = sim_field_find(section, key, strlen(key));
    assert_non_null(field);
    return sim_field_read(field, sim_part_at(&world, field->part, 0), &world, value);
}

static const char *text_of(const char *section, const char *key)
{
    static char text[SIM_VALUE_MAX];
    const struct sim_field *field = sim_field_find(section, key, strlen(key));
    return sim_field_text(text, field, sim_part_in(&world, field->part, 0), &world);
}

static void assert_value(const char *section, const char *key, const char *value, const char *written)
{
    assert_null(read_key(section, key, value));
    assert_string_equal(text_of(section, key), written);
    assert_null(read_key(section, key, written));
    assert_string_equal(text_of(section, key), written);
}

static void assert_refused(const char *section, const char *key, const char *value)
{
    struct sim_world before = world;
    const char *want = read_key(section, key, value);
    if (want == NULL)
        fail_msg("%s.%s = %s was read as %s", section, key, value, text_of(section, key));
    assert_memory_equal(&before, &world, sizeof world);
}

static void every_default_is_in_canonical_form(void **state)
{
    const struct sim_field *field;
    char text[SIM_VALUE_MAX];
    sim_world_init(&world);
    for (size_t i = 0; (field = sim_field(i)) != NULL; i++)
        if (field->part != SIM_PART_HEAD && field->form != SIM_FORM_SERVICE)
            assert_string_equal(sim_field_text(text, field, sim_part_in(&world, field->part, 0), &world),
                                field->key.standard);
}

static void every_key_has_a_section_and_is_unique(void **state)
{
    const struct sim_key *key;
    for (size_t i = 0; (key = sim_key(i)) != NULL; i++) {
        const struct sim_field *field = sim_field_find(key->section, key->key, strlen(key->key));
        assert_ptr_equal(&field->key, key);
        assert_true(strlen(key->want) > 0 && strlen(key->about) > 0);
        assert_int_equal(sim_field_index(field), i);
    }
}

static void all_elements_have_their_defaults(void **state)
{
    assert_memory_equal(&world.clients[1], &world.clients[3], sizeof world.clients[1]);
    assert_int_equal(world.clients[3].fanout, 1);
    assert_int_equal(world.service[7].servers, 1);
    assert_int_equal(world.service[7].calls, -1);
    assert_int_equal(world.outage[7].until_ns, BIDE_NEVER);
}

static void rates_are_exact_millionths_a_second(void **state)
{
    assert_value("clients", "rate", "280/s", "280/s");
    assert_int_equal(world.clients[0].rate_micro, 280000000);
    assert_value("clients", "rate", "0.5/s", "0.5/s");
    assert_value("clients", "rate", "30/min", "0.5/s");
    assert_value("clients", "rate", "18M/s", "18M/s");
    assert_value("clients", "rate", "1.5k/s", "1500/s");
    assert_value("clients", "rate", "36/h", "0.01/s");
    assert_value("clients", "rate", "0.000001/s", "0.000001/s");
    assert_value("clients", "rate", "1000M/s", "1000M/s");
    assert_value("clients", "rate", "0", "0/s");
    assert_refused("clients", "rate", "0.0000001/s");
    assert_refused("clients", "rate", "1/min");
    assert_refused("clients", "rate", "280");
    assert_refused("clients", "rate", "1001M/s");
    assert_refused("clients", "rate", "9999999999999M/s");
    assert_refused("clients", "rate", "-1/s");
    assert_refused("clients", "rate", "/s");
    assert_refused("clients", "rate", "");
    assert_refused("clients", "rate", "1K/s");
}

static void counts_may_end_in_k_or_m(void **state)
{
    assert_value("clients", "count", "25M", "25M");
    assert_int_equal(world.clients[0].count, 25000000);
    assert_value("clients", "count", "2.5k", "2500");
    assert_value("clients", "processes", "10k", "10000");
    assert_value("service", "queue_max", "never", "never");
    assert_int_equal(world.service[0].queue_max, UINT32_MAX);
    assert_value("service", "queue_max", "0", "0");
    assert_refused("clients", "count", "2.5");
    assert_refused("clients", "count", "0.0001k");
    assert_refused("clients", "count", "k");
    assert_refused("clients", "processes", "4294967295");
    assert_refused("clients", "processes", "never");
    assert_refused("clients", "count", "1 000");
}

static void shares_are_exact_and_at_most_100_percent(void **state)
{
    assert_value("service", "fail", "0.1%", "0.1%");
    assert_int_equal(world.service[0].fail_ppm, 1000);
    assert_value("service", "fail", "0.0001%", "0.0001%");
    assert_value("service", "cold", "12.5%", "12.5%");
    assert_int_equal(world.service[0].cold_permille, 125);
    assert_value("outage", "fail", "usual", "usual");
    assert_value("outage", "fail", "100%", "100%");
    assert_refused("service", "fail", "0.00001%");
    assert_refused("service", "cold", "0.05%");
    assert_refused("service", "fail", "100.0001%");
    assert_refused("service", "fail", "0.1");
    assert_refused("service", "fail", "usual");
    assert_refused("service", "fail", "%");
}

static void only_some_times_may_be_never(void **state)
{
    assert_value("clients", "until", "never", "never");
    assert_value("outage", "until", "1.5s", "1.5s");
    assert_value("scenario", "recover_from", "0", "0");
    assert_refused("clients", "from", "never");
    assert_refused("scenario", "duration", "never");
    assert_refused("clients", "from", "10");
    assert_refused("clients", "from", "11575d");
    assert_refused("clients", "from", "0.1ns");
}

static void words_and_flags_are_read_as_in_a_policy_file(void **state)
{
    assert_value("service", "order", "LIFO", "lifo");
    assert_int_equal(world.service[0].order, SIM_LIFO);
    assert_value("clients", "safety", "unsafe", "unsafe");
    assert_int_equal(world.clients[0].safety, BIDE_UNSAFE);
    assert_value("scenario", "drain", "off", "no");
    assert_value("clients", "gauss", "2.5", "2.5");
    assert_refused("service", "order", "random");
    assert_refused("service", "order", "");
    assert_refused("service", "order", "fifos");
    assert_refused("scenario", "drain", "maybe");
    assert_refused("clients", "gauss", "2.0005");
}

static void services_are_kept_as_their_index(void **state)
{
    world.services = 2;
    snprintf(world.service[0].name, SIM_NAME_MAX, "web");
    snprintf(world.service[1].name, SIM_NAME_MAX, "db");
    assert_value("clients", "service", "db", "db");
    assert_int_equal(world.clients[0].service, 1);
    assert_value("service", "calls", "db", "db");
    assert_value("service", "calls", "none", "none");
    assert_int_equal(world.service[0].calls, -1);
    assert_refused("clients", "service", "none");
    assert_refused("clients", "service", "");
    assert_refused("service", "calls", "cache");
}

static void overlong_policy_name_is_rejected(void **state)
{
    char name[SIM_POLICY_MAX + 1];
    memset(name, 'n', sizeof name);
    name[SIM_POLICY_MAX] = '\0';
    assert_refused("clients", "policy", name);
    assert_null(read_key("clients", "policy", name + 1));
    assert_string_equal(world.clients[0].policy, name + 1);
}

/* ---- shapes ---- */

static void every_shape_is_written_as_it_was_read(void **state)
{
    static const char *const shapes[] = {
        "10ms",
        "0",
        "exponential 3.333333ms",
        "uniform 5ms 15ms",
        "uniform 0 0",
        "normal 10ms 2ms",
        "mixture 99.9% 100us 10ms",
        "tail 1ms:1 10ms:0.02 69ms:0.001 1.8s:0.000001 20s:0.000000001",
        "tail 1ms:1 2ms:0.999999999999 3ms:0.000000000001",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        assert_value("service", "time", shapes[i], shapes[i]);
    assert_value("service", "time", "tail  1ms:1.0\t1800ms:0.0000010", "tail 1ms:1 1.8s:0.000001");
    assert_int_equal(world.service[0].time.points, 2);
    assert_true(world.service[0].time.point[1].share == 1e-6);
    assert_true(world.service[0].time.point[1].ln_ns > 21.3 && world.service[0].time.point[1].ln_ns < 21.4);
}

static void invalid_shapes_are_rejected(void **state)
{
    static const char *const shapes[] = {
        "",
        "10",
        "never",
        "10ms 20ms",
        "exponential",
        "exponential 0",
        "exponential 1ms 2ms",
        "exponental 1ms",
        "uniform 2ms 1ms",
        "uniform 1ms",
        "normal 1ms",
        "normal 1ms 2ms 3ms",
        "normal never 2ms",
        "mixture 99.9 1ms 2ms",
        "mixture 101% 1ms 2ms",
        "mixture 50% 1ms",
        "mixture 0.00001% 1ms 2ms",
        "tail",
        "tail 1ms:1",
        "tail 1ms:0.5 2ms:0.1",
        "tail 1ms:1 1ms:0.5",
        "tail 1ms:1 2ms:1",
        "tail 1ms:1 2ms:0",
        "tail 0:1 2ms:0.5",
        "tail 1ms 2ms",
        "tail 1ms:1 2ms:0.0000000000001",
        "tail 1ms:1 2ms:",
        "tail 1ms:1 2ms:.5 3ms:.4 4ms:.3 5ms:.2 6ms:.1 7ms:.05 8ms:.04 9ms:.03",
        "11575d",
        "tail 1000000.000000001s:1 2000000.000000001s:0.999999999998 3000000.000000001s:0.999999999997 "
        "4000000.000000001s:0.999999999996 5000000.000000001s:0.999999999995 6000000.000000001s:0.999999999994 "
        "7000000.000000001s:0.999999999993 8000000.000000001s:0.999999999992"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        assert_refused("service", "time", shapes[i]);
}

static void numbers_for_charts_are_in_plain_units(void **state)
{
    static const struct {
        const char *section, *key, *value;
        double number;
    } rows[] = {{"clients", "rate", "2.5/s", 2.5}, {"service", "fail", "5%", 0.05},
                {"outage", "until", "1.5s", 1.5},  {"service", "cold", "10%", 0.1},
                {"clients", "count", "25M", 25e6}, {"service", "time", "exponential 2ms", 0.002},
                {"clients", "gauss", "6", 6},      {"service", "servers", "3", 3}};
    double number;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sim_field *field = sim_field_find(rows[i].section, rows[i].key, strlen(rows[i].key));
        assert_null(read_key(rows[i].section, rows[i].key, rows[i].value));
        assert_true(sim_field_number(field, sim_part_in(&world, field->part, 0), &number));
        assert_true(number == rows[i].number);
    }
    assert_null(read_key("outage", "until", "never"));
    assert_false(sim_field_number(sim_field_of(SIM_PART_OUTAGE, "until"), &world.outage[0], &number));
    assert_false(sim_field_number(sim_field_of(SIM_PART_SERVICE, "order"), &world.service[0], &number));
}

/* ---- the world as a whole ---- */

/* Returns NULL, or `text` with the first problem of the world: the key, its value and the valid values. */
static const char *world_problem(char text[256])
{
    struct sim_fault faults[SIM_FAULTS_MAX];
    char key[SIM_KEY_MAX], value[SIM_VALUE_MAX];
    if (sim_world_faults(&world, faults) == 0)
        return NULL;
    const struct sim_field *field = faults[0].field;
    sim_key_path(key, field, sim_part_name(&world, field->part, faults[0].element));
    sim_field_text(value, field, sim_part_in(&world, field->part, faults[0].element), &world);
    snprintf(text, 256, "%.80s = %.60s: %.110s", key, value, faults[0].reason);
    return text;
}

static void assert_problem(const char *expected)
{
    char text[256];
    const char *problem = world_problem(text);
    if (problem == NULL)
        fail_msg("nothing is wrong; expected %s", expected);
    assert_string_equal(problem, expected);
}

static void assert_valid(void)
{
    char text[256];
    const char *problem = world_problem(text);
    if (problem != NULL)
        fail_msg("%s", problem);
}

static void default_world_needs_only_a_rate(void **state)
{
    assert_valid();
    world.clients[0].rate_micro = 0;
    assert_problem("clients.rate = 0/s: must be more than 0/s (or set arrival = herd or closed)");
}

static void herd_has_no_rate(void **state)
{
    world.clients[0].arrival = SIM_HERD;
    world.clients[0].count = 5;
    assert_problem("clients.rate = 10/s: no effect: a herd of `count` callers begins at once, at `from`");
    world.clients[0].rate_micro = 0;
    assert_valid();
    world.clients[0].count = 0;
    assert_problem("clients.count = 0: must be 1 or more");
}

static void closed_clients_think_and_have_one_call_at_a_time(void **state)
{
    world.clients[0].arrival = SIM_CLOSED;
    world.clients[0].rate_micro = 0;
    world.clients[0].count = 5;
    assert_problem("clients.think = 0: must be more than 0: closed clients need time between two calls");
    world.clients[0].think.a_ns = BIDE_S;
    assert_valid();
    world.clients[0].fanout = 2;
    assert_problem("clients.fanout = 2: must be 1: a closed client has one call at a time");
}

static void peak_must_lie_within_the_calls_time(void **state)
{
    world.clients[0].peak_rate_micro = 1000000;
    assert_problem("clients.peak_rate = 1/s: no effect: only a ramp or a spike has a peak (arrival = ramp or spike)");
    world.clients[0].arrival = SIM_SPIKE;
    assert_problem("clients.peak_until = 0: must be later than peak_from (0)");
    world.clients[0].peak_from_ns = 2 * BIDE_S;
    world.clients[0].peak_until_ns = BIDE_S;
    assert_problem("clients.peak_until = 1s: must be later than peak_from (2s)");
    world.clients[0].peak_until_ns = 61 * BIDE_S;
    assert_problem("clients.peak_until = 61s: must be 1m at most");
    world.clients[0].peak_until_ns = 3 * BIDE_S;
    assert_valid();
    world.clients[0].end_rate_micro = 1;
    assert_problem("clients.end_rate = 0.000001/s: no effect: only a ramp has an end rate (arrival = ramp)");
    world.clients[0].arrival = SIM_RAMP;
    assert_valid();
}

static void calls_must_begin_within_the_duration(void **state)
{
    world.clients[0].from_ns = world.duration_ns;
    assert_problem("clients.from = 1m: must be less than 1m: no call would begin");
    world.clients[0].from_ns = 0;
    world.clients[0].until_ns = world.duration_ns + 1;
    assert_problem("clients.until = 60.000000001s: must be the duration (1m) at most, or never");
    world.clients[0].until_ns = 0; /* the group is switched off */
    assert_valid();
}

static void processes_must_not_exceed_clients(void **state)
{
    world.clients[0].count = 10;
    world.clients[0].processes = 11;
    assert_problem("clients.processes = 11: must be count (10) at most: other processes would have no client");
    world.clients[0].count = 0; /* without clients, calls are spread over the processes */
    assert_valid();
}

static void number_of_callers_with_own_gates_is_limited(void **state)
{
    world.clients[0].arrival = SIM_HERD;
    world.clients[0].rate_micro = 0;
    world.clients[0].count = 300000000;
    assert_problem(
        "clients.count = 300M: must be fewer than 268435456, or set processes: each caller has its own gates");
    world.clients[0].processes = 300000000;
    assert_problem("clients.processes = 300M: must be fewer than 268435456");
    world.clients[0].processes = 10;
    assert_valid();
}

static void calls_beyond_the_event_limit_are_rejected(void **state)
{
    world.clients[0].rate_micro = UINT64_C(1000000000000000);
    assert_problem("clients.rate = 1000M/s: must be lower, or the duration shorter: more than 4000M calls would begin");
    world.clients[0].calls = 1000;
    assert_valid();
}

static void gaussian_jitter_needs_a_policy_without_jitter(void **state)
{
    world.clients[0].gauss_milli = 6000;
    assert_problem("clients.gauss = 6: needs jitter = none in policy service");
    policy.pair.policy.jitter = BIDE_JITTER_NONE;
    assert_valid();
}

static void hosts_need_gates_that_can_be_shared(void **state)
{
    world.clients[0].hosts = 2;
    assert_problem("clients.hosts = 2: must be processes (1) at most: other hosts would have no process");
    world.clients[0].processes = 2;
    assert_valid();
    policy.pair.target.in_flight_max = 5;
    assert_problem(
        "clients.hosts = 2: must be 0 with policy service: its limit on attempts in flight cannot be shared");
    policy.pair.target.in_flight_max = 0;
    policy.pair.target.budget.kind = BIDE_BUDGET_CONCURRENCY;
    world.clients[0].hosts = 0;
    assert_valid();
}

static void fleet_needs_a_token_budget_and_clients(void **state)
{
    world.fleet.capacity_milli = 5000;
    assert_problem("fleet.capacity = 5: no effect: no clients lease from the fleet (set clients.fleet = yes)");
    world.clients[0].fleet = true;
    assert_valid();
    world.fleet.down_until_ns = 5 * BIDE_S;
    assert_problem("fleet.down_until = 5s: no effect without down_from");
    world.fleet.down_from_ns = 5 * BIDE_S;
    assert_problem("fleet.down_until = 5s: must be later than down_from (5s)");
    world.fleet.down_until_ns = BIDE_NEVER;
    assert_valid();
    world.fleet.down_from_ns = 60 * BIDE_S;
    assert_problem("fleet.down_from = 1m: must be less than the duration (1m), or never");
    world.fleet.down_from_ns = BIDE_NEVER;
    policy.pair.target.budget.threshold_milli = 5000;
    assert_problem(
        "clients.fleet = yes: needs budget.threshold = 0 in policy service: leased tokens below it could not be spent");
    policy.pair.target.budget.kind = BIDE_BUDGET_WINDOW;
    assert_problem("clients.fleet = yes: needs budget.kind = tokens in policy service");
}

static void fleet_numbers_must_fit_the_bucket(void **state)
{
    world.clients[0].fleet = true;
    world.fleet.capacity_milli = 0;
    assert_problem("fleet.capacity = 0: must be more than 0, and 268435.455 at most");
    world.fleet.capacity_milli = 268435456;
    assert_problem("fleet.capacity = 268435.456: must be more than 0, and 268435.455 at most");
    world.fleet.capacity_milli = 268435455;
    world.fleet.refill_per_minute_milli = 268435456;
    assert_problem("fleet.refill_per_minute = 268435.456: must be 268435.455 at most");
    world.fleet.refill_per_minute_milli = 0;
    assert_valid();
    world.fleet.timeout_ns = 0;
    assert_problem("fleet.timeout = 0: must be more than 0");
}

static void services_must_not_call_in_a_cycle(void **state)
{
    world.services = 3;
    for (int i = 0; i < 3; i++)
        snprintf(world.service[i].name, SIM_NAME_MAX, "s%d", i);
    world.service[0].calls = 1;
    world.service[1].calls = 2;
    assert_valid();
    world.service[2].calls = 1;
    assert_problem("service.s1.calls = s2: must not form a cycle: set calls = none in one of these services");
    world.service[2].calls = 2;
    assert_problem("service.s2.calls = s2: must not form a cycle: set calls = none in one of these services");
}

static void outages_must_end_after_they_begin_and_not_overlap(void **state)
{
    world.outages = 2;
    world.outage[0].from_ns = 10 * BIDE_S;
    world.outage[0].until_ns = 5 * BIDE_S;
    assert_problem("outage.until = 5s: must be later than from (10s)");
    world.outage[0].until_ns = 20 * BIDE_S;
    world.outage[1].until_ns = 10 * BIDE_S;
    assert_valid();
    world.outage[1].until_ns++;
    assert_problem("outage.from = 0: must not overlap another outage of the same service, from 10s until 20s");
    world.outage[1].until_ns = 5 * BIDE_S;
    world.outage[1].kind = SIM_OUTAGE_HOLD;
    assert_valid();
    world.outage[1].until_ns = BIDE_NEVER;
    world.outages = 1;
    world.outage[0] = world.outage[1];
    assert_problem("outage.until = never: must be a time: held requests arrive then (or set kind = silence)");
}

static void slow_outage_fails_as_the_service_by_default(void **state)
{
    world.outages = 2;
    world.service[0].fail_ppm = 1234;
    world.outage[0].kind = SIM_OUTAGE_SLOW;
    world.outage[0].until_ns = BIDE_S;
    assert_problem("outage.kind = slow: has no effect: set capacity below 100%, or fail");
    world.outage[0].capacity_permille = 100;
    world.outage[1].from_ns = 2 * BIDE_S;
    assert_valid();
    sim_world_prepare(&world);
    assert_int_equal(world.outage[0].fail_ppm, 1234);
    assert_int_equal(world.outage[1].fail_ppm, 1000000);
}

static void bin_width_must_be_positive_and_not_too_small(void **state)
{
    world.bin_ns = 0;
    assert_problem("scenario.bin = 0: must be more than 0");
    world.bin_ns = BIDE_US;
    assert_problem("scenario.bin = 1us: must be 60.001us or more: there would be more than a million bins");
    world.bin_ns = world.duration_ns / 1000000;
    assert_valid();
}

static void keys_without_effect_are_marked_ignored(void **state)
{
    struct sim_fault faults[SIM_FAULTS_MAX];
    world.service[0].kind = SIM_UNLIMITED;
    world.service[0].servers = 5;
    world.service[0].order = SIM_LIFO;
    world.service[0].fan = 3;
    assert_int_equal(sim_world_faults(&world, faults), 3);
    for (int i = 0; i < 3; i++)
        assert_true(faults[i].ignored);
    assert_string_equal(faults[0].field->key.key, "servers");
    assert_string_equal(faults[1].field->key.key, "order");
    assert_string_equal(faults[2].field->key.key, "fan");
}

/* Returns the key of the only fault, which must be an ignored key; NULL: no fault. */
static const char *ignored_key(void)
{
    struct sim_fault faults[SIM_FAULTS_MAX];
    size_t count = sim_world_faults(&world, faults);
    assert_true(count <= 1 && (count == 0 || faults[0].ignored));
    return count == 0 ? NULL : faults[0].field->key.key;
}

static void service_without_outages_is_only_cold_at_start(void **state)
{
    struct sim_fault faults[SIM_FAULTS_MAX];
    world.service[0].cold_permille = 100;
    world.service[0].cold_ns = BIDE_S;
    assert_int_equal(sim_world_faults(&world, faults), 2);
    assert_string_equal(faults[0].field->key.key, "cold");
    assert_string_equal(faults[1].field->key.key, "cold_time");
    assert_true(faults[0].ignored && faults[1].ignored);
    world.service[0].cold_at_start = true;
    assert_null(ignored_key());
    world.service[0].cold_at_start = false;
    world.outages = 1;
    world.outage[0].until_ns = BIDE_S;
    assert_null(ignored_key());
}

static void hint_needs_some_kind_of_failure(void **state)
{
    struct sim_world plain;
    world.service[0].hint = SIM_HINT_DELTA;
    world.service[0].hint_ns = BIDE_S;
    plain = world;
    assert_string_equal(ignored_key(), "hint");
    world.service[0].fail_ppm = 1;
    assert_null(ignored_key());
    world = plain;
    world.service[0].queue_max = 5;
    assert_null(ignored_key());
    world.service[0].full = SIM_REFUSE_SILENCE;
    assert_string_equal(ignored_key(), "hint");
    world = plain;
    world.outages = 1;
    world.outage[0].until_ns = BIDE_S;
    assert_null(ignored_key());
    world = plain;
    world.services = 2;
    world.service[0].calls = 1;
    assert_null(ignored_key());
}

static void shards_without_differences_are_ignored(void **state)
{
    world.service[0].shards = 10;
    assert_string_equal(ignored_key(), "shards");
    world.clients[0].scope = SIM_SCOPE_SHARD;
    assert_null(ignored_key());
    world.clients[0].scope = SIM_SCOPE_SERVICE;
    world.service[0].bad_shards = 1;
    assert_null(ignored_key());
}

/* ---- memory ---- */

static uint64_t bytes_of_herd(uint64_t count)
{
    world.clients[0].arrival = SIM_HERD;
    world.clients[0].count = count;
    world.service[0].kind = SIM_UNLIMITED;
    return sim_world_bytes(&world);
}

static void herd_without_gates_needs_a_call_and_an_event_each(void **state)
{
    policy.pair.target.budget.kind = BIDE_BUDGET_NONE;
    policy.pair.target.breaker.kind = BIDE_BREAKER_OFF;
    policy.pair.target.hold_off_max_ns = 0;
    uint64_t more = bytes_of_herd(25000000) - bytes_of_herd(0);
    assert_in_range(more, UINT64_C(25000000) * 128, UINT64_C(4000000000));
}

static void each_caller_with_gates_has_a_target(void **state)
{
    uint64_t more = bytes_of_herd(1000000) - bytes_of_herd(0);
    assert_in_range(more, UINT64_C(2176000000), UINT64_C(2400000000));
    world.clients[0].processes = 1;
    assert_in_range(bytes_of_herd(1000000), 128000000, 300000000);
}

static void overload_estimate_includes_the_backlog(void **state)
{
    world.service[0].time.a_ns = 100 * BIDE_MS; /* capacity 10 a second */
    uint64_t calm = sim_world_bytes(&world);
    world.clients[0].rate_micro = UINT64_C(10000) * 1000000;
    uint64_t storm = sim_world_bytes(&world);
    assert_true(storm > calm + UINT64_C(600000) * 64);
    world.service[0].queue_max = 10;
    assert_true(sim_world_bytes(&world) < storm);
}

static void estimate_does_not_overflow(void **state)
{
    world.clients[0].rate_micro = UINT64_C(1000000000000000);
    world.clients[0].fanout = UINT32_MAX - 1;
    policy.pair.policy.attempts_max = UINT32_MAX;
    policy.pair.policy.call_timeout_ns = policy.pair.policy.attempt_timeout_ns = BIDE_NEVER;
    world.duration_ns = BIDE_DURATION_MAX;
    world.bin_ns = 1;
    assert_true(sim_world_bytes(&world) > UINT64_C(1) << 60);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(every_default_is_in_canonical_form),
        TEST(every_key_has_a_section_and_is_unique),
        TEST(all_elements_have_their_defaults),
        TEST(rates_are_exact_millionths_a_second),
        TEST(counts_may_end_in_k_or_m),
        TEST(shares_are_exact_and_at_most_100_percent),
        TEST(only_some_times_may_be_never),
        TEST(words_and_flags_are_read_as_in_a_policy_file),
        TEST(services_are_kept_as_their_index),
        TEST(overlong_policy_name_is_rejected),
        TEST(every_shape_is_written_as_it_was_read),
        TEST(invalid_shapes_are_rejected),
        TEST(numbers_for_charts_are_in_plain_units),
        TEST(default_world_needs_only_a_rate),
        TEST(herd_has_no_rate),
        TEST(closed_clients_think_and_have_one_call_at_a_time),
        TEST(peak_must_lie_within_the_calls_time),
        TEST(calls_must_begin_within_the_duration),
        TEST(processes_must_not_exceed_clients),
        TEST(calls_beyond_the_event_limit_are_rejected),
        TEST(gaussian_jitter_needs_a_policy_without_jitter),
        TEST(hosts_need_gates_that_can_be_shared),
        TEST(fleet_needs_a_token_budget_and_clients),
        TEST(fleet_numbers_must_fit_the_bucket),
        TEST(services_must_not_call_in_a_cycle),
        TEST(outages_must_end_after_they_begin_and_not_overlap),
        TEST(slow_outage_fails_as_the_service_by_default),
        TEST(bin_width_must_be_positive_and_not_too_small),
        TEST(keys_without_effect_are_marked_ignored),
        TEST(number_of_callers_with_own_gates_is_limited),
        TEST(service_without_outages_is_only_cold_at_start),
        TEST(hint_needs_some_kind_of_failure),
        TEST(shards_without_differences_are_ignored),
        TEST(herd_without_gates_needs_a_call_and_an_event_each),
        TEST(each_caller_with_gates_has_a_target),
        TEST(overload_estimate_includes_the_backlog),
        TEST(estimate_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
