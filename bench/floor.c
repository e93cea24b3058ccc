/* floor.c - lower bounds for any engine, on this machine and in this run: one clock read, one atomic operation, one
 * random number. Two threads that write to the same word show what the engine saves by only reading. */
#include <bide/clock.h>
#include <bide/entropy.h>

#include "bench.h"
#include "pair.h"

#define ROUNDS 200000u

struct words {
    uint64_t word __attribute__((aligned(64)));
    uint64_t state __attribute__((aligned(64)));
};

static void read_clock(void *context, uint32_t n)
{
    struct words *w = context;
    for (uint32_t i = 0; i < n; i++)
        w->state += (uint64_t)bide_now();
}

static void atomic_add(void *context, uint32_t n)
{
    struct words *w = context;
    for (uint32_t i = 0; i < n; i++)
        __atomic_add_fetch(&w->word, 1, __ATOMIC_RELAXED);
}

/* Loads, then tries compare-and-swap until it succeeds, as a token bucket does. */
static void compare_and_swap(void *context, uint32_t n)
{
    struct words *w = context;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t seen = __atomic_load_n(&w->word, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&w->word, &seen, seen + 3, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
    }
}

/* SplitMix64 (Steele, Lea, Flood); each number depends on the previous one. */
static void next_random(void *context, uint32_t n)
{
    struct words *w = context;
    uint64_t x = w->state;
    for (uint32_t i = 0; i < n; i++) {
        x += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        x ^= x >> 31;
    }
    w->state = x;
}

static void draw_seed(void *context, uint32_t n)
{
    struct words *w = context;
    for (uint32_t i = 0; i < n; i++)
        w->state ^= bide_seed();
}

int main(void)
{
    static struct words words;
    bench_figure("floor.clock.ns", bench_ns(read_clock, &words, ROUNDS), "ns", BENCH_NO_AIM);
    bench_figure("floor.atomic_add.ns", bench_ns(atomic_add, &words, ROUNDS), "ns", BENCH_NO_AIM);
    bench_figure("floor.cas.ns", bench_ns(compare_and_swap, &words, ROUNDS), "ns", BENCH_NO_AIM);
    bench_figure("floor.cas.ns.two_threads", pair_ns(compare_and_swap, &words, ROUNDS).cpu_ns, "ns", BENCH_NO_AIM);
    bench_figure("floor.prng.ns", bench_ns(next_random, &words, ROUNDS), "ns", BENCH_NO_AIM);
    bench_figure("os.seed.ns", bench_ns(draw_seed, &words, ROUNDS), "ns", BENCH_NO_AIM);
    return EXIT_SUCCESS;
}
