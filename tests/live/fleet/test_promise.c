/* test_promise.c - the fleet's promise, with processes on a real Redis, whatever is killed:
 *
 *     cost of all retries <= refill and earnings of the fleet's bucket, and a bucketful of initial tokens
 *                            + floor x time disconnected, of each member
 *                            + a retry for each member that got no grant and no second without Redis at its start, in
 *                              which its floor earns a retry
 *
 * Sixteen processes want far more retries than there are tokens. Each granted retry is counted in shared memory as soon
 * as it is known; earnings and disconnected time are counted before they can be spent. The promise is checked at every
 * granted retry, by the process that got it. The bound follows from time and arithmetic, not from numbers that Redis
 * reports.
 *
 * Meanwhile Redis is killed and restarted, fifty times in all: without persistence (it loses everything), with an
 * append-only file (it loses nothing), and with a snapshot (it returns with an old bucket: the only exception, at most
 * a full bucket each time). It is stopped and continued. Between it and half of the fleet is a relay that delays, cuts,
 * drops and garbles replies. And processes of the fleet are killed and replaced. */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/fleet.h>

#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lease.h"
#include "live_chance.h"
#include "live_redis.h"
#include "live_tcp.h"

#define PROCESSES        16u
#define CAPACITY_MILLI   INT64_C(30000)  /* of the fleet's bucket */
#define PER_MINUTE_MILLI INT64_C(600000) /* its refill: ten tokens a second */
#define FLOOR_MILLI      INT64_C(60000)  /* of each process, per minute: a retry per second when disconnected */
#define ACCRUAL_NS       BIDE_S          /* in which the floor earns a retry */
#define EARN_MILLI       100
#define COST_MILLI       1000
#define TIMEOUT_MS       250
#define LIMIT_NS         (100 * BIDE_S) /* for anything awaited */

/* ---- shared memory ---- */

enum relay_mode { RELAY_PASS = 0, RELAY_CHAOS };

struct record {
    int64_t began_ns;
    int64_t buckets;   /* how often Redis had no bucket */
    int64_t rollbacks; /* how often Redis may have returned with an old bucket */
    int64_t unpaid;    /* members whose first retry neither a grant nor the floor has paid, killed members too */
    bool earns;        /* retried calls succeed, and earn */
    int64_t retries;   /* granted so far */
    int64_t earned_milli;
    int64_t disconnected_ns[PROCESSES];
    int64_t exceeded_by_milli; /* the largest excess; 0: the promise held */
    enum relay_mode relay_mode;
    uint16_t port, relay; /* of Redis, of the relay */
};

static struct record *record;
static struct live_redis redis;
static pid_t worker[PROCESSES], relay;
static struct random chance;

static int64_t load_word(const int64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void add_to(int64_t *word, int64_t n)
{
    __atomic_add_fetch(word, n, __ATOMIC_SEQ_CST);
}

/* Returns the maximum that may have been granted until now. A token is added for differing clocks. */
static int64_t allowed_milli(void)
{
    int64_t disconnected_ns = 0;
    for (uint32_t i = 0; i < PROCESSES; i++)
        disconnected_ns += load_word(&record->disconnected_ns[i]);
    int64_t elapsed_ms = (bide_now() - record->began_ns) / BIDE_MS;
    return COST_MILLI + elapsed_ms * PER_MINUTE_MILLI / 60000 + load_word(&record->earned_milli) +
           disconnected_ns / BIDE_MS * FLOOR_MILLI / 60000 + load_word(&record->unpaid) * COST_MILLI +
           (load_word(&record->buckets) + load_word(&record->rollbacks)) * CAPACITY_MILLI;
}

static void check_promise(void)
{
    int64_t granted_milli = load_word(&record->retries) * COST_MILLI, over = granted_milli - allowed_milli();
    if (over > load_word(&record->exceeded_by_milli))
        __atomic_store_n(&record->exceeded_by_milli, over, __ATOMIC_SEQ_CST);
}

/* ---- a process of the fleet ---- */

struct member {
    struct bide_target target;
    struct bide_policy policy;
    uint32_t number;
    struct bide_fleet *fleet;
    int64_t checked_ns;
    int64_t unreplied_ns; /* time before the first reply */
    bool covered, paid;
};

/* The time since the last check counts as disconnected if the lease did not cover both ends of it. Before the first
 * reply there is no lease. */
static void count_disconnected(struct member *m)
{
    struct bide_fleet_view view;
    int64_t now_ns = bide_now();
    assert_true(bide_fleet_get(m->fleet, &m->target, &view));
    bool covered = view.exchanges > 0 && core_lease_until(&m->target) >= now_ns;
    if (!covered || !m->covered)
        add_to(&record->disconnected_ns[m->number], now_ns - m->checked_ns);
    if (view.exchanges == 0)
        m->unreplied_ns += now_ns - m->checked_ns;
    m->checked_ns = now_ns;
    m->covered = covered;
    if (!m->paid && (view.granted_milli > 0 || m->unreplied_ns >= ACCRUAL_NS)) {
        m->paid = true;
        add_to(&record->unpaid, -1);
    }
}

static void make_call(struct member *m, uint64_t seed)
{
    static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    static const struct bide_outcome bad = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, &m->policy, &m->target, &request, bide_now());
    count_disconnected(m);
    v = bide_call_outcome(&call, v.attempt, &bad, bide_now());
    if (v.action != BIDE_ACTION_WAIT)
        return;
    add_to(&record->retries, 1);
    check_promise();
    v = bide_call_wake(&call, v.wake_ns);
    if (record->earns)
        add_to(&record->earned_milli, EARN_MILLI);
    bide_call_outcome(&call, v.attempt, record->earns ? &ok : &bad, bide_now());
}

static void member_init(struct member *m, uint32_t number)
{
    struct bide_target_config config;
    *m = (struct member){.number = number, .checked_ns = bide_now()};
    bide_policy_init(&m->policy, BIDE_PRESET_SERVICE);
    m->policy.attempts_max = 2;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.budget.capacity_milli = 10 * COST_MILLI;
    config.budget.cost_milli = config.budget.cost_throttled_milli = config.budget.cost_timeout_milli = COST_MILLI;
    config.budget.earn_success_milli = EARN_MILLI;
    config.budget.refill_per_minute_milli = FLOOR_MILLI;
    assert_int_equal(bide_target_init(&m->target, &config, bide_now(), NULL), BIDE_OK);
}

/* Runs until killed. */
static void member_run(uint32_t number)
{
    static struct member m;
    struct bide_problem problem;
    char url[160];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u/?capacity=%d&per_minute=%d&timeout=%d",
             number % 2 == 0 ? record->port : record->relay, (int)(CAPACITY_MILLI / 1000),
             (int)(PER_MINUTE_MILLI / 1000), TIMEOUT_MS);
    member_init(&m, number);
    if (bide_fleet_open(&m.fleet, url, NULL, &problem) != BIDE_OK ||
        bide_fleet_join(m.fleet, "promise", &m.target, &problem) != BIDE_OK)
        _exit(1);
    for (uint64_t seed = number + 1;; seed += PROCESSES) {
        make_call(&m, seed);
        poll(NULL, 0, 2); /* its pace, not a wait for anything */
    }
}

static void start_member(uint32_t number)
{
    fflush(NULL);
    add_to(&record->unpaid, 1);
    worker[number] = fork();
    assert_true(worker[number] >= 0);
    if (worker[number] == 0)
        member_run(number);
}

static void kill_member(uint32_t number)
{
    int status;
    kill(worker[number], SIGKILL);
    assert_int_equal(waitpid(worker[number], &status, 0), worker[number]);
    assert_true(WIFSIGNALED(status)); /* otherwise it had ended by itself */
}

/* ---- the relay ---- */

/* Forwards a reply, or a damaged version of it. */
static bool relay_forward(struct random *own, int client, char *answer, size_t length)
{
    static const char other[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    switch (record->relay_mode == RELAY_PASS ? 9 : draw(own, 10)) {
    case 0: return false;                                               /* dropped, connection closed */
    case 1: return live_tcp_write(client, answer, length / 2) && false; /* cut in the middle */
    case 2: return live_tcp_write(client, other, sizeof other - 1);     /* something else */
    case 3: return poll(NULL, 0, 2 * TIMEOUT_MS) == 0 && live_tcp_write(client, answer, length); /* too late */
    case 4: answer[draw(own, (unsigned)length)] ^= 0x15; return live_tcp_write(client, answer, length);
    case 5: return true; /* dropped silently */
    default: return live_tcp_write(client, answer, length);
    }
}

static void relay_run(void *context, int client, unsigned number)
{
    char bytes[4096];
    struct random own = {chance.state + number}; /* each connection has a thread */
    int server = live_tcp_connect(record->port);
    for (struct pollfd fd[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}}; server >= 0;) {
        ssize_t n;
        if (poll(fd, 2, -1) < 0)
            break;
        if (fd[0].revents &&
            ((n = read(client, bytes, sizeof bytes)) <= 0 || !live_tcp_write(server, bytes, (size_t)n)))
            break;
        if (fd[1].revents &&
            ((n = read(server, bytes, sizeof bytes)) <= 0 || !relay_forward(&own, client, bytes, (size_t)n)))
            break;
    }
    if (server >= 0)
        close(server);
}

static void start_relay(void)
{
    int reports[2];
    assert_int_equal(pipe(reports), 0);
    fflush(NULL);
    relay = fork();
    assert_true(relay >= 0);
    if (relay == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        record->relay = live_tcp_port(live_tcp_new(relay_run, NULL));
        if (write(reports[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    assert_int_equal(read(reports[0], &byte, 1), 1);
    close(reports[0]);
    close(reports[1]);
}

/* ---- the fleet ---- */

static void start_fleet(const char *lines, bool earns)
{
    chance.state = seed_once();
    record = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(record, MAP_FAILED);
    redis = (struct live_redis){0};
    live_redis_start(&redis, lines);
    *record = (struct record){.began_ns = bide_now(), .buckets = 1, .earns = earns, .port = redis.process.port};
    start_relay();
    for (uint32_t i = 0; i < PROCESSES; i++)
        start_member(i);
}

/* Returns all that Redis has granted since it started with an empty bucket. */
static int64_t granted_by_redis(void)
{
    struct bide_fleet_bucket bucket = {0};
    bool reports = bide_fleet_read(live_redis_url(&redis, ""), "promise", &bucket, NULL) == BIDE_OK;
    return reports ? (int64_t)bucket.granted_milli : 0;
}

static int64_t disconnected_ns(void)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < PROCESSES; i++)
        sum += load_word(&record->disconnected_ns[i]);
    return sum;
}

/* Waits until Redis has granted so much more, so that each fault hits a working fleet. */
static void wait_for_grants(int64_t more_milli)
{
    int64_t before = granted_by_redis(), until_ns = bide_now() + LIMIT_NS;
    while (granted_by_redis() < before + more_milli) {
        assert_int_equal(load_word(&record->exceeded_by_milli), 0);
        assert_true(bide_now() < until_ns);
        poll(NULL, 0, 5);
    }
}

static void wait_for_retries(int64_t more)
{
    int64_t before = load_word(&record->retries), until_ns = bide_now() + LIMIT_NS;
    while (load_word(&record->retries) < before + more) {
        assert_true(bide_now() < until_ns);
        poll(NULL, 0, 5);
    }
}

static void end_fleet(void)
{
    for (uint32_t i = 0; i < PROCESSES; i++)
        kill_member(i);
    kill(relay, SIGKILL);
    waitpid(relay, NULL, 0);
    check_promise();
    print_message("    %" PRId64 " retries, at most %" PRId64 " (%.1f s, %.1f s disconnected in sum)\n",
                  load_word(&record->retries), allowed_milli() / COST_MILLI,
                  (double)(bide_now() - record->began_ns) / 1e9, (double)disconnected_ns() / 1e9);
    assert_int_equal(load_word(&record->exceeded_by_milli), 0);
    live_redis_free(&redis);
    munmap(record, sizeof *record);
}

/* ---- faults ---- */

/* `excuse` counts what Redis may have lost: &record->buckets, &record->rollbacks, or NULL. */
static void kill_redis_repeatedly(uint32_t times, int64_t *excuse)
{
    for (uint32_t i = 0; i < times; i++) {
        wait_for_grants(COST_MILLI);
        uint32_t victim = draw(&chance, PROCESSES);
        if (i % 4 == 0)
            kill_member(victim);
        if (excuse != NULL)
            add_to(excuse, 1);
        live_redis_kill(&redis, SIGKILL);
        live_redis_again(&redis);
        if (i % 4 == 0)
            start_member(victim);
    }
    wait_for_grants(5 * COST_MILLI); /* the fleet has recovered */
}

static void promise_holds_when_redis_without_persistence_is_killed(void **state)
{
    start_fleet("", false);
    kill_redis_repeatedly(17, &record->buckets);
    end_fleet();
}

static void promise_holds_when_redis_with_append_only_file_is_killed(void **state)
{
    start_fleet(LIVE_REDIS_APPEND, true);
    kill_redis_repeatedly(17, NULL);
    end_fleet();
}

static void redis_restored_from_a_snapshot_grants_at_most_one_bucket_extra(void **state)
{
    start_fleet(LIVE_REDIS_SNAPSHOT, false);
    wait_for_grants(COST_MILLI);
    assert_string_equal(live_redis_do(&redis, "SAVE"), "OK");
    kill_redis_repeatedly(16, &record->rollbacks);
    end_fleet();
}

static void promise_holds_when_redis_is_stopped_and_continued(void **state)
{
    start_fleet("", true);
    for (uint32_t i = 0; i < 3; i++) {
        wait_for_grants(COST_MILLI);
        int64_t before_ns = disconnected_ns();
        live_redis_signal(&redis, SIGSTOP);
        wait_for_retries(PROCESSES); /* at the floor: all processes are disconnected */
        assert_true(disconnected_ns() > before_ns);
        live_redis_signal(&redis, SIGCONT);
    }
    wait_for_grants(5 * COST_MILLI);
    end_fleet();
}

static void promise_holds_when_replies_are_late_cut_lost_or_garbled(void **state)
{
    start_fleet("", true);
    record->relay_mode = RELAY_CHAOS;
    for (uint32_t i = 0; i < 8; i++) {
        wait_for_grants(5 * COST_MILLI);
        kill_member(1 + 2 * i % PROCESSES);
        start_member(1 + 2 * i % PROCESSES);
    }
    record->relay_mode = RELAY_PASS;
    wait_for_grants(5 * COST_MILLI);
    end_fleet();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promise_holds_when_redis_without_persistence_is_killed),
        cmocka_unit_test(promise_holds_when_redis_with_append_only_file_is_killed),
        cmocka_unit_test(redis_restored_from_a_snapshot_grants_at_most_one_bucket_extra),
        cmocka_unit_test(promise_holds_when_redis_is_stopped_and_continued),
        cmocka_unit_test(promise_holds_when_replies_are_late_cut_lost_or_garbled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
