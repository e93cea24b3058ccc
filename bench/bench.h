/* bench.h - what the benchmarks share: CPU time, the best of several runs, and how a figure is printed.
 *
 * A benchmark is one program. Without arguments it measures, and prints one line for each figure:
 *
 *     key value unit aim             the aim is the most it should be; "-": none
 *     key @one-other unit aim        to be counted from outside
 *
 * The second form makes bench/run start `program one n` and `program other n` under callgrind; the value is the
 * difference divided by n. What both have in common, start-up and loop, is not in it. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_NO_AIM (-1.0)
#define BENCH_RUNS   51

/* Something that is done n times in a row. */
typedef void bench_body(void *context, uint32_t n);

/* A body that can be counted: `program name n`. */
struct bench_part {
    const char *name;
    bench_body *body;
};

static inline double bench_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* CPU time of this thread for one of n, in the run that was disturbed least. */
static inline double bench_ns(bench_body *body, void *context, uint32_t n)
{
    double best = 0;
    for (int run = 0; run < BENCH_RUNS; run++) {
        double begin_ns = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        body(context, n);
        double one_ns = (bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / n;
        best = run == 0 || one_ns < best ? one_ns : best;
    }
    return best;
}

static inline void bench_figure(const char *key, double value, const char *unit, double aim)
{
    printf("%s %.2f %s ", key, value, unit);
    if (aim < 0)
        puts("-");
    else
        printf("%.2f\n", aim);
}

/* difference: "one-other", the names of two parts. */
static inline void bench_instructions(const char *key, const char *difference, double aim)
{
    printf("%s @%s instructions %.2f\n", key, difference, aim);
}

/* A counting run: `program name n`. Returns the exit status of the program. */
static inline int bench_count(const struct bench_part *part, size_t count, void *context, char **argv)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(part[i].name, argv[1]) == 0) {
            part[i].body(context, (uint32_t)strtoul(argv[2], NULL, 10));
            return EXIT_SUCCESS;
        }
    fprintf(stderr, "%s: no part is called %s\n", argv[0], argv[1]);
    return EXIT_FAILURE;
}

#endif
