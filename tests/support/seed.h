/* seed.h - seeds of randomised tests. Each test runs with its fixed seed, so that a result repeats, and with the seed
 * of the day, so that every day tries something new. A test that takes many seconds, or whose result depends on the
 * scheduler as well, runs once, with the seed of the day (seed_once). All seeds are printed, with the command that
 * replays the test.
 *
 *     BIDE_TEST_SEED=N PROGRAM   runs with this seed alone
 *     BIDE_TEST_DAY=N  PROGRAM   runs as on day N since 1970 (UTC)
 */
#ifndef SEED_H
#define SEED_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEED_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SEED_SANITIZED 1
#endif
#endif
#ifdef SEED_SANITIZED
#define SEED_TRIALS(n) ((n) / 10) /* the sanitizers make a trial about ten times as long */
#else
#define SEED_TRIALS(n) (n)
#endif

static inline uint64_t seed_of_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

/* Seeds of two days are far apart: a test may count upwards from its seed. */
static inline uint64_t seed_of_day(void)
{
    return seed_of_environment("BIDE_TEST_DAY", (uint64_t)time(NULL) / 86400) * 1000003;
}

/* Returns the first word of this process's command line. */
static inline const char *seed_program(void)
{
    static char name[512] = "PROGRAM";
    FILE *file = fopen("/proc/self/cmdline", "r");
    if (file != NULL && fgets(name, sizeof name, file) == NULL)
        snprintf(name, sizeof name, "PROGRAM");
    if (file != NULL)
        fclose(file);
    return name;
}

static inline void seed_print(uint64_t seed)
{
    printf("seed %" PRIu64 " (replay: BIDE_TEST_SEED=%" PRIu64 " %s)\n", seed, seed, seed_program());
    fflush(stdout);
}

/* Returns BIDE_TEST_SEED or the seed of the day, printed. */
static inline uint64_t seed_once(void)
{
    uint64_t seed = seed_of_environment("BIDE_TEST_SEED", seed_of_day());
    seed_print(seed);
    return seed;
}

/* Runs the test with one seed; returns 0 if it passed. */
static inline int seed_try(const char *program, uint64_t seed, int (*run)(uint64_t seed))
{
    seed_print(seed);
    if (run(seed) == 0)
        return 0;
    printf("FAILED with seed %" PRIu64 ". Replay: BIDE_TEST_SEED=%" PRIu64 " %s\n", seed, seed, program);
    return 1;
}

/* Runs the test with its fixed seed and with the seed of the day, or with BIDE_TEST_SEED alone. Returns the exit status
 * of the program. */
static inline int seed_main(const char *program, uint64_t fixed, int (*run)(uint64_t seed))
{
    uint64_t given = seed_of_environment("BIDE_TEST_SEED", UINT64_MAX);
    if (given != UINT64_MAX)
        return seed_try(program, given, run);
    int failures = seed_try(program, fixed, run);
    return seed_try(program, seed_of_day(), run) + failures > 0;
}

static inline void seed_announce(uint64_t seed, void (*run)(uint64_t seed))
{
    seed_print(seed);
    run(seed);
}

/* For a random test among other tests, whose failure does not return. */
static inline void seed_each(uint64_t fixed, void (*run)(uint64_t seed))
{
    uint64_t given = seed_of_environment("BIDE_TEST_SEED", UINT64_MAX);
    seed_announce(given != UINT64_MAX ? given : fixed, run);
    if (given == UINT64_MAX)
        seed_announce(seed_of_day(), run);
}

#endif
