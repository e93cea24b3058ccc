/* telemetry.c - what it costs to watch calls: instructions of bide_run beside the same call that nobody watches.
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

/* No thread exports: what is measured is what a call does. The ring is full after a while, and dropping costs less than
 * writing, so calls are as many as its records. */
static void run_spanned(void *context, uint32_t n)
{
    struct bide_problem problem;
    if (bide_telemetry_start(&(struct bide_telemetry_options){.otlp = ""}, &problem) != BIDE_OK)
        abort();
    run(context, n);
}

static const struct bench_part parts[] = {{"unwatched", run},
                                          {"metered", run_metered},
                                          {"spanned", run_spanned},
                                          {"retry", run_with_retry},
                                          {"retry-metered", run_with_retry_metered}};

int main(int argc, char **argv)
{
    static struct world world;
    bide_policy_init(&world.policy, BIDE_PRESET_SERVICE);
    world.ok = bide_classify_http(200, NULL);
    world.unavailable = bide_classify_http(503, NULL);
    if (argc == 3)
        return bench_count(parts, sizeof parts / sizeof *parts, &world, argv);
    bench_instructions("telemetry.success.instructions", "metered-unwatched", 80);
    bench_instructions("telemetry.span.instructions", "spanned-metered", 250);
    return EXIT_SUCCESS;
}
