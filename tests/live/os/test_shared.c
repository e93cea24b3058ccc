/* test_shared.c - many processes on one target: concurrent creation, SIGKILL at any instruction, truncation,
 * visibility.
 *
 * A storm: workers make calls on one target. The parent kills them with SIGKILL at random times and starts others in
 * their places. Next to the target there is an account in memory of this test: a worker records a gain before it
 * happens, and a grant as soon as it knows of it. So at every instant
 *
 *     granted <= initial + earned
 *
 * or tokens were spent that never existed; and when all workers are dead, at most one charge per kill is missing. One
 * storm is about tokens (64 processes, 10,000 kills; the budget is empty most of the time and every token is
 * contended), one about a window, one about a breaker, where the killed processes hold the probes, and one about the
 * meter.
 *
 * ctest runs nothing in parallel with this program: it would get too little CPU time. */
#define _GNU_SOURCE
#include <bide/bide.h>

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lease.h"
#include "live_chance.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
#define SLOWER 20u /* a sanitized process takes that much longer to start and to end */
#else
#define SLOWER 1u
#endif

#define PROCESSES     64u
#define KILLS         (10000u / SLOWER)
#define CALLS_MOST    (20000u / SLOWER) /* between kills */
#define FEW           16u               /* processes of the smaller storms ... */
#define FEW_KILLS     (1600u / SLOWER)  /* ... and their kills */
#define ROUNDS        (60u / SLOWER)
#define PATIENCE_NS   (60 * BIDE_S) /* timeout for events that must happen eventually */
#define COST_MILLI    1000u
#define EARN_MILLI    500u
#define INITIAL_MILLI 20000u
#define CAPACITY      100000000u /* never reached */

/* ---- directory and helpers ---- */

static char directory[64];
static struct bide_shared_options here = {.directory = directory};

static int make_directory(void **state)
{
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%.40s/bide-shared-XXXXXX", base != NULL ? base : "/tmp");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

/* Returns the number of files; `last` is one of them. */
static unsigned count_files(char last[400])
{
    unsigned count = 0;
    DIR *stream = opendir(directory);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(last, 400, "%s/%s", directory, entry->d_name);
            count++;
        }
    closedir(stream);
    return count;
}

static int remove_directory(void **state)
{
    char path[400];
    while (count_files(path) > 0)
        if (unlink(path) != 0)
            return -1;
    return rmdir(directory);
}

static void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* A budget without refill: it earns only by successes. */
static struct bide_target_config countable(uint32_t initial_milli)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_TOKENS;
    config.budget.capacity_milli = CAPACITY;
    config.budget.initial_milli = initial_milli;
    config.budget.cost_milli = COST_MILLI;
    config.budget.earn_success_milli = EARN_MILLI;
    config.budget.earn_first_milli = config.budget.refill_per_minute_milli = config.budget.refund_permille = 0;
    config.breaker.kind = BIDE_BREAKER_OFF;
    return config;
}

static struct bide_policy without_waits(void)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = 2;
    policy.backoff = BIDE_BACKOFF_NONE;
    return policy;
}

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

static struct bide_shared open_or_abort(const char *name, const struct bide_target_config *config)
{
    struct bide_problem problem;
    struct bide_shared shared;
    if (bide_shared_open(&shared, name, config, &here, bide_now(), &problem) != BIDE_OK) {
        fprintf(stderr, "%s\n", problem.text);
        abort();
    }
    return shared;
}

static void sleep_ns(int64_t ns)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static int status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- storms ---- */

/* The account of one worker's place, continued by its successors. Tokens in thousandths. */
struct account {
    uint64_t calls;   /* made; started, where that counts */
    uint64_t granted; /* retries */
    uint64_t earned;
    uint64_t started;    /* attempts that the breaker admitted ... */
    uint64_t stalled;    /* ... and that ended after their probe slot may have expired */
    uint64_t healthy;    /* successes */
    uint64_t unexpected; /* unexpected verdicts */
    uint64_t unused;
};

struct storm {
    unsigned processes;
    unsigned kills;
    void (*work)(struct account *account, struct random *random); /* until killed, or the storm is over */
    void (*check)(const struct account *all);                     /* at any instant */
    size_t grows;                                                 /* the member that must grow between kills ... */
    unsigned most;                                                /* ... by less than this */
};

/* The places of some workers: from the first one on, the last place is followed by place 0. */
struct places {
    unsigned first;
    unsigned count;
};

static void account_add(uint64_t *word, uint64_t n)
{
    __atomic_add_fetch(word, n, __ATOMIC_SEQ_CST);
}

static uint64_t account_sum(const struct account *all, size_t member)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < PROCESSES; i++)
        total += __atomic_load_n((const uint64_t *)(const void *)((const char *)&all[i] + member), __ATOMIC_SEQ_CST);
    return total;
}
#define SUM(all, member) account_sum((all), offsetof(struct account, member))

static bool *is_over; /* shared by all processes */

static bool storm_is_running(void)
{
    return !__atomic_load_n(is_over, __ATOMIC_SEQ_CST);
}

/* Returns a worker that waits for the end of the gate, a pipe. */
static pid_t start_worker(const struct storm *storm, struct account *account, uint64_t seed, const int gate[2])
{
    struct random random = {seed};
    char byte;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* in case the test fails */
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 0)
        _exit(2);
    storm->work(account, &random);
    _exit(0);
}

/* All begin when the last of them was started: the parent, which would hardly run beside so many, never competes with
 * them while it has much to do. Their priority is not lowered: beside other programs they would take seconds to die. */
static void start_workers(const struct storm *storm, pid_t pids[PROCESSES], struct account *all, struct random *random,
                          struct places places)
{
    int gate[2];
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    for (unsigned n = 0; n < places.count; n++) {
        unsigned place = (places.first + n) % storm->processes;
        pids[place] = start_worker(storm, &all[place], draw(random, UINT32_MAX), gate);
    }
    close(gate[0]);
    close(gate[1]);
}

/* Waits until the workers are in the middle of their work. */
static void await_progress(const struct storm *storm, const struct account *all, unsigned n)
{
    uint64_t before = account_sum(all, storm->grows);
    int64_t until_ns = bide_now() + PATIENCE_NS;
    while (account_sum(all, storm->grows) < before + n) {
        sleep_ns(BIDE_MS);
        if (bide_now() > until_ns)
            fail_msg("nothing goes on any more");
    }
}

/* Kills several at once: workers that keep running would delay the death of the others. */
static void kill_workers(const struct storm *storm, const pid_t pids[PROCESSES], struct places places)
{
    for (unsigned n = 0; n < places.count; n++)
        assert_int_equal(kill(pids[(places.first + n) % storm->processes], SIGKILL), 0);
    for (unsigned n = 0; n < places.count; n++) /* not ended by itself before */
        assert_int_equal(status_of(pids[(places.first + n) % storm->processes]), SIGKILL);
}

/* Replaces all but at most two. Returns the number of kills. */
static unsigned replace_workers(const struct storm *storm, pid_t pids[PROCESSES], struct account *all,
                                struct random *random)
{
    struct places places = {draw(random, storm->processes), storm->processes - draw(random, 3)};
    kill_workers(storm, pids, places);
    storm->check(all);
    start_workers(storm, pids, all, random, places);
    return places.count;
}

static struct account *storm_begin(void)
{
    is_over = shared_memory(sizeof *is_over);
    return shared_memory(PROCESSES * sizeof(struct account));
}

static void storm_end(struct account *all)
{
    munmap(is_over, sizeof *is_over);
    munmap(all, PROCESSES * sizeof *all);
}

static void stop_workers(const struct storm *storm, const pid_t pids[PROCESSES])
{
    __atomic_store_n(is_over, true, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < storm->processes; i++)
        assert_int_equal(status_of(pids[i]), 0);
    __atomic_store_n(is_over, false, __ATOMIC_SEQ_CST);
}

/* Before the storm: no kills, and all workers end on request. */
static void storm_without_kills(const struct storm *storm, struct account *all, struct random *random)
{
    pid_t pids[PROCESSES];
    start_workers(storm, pids, all, random, (struct places){0, storm->processes});
    await_progress(storm, all, 10 * storm->most);
    stop_workers(storm, pids);
}

/* Returns the number of kills, when all workers are dead. */
static unsigned storm_run(const struct storm *storm, struct account *all, struct random *random)
{
    pid_t pids[PROCESSES];
    unsigned kills = storm->processes;
    start_workers(storm, pids, all, random, (struct places){0, storm->processes});
    while (kills < storm->kills) {
        await_progress(storm, all, draw(random, storm->most));
        storm->check(all);
        kills += replace_workers(storm, pids, all, random);
    }
    await_progress(storm, all, storm->most);
    kill_workers(storm, pids, (struct places){0, storm->processes});
    storm->check(all);
    return kills;
}

/* ---- a storm over tokens ---- */

/* A call whose first attempt fails. If its retry is charged, the retry is made, or cancelled and refunded. All events
 * of a call have one time: on a loaded machine a worker may stall between two events for longer than a second, and a
 * wake that late is answered by another wait. */
static void make_failing_call(struct bide_target *target, const struct bide_policy *policy, struct account *account,
                              uint64_t seed)
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed, .lane = (uint32_t)seed};
    struct bide_call call;
    int64_t now_ns = bide_now();
    struct bide_verdict v = bide_call_begin(&call, policy, target, &request, now_ns);
    v = bide_call_outcome(&call, v.attempt, &failed, now_ns);
    if (v.action == BIDE_ACTION_GIVE_UP && v.reason == BIDE_REASON_BUDGET_EMPTY)
        return;
    if (v.action != BIDE_ACTION_WAIT) {
        account_add(&account->unexpected, 1);
        return;
    }
    account_add(&account->granted, COST_MILLI);
    if (seed % 4 == 0) {
        account_add(&account->earned, COST_MILLI);
        bide_call_cancel(&call, now_ns);
        return;
    }
    v = bide_call_wake(&call, now_ns);
    account_add(&account->earned, EARN_MILLI);
    v = bide_call_outcome(&call, v.attempt, &ok, now_ns);
    if (v.action != BIDE_ACTION_DONE)
        account_add(&account->unexpected, 1);
}

static void make_successful_call(struct bide_target *target, const struct bide_policy *policy, struct account *account,
                                 uint64_t seed)
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed, .lane = (uint32_t)seed};
    struct bide_call call;
    int64_t now_ns = bide_now();
    struct bide_verdict v = bide_call_begin(&call, policy, target, &request, now_ns);
    account_add(&account->earned, EARN_MILLI);
    v = bide_call_outcome(&call, v.attempt, &ok, now_ns);
    if (v.action != BIDE_ACTION_DONE)
        account_add(&account->unexpected, 1);
}

/* Two calls fail for each that succeeds at once: the budget stays near empty. */
static void spend_tokens(struct account *account, struct random *random)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    struct bide_policy policy = without_waits();
    struct bide_shared shared = open_or_abort("storm", &config);
    while (storm_is_running()) {
        uint64_t chance = draw(random, 1u << 30);
        if (draw(random, 3) < 2)
            make_failing_call(shared.target, &policy, account, chance);
        else
            make_successful_call(shared.target, &policy, account, chance);
        account_add(&account->calls, 1);
    }
}

/* Reads `granted` first: both grow, and `granted` must not be compared with an older `earned`. */
static void assert_tokens_not_overspent(const struct account *all)
{
    uint64_t granted = SUM(all, granted), earned = SUM(all, earned);
    if (granted > INITIAL_MILLI + earned)
        fail_msg("granted %" PRIu64 ", but there were only %u and %" PRIu64, granted, INITIAL_MILLI, earned);
}

/* Returns initial plus earned, minus granted and left. */
static int64_t tokens_lost(const struct account *all, const struct bide_target *target)
{
    return INITIAL_MILLI + (int64_t)SUM(all, earned) - (int64_t)SUM(all, granted) -
           bide_target_get(target, bide_now()).budget_left_milli;
}

static void killed_processes_never_overspend_and_lose_at_most_one_charge_each(void **state)
{
    static const struct storm storm = {
        PROCESSES, KILLS, spend_tokens, assert_tokens_not_overspent, offsetof(struct account, calls), CALLS_MOST};
    struct bide_target_config config = countable(INITIAL_MILLI);
    struct account *all = storm_begin();
    struct random random = {seed_once()};
    struct bide_shared shared = open_or_abort("storm", &config);
    storm_without_kills(&storm, all, &random);
    assert_int_equal(tokens_lost(all, shared.target), 0);
    unsigned kills = storm_run(&storm, all, &random);

    int64_t lost = tokens_lost(all, shared.target), left = bide_target_get(shared.target, bide_now()).budget_left_milli;
    print_message("%" PRIu64 " calls, %" PRIu64 " retries, %u kills: %" PRId64 " thousandths lost, %" PRId64 " left\n",
                  SUM(all, calls), SUM(all, granted) / COST_MILLI, kills, lost, left);
    assert_true(lost >= 0);
    assert_true(lost <= (int64_t)kills * COST_MILLI);
    assert_true(left < CAPACITY);
    assert_int_equal(SUM(all, unexpected), 0);
    assert_true(SUM(all, granted) > INITIAL_MILLI);
    bide_shared_close(&shared);
    storm_end(all);
}

/* ---- a storm over a window ---- */

#define RESERVE   20u
#define RATIO_PPM 200000u /* one retry per five calls */

/* Longer than the test: nothing expires. */
static struct bide_target_config windowed(void)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.ratio_ppm = RATIO_PPM;
    config.budget.reserve = RESERVE;
    config.budget.min_volume = 0;
    config.budget.window_ns = 600 * BIDE_MINUTE;
    config.budget.cooldown_ns = 0;
    return config;
}

/* Every call fails first, and one retry in four is refunded. */
static void spend_window(struct account *account, struct random *random)
{
    struct bide_target_config config = windowed();
    struct bide_policy policy = without_waits();
    struct bide_shared shared = open_or_abort("window", &config);
    while (storm_is_running()) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = draw(random, 1u << 30), .lane = draw(random, 64)};
        struct bide_call call;
        int64_t now_ns = bide_now();
        account_add(&account->calls, 1);
        struct bide_verdict v = bide_call_begin(&call, &policy, shared.target, &request, now_ns);
        v = bide_call_outcome(&call, v.attempt, &failed, now_ns);
        if (v.action != BIDE_ACTION_WAIT) {
            account_add(&account->unexpected, v.reason != BIDE_REASON_BUDGET_EMPTY);
            continue;
        }
        account_add(&account->granted, 1);
        if (draw(random, 4) == 0) {
            account_add(&account->earned, 1);
            bide_call_cancel(&call, now_ns);
            continue;
        }
        v = bide_call_wake(&call, now_ns);
        bide_call_outcome(&call, v.attempt, &ok, now_ns);
    }
}

/* Reads in the order of writing; the opposite order would report false errors. */
static void assert_window_not_overspent(const struct account *all)
{
    uint64_t granted = SUM(all, granted), back = SUM(all, earned), calls = SUM(all, calls);
    if (granted > RESERVE + back + calls / (1000000 / RATIO_PPM))
        fail_msg("granted %" PRIu64 ", and got back %" PRIu64 ", of %" PRIu64 " calls", granted, back, calls);
}

static uint64_t requests_of(const struct bide_target *target)
{
    uint64_t requests = 0;
    for (unsigned i = 0; i < BIDE_LANES; i++)
        requests += target->lane[i].requests;
    return requests;
}

static void window_is_never_overspent_and_loses_at_most_one_retry_per_kill(void **state)
{
    static const struct storm storm = {
        FEW, FEW_KILLS, spend_window, assert_window_not_overspent, offsetof(struct account, calls), CALLS_MOST};
    struct bide_policy policy = without_waits();
    struct account *all = storm_begin();
    struct random random = {seed_once()};
    unsigned kills = storm_run(&storm, all, &random);

    struct bide_shared shared = open_or_abort("window", NULL);
    for (unsigned i = 0; i < 100 * kills; i++) { /* enough that some budget must be left */
        struct bide_request request = {.safety = BIDE_SAFE, .seed = i + 1};
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &policy, shared.target, &request, bide_now());
        bide_call_outcome(&call, v.attempt, &ok, bide_now());
    }
    int64_t left = bide_target_get(shared.target, bide_now()).budget_left_milli / 1000;
    int64_t spent = (int64_t)(RESERVE + requests_of(shared.target) / (1000000 / RATIO_PPM)) - left;
    int64_t lost = spent - (int64_t)(SUM(all, granted) - SUM(all, earned));
    print_message("%" PRIu64 " calls, %" PRIu64 " retries, %u kills: %" PRId64 " lost\n", SUM(all, calls),
                  SUM(all, granted), kills, lost);
    assert_true(left > 0);
    assert_in_range(lost, 0, kills);
    assert_int_equal(SUM(all, unexpected), 0);
    assert_true(SUM(all, granted) > RESERVE);
    bide_shared_close(&shared);
    storm_end(all);
}

/* ---- a storm over a breaker ---- */

#define CONSECUTIVE      3u
#define PROBES           2u
#define PROBE_TIMEOUT_NS (50 * BIDE_MS)

#define CALM_STARTS 1000u
#define CALM_NS     (5 * BIDE_S)
#define GENERATIONS 65536u        /* the low bits of bide_call.generation, and of the breaker's */
#define RECORDED_NS (20 * BIDE_S) /* with 1 ms open and any time half open, no generation comes twice */

static bool *is_up;          /* the simulated server, for all processes */
static uint32_t *ended_in;   /* attempts that ended in time, for each generation of the breaker */
static int64_t recording_ns; /* when this began */

static struct bide_target_config breakable(void)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = CONSECUTIVE;
    config.breaker.probes = PROBES;
    config.breaker.open_ns = config.breaker.open_max_ns = BIDE_MS;
    config.breaker.probe_timeout_ns = PROBE_TIMEOUT_NS;
    config.breaker.ramp_ns = 0;
    return config;
}

/* Makes one attempt. It takes a while, so that the killed process is often a probe. */
static struct bide_verdict attempt_once(struct bide_target *target, struct account *account, struct random *random)
{
    struct bide_policy policy = without_waits();
    struct bide_request request = {.safety = BIDE_SAFE, .seed = draw(random, 1u << 30) + 1};
    struct bide_call call;
    int64_t now_ns = bide_now();
    policy.attempts_max = 1;
    struct bide_verdict v = bide_call_begin(&call, &policy, target, &request, now_ns);
    if (v.action != BIDE_ACTION_START)
        return v;
    uint32_t generation = call.generation % GENERATIONS;
    account_add(&account->started, 1);
    for (unsigned yields = draw(random, 50); yields > 0; yields--)
        sched_yield();
    v = bide_call_outcome(&call, v.attempt, __atomic_load_n(is_up, __ATOMIC_SEQ_CST) ? &ok : &failed, bide_now());
    int64_t end_ns = bide_now();
    account_add(&account->healthy, v.action == BIDE_ACTION_DONE);
    if (end_ns - now_ns >= PROBE_TIMEOUT_NS)
        account_add(&account->stalled, 1);
    else if (end_ns - recording_ns < RECORDED_NS)
        __atomic_add_fetch(&ended_in[generation], 1, __ATOMIC_SEQ_CST);
    return v;
}

/* Makes failing calls until the breaker is open. */
static void fail_until_open(struct bide_target *target)
{
    struct bide_policy policy = without_waits();
    for (unsigned i = 0; i < 1000 && bide_target_get(target, bide_now()).breaker.state == BIDE_BREAKER_CLOSED; i++) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = i + 1};
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &policy, target, &request, bide_now());
        bide_call_outcome(&call, v.attempt, &failed, bide_now());
        bide_call_cancel(&call, bide_now());
    }
}

static void attempt_repeatedly(struct account *account, struct random *random)
{
    struct bide_target_config config = breakable();
    struct bide_shared shared = open_or_abort("breaker", &config);
    for (; storm_is_running(); account_add(&account->calls, 1))
        attempt_once(shared.target, account, random);
}

static void check_nothing(const struct account *all)
{
    (void)all;
}

/* The breaker was open from the start, and the server is down: the admitted attempts are probes.
 *
 * A half-open period has PROBES slots. A slot goes to a second probe only when the first has expired, PROBE_TIMEOUT_NS
 * after the time that the first one read: then the first was killed, or it ended later than that. So in each slot of
 * each period at most one probe ends within its timeout, however many are killed. */
static void assert_probes_only(const struct account *all, const struct bide_target *target)
{
    uint64_t in_time = 0;
    unsigned periods = 0, full = 0;
    for (uint32_t i = 0; i < GENERATIONS; i++) {
        in_time += ended_in[i];
        periods += ended_in[i] > 0;
        full += ended_in[i] == PROBES;
        if (ended_in[i] > PROBES)
            fail_msg("%" PRIu32 " probes in generation %" PRIu32 "; must be %u or fewer", ended_in[i], i, PROBES);
    }
    print_message("%" PRIu64 " calls, %" PRIu64 " of them let through: %" PRIu64
                  " ended in time, in %u half-open periods, "
                  "%u with all probes; %" PRIu64 " stalled\n",
                  SUM(all, calls), SUM(all, started), in_time, periods, full, SUM(all, stalled));
    assert_true(bide_target_get(target, bide_now()).breaker.generation / 2 > 1);
}

/* Makes attempts until the breaker was half open twice: a storm whose probes are all killed may see one period only. */
static void attempt_until_second_period(struct bide_target *target, struct account *account, struct random *random)
{
    for (int64_t until_ns = bide_now() + PATIENCE_NS; bide_target_get(target, bide_now()).breaker.generation < 4;
         sleep_ns(BIDE_MS)) {
        attempt_once(target, account, random);
        assert_true(bide_now() < until_ns);
    }
}

/* Few workers, none of them killed: their probes end in time, and use all slots of most periods. Ends after a while in
 * any case, because on a loaded machine each probe takes long. */
static void probe_without_kills(struct storm storm, struct account *all, struct random *random)
{
    pid_t pids[PROCESSES];
    storm.processes = PROBES + 2;
    start_workers(&storm, pids, all, random, (struct places){0, storm.processes});
    for (int64_t until_ns = bide_now() + CALM_NS; SUM(all, started) < CALM_STARTS && bide_now() < until_ns;)
        sleep_ns(BIDE_MS);
    stop_workers(&storm, pids);
}

static void breaker_with_killed_probes_admits_no_more_and_closes_on_recovery(void **state)
{
    struct storm storm = {FEW, FEW_KILLS, attempt_repeatedly, check_nothing, offsetof(struct account, started), 5};
    struct account *all = storm_begin();
    struct random random = {seed_once()};
    struct bide_target_config config = breakable();
    struct bide_shared shared = open_or_abort("breaker", &config);
    is_up = shared_memory(sizeof *is_up);
    ended_in = shared_memory(GENERATIONS * sizeof *ended_in);
    recording_ns = bide_now();
    fail_until_open(shared.target);
    probe_without_kills(storm, all, &random);
    storm_run(&storm, all, &random);
    attempt_until_second_period(shared.target, &all[0], &random);
    assert_probes_only(all, shared.target);

    __atomic_store_n(is_up, true, __ATOMIC_SEQ_CST); /* and the processes that prove it are killed as well */
    storm.grows = offsetof(struct account, healthy);
    storm.kills /= 4;
    storm_run(&storm, all, &random);
    for (int64_t until_ns = bide_now() + PATIENCE_NS;
         bide_target_get(shared.target, bide_now()).breaker.state != BIDE_BREAKER_CLOSED; sleep_ns(BIDE_MS)) {
        attempt_once(shared.target, &all[0], &random);
        assert_true(bide_now() < until_ns);
    }
    assert_int_equal(attempt_once(shared.target, &all[0], &random).action, BIDE_ACTION_DONE);
    bide_shared_close(&shared);
    munmap(is_up, sizeof *is_up);
    munmap(ended_in, GENERATIONS * sizeof *ended_in);
    storm_end(all);
}

/* ---- lanes ---- */

/* Children of a parent that has a lane already: each child has its own lane, as far as there are enough. */
static void forked_processes_spread_over_the_lanes(void **state)
{
    uint32_t *lanes = shared_memory(PROCESSES * sizeof *lanes), of_parent = bide_lane();
    unsigned used[BIDE_LANES] = {0}, distinct = 0;
    for (unsigned i = 0; i < PROCESSES; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            lanes[i] = bide_lane();
            _exit(bide_lane() == lanes[i] ? 0 : 1);
        }
        assert_int_equal(status_of(pid), 0);
        distinct += used[lanes[i] % BIDE_LANES]++ == 0;
    }
    assert_true(distinct > BIDE_LANES / 2); /* all, if no other program starts processes */
    assert_int_equal(bide_lane(), of_parent);
    munmap(lanes, PROCESSES * sizeof *lanes);
}

/* ---- concurrent creation ---- */

/* All wait for the end of the same pipe, then open. Each takes one token. */
static pid_t start_creator(const int gate[2], const char *name)
{
    struct bide_target_config config = countable(PROCESSES * COST_MILLI);
    char byte;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 0)
        _exit(2);
    struct bide_shared shared = open_or_abort(name, &config);
    bool took =
        shared.shared && bide_budget_add_milli(shared.target, -(int64_t)COST_MILLI, bide_now()) == -(int64_t)COST_MILLI;
    _exit(took ? 0 : 1);
}

static void concurrent_creators_share_the_winner_s_target(void **state)
{
    char path[400], name[32];
    for (unsigned round = 0; round < ROUNDS; round++) {
        int gate[2];
        pid_t pids[PROCESSES];
        snprintf(name, sizeof name, "round %u", round);
        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        for (unsigned i = 0; i < PROCESSES; i++)
            pids[i] = start_creator(gate, name);
        close(gate[1]);
        for (unsigned i = 0; i < PROCESSES; i++)
            assert_int_equal(status_of(pids[i]), 0);
        close(gate[0]);
        assert_int_equal(count_files(path), 1);
        struct bide_shared shared = open_or_abort(name, NULL);
        assert_int_equal(bide_target_get(shared.target, bide_now()).budget_left_milli, 0);
        bide_shared_close(&shared);
        assert_int_equal(bide_shared_remove(name, &here, NULL), BIDE_OK);
    }
}

/* Creates and removes the target until killed. */
static pid_t start_recreating(void)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct bide_shared shared = open_or_abort("churn", &config);
        bide_shared_close(&shared);
        bide_shared_remove("churn", &here, NULL);
    }
}

static void killed_creator_leaves_a_complete_file_or_none(void **state)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    struct random random = {seed_once()};
    for (unsigned n = 0; n < ROUNDS; n++) {
        pid_t pid = start_recreating();
        sleep_ns(draw(&random, 3000) * BIDE_US);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(status_of(pid), SIGKILL);
        struct bide_shared shared = open_or_abort("churn", &config);
        assert_int_equal(bide_target_get(shared.target, bide_now()).budget_left_milli, INITIAL_MILLI);
        bide_shared_close(&shared);
    }
}

/* ---- a storm over the meter ---- */

static struct bide_meter_view metered; /* at the last check */
static const struct bide_meter *meter;

/* A first attempt fails in one of two calls, a retry in one of four. */
static struct bide_outcome attempt_by_chance(void *context, const struct bide_verdict *start)
{
    struct random *random = context;
    return draw(random, 2 * start->attempt) == 0 ? failed : ok;
}

static void count_calls(struct account *account, struct random *random)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    struct bide_policy policy = without_waits();
    config.budget.kind = BIDE_BUDGET_NONE;
    struct bide_shared shared = open_or_abort("metered", &config);
    struct bide_job job = {.policy = &policy, .target = shared.target, .attempt = attempt_by_chance, .context = random};
    while (storm_is_running()) {
        job.request = (struct bide_request){.safety = BIDE_SAFE, .seed = draw(random, 1u << 30) + 1};
        struct bide_verdict end = bide_run(&job);
        account_add(&account->calls, 1);
        account_add(&account->started, end.attempt);
        account_add(&account->healthy, end.action == BIDE_ACTION_DONE);
    }
}

static uint64_t words_sum(const uint64_t *words, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += words[i];
    return sum;
}
#define WORDS_SUM(member) words_sum((const uint64_t *)&(member), sizeof(member) / sizeof(uint64_t))
#define TIMES(histogram)  words_sum((histogram).count, BIDE_METER_BINS)

/* At any instant: no count is smaller than before, and nothing has ended that has not begun. */
static void assert_meter_goes_forwards(const struct account *all)
{
    struct bide_meter_view now;
    (void)all;
    bide_meter_get(meter, &now);
    for (size_t i = 0; i < sizeof now / sizeof(uint64_t); i++)
        assert_true(((const uint64_t *)&now)[i] >= ((const uint64_t *)&metered)[i]);
    assert_true(WORDS_SUM(now.attempts) >= WORDS_SUM(now.outcomes));
    assert_true(WORDS_SUM(now.waits) >= now.waits_ended);
    metered = now;
}

/* The differences between counts that are equal without kills: each is at most the number of calls that were killed. */
static void assert_meter_is_exact(const struct account *all, unsigned kills)
{
    struct bide_meter_view m;
    bide_meter_get(meter, &m);
    uint64_t outcomes = WORDS_SUM(m.outcomes), calls = WORDS_SUM(m.calls);
    uint64_t failures = m.calls[BIDE_METER_FAILED], successes = m.calls[BIDE_METER_FIRST] + m.calls[BIDE_METER_RESCUED];
    assert_in_range(WORDS_SUM(m.attempts) - outcomes, 0, kills);
    assert_in_range(TIMES(m.attempt_ok) + TIMES(m.attempt_failed) - outcomes, 0, kills);
    assert_in_range(WORDS_SUM(m.waits) - m.waits_ended, 0, kills);
    assert_in_range(m.attempts[BIDE_METER_ATTEMPT_1] - calls, 0, kills);
    assert_in_range(failures - WORDS_SUM(m.give_ups), 0, kills);
    assert_in_range(failures - TIMES(m.call_failed), 0, kills);
    assert_in_range(successes - TIMES(m.call_ok), 0, kills);
    assert_int_equal(failures + successes, calls);
    assert_in_range(calls - SUM(all, calls), 0, kills);
    assert_in_range(successes - SUM(all, healthy), 0, kills);
    assert_in_range(WORDS_SUM(m.attempts) - SUM(all, started), 0, 2 * kills);
}

static void killed_processes_leave_in_the_meter_only_what_they_had_in_flight(void **state)
{
    static const struct storm storm = {
        FEW, FEW_KILLS, count_calls, assert_meter_goes_forwards, offsetof(struct account, calls), CALLS_MOST};
    struct account *all = storm_begin();
    struct random random = {seed_once()};
    struct bide_shared shared = open_or_abort("metered", NULL);
    meter = bide_shared_meter_get(&shared);
    assert_non_null(meter);
    storm_without_kills(&storm, all, &random);
    assert_meter_is_exact(all, 0);
    unsigned kills = storm_run(&storm, all, &random);
    assert_meter_is_exact(all, kills);
    print_message("%" PRIu64 " calls, %u kills: %" PRIu64 " attempts in flight for ever\n", SUM(all, calls), kills,
                  WORDS_SUM(metered.attempts) - WORDS_SUM(metered.outcomes));
    bide_shared_close(&shared);
    storm_end(all);
}

/* ---- breaker, hold-off and latency ---- */

/* Makes enough calls for a latency quantile. By their fictitious clock each takes an hour. */
static void make_slow_calls(struct bide_target *target)
{
    struct bide_policy policy = without_waits();
    policy.call_timeout_ns = policy.attempt_timeout_ns = 120 * BIDE_MINUTE;
    for (unsigned i = 0; i < 100; i++) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = i + 1};
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &policy, target, &request, bide_now());
        bide_call_outcome(&call, v.attempt, &ok, bide_now() + 60 * BIDE_MINUTE);
    }
}

static void pre_forked_workers_see_each_other_s_breaker_hold_off_and_latency(void **state)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    struct bide_policy policy = without_waits();
    config.latency = true;
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 5;
    config.breaker.open_ns = config.breaker.open_max_ns = 60 * BIDE_MINUTE;
    struct bide_shared shared = open_or_abort("workers", &config);
    pid_t worker = fork();
    if (worker == 0) {
        make_slow_calls(shared.target);
        fail_until_open(shared.target);
        bide_target_hold_off(shared.target, bide_now() + 200 * BIDE_S, bide_now());
        _exit(0);
    }
    assert_int_equal(status_of(worker), 0);
    assert_int_equal(bide_target_get(shared.target, bide_now()).breaker.state, BIDE_BREAKER_OPEN);
    assert_true(bide_target_latency_get(shared.target, 500) == BIDE_NEVER); /* beyond the histogram's range */
    worker = fork();
    if (worker == 0) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &policy, shared.target, &request, bide_now());
        bool hold_off = bide_target_get(shared.target, bide_now()).hold_off_until_ns > 0;
        _exit(v.action == BIDE_ACTION_GIVE_UP && v.reason == BIDE_REASON_BREAKER_OPEN && hold_off ? 0 : 1);
    }
    assert_int_equal(status_of(worker), 0);
    bide_shared_close(&shared);
}

/* ---- truncation ---- */

static void truncate_only_file(off_t size)
{
    char path[400];
    if (count_files(path) != 1 || truncate(path, size) != 0)
        _exit(10);
}

/* Makes a call and returns true if the meter of the target counts it. */
static bool call_is_counted(const struct bide_shared *shared)
{
    struct bide_meter_view before, after;
    struct random random = {1};
    struct bide_job job = {.target = shared->target, .attempt = attempt_by_chance, .context = &random};
    job.request.safety = BIDE_SAFE;
    bide_meter_get(bide_shared_meter_get(shared), &before);
    bide_run(&job);
    bide_meter_get(bide_shared_meter_get(shared), &after);
    return WORDS_SUM(after.calls) == WORDS_SUM(before.calls) + 1;
}

/* A call during which its target's file is truncated; with the guard it continues on a private target. */
_Noreturn static void survive_truncation(off_t size)
{
    struct bide_target_config config = countable(INITIAL_MILLI), found;
    struct bide_policy policy = without_waits();
    struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
    struct bide_call call;
    signal(SIGBUS, SIG_DFL); /* a sanitizer installs its own */
    struct bide_shared shared = open_or_abort("cut", &config), unhurt = open_or_abort("cut", NULL);
    if (!bide_shared_guard() || !bide_shared_guard())
        _exit(11);
    struct bide_verdict v = bide_call_begin(&call, &policy, shared.target, &request, bide_now());
    truncate_only_file(size);
    v = bide_call_outcome(&call, v.attempt, &failed, bide_now());
    if (v.action != BIDE_ACTION_GIVE_UP || (size == 0 && v.reason != BIDE_REASON_BUDGET_EMPTY))
        _exit(12);
    bide_target_config_get(shared.target, &found);
    if (size == 0 && (memcmp(&found, &config, sizeof found) != 0 ||
                      bide_target_get(shared.target, bide_now()).budget_left_milli != 0))
        _exit(13);
    if (size == 0 && bide_budget_add_milli(shared.target, 5000, bide_now()) != 5000)
        _exit(14);
    if (size == 0 && (!call_is_counted(&shared) || !call_is_counted(&shared)))
        _exit(17);
    bide_shared_close(&shared);
    if (bide_target_get(unhurt.target, bide_now()).budget_left_milli != 0)
        _exit(15);
    bide_shared_close(&unhurt);
    struct bide_problem problem;
    here.private_instead = true;
    bool refused = bide_shared_open(&shared, "cut", &config, &here, bide_now(), &problem) == BIDE_OK && !shared.shared;
    _exit(refused && problem.reason == BIDE_SHARED_REASON_WRONG_SIZE ? 0 : 16);
}

static void guard_replaces_a_truncated_file_by_a_private_target(void **state)
{
    static const off_t sizes[] = {0, 1, 300}; /* the last two leave the page, zeroed from there on */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pid_t pid = fork();
        if (pid == 0)
            survive_truncation(sizes[i]);
        assert_int_equal(status_of(pid), 0);
        assert_int_equal(bide_shared_remove("cut", &here, NULL), BIDE_OK);
    }
}

/* A target without refill stays without refill. */
static void replacement_of_a_leased_target_is_leased(void **state)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGBUS, SIG_DFL);
        struct bide_shared first = open_or_abort("cut", &config);
        if (core_lease_begin(first.target, bide_now(), NULL) != BIDE_OK)
            _exit(11);
        struct bide_shared shared = open_or_abort("cut", NULL);
        bide_shared_guard();
        truncate_only_file(0);
        bool empty = bide_target_get(shared.target, bide_now()).budget_left_milli == 0;
        _exit(empty && core_lease_is_on(shared.target) ? 0 : 12);
    }
    assert_int_equal(status_of(pid), 0);
}

/* Accesses a page beyond the end of a file. */
static void raise_bus_error(void)
{
    int file = memfd_create("none", MFD_CLOEXEC);
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    (void)page[0];
}

static void exit_42(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    _exit(number == SIGBUS ? 42 : 43);
}

static void exit_44(int number)
{
    (void)number;
    _exit(44);
}

/* Returns the exit status of a process with this handler, then the guard, then a bus error in unrelated memory. */
static int status_after_bus_error(const struct sigaction *handler, bool guarded)
{
    pid_t pid = fork();
    if (pid > 0)
        return status_of(pid);
    struct bide_target_config config = countable(INITIAL_MILLI);
    sigaction(SIGBUS, handler, NULL);
    open_or_abort("other", &config);
    if (guarded && !bide_shared_guard())
        _exit(11);
    raise_bus_error();
    _exit(0);
}

static void unrelated_bus_errors_go_to_the_previous_handler(void **state)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    struct sigaction plain = {.sa_handler = exit_44}, full = {.sa_sigaction = exit_42, .sa_flags = SA_SIGINFO};
    for (int guarded = 0; guarded < 2; guarded++) {
        assert_int_equal(WTERMSIG(status_after_bus_error(&by_default, guarded)), SIGBUS);
        assert_int_equal(WTERMSIG(status_after_bus_error(&ignored, guarded)), SIGBUS);
        assert_int_equal(WEXITSTATUS(status_after_bus_error(&plain, guarded)), 44);
        assert_int_equal(WEXITSTATUS(status_after_bus_error(&full, guarded)), 42);
    }
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(killed_processes_never_overspend_and_lose_at_most_one_charge_each),
        IN_DIRECTORY(window_is_never_overspent_and_loses_at_most_one_retry_per_kill),
        IN_DIRECTORY(breaker_with_killed_probes_admits_no_more_and_closes_on_recovery),
        IN_DIRECTORY(killed_processes_leave_in_the_meter_only_what_they_had_in_flight),
        cmocka_unit_test(forked_processes_spread_over_the_lanes),
        IN_DIRECTORY(concurrent_creators_share_the_winner_s_target),
        IN_DIRECTORY(killed_creator_leaves_a_complete_file_or_none),
        IN_DIRECTORY(pre_forked_workers_see_each_other_s_breaker_hold_off_and_latency),
        IN_DIRECTORY(guard_replaces_a_truncated_file_by_a_private_target),
        IN_DIRECTORY(replacement_of_a_leased_target_is_leased),
        IN_DIRECTORY(unrelated_bus_errors_go_to_the_previous_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
