/* test_host.c - many processes on one target: created at once, killed at any instruction, truncated, seen by all.
 *
 * The storm: PROCESSES workers make calls on one small budget, each failing first, so that the budget is empty most of
 * the time and every token is fought for. The parent kills them by SIGKILL at random, KILLS times in all, and starts
 * others in their places. Beside the target there is a ledger in memory of this test: a worker writes what it will earn
 * before it reports a success, and what it was granted as soon as it knows. So at every instant
 *
 *     granted <= initial + earned
 *
 * or something was spent that was never there; and when all are dead, what is missing from the bucket is at most one
 * charge for each kill. */
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
#define SLOWER 20u /* a sanitized process takes that much longer to start and to die */
#else
#define SLOWER 1u
#endif

#define PROCESSES     64u
#define KILLS         (10000u / SLOWER)
#define CALLS_MOST    (20000u / SLOWER) /* before the next kills */
#define ROUNDS        (60u / SLOWER)
#define COST_MILLI    1000u
#define EARN_MILLI    500u
#define INITIAL_MILLI 20000u
#define CAPACITY      100000000u /* never reached */

/* ---- a directory, a seed, chance ---- */

static char directory[64];
static struct bide_host_options here = {.directory = directory};

static int make_directory(void **state)
{
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%.40s/bide-host-XXXXXX", base != NULL ? base : "/tmp");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

/* How many files are in it; `last` is one of them. */
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

struct random {
    uint64_t state; /* SplitMix64 */
};

static unsigned draw(struct random *r, unsigned below)
{
    uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)((x ^ x >> 31) % below);
}

static uint64_t printed_seed(void)
{
    const char *given = getenv("BIDE_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : bide_seed();
    print_message("BIDE_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

static void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* No time passes in this budget: what it earns, it earns by successes. */
static struct bide_target_config countable(uint32_t initial_milli)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_TOKENS;
    config.budget.capacity_milli = CAPACITY;
    config.budget.initial_milli = initial_milli;
    config.budget.cost_milli = COST_MILLI;
    config.budget.earn_success_milli = EARN_MILLI;
    config.budget.earn_first_milli = config.budget.earn_per_minute_milli = config.budget.refund_permille = 0;
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

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .reach = BIDE_REACH_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_ANSWERED};

static struct bide_host opened(const char *name, const struct bide_target_config *config)
{
    struct bide_host_problem problem;
    struct bide_host host;
    if (bide_host_open(&host, name, config, &here, bide_now(), &problem) != BIDE_OK) {
        fprintf(stderr, "%s\n", problem.text);
        abort();
    }
    return host;
}

static int status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- the storm ---- */

/* Of one worker's place; whoever works there goes on with it. In thousandths, but for the calls. */
struct ledger {
    uint64_t granted, earned, calls, strange;
    uint64_t unused[4];
};

static void add(uint64_t *word, uint64_t n)
{
    __atomic_add_fetch(word, n, __ATOMIC_SEQ_CST);
}

static uint64_t sum(const struct ledger *all, size_t member)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < PROCESSES; i++)
        total += __atomic_load_n((const uint64_t *)(const void *)((const char *)&all[i] + member), __ATOMIC_SEQ_CST);
    return total;
}

/* A call that fails first. When its retry is paid for, it is made, or given up and given back. */
static void call_that_fails(struct bide_target *target, const struct bide_policy *policy, struct ledger *ledger,
                            uint64_t seed)
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed, .lane = (uint32_t)seed};
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, policy, target, &request, bide_now());
    v = bide_call_outcome(&call, v.attempt, &failed, bide_now());
    if (v.what == BIDE_GIVE_UP && v.why == BIDE_WHY_BUDGET_EMPTY)
        return;
    if (v.what != BIDE_WAIT) {
        add(&ledger->strange, 1);
        return;
    }
    add(&ledger->granted, COST_MILLI);
    if (seed % 4 == 0) {
        add(&ledger->earned, COST_MILLI);
        bide_call_cancel(&call, bide_now());
        return;
    }
    v = bide_call_wake(&call, bide_now());
    add(&ledger->earned, EARN_MILLI);
    v = bide_call_outcome(&call, v.attempt, &ok, bide_now());
    if (v.what != BIDE_DONE)
        add(&ledger->strange, 1);
}

static void call_that_succeeds(struct bide_target *target, const struct bide_policy *policy, struct ledger *ledger,
                               uint64_t seed)
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed, .lane = (uint32_t)seed};
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, policy, target, &request, bide_now());
    add(&ledger->earned, EARN_MILLI);
    v = bide_call_outcome(&call, v.attempt, &ok, bide_now());
    if (v.what != BIDE_DONE)
        add(&ledger->strange, 1);
}

/* Until it is killed. Two calls fail for each that succeeds at once: the budget stays near empty. */
_Noreturn static void work(struct ledger *ledger, uint64_t seed)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    struct bide_policy policy = without_waits();
    struct random random = {seed};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
    setpriority(PRIO_PROCESS, 0, 19); /* or the parent would hardly ever run */
    struct bide_host host = opened("storm", &config);
    for (;;) {
        uint64_t chance = draw(&random, 1u << 30);
        if (draw(&random, 3) < 2)
            call_that_fails(host.target, &policy, ledger, chance);
        else
            call_that_succeeds(host.target, &policy, ledger, chance);
        add(&ledger->calls, 1);
    }
}

static pid_t start(struct ledger *ledger, uint64_t seed)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        work(ledger, seed);
    return pid;
}

/* What was granted is read first: it grows, and must not be compared with an older account of what was earned. */
static void assert_not_overspent(const struct ledger *all)
{
    uint64_t granted = sum(all, offsetof(struct ledger, granted)), earned = sum(all, offsetof(struct ledger, earned));
    if (granted > INITIAL_MILLI + earned)
        fail_msg("granted %" PRIu64 ", but there were only %u and %" PRIu64, granted, INITIAL_MILLI, earned);
}

/* Somewhere in the midst of some calls. */
static void let_them_work(const struct ledger *all, uint64_t calls)
{
    uint64_t before = sum(all, offsetof(struct ledger, calls));
    while (sum(all, offsetof(struct ledger, calls)) < before + calls)
        sched_yield();
}

/* Some at once, for those who go on working keep the others from dying soon. */
static void kill_workers(pid_t pids[PROCESSES], unsigned first, unsigned count)
{
    for (unsigned n = 0; n < count; n++)
        assert_int_equal(kill(pids[(first + n) % PROCESSES], SIGKILL), 0);
    for (unsigned n = 0; n < count; n++)
        assert_int_equal(status_of(pids[(first + n) % PROCESSES]), SIGKILL); /* and not by itself before */
}

/* All but two at most, and others in their places. Returns how many. */
static unsigned replace_most(pid_t pids[PROCESSES], struct ledger *all, struct random *random)
{
    unsigned count = PROCESSES - draw(random, 3), first = draw(random, PROCESSES);
    kill_workers(pids, first, count);
    assert_not_overspent(all);
    for (unsigned n = 0; n < count; n++)
        pids[(first + n) % PROCESSES] = start(&all[(first + n) % PROCESSES], draw(random, UINT32_MAX));
    return count;
}

static void processes_killed_at_any_instruction_never_overspend_and_lose_one_charge_each_at_most(void **state)
{
    struct ledger *all = shared_memory(PROCESSES * sizeof *all);
    struct random random = {printed_seed()};
    pid_t pids[PROCESSES];
    unsigned kills = 0;
    for (unsigned i = 0; i < PROCESSES; i++)
        pids[i] = start(&all[i], draw(&random, UINT32_MAX));
    while (kills < KILLS) {
        let_them_work(all, draw(&random, CALLS_MOST));
        assert_not_overspent(all);
        kills += replace_most(pids, all, &random);
    }
    let_them_work(all, CALLS_MOST); /* nobody waits for the dead */
    kill_workers(pids, 0, PROCESSES);
    assert_not_overspent(all);

    struct bide_host host = opened("storm", NULL);
    uint64_t granted = sum(all, offsetof(struct ledger, granted)), earned = sum(all, offsetof(struct ledger, earned));
    int64_t left = bide_budget_left_milli(host.target, bide_now());
    int64_t lost = INITIAL_MILLI + (int64_t)earned - (int64_t)granted - left;
    print_message("%" PRIu64 " calls, %" PRIu64 " retries, %u kills: %" PRId64 " thousandths lost, %" PRId64 " left\n",
                  sum(all, offsetof(struct ledger, calls)), granted / COST_MILLI, kills, lost, left);
    assert_true(lost >= 0);
    assert_true(lost <= (int64_t)(kills + PROCESSES) * COST_MILLI);
    assert_true(left < CAPACITY);
    assert_int_equal(sum(all, offsetof(struct ledger, strange)), 0);
    assert_true(granted > INITIAL_MILLI);
    bide_host_close(&host);
    munmap(all, PROCESSES * sizeof *all);
}

/* ---- many makers ---- */

/* All wait for the end of the same pipe, then open. Each takes one token. */
static pid_t start_maker(const int gate[2], const char *name)
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
    struct bide_host host = opened(name, &config);
    bool took =
        host.shared && bide_budget_add_milli(host.target, -(int64_t)COST_MILLI, bide_now()) == -(int64_t)COST_MILLI;
    _exit(took ? 0 : 1);
}

static void of_many_who_make_a_target_at_once_one_wins_and_all_share_it(void **state)
{
    char path[400], name[32];
    for (unsigned round = 0; round < ROUNDS; round++) {
        int gate[2];
        pid_t pids[PROCESSES];
        snprintf(name, sizeof name, "round %u", round);
        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        for (unsigned i = 0; i < PROCESSES; i++)
            pids[i] = start_maker(gate, name);
        close(gate[1]);
        for (unsigned i = 0; i < PROCESSES; i++)
            assert_int_equal(status_of(pids[i]), 0);
        close(gate[0]);
        assert_int_equal(count_files(path), 1);
        struct bide_host host = opened(name, NULL);
        assert_int_equal(bide_budget_left_milli(host.target, bide_now()), 0);
        bide_host_close(&host);
        assert_int_equal(bide_host_remove(name, &here, NULL), BIDE_OK);
    }
}

/* It makes and removes until it is killed. */
static pid_t start_churning(void)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct bide_host host = opened("churn", &config);
        bide_host_close(&host);
        bide_host_remove("churn", &here, NULL);
    }
}

static void a_maker_killed_at_any_instruction_leaves_a_whole_file_or_none(void **state)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    struct random random = {printed_seed()};
    for (unsigned n = 0; n < ROUNDS; n++) {
        pid_t pid = start_churning();
        for (unsigned yields = draw(&random, 200); yields > 0; yields--)
            sched_yield();
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(status_of(pid), SIGKILL);
        struct bide_host host = opened("churn", &config);
        assert_int_equal(bide_budget_left_milli(host.target, bide_now()), INITIAL_MILLI);
        bide_host_close(&host);
    }
}

/* ---- breaker and quiet ---- */

/* A worker whose calls fail until somebody's breaker is open. */
static void fail_until_open(struct bide_target *target)
{
    struct bide_policy policy = without_waits();
    for (unsigned i = 0; i < 1000 && bide_breaker_look(target).state == BIDE_BREAKER_CLOSED; i++) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = i + 1};
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &policy, target, &request, bide_now());
        bide_call_outcome(&call, v.attempt, &failed, bide_now());
        bide_call_cancel(&call, bide_now());
    }
}

static void pre_forked_workers_see_each_other_s_breaker_and_quiet(void **state)
{
    struct bide_target_config config = countable(INITIAL_MILLI);
    struct bide_policy policy = without_waits();
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 5;
    config.breaker.open_ns = config.breaker.open_max_ns = 60 * BIDE_MINUTE;
    struct bide_host host = opened("workers", &config);
    pid_t worker = fork();
    if (worker == 0) {
        fail_until_open(host.target);
        bide_target_quiet(host.target, bide_now() + 10 * BIDE_S, bide_now());
        _exit(0);
    }
    assert_int_equal(status_of(worker), 0);
    assert_int_equal(bide_breaker_look(host.target).state, BIDE_BREAKER_OPEN);
    worker = fork();
    if (worker == 0) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &policy, host.target, &request, bide_now());
        bool quiet = bide_target_quiet_until(host.target, bide_now()) > 0;
        _exit(v.what == BIDE_GIVE_UP && v.why == BIDE_WHY_BREAKER_OPEN && quiet ? 0 : 1);
    }
    assert_int_equal(status_of(worker), 0);
    bide_host_close(&host);
}

/* ---- a file that is truncated ---- */

static void truncate_only_file(off_t size)
{
    char path[400];
    if (count_files(path) != 1 || truncate(path, size) != 0)
        _exit(10);
}

/* A call that runs while its target's file is truncated; with the guard it goes on, on a private target. */
_Noreturn static void go_on(off_t size)
{
    struct bide_target_config config = countable(INITIAL_MILLI), found;
    struct bide_policy policy = without_waits();
    struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
    struct bide_call call;
    signal(SIGBUS, SIG_DFL); /* a sanitizer has its own */
    struct bide_host host = opened("cut", &config), unhurt = opened("cut", NULL);
    if (!bide_host_guard() || !bide_host_guard())
        _exit(11);
    struct bide_verdict v = bide_call_begin(&call, &policy, host.target, &request, bide_now());
    truncate_only_file(size);
    v = bide_call_outcome(&call, v.attempt, &failed, bide_now());
    if (v.what != BIDE_GIVE_UP || (size == 0 && v.why != BIDE_WHY_BUDGET_EMPTY))
        _exit(12);
    bide_target_config_get(host.target, &found);
    if (size == 0 &&
        (memcmp(&found, &config, sizeof found) != 0 || bide_budget_left_milli(host.target, bide_now()) != 0))
        _exit(13);
    if (size == 0 && bide_budget_add_milli(host.target, 5000, bide_now()) != 5000)
        _exit(14);
    bide_host_close(&host);
    if (bide_budget_left_milli(unhurt.target, bide_now()) != 0)
        _exit(15);
    bide_host_close(&unhurt);
    struct bide_host_problem problem;
    here.private_instead = true;
    bool refused = bide_host_open(&host, "cut", &config, &here, bide_now(), &problem) == BIDE_OK && !host.shared;
    _exit(refused && problem.why == BIDE_HOST_WHY_WRONG_SIZE ? 0 : 16);
}

static void with_the_guard_a_truncated_file_becomes_a_private_target(void **state)
{
    static const off_t sizes[] = {0, 1, 300}; /* of the last two the page stays, zeroed from there on */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pid_t pid = fork();
        if (pid == 0)
            go_on(sizes[i]);
        assert_int_equal(status_of(pid), 0);
        assert_int_equal(bide_host_remove("cut", &here, NULL), BIDE_OK);
    }
}

/* Touches a page of a file that is not there. */
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

/* What a process comes to that has this handler, then the guard, then a bus error of another's memory. */
static int fate(const struct sigaction *handler, bool guarded)
{
    pid_t pid = fork();
    if (pid > 0)
        return status_of(pid);
    struct bide_target_config config = countable(INITIAL_MILLI);
    sigaction(SIGBUS, handler, NULL);
    opened("other", &config);
    if (guarded && !bide_host_guard())
        _exit(11);
    raise_bus_error();
    _exit(0);
}

static void bus_errors_of_others_go_where_they_went_before(void **state)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    struct sigaction plain = {.sa_handler = exit_44}, full = {.sa_sigaction = exit_42, .sa_flags = SA_SIGINFO};
    for (int guarded = 0; guarded < 2; guarded++) {
        assert_int_equal(WTERMSIG(fate(&by_default, guarded)), SIGBUS);
        assert_int_equal(WTERMSIG(fate(&ignored, guarded)), SIGBUS);
        assert_int_equal(WEXITSTATUS(fate(&plain, guarded)), 44);
        assert_int_equal(WEXITSTATUS(fate(&full, guarded)), 42);
    }
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(processes_killed_at_any_instruction_never_overspend_and_lose_one_charge_each_at_most),
        IN_DIRECTORY(of_many_who_make_a_target_at_once_one_wins_and_all_share_it),
        IN_DIRECTORY(a_maker_killed_at_any_instruction_leaves_a_whole_file_or_none),
        IN_DIRECTORY(pre_forked_workers_see_each_other_s_breaker_and_quiet),
        IN_DIRECTORY(with_the_guard_a_truncated_file_becomes_a_private_target),
        IN_DIRECTORY(bus_errors_of_others_go_where_they_went_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
