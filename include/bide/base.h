/* base.h - common to all headers of bide: time, errors, export of symbols.
 *
 * Time is an int64_t of nanoseconds on the clock of a target (CLOCK_BOOTTIME in production, the virtual clock in the
 * simulator). It is always an argument, now_ns, the last one except for a problem: the engine never reads a clock.
 * BIDE_NEVER is later than any instant and longer than any duration; sums with it stay BIDE_NEVER. Instants and
 * durations are never negative, and instants stay below 2^61 (73 years).
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_BASE_H
#define BIDE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(BIDE_BUILD) && defined(__GNUC__)
#define BIDE_API __attribute__((visibility("default")))
#else
#define BIDE_API
#endif

#ifdef __cplusplus
#define BIDE_BEGIN_DECLS extern "C" {
#define BIDE_END_DECLS   }
#else
#define BIDE_BEGIN_DECLS
#define BIDE_END_DECLS
#endif

#define BIDE_VERSION_MAJOR 0
#define BIDE_VERSION_MINOR 1
#define BIDE_VERSION_PATCH 0
#define BIDE_VERSION       "0.1.0"

#define BIDE_NS     INT64_C(1)
#define BIDE_US     INT64_C(1000)
#define BIDE_MS     INT64_C(1000000)
#define BIDE_S      INT64_C(1000000000)
#define BIDE_MINUTE (60 * BIDE_S)
#define BIDE_NEVER  INT64_MAX

/* Longest duration in a configuration (about 31 years): sums of a few of them cannot overflow. Use BIDE_NEVER for a
 * longer duration. */
#define BIDE_DURATION_MAX INT64_C(1000000000000000000)

BIDE_BEGIN_DECLS

/* Errors are return values. A verdict is not an error. */
enum bide_err {
    BIDE_OK = 0,
    BIDE_ERR_INVALID = -1, /* an argument or a file is invalid: see the problem */
    BIDE_ERR_NOMEM = -2,   /* no memory; nothing was changed */
    BIDE_ERR_BUSY = -3,    /* in use, or another thread or process is configuring it: try again */
    BIDE_ERR_SYSTEM = -4,  /* the operating system refused: see problem.system_errno (without a problem: errno) */
};

/* Why a function returned an error. A function with such a parameter sets all of it if it returns an error; otherwise
 * its contents are unspecified (but see bide_shared_open). So the caller need not initialise it, and reads it only
 * after an error. NULL: the caller does not want it. Final: its size will not change.
 *
 *     if (bide_policy_check(&policy, &problem) != BIDE_OK)
 *         fprintf(stderr, "%s\n", problem.text); */
struct bide_problem {
    const char *field; /* "budget.ratio_ppm"; NULL: the problem is not the value of a field. Static */
    const char *want;  /* "0 to 1000000 (one retry for each request)", the valid values; NULL without a field. Static */
    int64_t value;     /* of the field */
    int reason;        /* enum bide_shared_reason, by the functions of shared.h; 0 by all others */
    int system_errno;  /* 0: the operating system did not refuse */
    char text[512];    /* "attempts_max is 0; must be 1 or more (1 means no retry)": the whole sentence, never empty.
                        * UTF-8, if the names and paths in it are; never cut inside a character */
};

/* Returns the version of the linked library, as "0.1.0". */
BIDE_API const char *bide_version(void);

BIDE_END_DECLS
#endif
