/* targets.h - a table of targets by name, for a process: targets are created on first use, their number is bounded.
 *
 * Looking up a known name takes no lock; creating a target does. When the table is full, a target with nothing to
 * remember (full budget, closed breaker, no hold-off, nothing in flight) is evicted, approximately the least recently
 * used first. If a bounded search finds no such target, or there is no memory, the look-up returns an overflow
 * target that all such names share, and counts it: memory stays bounded, and an empty budget is never refilled by being
 * forgotten.
 *
 * Look the target up again for every call. The pointer stays valid until the table is freed, but its memory may be
 * reused for another name; a call in flight notices that by the owner number, leaves the new target alone and decides
 * on no further retry (BIDE_REASON_TARGET_GONE).
 *
 * Threads: all functions but new and free may be called from any thread. */
#ifndef BIDE_TARGETS_H
#define BIDE_TARGETS_H

#include <bide/target.h>

#define BIDE_TARGET_NAME_MAX 127u

BIDE_BEGIN_DECLS

struct bide_targets;

struct bide_targets_view {
    size_t held;           /* names in the table */
    uint64_t evicted;      /* names evicted so far */
    uint64_t overflowed;   /* look-ups that returned the overflow target */
    uint64_t reserved_[2]; /* zero: room to grow */
};

/* Returns the table of this process, which a NULL stands for: bide_run finds its target there by name, and calls over
 * libcurl by the origin of their URL. It is created on first use, for up to 1024 targets with the gates of the preset
 * service (bide_targets_configure changes them), and lives as long as the library: do not free it. NULL: no memory; the
 * next call tries again. */
BIDE_API struct bide_targets *bide_targets_default(void);

/* Creates a table for up to `most` targets (1 to 1000000). New targets get `config`, which is checked and copied; NULL:
 * the gates of the preset service. */
BIDE_API enum bide_err bide_targets_new(struct bide_targets **table, size_t most,
                                        const struct bide_target_config *config, struct bide_problem *problem);
BIDE_API void bide_targets_free(struct bide_targets *table); /* accepts NULL */

/* Checks a name: 1 to 127 bytes, no control characters. */
BIDE_API enum bide_err bide_targets_name_check(const char *name, struct bide_problem *problem);

/* Returns the target of that name; never NULL: for an invalid name it returns the overflow target, so that a mistake
 * never means "no limits". */
BIDE_API struct bide_target *bide_targets_get(struct bide_targets *table, const char *name, int64_t now_ns);

/* As get, but creates nothing: returns NULL if the name is not in the table. */
BIDE_API struct bide_target *bide_targets_find(struct bide_targets *table, const char *name);

/* Replaces the configuration of all targets, and of those created later. An invalid configuration changes nothing.
 * BIDE_ERR_BUSY: a target was being configured by another thread and was skipped; call it again. */
BIDE_API enum bide_err bide_targets_configure(struct bide_targets *table, const struct bide_target_config *config,
                                              int64_t now_ns, struct bide_problem *problem);

/* Returns the counts of the table, for metrics. */
BIDE_API struct bide_targets_view bide_targets_view_get(struct bide_targets *table);

BIDE_END_DECLS
#endif
