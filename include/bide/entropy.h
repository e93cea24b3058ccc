/* entropy.h - seeds for calls, different in every thread and in every process.
 *
 * Each thread has its own generator, seeded by getrandom. After fork (or clone without shared memory) the child notices
 * that it is a new process (the kernel wipes a page in it) and seeds its generator anew, so that no two processes draw
 * the same jitter; a vfork child shares its parent's generator and advances it. Not for secrets. A virtual machine that
 * is resumed twice from one snapshot draws the same seeds twice.
 *
 * Threads: all functions may be called from any thread, but not from a signal handler. */
#ifndef BIDE_ENTROPY_H
#define BIDE_ENTROPY_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

/* Returns a random number for request.seed; never 0. */
BIDE_API uint64_t bide_seed(void);

/* Returns a number that differs between threads, and between processes, as far as possible: for request.lane. More
 * than BIDE_LANES threads share lanes, which is slower, not wrong. */
BIDE_API uint32_t bide_lane(void);

BIDE_END_DECLS
#endif
