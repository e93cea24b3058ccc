/* targets.h - the targets of one process, by name: one per dependency, made when first asked for, bounded.
 *
 * Looking up a known name takes no lock; making a new target does. When the table is full, a target that has nothing to
 * remember (full budget, closed breaker, no quiet: see bide_target_is_evictable) makes room, the longest unused first as
 * far as is known. When a bounded search finds none, or there is no memory, the name is answered with one overflow
 * target shared by all such names, and that is counted: memory stays bounded, and no drained budget is ever refilled
 * by being forgotten.
 *
 * Ask for the target anew for every call. The pointer stays valid until the table is freed, but its memory may come to
 * belong to another name; a call in flight notices that by the owner number, leaves the new one alone and decides on no
 * further retry (BIDE_REASON_TARGET_GONE). */
#ifndef BIDE_TARGETS_H
#define BIDE_TARGETS_H

#include <bide/target.h>

#define BIDE_TARGET_NAME_MAX 127u

BIDE_BEGIN_DECLS

struct bide_targets;

struct bide_targets_view {
    size_t held;         /* names in the table */
    uint64_t evicted;    /* names forgotten so far */
    uint64_t overflowed; /* look-ups answered with the overflow target */
};

/* A table for up to `most` targets (1 to 1000000). Each new target gets `config`, which is checked and copied. */
BIDE_API enum bide_err bide_targets_new(struct bide_targets **table, size_t most,
                                        const struct bide_target_config *config, struct bide_problem *problem);
BIDE_API void bide_targets_free(struct bide_targets *table); /* accepts NULL */

/* What is wrong with a name: it must have 1 to 127 bytes and no control characters. */
BIDE_API enum bide_err bide_targets_name_check(const char *name, struct bide_problem *problem);

/* The target of that name. Never NULL: a name that the check refuses is answered with the overflow target, so that a
 * mistake never means "no limits". */
BIDE_API struct bide_target *bide_targets_get(struct bide_targets *table, const char *name, int64_t now_ns);

/* As get, but makes nothing: NULL if the name is not in the table. */
BIDE_API struct bide_target *bide_targets_find(struct bide_targets *table, const char *name);

/* Gives all targets, and those made from now on, a new configuration. A bad one changes nothing. BIDE_ERR_BUSY: one of
 * them was being configured by somebody else and was left out; do it again. */
BIDE_API enum bide_err bide_targets_configure(struct bide_targets *table, const struct bide_target_config *config,
                                              int64_t now_ns, struct bide_problem *problem);

BIDE_API struct bide_targets_view bide_targets_stats(struct bide_targets *table);

BIDE_END_DECLS
#endif
