/* pair.h - two threads doing the same at the same time, and what that costs each of them.
 *
 * CPU time, not wall time: another program on the machine makes them wait, which is not their cost. But then they also
 * meet less often, which would flatter them; so only runs in which both were running nearly all the time are counted,
 * and it is said how nearly. */
#ifndef PAIR_H
#define PAIR_H

#include <pthread.h>

#include "bench.h"

#define PAIR_RUNS  9   /* the median of so many ... */
#define PAIR_TRIES 300 /* ... out of at most so many, ... */
#define PAIR_MOST  90  /* ... with both running so much of the time, in per cent */

struct pair_cost {
    double cpu_ns;           /* for one, by either thread */
    double together_percent; /* of the time from first start to last end, at least */
};

struct pair_member {
    bench_body *body;
    void *context;
    uint32_t n;
    uint32_t *ready; /* how many threads are */
    double cpu_ns;
    double begin_ns;
    double end_ns;
};

static inline void *pair_run(void *context)
{
    struct pair_member *m = context;
    __atomic_add_fetch(m->ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(m->ready, __ATOMIC_ACQUIRE) < 2)
        ; /* no barrier: the one that slept would start late */
    m->begin_ns = bench_clock_ns(CLOCK_MONOTONIC);
    m->cpu_ns = -bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    m->body(m->context, m->n);
    m->cpu_ns += bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    m->end_ns = bench_clock_ns(CLOCK_MONOTONIC);
    return NULL;
}

/* Two threads that are busy for a and b of a time t are busy together for at least a + b - t. */
static inline struct pair_cost pair_cost_of(const struct pair_member *one, const struct pair_member *other)
{
    double begin_ns = one->begin_ns < other->begin_ns ? one->begin_ns : other->begin_ns;
    double end_ns = one->end_ns > other->end_ns ? one->end_ns : other->end_ns;
    double busy_ns = one->cpu_ns + other->cpu_ns, all_ns = end_ns - begin_ns;
    return (struct pair_cost){busy_ns / 2 / one->n, 100 * (busy_ns / all_ns - 1)};
}

static inline struct pair_cost pair_once(bench_body *body, void *context, uint32_t n)
{
    uint32_t ready = 0;
    struct pair_member member[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        member[i] = (struct pair_member){.body = body, .context = context, .n = n, .ready = &ready};
        if (pthread_create(&thread[i], NULL, pair_run, &member[i]) != 0)
            abort();
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return pair_cost_of(&member[0], &member[1]);
}

static inline int pair_order(const void *a, const void *b)
{
    double x = ((const struct pair_cost *)a)->cpu_ns, y = ((const struct pair_cost *)b)->cpu_ns;
    return (x > y) - (x < y);
}

/* On a machine that is too busy for any such run, the one that came nearest. */
static inline struct pair_cost pair_ns(bench_body *body, void *context, uint32_t n)
{
    struct pair_cost kept[PAIR_RUNS], nearest = {0, -100};
    int count = 0;
    for (int run = 0; run < PAIR_TRIES && count < PAIR_RUNS; run++) {
        struct pair_cost cost = pair_once(body, context, n);
        if (cost.together_percent >= PAIR_MOST)
            kept[count++] = cost;
        if (cost.together_percent > nearest.together_percent)
            nearest = cost;
    }
    qsort(kept, (size_t)count, sizeof *kept, pair_order);
    return count > 0 ? kept[count / 2] : nearest;
}

#endif
