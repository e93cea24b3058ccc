/* bench.h - shared by the benchmarks: CPU time, the best of several runs, and the format of results.
 *
 * A benchmark is one program. Without arguments it measures, and prints a line for each result:
 *
 *     key value unit aim             aim: the maximum; ">30000": the minimum; "-": none
 *     key @one-other unit aim        to be counted by callgrind
 *     key @one/other unit aim        likewise
 *
 * For a value with @, bench/run starts `program one n` and `program other n` under callgrind and counts instructions.
 *     one-other    their difference, divided by n. Start-up and loop, which both have in common, cancel out.
 *     one/other    their ratio, each without its start-up, which is the count for n = 0.
 * n is 10000, or the number after a colon: @one/other:500. Child processes are not counted, so a part may start a
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

/* Work that is repeated n times. */
typedef void bench_body(void *context, uint32_t n);

/* Work that can be counted: `program name n`. */
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

/* Returns the CPU time of this thread per repetition, in the least disturbed run. */
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

/* Ends a line with the aim: the maximum, or BENCH_NO_AIM. */
static inline void bench_aim(double aim)
{
    if (aim < 0)
        puts("-");
    else
        printf("%.2f\n", aim);
}

static inline void bench_figure(const char *key, double value, const char *unit, double aim)
{
    printf("%s %.3f %s ", key, value, unit);
    bench_aim(aim);
}

/* least: the minimum. */
static inline void bench_figure_least(const char *key, double value, const char *unit, double least)
{
    printf("%s %.3f %s >%.2f\n", key, value, unit, least);
}

/* difference: "one-other", the names of two parts. */
static inline void bench_instructions(const char *key, const char *difference, double aim)
{
    printf("%s @%s instructions ", key, difference);
    bench_aim(aim);
}

/* ratio: "one/other" or "one/other:n". */
static inline void bench_instruction_ratio(const char *key, const char *ratio, double aim)
{
    printf("%s @%s ratio ", key, ratio);
    bench_aim(aim);
}

/* Runs a part to be counted: `program name n`. Returns the program's exit status. */
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
