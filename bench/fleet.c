/* fleet.c - the cost of a fleet: CPU time of the fleet's thread, of Redis, and latency of calls.
 *
 * 200 members, each a process with its connection and its target, of the same fleet, on a Redis that this program
 * starts. Each makes a call every 20 ms, of which every tenth fails once. Reported are the CPU time of each process
 * without the thread that makes the calls, per member and second, and the CPU time that Redis itself reports. The load
 * of 10,000 members is computed from that: they make 1,000 exchanges per second, each on a new connection.
 *
 * Then the 99th percentile of a call's duration, on a leased target and on a target without fleet, while Redis replies,
 * while it is stopped (SIGSTOP), and after it was killed. */
#include <bide/bide.h>
#include <bide/fleet.h>

#include <sys/mman.h>

#include "bench.h"
#include "server.h"

#define MEMBERS          200u
#define SECONDS          12
#define CONNECTIONS      2000u
#define CALLS            200000u
#define EXCHANGES_OF_10K 1000.0 /* per second: LEASE_FLEET_PER_S */

struct figures {
    uint32_t begun;
    uint32_t stop;
    struct {
        double cpu_us;
        uint64_t exchanges, failures;
        uint64_t members;
    } of[MEMBERS];
};

static struct server redis;

/* ---- Redis ---- */

static void start_redis(void)
{
    char port[8];
    redis = server_prepare(true);
    snprintf(port, sizeof port, "%u", redis.port);
    const char *const argv[] = {"redis-server", "--port", port,    "--bind",        "127.0.0.1", "--save", "",
                                "--appendonly", "no",     "--dir", redis.directory, NULL};
    server_launch(&redis, argv);
}

static void redis_url(char url[128])
{
    snprintf(url, 128, "redis://127.0.0.1:%u/?capacity=1000&per_minute=600", redis.port);
}

/* Returns a number from INFO, given the text before it: "used_cpu_sys:". */
static double info_number(const char *section, const char *name)
{
    char text[16384];
    size_t have = 0;
    int fd = server_connect(redis.port);
    dprintf(fd, "INFO %s\r\nQUIT\r\n", section);
    for (ssize_t n; have < sizeof text - 1 && (n = read(fd, text + have, sizeof text - 1 - have)) > 0;)
        have += (size_t)n;
    close(fd);
    text[have] = '\0';
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) : 0;
}

static double redis_cpu_us(void)
{
    return (info_number("cpu", "used_cpu_sys:") + info_number("cpu", "used_cpu_user:")) * 1e6;
}

/* Returns the CPU time that opening and closing a connection costs Redis. */
static double connection_us(void)
{
    double before_us = redis_cpu_us();
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        char pong[8];
        int fd = server_connect(redis.port);
        if (fd < 0 || dprintf(fd, "PING\r\n") < 0 || read(fd, pong, sizeof pong) <= 0)
            server_give_up("no PONG");
        close(fd);
    }
    return (redis_cpu_us() - before_us) / CONNECTIONS;
}

/* ---- calls ---- */

struct world {
    struct bide_target target;
    struct bide_policy policy;
};

static void make_world(struct world *w)
{
    struct bide_target_config config;
    bide_policy_init(&w->policy, BIDE_PRESET_SERVICE);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    bide_target_init(&w->target, &config, bide_now(), NULL);
}

/* Makes a call that fails once if `fails`, then succeeds, without real waits. */
static void call_once(struct world *w, uint64_t seed, bool fails)
{
    static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    static const struct bide_outcome bad = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_request request = {.safety = BIDE_SAFE, .lane = bide_lane(), .seed = seed};
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, &w->policy, &w->target, &request, bide_now());
    if (v.action == BIDE_ACTION_START && fails) {
        v = bide_call_outcome(&call, v.attempt, &bad, bide_now());
        if (v.action == BIDE_ACTION_WAIT)
            v = bide_call_wake(&call, v.wake_ns);
    }
    if (v.action == BIDE_ACTION_START)
        bide_call_outcome(&call, v.attempt, &ok, bide_now());
}

/* ---- 200 members ---- */

static void run_member(struct figures *all, uint32_t i)
{
    static struct world w;
    struct bide_fleet *fleet;
    struct bide_problem problem;
    struct bide_fleet_view view = {0};
    char url[128];
    redis_url(url);
    make_world(&w);
    if (bide_fleet_open(&fleet, url, NULL, &problem) != BIDE_OK ||
        bide_fleet_join(fleet, "bench", &w.target, &problem) != BIDE_OK)
        server_give_up(problem.text);
    __atomic_add_fetch(&all->begun, 1, __ATOMIC_RELAXED);
    for (uint64_t n = 0; !__atomic_load_n(&all->stop, __ATOMIC_RELAXED); usleep(20000))
        call_once(&w, bide_seed(), n++ % 10 == 0);
    bide_fleet_get(fleet, &w.target, &view);
    all->of[i].cpu_us = (bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - bench_clock_ns(CLOCK_THREAD_CPUTIME_ID)) / 1e3;
    all->of[i].exchanges = view.exchanges;
    all->of[i].failures = view.failures;
    all->of[i].members = view.members;
    bide_fleet_close(fleet);
}

static void measure_many(void)
{
    static pid_t child[MEMBERS];
    struct figures *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double cpu_us = redis_cpu_us(), sum_us = 0, exchanges = 0, seen = 0;
    for (uint32_t i = 0; i < MEMBERS; i++)
        if ((child[i] = fork()) == 0) {
            run_member(all, i);
            _exit(EXIT_SUCCESS);
        }
    while (__atomic_load_n(&all->begun, __ATOMIC_RELAXED) < MEMBERS)
        usleep(1000);
    sleep(SECONDS);
    __atomic_store_n(&all->stop, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        int status;
        if (waitpid(child[i], &status, 0) != child[i] || status != 0)
            server_give_up("a member failed");
        sum_us += all->of[i].cpu_us;
        exchanges += (double)all->of[i].exchanges;
        seen += (double)all->of[i].members / MEMBERS;
        if (all->of[i].failures > 0)
            fprintf(stderr, "bench: %lu exchanges failed\n", (unsigned long)all->of[i].failures);
    }
    cpu_us = redis_cpu_us() - cpu_us;
    bench_figure("fleet.exchange.us_per_s", sum_us / MEMBERS / SECONDS, "us/s", BENCH_NO_AIM);
    bench_figure("fleet.exchange.us", sum_us / exchanges, "us", BENCH_NO_AIM);
    bench_figure("fleet.exchanges_per_s.200", exchanges / SECONDS, "1/s", BENCH_NO_AIM);
    bench_figure("fleet.members_seen.200", seen, "members", BENCH_NO_AIM);
    bench_figure("fleet.redis.us_per_exchange", cpu_us / exchanges, "us", BENCH_NO_AIM);
    double connecting_us = connection_us();
    bench_figure("fleet.redis.us_per_connection", connecting_us, "us", BENCH_NO_AIM);
    bench_figure("fleet.redis.percent_of_core.10k", EXCHANGES_OF_10K * (cpu_us / exchanges + connecting_us) / 1e4, "%",
                 BENCH_NO_AIM);
    munmap(all, sizeof *all);
}

/* ---- latency of calls ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double call_p99_us(struct world *w)
{
    static double took_us[CALLS];
    for (uint32_t i = 0; i < CALLS; i++) {
        double begin_ns = bench_clock_ns(CLOCK_MONOTONIC);
        call_once(w, i + 1, i % 10 == 0);
        took_us[i] = (bench_clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1e3;
    }
    qsort(took_us, CALLS, sizeof *took_us, by_size);
    return took_us[CALLS / 100 * 99];
}

static void measure_calls(const char *key, struct world *leased, struct world *own)
{
    double with_us = call_p99_us(leased), without_us = call_p99_us(own);
    bench_figure(key, with_us - without_us, "us", 5);
}

int main(void)
{
    static struct world leased, own;
    struct bide_fleet *fleet;
    struct bide_problem problem;
    char url[128];
    start_redis();
    measure_many();
    redis_url(url);
    make_world(&leased);
    make_world(&own);
    if (bide_fleet_open(&fleet, url, NULL, &problem) != BIDE_OK ||
        bide_fleet_join(fleet, "bench", &leased.target, &problem) != BIDE_OK)
        server_give_up(problem.text);
    measure_calls("fleet.call.p99_added_us", &leased, &own);
    kill(redis.pid, SIGSTOP);
    measure_calls("fleet.call.p99_added_us.stopped", &leased, &own);
    kill(redis.pid, SIGCONT);
    server_stop(&redis);
    measure_calls("fleet.call.p99_added_us.gone", &leased, &own);
    bide_fleet_close(fleet);
    return EXIT_SUCCESS;
}
