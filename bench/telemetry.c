/* telemetry.c - what it costs to watch calls: instructions of bide_run beside the same call that nobody watches; and
 * the time of a scrape.
 *
 * A call is found by its name in the table of the process, as in most programs. */
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "bench.h"
#include "pair.h"

#include <malloc.h>

#define CALLS 100000u

struct world {
    struct bide_policy policy;
    struct bide_outcome ok, unavailable;
    uint32_t failures; /* the first attempts of each call */
};

static struct bide_outcome attempt(void *context, const struct bide_verdict *start)
{
    const struct world *w = context;
    return start->attempt <= w->failures ? w->unavailable : w->ok;
}

#define RUN_REPORTS 0
#define bide_run    bare_run
#include "os/blocking.c"
#undef bide_run
extern struct bide_verdict bide_run(const struct bide_job *job);

static void run_bare(void *context, uint32_t n)
{
    struct world *w = context;
    struct bide_job job = {.name = "inventory",
                           .policy = &w->policy,
                           .request = {.safety = BIDE_SAFE, .seed = 7},
                           .attempt = attempt,
                           .context = w};
    for (uint32_t i = 0; i < n; i++)
        if (bare_run(&job).action != BIDE_ACTION_DONE)
            abort();
}

static void run_unwatched(void *context, uint32_t n)
{
    struct world *w = context;
    struct bide_job job = {.name = "inventory",
                           .policy = &w->policy,
                           .request = {.safety = BIDE_SAFE, .seed = 7},
                           .attempt = attempt,
                           .context = w};
    for (uint32_t i = 0; i < n; i++)
        if (bide_run(&job).action != BIDE_ACTION_DONE)
            abort();
}

static void start_meters(void)
{
    struct bide_problem problem;
    if (bide_telemetry_start(NULL, &problem) != BIDE_OK)
        abort();
}

static void run_metered(void *context, uint32_t n)
{
    start_meters();
    run_unwatched(context, n);
}

typedef void report_function(struct bide_report *report, const struct bide_verdict *verdict,
                             const struct bide_attempt_end *end, int64_t now_ns);

static __attribute__((noinline)) void report_nothing(struct bide_report *report, const struct bide_verdict *verdict,
                                                     const struct bide_attempt_end *end, int64_t now_ns)
{
    (void)report, (void)verdict, (void)end, (void)now_ns;
    __asm__ volatile("" ::: "memory");
}

/* The reports of a call alone, without the call: an attempt fails, a retry fails, and the next succeeds, in milliseconds
 * each. The verdicts of that last retry are reported by `retry`. */
static void replay(const struct world *w, report_function *retry, uint32_t n)
{
    const uint32_t last = retry == bide_report_verdict ? 3 : 2;
    const struct bide_report_call call = {.target_name = "inventory", .target = BIDE_NO_TARGET};
    const struct bide_attempt_end end[] = {{&w->unavailable, 1, 503}, {&w->unavailable, 2, 503}, {&w->ok, last, 200}};
    const struct bide_verdict start[] = {{.action = BIDE_ACTION_START,
                                          .reason = BIDE_REASON_FIRST_ATTEMPT,
                                          .attempt = 1},
                                         {.action = BIDE_ACTION_START, .reason = BIDE_REASON_RETRY, .attempt = 2},
                                         {.action = BIDE_ACTION_START, .reason = BIDE_REASON_RETRY, .attempt = 3}},
                              wait = {.action = BIDE_ACTION_WAIT, .reason = BIDE_REASON_BACKOFF},
                              done = {.action = BIDE_ACTION_DONE, .reason = BIDE_REASON_SUCCEEDED, .attempt = last};
    start_meters();
    for (uint32_t i = 0; i < n; i++) {
        struct bide_report report;
        bide_report_begin(&report, &call, 0);
        bide_report_verdict(&report, &start[0], NULL, 0);
        bide_report_verdict(&report, &wait, &end[0], BIDE_MS);
        bide_report_verdict(&report, &start[1], NULL, 2 * BIDE_MS);
        retry(&report, &wait, &end[1], 3 * BIDE_MS);
        retry(&report, &start[2], NULL, 4 * BIDE_MS);
        bide_report_verdict(&report, &done, &end[2], 5 * BIDE_MS);
    }
}

static void replay_retry(void *context, uint32_t n)
{
    replay(context, bide_report_verdict, n);
}

static void replay_without_retry(void *context, uint32_t n)
{
    replay(context, report_nothing, n);
}

/* No thread exports: what is measured is what a call does. The ring is full after a while, and dropping costs less than
 * writing, so calls are as many as its records. */
static void run_spanned(void *context, uint32_t n)
{
    struct bide_problem problem;
    if (bide_telemetry_start(&(struct bide_telemetry_options){.otlp = ""}, &problem) != BIDE_OK)
        abort();
    run_unwatched(context, n);
}

/* ---- a scrape ---- */

/* Makes calls on as many targets as have a meter of their own, with failures, so that all series exist. */
static void call_targets(struct world *w)
{
    char name[64];
    w->policy.backoff = BIDE_BACKOFF_NONE;
    for (unsigned i = 0; i < BIDE_TELEMETRY_TARGETS; i++) {
        struct bide_job job = {.name = name,
                               .policy = &w->policy,
                               .request = {.safety = BIDE_SAFE, .seed = 7},
                               .attempt = attempt,
                               .context = w};
        snprintf(name, sizeof name, "https://service-%u.example.internal:8443", i);
        for (w->failures = 0; w->failures < 4; w->failures++)
            bide_run(&job);
    }
}

static void scrape(void *context, uint32_t n)
{
    static char text[8u << 20];
    (void)context;
    for (uint32_t i = 0; i < n; i++)
        if (bide_telemetry_write(text, sizeof text) >= sizeof text)
            abort();
}

static const struct bench_part parts[] = {{"bare", run_bare},       {"unwatched", run_unwatched},
                                          {"metered", run_metered}, {"spanned", run_spanned},
                                          {"replay", replay_retry}, {"replay_floor", replay_without_retry}};

int main(int argc, char **argv)
{
    static struct world world;
    bide_policy_init(&world.policy, BIDE_PRESET_SERVICE);
    world.ok = bide_classify_http(200, NULL);
    world.unavailable = bide_classify_http(503, NULL);
    if (argc == 3)
        return bench_count(parts, sizeof parts / sizeof *parts, &world, argv);
    bench_instructions("telemetry.unwatched.instructions", "unwatched-bare", 8);
    bench_instructions("telemetry.success.instructions", "metered-unwatched", 80);
    bench_instructions("telemetry.retry.instructions", "replay-replay_floor", 120);
    bench_instructions("telemetry.span.instructions", "spanned-metered", 250);
    start_meters();
    call_targets(&world);
    bench_figure("telemetry.scrape.ms", bench_ns(scrape, &world, 1) / 1e6, "ms", 10);
    return EXIT_SUCCESS;
}
