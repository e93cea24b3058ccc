/* test_run.c - the simulator compared with independent results: textbook queues, closed forms, and worlds so small that
 * each event can be computed by hand.
 *
 * The seed of every run is SEED; where chance matters, the tolerance follows from the sample size. */
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

/* A client process, a server that answers immediately, a single attempt, no gates, for a minute. */
static int setup(void **state)
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

static int teardown(void **state)
{
    (void)state;
    sim_result_free(&result);
    return 0;
}

static void run_with(uint64_t seed)
{
    struct sim_run_options options = {.seed = seed};
    sim_distribution_prepare(&world.delay);
    for (uint32_t i = 0; i < world.services; i++)
        sim_distribution_prepare(&world.service[i].time);
    for (uint32_t i = 0; i < world.groups; i++)
        sim_distribution_prepare(&world.clients[i].think);
    sim_result_free(&result);
    assert_int_equal(sim_run(&world, &options, &result), SIM_END_DONE);
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

/* Sets the number of attempts and a fixed backoff. */
static void retries(uint32_t attempts, int64_t wait_ns)
{
    policy->pair.policy.attempts_max = attempts;
    policy->pair.policy.backoff = BIDE_BACKOFF_FIXED;
    policy->pair.policy.jitter = BIDE_JITTER_NONE;
    policy->pair.policy.base_ns = policy->pair.policy.cap_ns = wait_ns;
}

/* Sets the number of hedges and the delay between them. */
static void hedge(uint32_t max, int64_t delay_ns)
{
    policy->pair.policy.attempts_max = max + 1;
    policy->pair.policy.hedges_max = max;
    policy->pair.policy.hedge_delay_ns = delay_ns;
}

/* Sets a herd of `count` callers at time 0. */
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

/* ---- textbook queues ---- */

static void queue_long(double rate, uint32_t servers, struct sim_distribution time)
{
    world.duration_ns = 10000 * S; /* for a standard error of 0.7 % of the means below */
    world.bin_ns = 10 * S;
    world.clients[0].rate_micro = (uint64_t)(rate * 1e6);
    queueing(servers, time);
    run();
}

static void exponential_service_has_mm1_latency(void **state)
{
    (void)state;
    queue_long(70, 1, exponential(10 * MS));
    assert_near(mean_ms(), 10 / (1 - 0.7), 0.03);
    assert_near((double)sim_histogram_quantile(&result.latency, 990000) / 1e6, 10 / 0.3 * log(100), 0.03);
}

static void constant_service_waits_half_as_long(void **state)
{
    (void)state;
    queue_long(70, 1, fixed(10 * MS));
    assert_near(mean_ms(), 10 + 0.7 * 10 / (2 * 0.3), 0.02);
}

static void two_servers_have_mm2_latency(void **state)
{
    (void)state;
    queue_long(140, 2, exponential(10 * MS));
    assert_near(mean_ms(), 10 / (1 - 0.7 * 0.7), 0.02); /* of M/M/2: s / (1 - rho^2) */
}

static void lifo_has_the_same_mean_latency(void **state)
{
    (void)state;
    world.service[0].order = SIM_LIFO;
    queue_long(70, 1, exponential(10 * MS));
    assert_near(mean_ms(), 10 / (1 - 0.7), 0.03);
    assert_true((double)sim_histogram_quantile(&result.latency, 990000) / 1e6 > 10 / 0.3 * log(100) * 1.5);
}

static void single_server_without_queue_refuses_as_erlang_b(void **state)
{
    (void)state;
    world.service[0].queue_max = 0;
    queue_long(100, 1, exponential(10 * MS));
    assert_near((double)result.refused / (double)result.arrivals, 0.5, 0.02); /* Erlang B of one server: a / (1 + a) */
}

static void three_servers_without_queue_refuse_as_erlang_b(void **state)
{
    (void)state;
    world.service[0].queue_max = 0;
    queue_long(200, 3, exponential(10 * MS)); /* offered load 2: (8/6) / (1 + 2 + 2 + 8/6) */
    assert_near((double)result.refused / (double)result.arrivals, 4.0 / 19, 0.02);
}

/* Machine repairman model, by mean value analysis: response r(n) = s (1 + q(n-1)), throughput n / (z + r(n)). */
static void closed_clients_match_mean_value_analysis(void **state)
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

static void arrivals_come_at_the_configured_rate(void **state)
{
    (void)state;
    world.clients[0].rate_micro = UINT64_C(333333) * 1000000;
    run();
    assert_near((double)result.calls, 60 * 333333.0, 0.002);
}

static void uniform_arrivals_are_equally_spaced(void **state)
{
    (void)state;
    world.clients[0].arrival = SIM_UNIFORM;
    world.clients[0].rate_micro = 500 * 1000000;
    world.duration_ns = 2 * S;
    run();
    assert_int_equal(result.calls, 1000);
    assert_int_equal(result.peak[2].arrivals.max, 25);
    assert_int_equal(result.peak[0].arrivals.max, 1);
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

static void spike_has_its_configured_height_and_length(void **state)
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

static void ramp_rises_and_falls(void **state)
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
    assert_near((double)result.calls, 40 * 6000, 0.01); /* two triangles of 20 s and a rectangle */
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

static void attempts_follow_the_geometric_distribution(void **state)
{
    (void)state;
    herd(200000);
    retries(4, 100 * MS);
    world.service[0].fail_ppm = 500000;
    run();
    assert_near((double)result.attempts / 200000, 1.875, 0.005);
    assert_near((double)result.succeeded / 200000, 0.9375, 0.002);
}

static void outage_includes_its_last_instant_only_if_inclusive(void **state)
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

static void network_delay_counts_both_ways(void **state)
{
    (void)state;
    herd(3);
    world.delay = fixed(10 * MS);
    world.service[0].time = fixed(5 * MS);
    run();
    assert_int_equal(result.latency.max_ns, 25 * MS);
    assert_int_equal(result.latency.min_ns, 25 * MS);
    assert_int_equal(result.peak[0].arrivals.at_ns, 10 * MS);
}

static void timed_out_attempt_counts_as_wasted_work(void **state)
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

static void response_at_the_timeout_is_in_time(void **state)
{
    (void)state;
    herd(5);
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    world.service[0].time = fixed(1 * S);
    run();
    assert_int_equal(result.succeeded, 5);
    assert_int_equal(result.wasted, 0);
}

static void unused_timeout_does_not_prolong_the_run(void **state)
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

static void drop_dead_drops_requests_past_their_deadline(void **state)
{
    (void)state;
    herd(10);
    policy->pair.policy.attempt_timeout_ns = 3500 * MS;
    queueing(1, fixed(1 * S));
    world.service[0].drop_dead = true;
    run();
    assert_int_equal(result.succeeded, 3);
    assert_int_equal(result.served, 4); /* the fourth began in time and ended too late */
    assert_int_equal(result.dropped, 6);
    assert_int_equal(result.wasted, 1);
}

static void hold_outage_delivers_requests_at_its_end(void **state)
{
    (void)state;
    world.clients[0].arrival = SIM_UNIFORM;
    world.clients[0].rate_micro = 10 * 1000000;
    world.duration_ns = 20 * S;
    outage(SIM_OUTAGE_HOLD, 5 * S, 10 * S);
    run();
    assert_int_equal(result.calls, 200);
    assert_int_equal(result.succeeded, 200);
    assert_int_equal(result.peak[0].arrivals.max, 51); /* five seconds of calls, and the call of that instant */
    assert_int_equal(result.peak[0].arrivals.at_ns, 10 * S);
    assert_int_equal(result.latency.max_ns, 5 * S);
}

static void silent_service_leaves_calls_without_timeout_unfinished(void **state)
{
    (void)state;
    herd(7);
    outage(SIM_OUTAGE_SILENCE, 0, 1 * S);
    run();
    assert_int_equal(result.unfinished, 7);
    assert_int_equal(result.gave_up, 0);
}

static void slow_outage_prolongs_service_and_fails_its_share(void **state)
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

static void cold_service_warms_up(void **state)
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
    assert_int_equal(result.latency.max_ns, 100 * MS);
    assert_int_equal(result.latency.min_ns, 10 * MS);
}

static void latency_grows_with_requests_in_the_system(void **state)
{
    (void)state;
    herd(3);
    world.service[0].time = fixed(100 * MS);
    world.service[0].per_in_flight_ns = 10 * MS;
    run();
    assert_int_equal(result.latency.min_ns, 100 * MS);
    assert_int_equal(result.latency.max_ns, 120 * MS);
}

static void endless_service_time_ends_the_run(void **state)
{
    (void)state;
    herd(20);
    world.service[0].time = fixed(1 * MS);
    world.service[0].per_in_flight_ns = BIDE_DURATION_MAX;
    outage(SIM_OUTAGE_SLOW, 0, 1 * S)->capacity_permille = 1;
    struct sim_run_options options = {.seed = SEED};
    assert_int_equal(sim_run(&world, &options, &result), SIM_END_ENDLESS);
    assert_int_equal(result.calls, 0); /* the result is empty */
}

static void lost_messages_end_by_timeout(void **state)
{
    (void)state;
    herd(100000);
    retries(2, 1 * MS);
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    world.loss_ppm = 100000;
    run();
    double arrives = 0.9 * 0.9; /* the request and the response */
    assert_near((double)result.succeeded / 100000, 1 - (1 - arrives) * (1 - arrives), 0.005);
    assert_int_equal(result.lost, result.attempts - result.succeeded);
}

static void hedge_wins_and_the_slow_attempt_is_wasted(void **state)
{
    (void)state;
    herd(20000);
    hedge(1, 50 * MS);
    world.service[0].time = (struct sim_distribution){.shape = SIM_UNIFORM_SHAPE, .a_ns = 0, .b_ns = 100 * MS};
    run();
    assert_int_equal(result.succeeded, 20000);
    assert_near((double)result.hedges / 20000, 0.5, 0.03);
    assert_near((double)result.wasted, (double)result.hedges, 1e-9); /* one attempt of each pair is too late */
    assert_near(mean_ms(), 25 * 0.5 + 0.5 * (50 + 50.0 / 2 - 50.0 * 50 / 6 / 100), 0.02);
}

static void hedges_without_delay_start_together(void **state)
{
    (void)state;
    herd(5);
    hedge(2, 0);
    world.service[0].time = fixed(10 * MS);
    run();
    assert_int_equal(result.hedges, 10);
    assert_int_equal(result.arrivals, 15);
    assert_int_equal(result.peak[0].arrivals.max, 15);
}

/* ---- a row ---- */

static void row_of_four_messages(void)
{
    world.service[0].kind = SIM_ROW;
    world.delay = fixed(10 * MS); /* read at 10 ms, write at 30 ms, response at 40 ms */
    world.service[0].time = fixed(0);
}

static void outage_at_the_write_of_a_row_refuses_it(void **state)
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
    assert_int_equal(result.latency.max_ns, 50 * MS);
}

static void any_of_the_four_messages_may_be_lost(void **state)
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

static void row_write_after_the_timeout_is_wasted(void **state)
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

static void retry_waits_for_server_hint(void **state)
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
    world.service[0].hint = SIM_HINT_DATE; /* 5.3 s is rounded up to whole seconds */
    run();
    assert_int_equal(result.ended_ns, 6 * S);
}

static void gaussian_jitter_stays_in_its_envelope(void **state)
{
    (void)state;
    herd(100000);
    retries(2, 100 * MS);
    world.clients[0].gauss_milli = 6000;
    outage(SIM_OUTAGE_FAIL, 0, 1)->inclusive = true;
    run();
    assert_near((double)result.gave_up / 100000, 0.00135, 0.35); /* waits cut to 0 fall into the outage */
    assert_near(mean_ms(), 50, 0.005);
    assert_true(result.latency.max_ns <= 100 * MS);
    assert_near((double)sim_histogram_quantile(&result.latency, 841345) / 1e6, 50 + 100.0 / 6, 0.01);
}

/* ---- shared gates ---- */

/* Sets a budget of ten tokens with this refill. */
static void set_ten_tokens(uint32_t per_minute_milli)
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

static void calls_of_a_process_share_a_budget(void **state)
{
    (void)state;
    herd(1000);
    retries(4, 100 * MS);
    set_ten_tokens(0);
    world.service[0].fail_ppm = 1000000;
    run();
    assert_int_equal(result.attempts, 1010);
    assert_int_equal(result.reason[BIDE_REASON_BUDGET_EMPTY],
                     1000); /* retries that were funded are refused at their next failure */
    world.clients[0].processes = 100;
    run();
    assert_int_equal(result.attempts, 2000);
    assert_int_equal(result.budget_low_milli, 0);
}

static void processes_of_a_host_share_a_budget(void **state)
{
    (void)state;
    herd(1000);
    retries(4, 100 * MS);
    set_ten_tokens(0);
    world.service[0].fail_ppm = 1000000;
    world.clients[0].processes = 100;
    world.clients[0].hosts = 7;
    run();
    assert_int_equal(result.attempts, 1070);
    assert_int_equal(result.fleet_exchanges, 0);
}

/* Sets many more processes than tokens in the bucket, and a hundred failures a second. */
static void set_fleet(uint32_t processes)
{
    retries(2, 100 * MS);
    set_ten_tokens(1000);
    world.duration_ns = 90 * S;
    world.clients[0].processes = processes;
    world.clients[0].fleet = true;
    world.fleet.refill_per_minute_milli = 0;
    world.service[0].fail_ppm = 1000000;
}

/* The bucket starts empty, and each member adds one retry to it. A member's floor has one more until the first reply,
 * which comes after 2 ms here: too early for most. */
static void each_new_member_adds_one_retry_to_the_fleet(void **state)
{
    (void)state;
    set_fleet(50);
    run();
    assert_in_range(result.retries, 50, 55);
    assert_int_equal(result.fleet_leased_milli, 50000);
    assert_int_equal(result.fleet_joins, 50);
    assert_true(result.fleet_exchanges > 50);
    assert_int_equal(result.fleet_lost, 0);
    assert_in_range(result.fleet_disconnected_ns, 50 * (2 * MS - 1), 50 * 2 * MS); /* until the first reply */
}

static void fleet_retries_follow_the_refill(void **state)
{
    (void)state;
    set_fleet(50);
    world.fleet.refill_per_minute_milli = 60000;
    run();
    assert_in_range(result.retries, 50 + 80, 50 + 90 + 5); /* 50 of the joins */
    assert_in_range(result.fleet_leased_milli, 50000 + 80000, 50000 + 90000);
}

static void fleet_retries_follow_the_earned_tokens(void **state)
{
    (void)state;
    set_fleet(10);
    policy->pair.target.budget.earn_success_milli = 100;
    outage(SIM_OUTAGE_FAIL, 30 * S, 90 * S);
    world.service[0].fail_ppm = 0;
    world.fleet.capacity_milli = 40000;
    run();
    assert_in_range(result.fleet_earned_milli, 100 * (result.succeeded - 300), 100 * result.succeeded);
    assert_in_range(result.retries, 40, 40 + 20 + 20); /* the bucket, half of it leased, two seconds of earnings */
    assert_true(result.fleet_leased_milli >= (int64_t)result.retries * 1000);
}

static void disconnected_members_have_their_local_floor(void **state)
{
    (void)state;
    set_fleet(10);
    world.fleet.refill_per_minute_milli = 60000;
    world.fleet.down_from_ns = 0;
    run();
    assert_int_equal(result.fleet_exchanges, 0);
    assert_int_equal(result.fleet_leased_milli, 0);
    assert_in_range(result.fleet_disconnected_ns, 10 * (result.ended_ns - 1), 10 * result.ended_ns);
    assert_int_equal(result.retries, 10); /* for each member one at once, the next after two minutes */
    assert_in_range(result.fleet_lost, 10 * 2, 10 * 60);
}

static void reply_after_the_timeout_is_lost_with_its_grant(void **state)
{
    (void)state;
    set_fleet(10);
    world.fleet.refill_per_minute_milli = 60000;
    world.fleet.delay = fixed(200 * MS);
    world.fleet.timeout_ns = 300 * MS;
    run();
    assert_true(result.fleet_exchanges > 0);
    assert_int_equal(result.fleet_lost, result.fleet_exchanges);
    assert_int_equal(result.retries, 10);
}

static void each_host_leases_as_one_member(void **state)
{
    (void)state;
    set_fleet(50);
    world.clients[0].hosts = 5;
    world.fleet.down_from_ns = 0;
    run();
    assert_int_equal(result.retries, 5);
    assert_in_range(result.fleet_disconnected_ns, 5 * (result.ended_ns - 1), 5 * result.ended_ns);
}

static void fleet_does_not_prolong_the_run(void **state)
{
    (void)state;
    set_fleet(10);
    world.clients[0].until_ns = 10 * S;
    run();
    assert_true(result.ended_ns < 10 * S);
    assert_true(result.fleet_exchanges > 0);
}

static void fleet_does_not_wait_for_hanging_calls(void **state)
{
    (void)state;
    set_fleet(10);
    policy->pair.policy.attempt_timeout_ns = policy->pair.policy.call_timeout_ns = BIDE_NEVER;
    world.clients[0].until_ns = 10 * S;
    outage(SIM_OUTAGE_SILENCE, 0, 90 * S);
    run();
    assert_true(result.ended_ns < 10 * S);
    assert_int_equal(result.unfinished, result.calls);
}

static void budget_level_is_sampled_at_the_end_of_each_bin(void **state)
{
    (void)state;
    herd(10);
    retries(2, 30 * S); /* only the refill happens in between */
    set_ten_tokens(60000);
    world.service[0].fail_ppm = 1000000;
    run();
    assert_in_range(result.point[0].budget_milli, 990, 1000); /* the refill has ticks */
    assert_in_range(result.point[4].budget_milli, 4990, 5000);
    assert_int_equal(result.point[20].budget_milli, 10000);
    assert_int_equal(result.budget_low_milli, result.point[0].budget_milli);
}

static void open_breakers_are_extrapolated_from_the_sample(void **state)
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

static void breaker_per_shard_isolates_a_bad_shard(void **state)
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

static void connections_are_held_until_the_response(void **state)
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
    assert_int_equal(result.arrivals, 6); /* two more had a connection and timed out with it; the others never had
                                           * one */
}

static void waiting_hedge_is_not_sent_after_its_call_ended(void **state)
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

static void losing_attempt_releases_its_connection(void **state)
{
    (void)state;
    hedge(1, 50 * MS);
    world.clients[0].pool = 2;
    world.clients[0].arrival = SIM_UNIFORM;
    world.clients[0].rate_micro = 1000000;
    world.duration_ns = 6 * S;
    world.service[0].time = fixed(100 * MS);
    outage(SIM_OUTAGE_SILENCE, 0, 10 * MS); /* hits the first attempts of two calls, which never end */
    world.outage[1] = world.outage[0];
    world.outage[1].from_ns = 1 * S;
    world.outage[1].until_ns = 1010 * MS;
    world.outages = 2;
    run();
    assert_int_equal(result.succeeded, 6);
    assert_int_equal(result.latency.max_ns, 150 * MS);
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

static void outermost_rule_adds_instead_of_multiplying(void **state)
{
    (void)state;
    herd(10);
    chain(3, 3);
    policy->pair.policy.layer = BIDE_LAYER_OUTERMOST;
    run();
    assert_int_equal(result.arrivals, 70);
}

static void service_makes_several_downstream_calls(void **state)
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
    assert_int_equal(result.latency.max_ns, 30 * MS);
}

static void deadline_is_passed_downstream(void **state)
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
    assert_int_equal(result.arrivals, 5); /* the middle service gives up with its caller, and does not retry */
}

static void service_does_not_retry_past_its_callers_deadline(void **state)
{
    (void)state;
    herd(1);
    chain(2, 5);
    world.service[1].time = fixed(400 * MS); /* attempts at 0, 410 and 820 ms; the next would be too late */
    policies[1] = *policy;
    policies[1].pair.policy.attempt_timeout_ns = BIDE_NEVER;
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    world.policy_of_service[0] = &policies[1];
    run();
    assert_int_equal(result.attempts, 5);
    assert_int_equal(result.arrivals, 15);
    assert_int_equal(result.wasted, 5);
}

static void fan_out_is_as_slow_as_its_slowest_call(void **state)
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

static void closed_client_thinks_between_calls(void **state)
{
    (void)state;
    closed_clients(SIM_PACE_THINK);
    assert_near((double)result.calls / 200, 50 / 0.2, 0.02);
}

static void closed_client_paces_from_the_start_of_a_call(void **state)
{
    (void)state;
    closed_clients(SIM_PACE_START);
    assert_near((double)result.calls / 200, 50 / (0.1 + 0.1 * exp(-1)), 0.02);
}

static void closed_client_queues_its_arrivals(void **state)
{
    (void)state;
    world.clients[0].processes = 1;
    closed_clients(SIM_PACE_QUEUE);
    assert_in_range(result.calls, 50 * 1900, 50 * 2000); /* always busy: as many as can be served */
    world.service[0].time = fixed(50 * MS);
    run();
    assert_near((double)result.calls / 200, 50 / 0.1, 0.02); /* now as many as arrive */
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

static void recovery_is_relative_to_the_success_before(void **state)
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

static void backlog_delays_recovery(void **state)
{
    (void)state;
    world.duration_ns = 300 * S;
    world.clients[0].arrival = SIM_UNIFORM;
    policy->pair.policy.attempt_timeout_ns = 1 * S;
    queueing(1, fixed(8 * MS)); /* capacity 125 a second */
    outage(SIM_OUTAGE_HOLD, 20 * S, 30 * S);
    run();
    assert_true(result.recovers);
    assert_in_range(result.recover_ns, 30 * S, 45 * S); /* 1000 held, worked off at 25 a second: 40 s */
}

static void permanent_overload_never_recovers(void **state)
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

static void world_without_disturbance_is_not_disturbed(void **state)
{
    (void)state;
    run();
    assert_false(result.disturbed);
}

static void run_without_drain_stops_at_its_duration(void **state)
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

static void unfinished_users_are_counted(void **state)
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

static void overlong_series_gets_wider_bins(void **state)
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

/* Lets each allocation fail once: slabs, queue, targets, connection pools, users, closed clients, members, the
 * series. */
static void run_without_memory_fails_and_leaks_nothing(void **state)
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
    set_ten_tokens(0);
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

static void progress_can_stop_a_run(void **state)
{
    (void)state;
    struct sim_run_options options = {.seed = SEED, .progress = stop};
    world.clients[0].rate_micro = UINT64_C(10000) * 1000000;
    sim_result_free(&result);
    assert_int_equal(sim_run(&world, &options, &result), SIM_END_STOPPED);
    assert_null(result.point);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(exponential_service_has_mm1_latency),
        T(constant_service_waits_half_as_long),
        T(two_servers_have_mm2_latency),
        T(lifo_has_the_same_mean_latency),
        T(single_server_without_queue_refuses_as_erlang_b),
        T(three_servers_without_queue_refuse_as_erlang_b),
        T(closed_clients_match_mean_value_analysis),
        T(arrivals_come_at_the_configured_rate),
        T(uniform_arrivals_are_equally_spaced),
        T(uniform_arrivals_never_come_before_their_second),
        T(spike_has_its_configured_height_and_length),
        T(ramp_rises_and_falls),
        T(all_attempts_are_made_when_everything_fails),
        T(attempts_follow_the_geometric_distribution),
        T(outage_includes_its_last_instant_only_if_inclusive),
        T(network_delay_counts_both_ways),
        T(timed_out_attempt_counts_as_wasted_work),
        T(response_at_the_timeout_is_in_time),
        T(unused_timeout_does_not_prolong_the_run),
        T(drop_dead_drops_requests_past_their_deadline),
        T(hold_outage_delivers_requests_at_its_end),
        T(silent_service_leaves_calls_without_timeout_unfinished),
        T(slow_outage_prolongs_service_and_fails_its_share),
        T(cold_service_warms_up),
        T(latency_grows_with_requests_in_the_system),
        T(endless_service_time_ends_the_run),
        T(lost_messages_end_by_timeout),
        T(hedge_wins_and_the_slow_attempt_is_wasted),
        T(hedges_without_delay_start_together),
        T(outage_at_the_write_of_a_row_refuses_it),
        T(any_of_the_four_messages_may_be_lost),
        T(row_write_after_the_timeout_is_wasted),
        T(retry_waits_for_server_hint),
        T(gaussian_jitter_stays_in_its_envelope),
        T(calls_of_a_process_share_a_budget),
        T(processes_of_a_host_share_a_budget),
        T(each_new_member_adds_one_retry_to_the_fleet),
        T(fleet_retries_follow_the_refill),
        T(fleet_retries_follow_the_earned_tokens),
        T(disconnected_members_have_their_local_floor),
        T(reply_after_the_timeout_is_lost_with_its_grant),
        T(each_host_leases_as_one_member),
        T(fleet_does_not_prolong_the_run),
        T(fleet_does_not_wait_for_hanging_calls),
        T(budget_level_is_sampled_at_the_end_of_each_bin),
        T(open_breakers_are_extrapolated_from_the_sample),
        T(breaker_per_shard_isolates_a_bad_shard),
        T(connections_are_held_until_the_response),
        T(waiting_hedge_is_not_sent_after_its_call_ended),
        T(losing_attempt_releases_its_connection),
        T(retries_at_every_layer_multiply),
        T(outermost_rule_adds_instead_of_multiplying),
        T(service_makes_several_downstream_calls),
        T(deadline_is_passed_downstream),
        T(service_does_not_retry_past_its_callers_deadline),
        T(fan_out_is_as_slow_as_its_slowest_call),
        T(closed_client_thinks_between_calls),
        T(closed_client_paces_from_the_start_of_a_call),
        T(closed_client_queues_its_arrivals),
        T(recovery_is_counted_from_the_end_of_the_outage),
        T(recovery_is_relative_to_the_success_before),
        T(backlog_delays_recovery),
        T(permanent_overload_never_recovers),
        T(world_without_disturbance_is_not_disturbed),
        T(run_without_drain_stops_at_its_duration),
        T(unfinished_users_are_counted),
        T(overlong_series_gets_wider_bins),
        T(run_without_memory_fails_and_leaks_nothing),
        T(progress_can_stop_a_run),
    };
    return cmocka_run_group_tests_name("sim_run", tests, NULL, NULL);
}
