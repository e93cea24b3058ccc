/* pair.h - the cost of the same work in two threads at the same time.
 *
 * Measures CPU time, not wall time: waiting for another program is not a cost of the work. But threads that wait also
 * collide less, which would flatter the result; so only runs in which both threads were running nearly all the time
 * count, and the overlap is reported. */
#ifndef PAIR_H
#define PAIR_H

#include <pthread.h>

#include "bench.h"

#define PAIR_RUNS  9   /* the median of this many runs ... */
#define PAIR_TRIES 300 /* ... out of at most this many ... */
#define PAIR_MOST  90  /* ... in which both threads ran at the same time for this share, in percent */

struct pair_cost {
    double cpu_ns;           /* per repetition and thread */
    double together_percent; /* minimum share of the time from first start to last end */
};

struct pair_member {
    bench_body *body;
    void *context;
    uint32_t n;
    uint32_t *ready; /* number of threads that are ready */
    double cpu_ns;
    double begin_ns;
    double end_ns;
};

static inline void *pair_run(void *context)
{
    struct pair_member *m = context;
    __atomic_add_fetch(m->ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(m->ready, __ATOMIC_ACQUIRE) < 2)
        ; /* no barrier: a thread that slept would start late */
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

/* Returns the median of the runs that count; on a machine too busy for any, the run with the largest overlap. */
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
