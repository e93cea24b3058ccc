/* bench.h - what the benchmarks share: CPU time, the best of several runs, and how a figure is printed.
 *
 * A benchmark is one program. Without arguments it measures, and prints one line for each figure:
 *
 *     key value unit aim             the aim is the most it should be; ">30000": the least; "-": none
 *     key @one-other unit aim        to be counted from outside
 *     key @one/other unit aim        likewise
 *
 * A value with @ makes bench/run start `program one n` and `program other n` under callgrind and count instructions.
 *     one-other    their difference, divided by n. What both have in common, start-up and loop, is not in it.
 *     one/other    their ratio, each without its start-up, which is what it takes for n = 0.
 * n is 10000, or what is said after a colon: @one/other:500. Child processes are not counted, so a part may start a
 * server. */
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

/* aim: the most it should be, or BENCH_NO_AIM. */
static inline void bench_figure(const char *key, double value, const char *unit, double aim)
{
    printf("%s %.3f %s ", key, value, unit);
    if (aim < 0)
        puts("-");
    else
        printf("%.2f\n", aim);
}

/* least: what it should be at least. */
static inline void bench_figure_least(const char *key, double value, const char *unit, double least)
{
    printf("%s %.3f %s >%.2f\n", key, value, unit, least);
}

/* difference: "one-other", the names of two parts. */
static inline void bench_instructions(const char *key, const char *difference, double aim)
{
    printf("%s @%s instructions %.2f\n", key, difference, aim);
}

/* ratio: "one/other" or "one/other:n". */
static inline void bench_instruction_ratio(const char *key, const char *ratio, double aim)
{
    printf("%s @%s ratio ", key, ratio);
    if (aim < 0)
        puts("-");
    else
        printf("%.2f\n", aim);
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
