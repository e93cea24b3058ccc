/* test_sim_run.c - the simulator against what can be known without it: textbook queues, closed forms, worlds so small
 * that each event can be told by hand.
 *
 * The seed of every run is SEED; where chance matters, the tolerance is that of the sample's size. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "os/memory.h"
#include "sim/run.h"

#define SEED 20261u
#define MS   BIDE_MS
#define S    BIDE_S

static struct sim_world world;
static struct sim_result result;
static struct conf_policy policies[2]; /* of the clients, of the first service */
static struct conf_policy *const policy = &policies[0];

/* One client process, one server that answers at once, one attempt, no gates, for a minute. */
static int fresh(void **state)
{
    (void)state;
    sim_world_init(&world);
    for (size_t i = 0; i < 2; i++) {
        conf_policy_init(&policies[i], BIDE_PRESET_COMMAND);
        policies[i].pair.policy.attempts_max = 1;
        policies[i].pair.policy.layer = BIDE_LAYER_ANY;
    }
    world.duration_ns = 60 * S;
    world.bin_ns = S;
    world.groups = world.services = 1;
    world.policy_of_clients[0] = policy;
    world.policy_of_service[0] = &policies[1];
    world.clients[0].arrival = SIM_POISSON;
    world.clients[0].rate_micro = 100 * 1000000;
    world.clients[0].processes = 1;
    world.clients[0].fanout = 1;
    world.service[0].kind = SIM_UNLIMITED;
    world.service[0].time = (struct sim_distribution){.shape = SIM_FIXED};
    return 0;
}

static int forget(void **state)
{
    (void)state;
    sim_result_free(&result);
    return 0;
}

static void run_with(uint64_t seed)
{
    struct sim_run_options how = {.seed = seed};
    sim_distribution_prepare(&world.delay);
    for (uint32_t i = 0; i < world.services; i++)
        sim_distribution_prepare(&world.service[i].time);
    for (uint32_t i = 0; i < world.groups; i++)
        sim_distribution_prepare(&world.clients[i].think);
    sim_result_free(&result);
    assert_int_equal(sim_run(&world, &how, &result), SIM_END_DONE);
}

static void run(void)
{
    run_with(SEED);
}

static void assert_near(double value, double want, double share)
{
    if (fabs(value - want) > fabs(want) * share)
        fail_msg("%g is not within %g %% of %g", value, share * 100, want);
}

static struct sim_distribution exponential(int64_t mean_ns)
{
    return (struct sim_distribution){.shape = SIM_EXPONENTIAL, .a_ns = mean_ns};
}

static struct sim_distribution fixed(int64_t ns)
{
    return (struct sim_distribution){.shape = SIM_FIXED, .a_ns = ns};
}

/* An attempt may be repeated so often, after so long. */
static void retries(uint32_t attempts, int64_t wait_ns)
{
    policy->pair.policy.attempts_max = attempts;
    policy->pair.policy.backoff = BIDE_BACKOFF_FIXED;
    policy->pair.policy.jitter = BIDE_JITTER_NONE;
    policy->pair.policy.base_ns = policy->pair.policy.cap_ns = wait_ns;
}

/* And beside it so many others, so long after each other. */
static void hedge(uint32_t most, int64_t delay_ns)
{
    policy->pair.policy.attempts_max = most + 1;
    policy->pair.policy.hedges_max = most;
    policy->pair.policy.hedge_delay_ns = delay_ns;
}

/* So many callers at time 0, one call each. */
static void herd(uint64_t count)
{
    world.clients[0].arrival = SIM_HERD;
    world.clients[0].count = count;
    world.clients[0].rate_micro = 0;
}

static void queueing(uint32_t servers, struct sim_distribution time)
{
    world.service[0].kind = SIM_QUEUEING;
    world.service[0].servers = servers;
    world.service[0].time = time;
}

static struct sim_outage *outage(enum sim_outage_kind kind, int64_t from_ns, int64_t until_ns)
{
    world.outages = 1;
    world.outage[0] = (struct sim_outage){.kind = kind, .from_ns = from_ns, .until_ns = until_ns, .fail_ppm = 1000000};
    return &world.outage[0];
}

static double mean_ms(void)
{
    return (double)sim_histogram_mean(&result.latency) / 1e6;
}

/* ---- queues whose figures are in every textbook ---- */

static void queue_long(double rate, uint32_t servers, struct sim_distribution time)
{
    world.duration_ns = 10000 * S; /* a standard error of the means below of 0.7 % */
    world.bin_ns = 10 * S;
    world.clients[0].rate_micro = (uint64_t)(rate * 1e6);
    queueing(servers, time);
    run();
}

static void with_exponential_service_the_mean_time_is_that_of_mm1(void **state)
{
    (void)state;
    queue_long(70, 1, exponential(10 * MS));
    assert_near(mean_ms(), 10 / (1 - 0.7), 0.03);
    assert_near((double)sim_histogram_quantile(&result.latency, 990000) / 1e6, 10 / 0.3 * log(100), 0.03);
}

static void with_constant_service_it_waits_half_as_long(void **state)
{
    (void)state;
    queue_long(70, 1, fixed(10 * MS));
    assert_near(mean_ms(), 10 + 0.7 * 10 / (2 * 0.3), 0.02);
}

static void two_servers_wait_as_erlang_computed(void **state)
{
    (void)state;
    queue_long(140, 2, exponential(10 * MS));
    assert_near(mean_ms(), 10 / (1 - 0.7 * 0.7), 0.02); /* of M/M/2: s / (1 - rho^2) */
}

static void last_come_first_served_waits_as_long_in_the_mean(void **state)
{
    (void)state;
    world.service[0].order = SIM_LIFO;
    queue_long(70, 1, exponential(10 * MS));
    assert_near(mean_ms(), 10 / (1 - 0.7), 0.03);
    assert_true((double)sim_histogram_quantile(&result.latency, 990000) / 1e6 > 10 / 0.3 * log(100) * 1.5);
}

static void without_waiting_room_calls_are_lost_as_erlang_computed(void **state)
{
    (void)state;
    world.service[0].queue_max = 0;
    queue_long(100, 1, exponential(10 * MS));
    assert_near((double)result.refused / (double)result.arrivals, 0.5, 0.02); /* Erlang B of one server: a / (1 + a) */
}

static void three_servers_without_waiting_room_lose_as_erlang_computed(void **state)
{
    (void)state;
    world.service[0].queue_max = 0;
    queue_long(200, 3, exponential(10 * MS)); /* offered load 2: (8/6) / (1 + 2 + 2 + 8/6) */
    assert_near((double)result.refused / (double)result.arrivals, 4.0 / 19, 0.02);
}

/* Machines and one repairman, by mean value analysis: response r(n) = s (1 + q(n-1)), throughput n / (z + r(n)). */
static void closed_clients_at_one_server_are_as_fast_as_mean_value_analysis_says(void **state)
{
    (void)state;
    double jobs = 0, response_s = 0, rate = 0;
    for (int n = 1; n <= 8; n++) {
        response_s = 0.010 * (1 + jobs);
        rate = n / (0.050 + response_s);
        jobs = rate * response_s;
    }
    world.clients[0].arrival = SIM_CLOSED;
    world.clients[0].count = 8;
    world.clients[0].think = exponential(50 * MS);
    queue_long(0, 1, exponential(10 * MS));
    assert_near(mean_ms(), response_s * 1000, 0.01);
    assert_near((double)result.calls / 10000, rate, 0.01);
}

static void arrivals_come_at_the_rate_that_was_said(void **state)
{
    (void)state;
    world.clients[0].rate_micro = UINT64_C(333333) * 1000000;
    run();
    assert_near((double)result.calls, 60 * 333333.0, 0.002);
}

static void uniform_arrivals_come_at_equal_distances(void **state)
{
    (void)state;
    world.clients[0].arrival = SIM_UNIFORM;
    world.clients[0].rate_micro = 500 * 1000000;
    world.duration_ns = 2 * S;
    run();
    assert_int_equal(result.calls, 1000);
    assert_int_equal(result.peak[2].arrivals.most, 25);
    assert_int_equal(result.peak[0].arrivals.most, 1);
}

static void uniform_arrivals_never_come_before_their_second(void **state)
{
    (void)state;
    world.clients[0].arrival = SIM_UNIFORM;
    world.duration_ns = 3000 * S;
    for (uint64_t rate = 3; rate < 20; rate += 2) {
        world.clients[0].rate_micro = rate * 1000000;
        run();
        for (size_t i = 0; i < 3000; i++)
            assert_int_equal(result.point[i].calls, rate);
    }
}

static void a_spike_is_as_high_and_as_long_as_said(void **state)
{
    (void)state;
    struct sim_clients *c = &world.clients[0];
    c->arrival = SIM_SPIKE;
    c->rate_micro = 1000 * UINT64_C(1000000);
    c->peak_rate_micro = 5000 * UINT64_C(1000000);
    c->peak_from_ns = 20 * S;
    c->peak_until_ns = 30 * S;
    run();
    assert_near((double)result.calls, 50 * 1000 + 10 * 5000, 0.02);
    assert_near((double)result.point[25].calls, 5000, 0.06);
    assert_near((double)result.point[30].calls, 1000, 0.15);
}

static void a_ramp_goes_up_and_down(void **state)
{
    (void)state;
    struct sim_clients *c = &world.clients[0];
    c->arrival = SIM_RAMP;
    c->rate_micro = 0;
    c->peak_rate_micro = 6000 * UINT64_C(1000000);
    c->end_rate_micro = 0;
    c->peak_from_ns = 20 * S;
    c->peak_until_ns = 40 * S;
    run();
    assert_near((double)result.calls, 40 * 6000, 0.01); /* two triangles of 20 s and a square */
    assert_near((double)result.point[10].calls, 6000 * 10.5 / 20, 0.06);
    assert_near((double)result.point[50].calls, 6000 * 9.5 / 20, 0.06);
}

/* ---- calls and their attempts ---- */

static void all_attempts_are_made_when_everything_fails(void **state)
{
    (void)state;
    herd(1000);
    retries(4, 100 * MS);
    world.service[0].fail_ppm = 1000000;
    run();
    assert_int_equal(result.attempts, 4000);
    assert_int_equal(result.arrivals, 4000);
    assert_int_equal(result.first_arrivals, 1000);
    assert_int_equal(result.gave_up, 1000);
    assert_int_equal(result.reason[BIDE_REASON_ATTEMPTS_SPENT], 1000);
    assert_int_equal(result.ended_ns, 300 * MS);
    assert_int_equal(result.latency.total, 0);
}

static void a_share_of_failures_takes_the_geometric_number_of_attempts(void **state)
{
    (void)state;
    herd(200000);
    retries(4, 100 * MS);
    world.service[0].fail_ppm = 500000;
    run();
    assert_near((double)result.attempts / 200000, 1.875, 0.005);
    assert_near((double)result.succeeded / 200000, 0.9375, 0.002);
}

static void an_outage_includes_its_last_instant_only_if_told(void **state)
{
    (void)state;
    herd(10);
    retries(9, 100 * MS);
    struct sim_outage *o = outage(SIM_OUTAGE_FAIL, 0, 200 * MS);
    run();
    assert_int_equal(result.attempts, 30);
    o->inclusive = true;
    run();
    assert_int_equal(result.attempts, 40);
}

static void the_network_s_delay_counts_both_ways(void **state)
{
    (void)state;
    herd(3);
    world.delay = fixed(10 * MS);
    world.service[0].time = fixed(5 * MS);
    run();
    assert_int_equal(result.latency.most_ns, 25 * MS);
    assert_int_equal(result.latency.least_ns, 25 * MS);
    assert_int_equal(result.peak[0].arrivals.at_ns, 10 * MS);
}

static void an_attempt_is_cut_at_its_timeout_and_its_work_is_wasted(void **state)
{
    (void)state;
    herd(5);
    retries(2, 0);
    policy->pair.policy.backoff = BIDE_BACKOFF_NONE;
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    world.service[0].time = fixed(3 * S);
    run();
    assert_int_equal(result.attempts, 10);
    assert_int_equal(result.gave_up, 5);
    assert_int_equal(result.wasted, 10);
    assert_int_equal(result.served, 10);
    assert_int_equal(result.ended_ns, 4 * S);
}

static void an_answer_in_the_last_instant_is_in_time(void **state)
{
    (void)state;
    herd(5);
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    world.service[0].time = fixed(1 * S);
    run();
    assert_int_equal(result.succeeded, 5);
    assert_int_equal(result.wasted, 0);
}

static void a_timeout_that_is_not_needed_makes_no_run_longer(void **state)
{
    (void)state;
    herd(10);
    policy->pair.policy.attempt_timeout_ns = 30 * S;
    hedge(1, 20 * S);
    world.service[0].time = fixed(2 * S);
    run();
    assert_int_equal(result.ended_ns, 2 * S);
    assert_int_equal(result.points, 3);
    assert_near(result.goodput, 5, 1e-9);
}

static void dead_work_is_dropped_if_the_service_knows_the_deadline(void **state)
{
    (void)state;
    herd(10);
    policy->pair.policy.attempt_timeout_ns = 3500 * MS;
    queueing(1, fixed(1 * S));
    world.service[0].drop_dead = true;
    run();
    assert_int_equal(result.succeeded, 3);
    assert_int_equal(result.served, 4); /* the fourth was begun in time, and ended too late */
    assert_int_equal(result.dropped, 6);
    assert_int_equal(result.wasted, 1);
}

static void a_cut_network_delivers_everything_when_it_is_whole_again(void **state)
{
    (void)state;
    world.clients[0].arrival = SIM_UNIFORM;
    world.clients[0].rate_micro = 10 * 1000000;
    world.duration_ns = 20 * S;
    outage(SIM_OUTAGE_HOLD, 5 * S, 10 * S);
    run();
    assert_int_equal(result.calls, 200);
    assert_int_equal(result.succeeded, 200);
    assert_int_equal(result.peak[0].arrivals.most, 51); /* five seconds of calls, and the one of that instant */
    assert_int_equal(result.peak[0].arrivals.at_ns, 10 * S);
    assert_int_equal(result.latency.most_ns, 5 * S);
}

static void a_service_that_is_silent_leaves_calls_without_a_timeout_hanging(void **state)
{
    (void)state;
    herd(7);
    outage(SIM_OUTAGE_SILENCE, 0, 1 * S);
    run();
    assert_int_equal(result.unfinished, 7);
    assert_int_equal(result.gave_up, 0);
}

static void a_slow_service_takes_longer_and_fails_its_share(void **state)
{
    (void)state;
    herd(1000);
    world.service[0].time = fixed(10 * MS);
    struct sim_outage *o = outage(SIM_OUTAGE_SLOW, 0, 1 * S);
    o->capacity_permille = 100;
    o->fail_ppm = 300000;
    run();
    assert_int_equal(result.ended_ns, 100 * MS);
    assert_near((double)result.gave_up, 300, 0.2);
}

static void a_cold_service_warms_up(void **state)
{
    (void)state;
    world.service[0].time = fixed(10 * MS);
    world.service[0].cold_permille = 100;
    world.service[0].cold_ns = 10 * S;
    world.service[0].cold_at_start = true;
    world.clients[0].arrival = SIM_UNIFORM;
    world.clients[0].rate_micro = 1000000;
    world.duration_ns = 20 * S;
    run();
    assert_int_equal(result.latency.most_ns, 100 * MS);
    assert_int_equal(result.latency.least_ns, 10 * MS);
}

static void latency_may_grow_with_what_is_in_the_house(void **state)
{
    (void)state;
    herd(3);
    world.service[0].time = fixed(100 * MS);
    world.service[0].per_in_flight_ns = 10 * MS;
    run();
    assert_int_equal(result.latency.least_ns, 100 * MS);
    assert_int_equal(result.latency.most_ns, 120 * MS);
}

static void a_service_that_gets_ever_slower_is_not_waited_for_longer_than_there_is_time(void **state)
{
    (void)state;
    herd(20);
    world.service[0].time = fixed(1 * MS);
    world.service[0].per_in_flight_ns = BIDE_DURATION_MAX;
    outage(SIM_OUTAGE_SLOW, 0, 1 * S)->capacity_permille = 1;
    struct sim_run_options how = {.seed = SEED};
    assert_int_equal(sim_run(&world, &how, &result), SIM_END_ENDLESS);
    assert_int_equal(result.calls, 0); /* nothing is left of it */
}

static void what_the_network_loses_only_a_timeout_finds(void **state)
{
    (void)state;
    herd(100000);
    retries(2, 1 * MS);
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    world.loss_ppm = 100000;
    run();
    double arrives = 0.9 * 0.9; /* the request and the answer */
    assert_near((double)result.succeeded / 100000, 1 - (1 - arrives) * (1 - arrives), 0.005);
    assert_int_equal(result.lost, result.attempts - result.succeeded);
}

static void a_hedge_wins_and_the_slow_attempt_is_wasted(void **state)
{
    (void)state;
    herd(20000);
    hedge(1, 50 * MS);
    world.service[0].time = (struct sim_distribution){.shape = SIM_UNIFORM_SHAPE, .a_ns = 0, .b_ns = 100 * MS};
    run();
    assert_int_equal(result.succeeded, 20000);
    assert_near((double)result.hedges / 20000, 0.5, 0.03);
    assert_near((double)result.wasted, (double)result.hedges, 1e-9); /* of each pair one comes too late */
    assert_near(mean_ms(), 25 * 0.5 + 0.5 * (50 + 50.0 / 2 - 50.0 * 50 / 6 / 100), 0.02);
}

static void hedges_without_a_delay_all_start_at_once(void **state)
{
    (void)state;
    herd(5);
    hedge(2, 0);
    world.service[0].time = fixed(10 * MS);
    run();
    assert_int_equal(result.hedges, 10);
    assert_int_equal(result.arrivals, 15);
    assert_int_equal(result.peak[0].arrivals.most, 15);
}

/* ---- a row ---- */

static void row_of_four_messages(void)
{
    world.service[0].kind = SIM_ROW;
    world.delay = fixed(10 * MS); /* reads at 10 ms, writes at 30 ms, hears at 40 ms */
    world.service[0].time = fixed(0);
}

static void a_row_that_is_down_when_the_write_comes_does_not_take_it(void **state)
{
    (void)state;
    herd(1);
    row_of_four_messages();
    struct sim_outage *o = outage(SIM_OUTAGE_FAIL, 20 * MS, 40 * MS);
    run();
    assert_int_equal(result.gave_up, 1);
    assert_int_equal(result.refused, 1);
    assert_int_equal(result.arrivals, 1);
    o->kind = SIM_OUTAGE_HOLD;
    run();
    assert_int_equal(result.succeeded, 1);
    assert_int_equal(result.latency.most_ns, 50 * MS);
}

static void each_of_the_four_messages_may_get_lost(void **state)
{
    (void)state;
    row_of_four_messages();
    world.clients[0].arrival = SIM_UNIFORM;
    world.clients[0].rate_micro = 10 * 1000000;
    world.duration_ns = 5000 * S;
    world.loss_ppm = 100000;
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    run();
    assert_near((double)result.succeeded / 50000, 0.9 * 0.9 * 0.9 * 0.9, 0.02);
    assert_int_equal(result.lost, result.calls - result.succeeded);
}

static void a_write_for_a_caller_who_has_gone_is_wasted(void **state)
{
    (void)state;
    herd(1);
    row_of_four_messages();
    policy->pair.policy.attempt_timeout_ns = 20 * MS;
    run();
    assert_int_equal(result.served, 1);
    assert_int_equal(result.wasted, 1);
}

/* ---- hints and jitter ---- */

static void server_hints_are_waited_for(void **state)
{
    (void)state;
    herd(100);
    retries(2, 1 * MS);
    policy->pair.policy.hint_rule = BIDE_HINT_RULE_EXACT;
    outage(SIM_OUTAGE_FAIL, 0, 1 * S);
    world.service[0].hint = SIM_HINT_DELTA;
    world.service[0].hint_ns = 5 * S;
    run();
    assert_int_equal(result.ended_ns, 5 * S);
    world.clients[0].from_ns = 300 * MS;
    world.service[0].hint = SIM_HINT_DATE; /* 5.3 s has no date of its own */
    run();
    assert_int_equal(result.ended_ns, 6 * S);
}

static void gaussian_jitter_stays_in_the_envelope_around_its_middle(void **state)
{
    (void)state;
    herd(100000);
    retries(2, 100 * MS);
    world.clients[0].gauss_milli = 6000;
    outage(SIM_OUTAGE_FAIL, 0, 1)->inclusive = true;
    run();
    assert_near((double)result.gave_up / 100000, 0.00135, 0.35); /* what is cut to 0 comes back into the outage */
    assert_near(mean_ms(), 50, 0.005);
    assert_true(result.latency.most_ns <= 100 * MS);
    assert_near((double)sim_histogram_quantile(&result.latency, 841345) / 1e6, 50 + 100.0 / 6, 0.01);
}

/* ---- who shares what ---- */

/* Ten, and no more than trickle in. */
static void ten_tokens(uint32_t per_minute_milli)
{
    policy->pair.target.budget = (struct bide_budget_config){.kind = BIDE_BUDGET_TOKENS,
                                                             .capacity_milli = 10000,
                                                             .initial_milli = BIDE_FULL,
                                                             .cost_milli = 1000,
                                                             .cost_throttled_milli = 1000,
                                                             .cost_timeout_milli = 1000,
                                                             .refill_per_minute_milli = per_minute_milli,
                                                             .window_ns = S};
}

static void a_budget_is_shared_by_the_calls_of_one_process(void **state)
{
    (void)state;
    herd(1000);
    retries(4, 100 * MS);
    ten_tokens(0);
    world.service[0].fail_ppm = 1000000;
    run();
    assert_int_equal(result.attempts, 1010);
    assert_int_equal(result.reason[BIDE_REASON_BUDGET_EMPTY],
                     1000); /* those that were let through before are refused next */
    world.clients[0].processes = 100;
    run();
    assert_int_equal(result.attempts, 2000);
    assert_int_equal(result.budget_low_milli, 0);
}

static void a_budget_is_shared_by_the_processes_of_one_host(void **state)
{
    (void)state;
    herd(1000);
    retries(4, 100 * MS);
    ten_tokens(0);
    world.service[0].fail_ppm = 1000000;
    world.clients[0].processes = 100;
    world.clients[0].hosts = 7;
    run();
    assert_int_equal(result.attempts, 1070);
    assert_int_equal(result.fleet_exchanges, 0);
}

/* Processes that are many times as many as the tokens of one bucket, and fail a hundred times a second. */
static void a_fleet(uint32_t processes)
{
    retries(2, 100 * MS);
    ten_tokens(1000);
    world.duration_ns = 90 * S;
    world.clients[0].processes = processes;
    world.clients[0].fleet = true;
    world.fleet.per_minute_milli = 0;
    world.service[0].fail_ppm = 1000000;
}

static void a_fleet_s_bucket_begins_empty(void **state)
{
    (void)state;
    a_fleet(50);
    run();
    assert_int_equal(result.retries, 0);
    assert_int_equal(result.fleet_leased_milli, 0);
    assert_true(result.fleet_exchanges > 50);
    assert_int_equal(result.fleet_lost, 0);
    assert_in_range(result.fleet_disconnected_ns, 50 * (2 * MS - 1), 50 * 2 * MS); /* until the first answer */
}

static void what_trickles_into_it_is_what_all_of_them_retry(void **state)
{
    (void)state;
    a_fleet(50);
    world.fleet.per_minute_milli = 60000;
    run();
    assert_in_range(result.retries, 80, 90);
    assert_in_range(result.fleet_leased_milli, result.retries * 1000, 90000);
}

static void what_they_earn_is_what_all_of_them_retry(void **state)
{
    (void)state;
    a_fleet(10);
    policy->pair.target.budget.earn_success_milli = 100;
    outage(SIM_OUTAGE_FAIL, 30 * S, 90 * S);
    world.service[0].fail_ppm = 0;
    world.fleet.capacity_milli = 40000;
    run();
    assert_in_range(result.fleet_earned_milli, 100 * (result.succeeded - 300), 100 * result.succeeded);
    assert_in_range(result.retries, 40, 40 + 20 + 20); /* a bucket, half of one that was lent, two seconds' earnings */
    assert_true(result.fleet_leased_milli >= (int64_t)result.retries * 1000);
}

static void without_its_bucket_a_fleet_has_the_floor_of_each(void **state)
{
    (void)state;
    a_fleet(10);
    world.fleet.per_minute_milli = 60000;
    world.fleet.down_from_ns = 0;
    run();
    assert_int_equal(result.fleet_exchanges, 0);
    assert_int_equal(result.fleet_leased_milli, 0);
    assert_in_range(result.fleet_disconnected_ns, 10 * (result.ended_ns - 1), 10 * result.ended_ns);
    assert_in_range(result.retries, 9, 10); /* one a minute each */
    assert_in_range(result.fleet_lost, 10 * 2, 10 * 60);
}

static void an_answer_after_the_patience_is_none_and_what_it_granted_is_lost(void **state)
{
    (void)state;
    a_fleet(10);
    world.fleet.per_minute_milli = 60000;
    world.fleet.delay = fixed(200 * MS);
    world.fleet.timeout_ns = 300 * MS;
    run();
    assert_true(result.fleet_exchanges > 0);
    assert_int_equal(result.fleet_lost, result.fleet_exchanges);
    assert_in_range(result.retries, 9, 10);
}

static void hosts_may_lease_as_one_each(void **state)
{
    (void)state;
    a_fleet(50);
    world.clients[0].hosts = 5;
    world.fleet.down_from_ns = 0;
    run();
    assert_in_range(result.retries, 4, 5);
    assert_in_range(result.fleet_disconnected_ns, 5 * (result.ended_ns - 1), 5 * result.ended_ns);
}

static void a_fleet_makes_no_run_longer(void **state)
{
    (void)state;
    a_fleet(10);
    world.clients[0].until_ns = 10 * S;
    run();
    assert_true(result.ended_ns < 10 * S);
    assert_true(result.fleet_exchanges > 0);
}

static void a_fleet_does_not_wait_for_calls_that_hang(void **state)
{
    (void)state;
    a_fleet(10);
    policy->pair.policy.attempt_timeout_ns = policy->pair.policy.deadline_ns = BIDE_NEVER;
    world.clients[0].until_ns = 10 * S;
    outage(SIM_OUTAGE_SILENCE, 0, 90 * S);
    run();
    assert_true(result.ended_ns < 10 * S);
    assert_int_equal(result.unfinished, result.calls);
}

static void the_level_of_a_budget_is_that_of_the_end_of_each_bucket(void **state)
{
    (void)state;
    herd(10);
    retries(2, 30 * S); /* nothing happens in between, but the trickle */
    ten_tokens(60000);
    world.service[0].fail_ppm = 1000000;
    run();
    assert_in_range(result.point[0].budget_milli, 990, 1000); /* it trickles in ticks */
    assert_in_range(result.point[4].budget_milli, 4990, 5000);
    assert_int_equal(result.point[20].budget_milli, 10000);
    assert_int_equal(result.budget_low_milli, result.point[0].budget_milli);
}

static void open_breakers_of_many_processes_are_counted_as_many_as_they_are(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 1023, 1024, 1025, 5000};
    policy->pair.target.breaker.kind = BIDE_BREAKER_BY_RUN;
    policy->pair.target.breaker.consecutive = 1;
    policy->pair.target.breaker.open_ns = policy->pair.target.breaker.open_max_ns = 3600 * S;
    world.service[0].fail_ppm = 1000000;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        herd(counts[i]);
        world.clients[0].processes = counts[i];
        run();
        assert_int_equal(result.openings, counts[i]);
        assert_int_equal(result.point[0].open, counts[i]);
    }
}

static void a_bad_shard_fails_and_a_breaker_of_its_own_spares_the_others(void **state)
{
    (void)state;
    policy->pair.target.breaker.kind = BIDE_BREAKER_BY_RUN;
    policy->pair.target.breaker.consecutive = 5;
    policy->pair.target.breaker.open_ns = policy->pair.target.breaker.open_max_ns = 3600 * S;
    world.service[0].shards = 4;
    world.service[0].bad_shards = 1;
    world.clients[0].scope = SIM_SCOPE_SHARD;
    run();
    assert_near((double)result.succeeded / (double)result.calls, 0.75, 0.03);
    assert_int_equal(result.failed, 5);
    assert_int_equal(result.openings, 1);
}

static void sockets_are_held_until_the_answer_comes(void **state)
{
    (void)state;
    herd(10);
    world.clients[0].pool = 2;
    world.service[0].time = fixed(1 * S);
    run();
    assert_int_equal(result.succeeded, 10);
    assert_int_equal(result.ended_ns, 5 * S);
    policy->pair.policy.attempt_timeout_ns = 2500 * MS;
    run();
    assert_int_equal(result.succeeded, 4);
    assert_int_equal(result.arrivals, 6); /* two more got a socket, and were cut with it; the others never had one */
}

static void a_hedge_without_a_socket_is_not_sent_once_its_call_is_over(void **state)
{
    (void)state;
    herd(1);
    hedge(1, 50 * MS);
    world.clients[0].pool = 1;
    world.service[0].time = fixed(100 * MS);
    run();
    assert_int_equal(result.hedges, 1);
    assert_int_equal(result.arrivals, 1);
    assert_int_equal(result.wasted, 0);
    assert_int_equal(result.ended_ns, 100 * MS);
}

static void an_attempt_that_lost_gives_its_socket_back(void **state)
{
    (void)state;
    hedge(1, 50 * MS);
    world.clients[0].pool = 2;
    world.clients[0].arrival = SIM_UNIFORM;
    world.clients[0].rate_micro = 1000000;
    world.duration_ns = 6 * S;
    world.service[0].time = fixed(100 * MS);
    outage(SIM_OUTAGE_SILENCE, 0, 10 * MS); /* the first attempts of two calls, which would wait for ever */
    world.outage[1] = world.outage[0];
    world.outage[1].from_ns = 1 * S;
    world.outage[1].until_ns = 1010 * MS;
    world.outages = 2;
    run();
    assert_int_equal(result.succeeded, 6);
    assert_int_equal(result.latency.most_ns, 150 * MS);
}

/* ---- layers ---- */

static void chain(uint32_t services, uint32_t attempts)
{
    world.services = services;
    for (uint32_t i = 0; i < services; i++) {
        world.service[i] = world.service[0];
        world.service[i].calls = i + 1 < services ? (int32_t)i + 1 : -1;
        world.policy_of_service[i] = policy;
    }
    world.service[services - 1].fail_ppm = 1000000;
    retries(attempts, 10 * MS);
    policy->pair.policy.layer = BIDE_LAYER_ANY;
}

static void retries_at_every_layer_multiply(void **state)
{
    (void)state;
    herd(10);
    chain(3, 3);
    run();
    assert_int_equal(result.arrivals, 270);
    assert_int_equal(result.attempts, 30);
}

static void the_outermost_rule_adds_instead(void **state)
{
    (void)state;
    herd(10);
    chain(3, 3);
    policy->pair.policy.layer = BIDE_LAYER_OUTERMOST;
    run();
    assert_int_equal(result.arrivals, 70);
}

static void a_service_may_make_several_calls_for_a_request(void **state)
{
    (void)state;
    herd(10);
    chain(2, 1);
    world.service[1].fail_ppm = 0;
    world.service[1].time = fixed(10 * MS);
    world.service[0].fan = 3;
    run();
    assert_int_equal(result.arrivals, 30);
    assert_int_equal(result.succeeded, 10);
    assert_int_equal(result.latency.most_ns, 30 * MS);
}

static void the_deadline_goes_down_with_the_request(void **state)
{
    (void)state;
    herd(1);
    chain(2, 5);
    world.service[1].fail_ppm = 0;
    world.service[1].time = fixed(10 * S);
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    policies[1] = *policy;
    policies[1].pair.policy.attempt_timeout_ns = BIDE_NEVER;
    world.policy_of_service[0] = &policies[1];
    run();
    assert_int_equal(result.attempts, 5);
    assert_int_equal(result.arrivals, 5); /* the middle gives each up when its caller does, and does not retry then */
}

static void a_service_does_not_retry_past_its_caller_s_deadline(void **state)
{
    (void)state;
    herd(1);
    chain(2, 5);
    world.service[1].time = fixed(400 * MS); /* tried at 0, 410 and 820 ms; the next would be too late */
    policies[1] = *policy;
    policies[1].pair.policy.attempt_timeout_ns = BIDE_NEVER;
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    world.policy_of_service[0] = &policies[1];
    run();
    assert_int_equal(result.attempts, 5);
    assert_int_equal(result.arrivals, 15);
    assert_int_equal(result.wasted, 5);
}

static void a_fan_out_is_as_slow_as_its_slowest_call(void **state)
{
    (void)state;
    world.clients[0].fanout = 100;
    world.clients[0].rate_micro = 100 * 1000000;
    world.service[0].time = exponential(10 * MS);
    run();
    assert_int_equal(result.calls, result.users * 100);
    double harmonic = 0;
    for (int i = 1; i <= 100; i++)
        harmonic += 1.0 / i;
    assert_near(mean_ms(), 10 * harmonic, 0.01);
}

/* ---- closed loops ---- */

static void closed_clients(enum sim_pace pace)
{
    world.clients[0].arrival = SIM_CLOSED;
    world.clients[0].rate_micro = 0;
    world.clients[0].count = 50;
    world.clients[0].pace = pace;
    world.clients[0].think = exponential(100 * MS);
    world.service[0].time = fixed(100 * MS);
    world.duration_ns = 200 * S;
    run();
}

static void a_closed_client_thinks_between_calls(void **state)
{
    (void)state;
    closed_clients(SIM_PACE_THINK);
    assert_near((double)result.calls / 200, 50 / 0.2, 0.02);
}

static void a_closed_client_may_be_paced_from_its_last_start(void **state)
{
    (void)state;
    closed_clients(SIM_PACE_START);
    assert_near((double)result.calls / 200, 50 / (0.1 + 0.1 * exp(-1)), 0.02);
}

static void a_closed_client_may_have_arrivals_that_queue(void **state)
{
    (void)state;
    world.clients[0].processes = 1;
    closed_clients(SIM_PACE_QUEUE);
    assert_in_range(result.calls, 50 * 1900, 50 * 2000); /* it is busy all the time: as many as it can serve */
    world.service[0].time = fixed(50 * MS);
    run();
    assert_near((double)result.calls / 200, 50 / 0.1, 0.02); /* now as many as come */
}

/* ---- recovery ---- */

static void recovery_is_counted_from_the_end_of_the_outage(void **state)
{
    (void)state;
    world.duration_ns = 100 * S;
    outage(SIM_OUTAGE_FAIL, 20 * S, 30 * S);
    run();
    assert_true(result.disturbed && result.recovers);
    assert_int_equal(result.recover_ns, 0);
    assert_near(result.goodput, 100, 0.1);
}

static void a_service_that_always_fails_some_recovers_to_what_it_was(void **state)
{
    (void)state;
    world.duration_ns = 100 * S;
    world.clients[0].arrival = SIM_UNIFORM;
    world.service[0].fail_ppm = 200000;
    outage(SIM_OUTAGE_FAIL, 20 * S, 30 * S);
    run();
    assert_true(result.disturbed && result.recovers);
    assert_int_equal(result.recover_ns, 0);
}

static void a_backlog_delays_recovery_until_it_is_served(void **state)
{
    (void)state;
    world.duration_ns = 300 * S;
    world.clients[0].arrival = SIM_UNIFORM;
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    queueing(1, fixed(8 * MS)); /* 125 a second */
    outage(SIM_OUTAGE_HOLD, 20 * S, 30 * S);
    run();
    assert_true(result.recovers);
    assert_in_range(result.recover_ns, 30 * S, 45 * S); /* 1000 held, 25 a second faster than they come: 40 s */
}

static void what_never_recovers_is_said_to(void **state)
{
    (void)state;
    world.duration_ns = 300 * S;
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    retries(2, 1 * MS);
    queueing(1, fixed(8 * MS));
    outage(SIM_OUTAGE_HOLD, 20 * S, 30 * S);
    run();
    assert_true(result.disturbed);
    assert_false(result.recovers);
    assert_int_equal(result.recover_ns, -1);
    assert_near(result.attempt_rate, 200, 0.05);
}

static void without_a_disturbance_there_is_nothing_to_recover_from(void **state)
{
    (void)state;
    run();
    assert_false(result.disturbed);
}

static void a_run_without_draining_stops_at_its_duration(void **state)
{
    (void)state;
    world.drain = false;
    world.duration_ns = 10 * S;
    world.service[0].time = fixed(100 * S);
    run();
    assert_int_equal(result.succeeded, 0);
    assert_int_equal(result.unfinished, result.calls);
    assert_true(result.ended_ns <= 10 * S);
}

static void users_whose_calls_have_not_ended_count_too(void **state)
{
    (void)state;
    world.drain = false;
    world.duration_ns = 10 * S;
    world.clients[0].fanout = 3;
    world.service[0].time = fixed(5 * S);
    run();
    assert_true(result.unfinished > 0);
    assert_int_equal(result.users * 3, result.calls);
    assert_int_equal(result.users_succeeded * 3, result.succeeded);
}

static void a_series_that_gets_too_long_goes_on_in_wider_buckets(void **state)
{
    (void)state;
    herd(3);
    retries(2, 7200 * S);
    world.duration_ns = 1 * S;
    world.bin_ns = 1 * MS;
    outage(SIM_OUTAGE_FAIL, 0, 1 * S);
    run();
    assert_int_equal(result.ended_ns, 7200 * S);
    assert_int_equal(result.bin_ns, 8 * MS);
    assert_int_equal(result.points, 900001);
    assert_int_equal(result.point[0].calls, 3);
    assert_int_equal(result.point[0].arrivals, 3);
    assert_int_equal(result.point[900000].succeeded, 3);
}

/* ---- without memory ---- */

static unsigned asked, refused_from;

static bool refuse(void)
{
    return ++asked >= refused_from;
}

/* Pools, queue, targets, sockets, users, closed clients, leases, the series: each of them lacks once. */
static void without_memory_a_run_says_so_and_leaves_nothing(void **state)
{
    (void)state;
    enum sim_end end = SIM_END_NO_MEMORY;
    hedge(1, 5 * MS);
    policy->pair.target.breaker.kind = BIDE_BREAKER_BY_RUN;
    world.delay = fixed(1 * MS);
    world.clients[0].fanout = 2;
    world.clients[0].pool = 1;
    world.groups = 2;
    world.clients[1] = world.clients[0];
    world.clients[1].arrival = SIM_CLOSED;
    world.clients[1].count = 3;
    world.clients[1].fanout = 1;
    world.clients[1].think = exponential(100 * MS);
    world.policy_of_clients[1] = policy;
    world.clients[1].fleet = true;
    ten_tokens(0);
    world.bin_ns = 50 * MS;
    queueing(1, exponential(10 * MS));
    sim_result_free(&result);
    for (refused_from = 1; end == SIM_END_NO_MEMORY; refused_from++) {
        asked = 0;
        os_memory_refuses = refuse;
        end = sim_run(&world, &(struct sim_run_options){.seed = SEED}, &result);
        os_memory_refuses = NULL;
        assert_true(end == SIM_END_DONE || (result.point == NULL && result.calls == 0));
    }
    assert_int_equal(end, SIM_END_DONE);
    assert_in_range(refused_from, 15, 100);
}

static bool stop(void *context, double done)
{
    (void)context;
    (void)done;
    return false;
}

static void progress_may_stop_a_run(void **state)
{
    (void)state;
    struct sim_run_options how = {.seed = SEED, .progress = stop};
    world.clients[0].rate_micro = UINT64_C(10000) * 1000000;
    sim_result_free(&result);
    assert_int_equal(sim_run(&world, &how, &result), SIM_END_STOPPED);
    assert_null(result.point);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fresh, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(with_exponential_service_the_mean_time_is_that_of_mm1),
        T(with_constant_service_it_waits_half_as_long),
        T(two_servers_wait_as_erlang_computed),
        T(last_come_first_served_waits_as_long_in_the_mean),
        T(without_waiting_room_calls_are_lost_as_erlang_computed),
        T(three_servers_without_waiting_room_lose_as_erlang_computed),
        T(closed_clients_at_one_server_are_as_fast_as_mean_value_analysis_says),
        T(arrivals_come_at_the_rate_that_was_said),
        T(uniform_arrivals_come_at_equal_distances),
        T(uniform_arrivals_never_come_before_their_second),
        T(a_spike_is_as_high_and_as_long_as_said),
        T(a_ramp_goes_up_and_down),
        T(all_attempts_are_made_when_everything_fails),
        T(a_share_of_failures_takes_the_geometric_number_of_attempts),
        T(an_outage_includes_its_last_instant_only_if_told),
        T(the_network_s_delay_counts_both_ways),
        T(an_attempt_is_cut_at_its_timeout_and_its_work_is_wasted),
        T(an_answer_in_the_last_instant_is_in_time),
        T(a_timeout_that_is_not_needed_makes_no_run_longer),
        T(dead_work_is_dropped_if_the_service_knows_the_deadline),
        T(a_cut_network_delivers_everything_when_it_is_whole_again),
        T(a_service_that_is_silent_leaves_calls_without_a_timeout_hanging),
        T(a_slow_service_takes_longer_and_fails_its_share),
        T(a_cold_service_warms_up),
        T(latency_may_grow_with_what_is_in_the_house),
        T(a_service_that_gets_ever_slower_is_not_waited_for_longer_than_there_is_time),
        T(what_the_network_loses_only_a_timeout_finds),
        T(a_hedge_wins_and_the_slow_attempt_is_wasted),
        T(hedges_without_a_delay_all_start_at_once),
        T(a_row_that_is_down_when_the_write_comes_does_not_take_it),
        T(each_of_the_four_messages_may_get_lost),
        T(a_write_for_a_caller_who_has_gone_is_wasted),
        T(server_hints_are_waited_for),
        T(gaussian_jitter_stays_in_the_envelope_around_its_middle),
        T(a_budget_is_shared_by_the_calls_of_one_process),
        T(a_budget_is_shared_by_the_processes_of_one_host),
        T(a_fleet_s_bucket_begins_empty),
        T(what_trickles_into_it_is_what_all_of_them_retry),
        T(what_they_earn_is_what_all_of_them_retry),
        T(without_its_bucket_a_fleet_has_the_floor_of_each),
        T(an_answer_after_the_patience_is_none_and_what_it_granted_is_lost),
        T(hosts_may_lease_as_one_each),
        T(a_fleet_makes_no_run_longer),
        T(a_fleet_does_not_wait_for_calls_that_hang),
        T(the_level_of_a_budget_is_that_of_the_end_of_each_bucket),
        T(open_breakers_of_many_processes_are_counted_as_many_as_they_are),
        T(a_bad_shard_fails_and_a_breaker_of_its_own_spares_the_others),
        T(sockets_are_held_until_the_answer_comes),
        T(a_hedge_without_a_socket_is_not_sent_once_its_call_is_over),
        T(an_attempt_that_lost_gives_its_socket_back),
        T(retries_at_every_layer_multiply),
        T(the_outermost_rule_adds_instead),
        T(a_service_may_make_several_calls_for_a_request),
        T(the_deadline_goes_down_with_the_request),
        T(a_service_does_not_retry_past_its_caller_s_deadline),
        T(a_fan_out_is_as_slow_as_its_slowest_call),
        T(a_closed_client_thinks_between_calls),
        T(a_closed_client_may_be_paced_from_its_last_start),
        T(a_closed_client_may_have_arrivals_that_queue),
        T(recovery_is_counted_from_the_end_of_the_outage),
        T(a_service_that_always_fails_some_recovers_to_what_it_was),
        T(a_backlog_delays_recovery_until_it_is_served),
        T(what_never_recovers_is_said_to),
        T(without_a_disturbance_there_is_nothing_to_recover_from),
        T(a_run_without_draining_stops_at_its_duration),
        T(users_whose_calls_have_not_ended_count_too),
        T(a_series_that_gets_too_long_goes_on_in_wider_buckets),
        T(without_memory_a_run_says_so_and_leaves_nothing),
        T(progress_may_stop_a_run),
    };
    return cmocka_run_group_tests_name("sim_run", tests, NULL, NULL);
}
