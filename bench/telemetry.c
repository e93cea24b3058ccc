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
    struct world *w = context;
    return start->attempt <= w->failures ? w->unavailable : w->ok;
}

static void run(void *context, uint32_t n)
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

/* A call whose retry follows at once: a policy without backoff. */
static void run_with_retry(void *context, uint32_t n)
{
    struct world *w = context;
    w->failures = 1;
    w->policy.backoff = BIDE_BACKOFF_NONE;
    run(w, n);
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
    run(context, n);
}

static void run_with_retry_metered(void *context, uint32_t n)
{
    start_meters();
    run_with_retry(context, n);
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

static const struct bench_part parts[] = {
    {"unwatched", run}, {"metered", run_metered}, {"retry", run_with_retry}, {"retry-metered", run_with_retry_metered}};

int main(int argc, char **argv)
{
    static struct world world;
    bide_policy_init(&world.policy, BIDE_PRESET_SERVICE);
    world.ok = bide_classify_http(200, NULL);
    world.unavailable = bide_classify_http(503, NULL);
    if (argc == 3)
        return bench_count(parts, sizeof parts / sizeof *parts, &world, argv);
    bench_instructions("telemetry.success.instructions", "metered-unwatched", 80);
    start_meters();
    call_targets(&world);
    bench_figure("telemetry.scrape.ms", bench_ns(scrape, &world, 1) / 1e6, "ms", 10);
    return EXIT_SUCCESS;
}
