/* test_golden_fleet.c - the scenario fleet_budget: retries of a thousand processes with a budget for each process, each
 * host, or the whole fleet, compared with the sums of their tokens. */
#include "golden.h"

#define FEW     "1%"
#define ALL     "100%"
#define FROM    60u /* begin of the outage, in seconds */
#define UNTIL   180u
#define MINUTES 2 /* duration of the outage */
#define ROWS    14u

/* ---- every row, run once ---- */

static struct sim_scenario *scenario;
static struct sim_result results[ROWS];

static int run_all_rows(void **state)
{
    (void)state;
    scenario = golden_read("fleet_budget", NULL);
    assert_int_equal(sim_scenario_rows(scenario), ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        const struct sim_result *r = &results[i];
        golden_run(sim_scenario_row(scenario, i), GOLDEN_SEED, &results[i]);
        print_message("%s: %llu retries, %llu calls lost, leased %lld, earned %lld, alone for %lld s, %llu exchanges\n",
                      sim_scenario_row(scenario, i)->label, (unsigned long long)r->retries,
                      (unsigned long long)r->gave_up, (long long)r->fleet_leased_milli / 1000,
                      (long long)r->fleet_earned_milli / 1000, (long long)(r->fleet_disconnected_ns / BIDE_S),
                      (unsigned long long)r->fleet_exchanges);
    }
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        sim_result_free(&results[i]);
    sim_scenario_free(scenario);
    return 0;
}

static const struct sim_result *row_result(const char *name, const char *fail)
{
    char label[SIM_LABEL_MAX];
    snprintf(label, sizeof label, "%s, outage.fail=%s", name, fail);
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(sim_scenario_row(scenario, i)->label, label) == 0)
            return &results[i];
    fail_msg("no row \"%s\"", label);
    return NULL;
}

/* Retries of a row in which all requests fail. */
static double retries(const char *name)
{
    return (double)row_result(name, ALL)->retries;
}

static void assert_between(const char *what, double value, double min, double max)
{
    if (!(value >= min && value <= max))
        fail_msg("%s: %.6g is not from %.6g to %.6g (seed %llu)", what, value, min, max,
                 (unsigned long long)GOLDEN_SEED);
}

/* ---- all requests fail ---- */

/* Ten tokens each, and one per minute; the token of the second minute arrives as the outage ends. */
static void each_process_or_host_retries_eleven_or_twelve_times(void **state)
{
    (void)state;
    assert_between("processes", retries("process"), 1000 * 11, 1000 * 12);
    assert_between("hosts", retries("host"), 50 * 11, 50 * 12);
}

/* The bucket, its refill, the tokens that members may hold (half of the bucket among them, in whole tokens), and the
 * tokens earned but not yet reported when the outage began: those of less than two seconds. */
static void fleet_retries_are_limited_by_bucket_refill_and_leases(void **state)
{
    static const struct {
        const char *name;
        double capacity, lent;
    } rows[] = {{"fleet", 100, 0}, {"hosts-fleet", 100, 50}, {"fleet-2000", 2000, 1000}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sim_result *r = row_result(rows[i].name, ALL);
        double unreported = 0.1 * (double)(r->point[FROM - 2].succeeded + r->point[FROM - 1].succeeded);
        double all = rows[i].capacity + 60 * MINUTES + rows[i].lent + unreported;
        assert_between(rows[i].name, retries(rows[i].name), 0.9 * (all - unreported), all);
    }
}

/* One per minute, starting at a random instant of the first minute for each member, so not all at once. */
static void disconnected_fleet_has_the_local_floor_of_each_member(void **state)
{
    (void)state;
    assert_between("processes alone", retries("fleet-lost"), 0.9 * 1000, 1000 * MINUTES);
    assert_between("hosts alone", retries("hosts-fleet-lost"), 0.9 * 50, 50 * (1 + MINUTES));
    assert_between("in the fullest second", golden_figure(row_result("fleet-lost", ALL), "peak_retries_1s"), 10, 50);
}

static void sharing_a_budget_reduces_retries(void **state)
{
    (void)state;
    assert_true(retries("fleet") < retries("host") && retries("hosts-fleet") < retries("host"));
    assert_true(retries("host") < retries("process"));
    assert_true(retries("fleet-2000") < retries("process"));
    assert_true(retries("fleet-lost") < retries("process") && retries("hosts-fleet-lost") < retries("host"));
}

/* ---- the promise ---- */

/* Every retry is charged to a leased token or to the local refill while disconnected; and no more was leased than came
 * into the bucket, a bucketful of initial tokens included. (Unspent tokens of the local refill are returned too. The
 * retry that each member has before its first reply is not spent: the outage begins later.) */
static void retries_never_exceed_the_promise(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const struct sim_row *row = sim_scenario_row(scenario, i);
        const struct sim_result *r = &results[i];
        if (!row->world.clients[0].fleet)
            continue;
        double minutes = (double)r->ended_ns / 60e9, alone_minutes = (double)r->fleet_disconnected_ns / 60e9;
        double leased = (double)r->fleet_leased_milli / 1000, earned = (double)r->fleet_earned_milli / 1000;
        assert_true(r->fleet_exchanges > 0);
        assert_between(row->label, (double)r->retries, 1, leased + alone_minutes);
        double initial = (double)row->world.fleet.capacity_milli / 1000;
        assert_between(row->label, leased, -alone_minutes, initial + earned + 60 * minutes);
        assert_between(row->label, earned, 0, 0.1 * (double)r->succeeded);
    }
}

/* ---- few requests fail ---- */

static double lost(const char *name)
{
    return (double)row_result(name, FEW)->gave_up / (double)row_result(name, FEW)->refused;
}

/* A retry that would succeed needs a token at hand. A process out of a thousand needs one every 100 s and cannot hold
 * one of a hundred tokens; a host out of fifty, or a process out of a thousand with two thousand tokens, holds one. */
static void members_without_tokens_lose_calls_when_few_fail(void **state)
{
    (void)state;
    assert_int_equal(row_result("process", FEW)->gave_up, 0);
    assert_int_equal(row_result("host", FEW)->gave_up, 0);
    assert_between("of processes that lease", lost("fleet"), 0.5, 1);
    assert_between("of processes that keep one", lost("fleet-2000"), 0, 0.02);
    assert_between("of hosts that lease", lost("hosts-fleet"), 0, 0.02);
}

/* ---- load on Redis ---- */

/* At most a thousand exchanges a second, except for members that have just joined or are short of tokens. */
static void exchange_rate_stays_within_its_limits(void **state)
{
    (void)state;
    double seconds = (double)row_result("fleet", FEW)->ended_ns / 1e9;
    assert_between("exchanges a second", (double)row_result("fleet", FEW)->fleet_exchanges / seconds, 500, 1000);
    assert_between("in the fullest second", (double)row_result("fleet", ALL)->fleet_peak, 1000, 2000);
    assert_between("exchanges a second of hosts", (double)row_result("hosts-fleet", FEW)->fleet_exchanges / seconds, 25,
                   75);
}

/* ---- ten times as many processes ---- */

static void tenfold_processes_have_tenfold_budget_unless_shared(void **state)
{
    static const char *const set[] = {"clients.processes=10k", "outage.fail=100%", NULL};
    (void)state;
    struct sim_scenario *large = golden_read("fleet_budget", set);
    assert_between("processes", golden(large, "process", "retries"), 10000 * 11, 10000 * 12);
    assert_between("hosts", golden(large, "host", "retries"), 50 * 11, 50 * 12);
    assert_between("fleet", golden(large, "fleet", "retries"), 100 + 60 * MINUTES, 100 + 60 * MINUTES + 1100);
    sim_scenario_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_or_host_retries_eleven_or_twelve_times),
        cmocka_unit_test(fleet_retries_are_limited_by_bucket_refill_and_leases),
        cmocka_unit_test(disconnected_fleet_has_the_local_floor_of_each_member),
        cmocka_unit_test(sharing_a_budget_reduces_retries),
        cmocka_unit_test(retries_never_exceed_the_promise),
        cmocka_unit_test(members_without_tokens_lose_calls_when_few_fail),
        cmocka_unit_test(exchange_rate_stays_within_its_limits),
        cmocka_unit_test(tenfold_processes_have_tenfold_budget_unless_shared),
    };
    return cmocka_run_group_tests(tests, run_all_rows, free_all);
}
