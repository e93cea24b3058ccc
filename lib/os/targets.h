/* targets.h - a target of a table, and the meter that counts its calls: for event.c, so that a call finds its meter
 * without a look-up by name. */
#ifndef OS_TARGETS_H
#define OS_TARGETS_H

#include <bide/meter.h>
#include <bide/target.h>

#include "core/atomic.h"

/* A target of a table, as targets.c keeps it. */
struct os_table_target {
    struct bide_target target;
    uint64_t meter; /* pointer to the meter; 0: not known yet. Written by os_table_target_set_meter and by evictions */
};

static inline struct bide_meter *os_table_target_meter(const struct bide_target *target)
{
    return (struct bide_meter *)(uintptr_t)core_load_acquire(&((const struct os_table_target *)target)->meter);
}

#define OS_TABLE_TARGET_RENAMED UINT64_MAX /* odd: as the version of a target that is being renamed */

/* Stores the meter of the target's name, unless the memory got another name since its version was `version`, or that is
 * RENAMED. */
void os_table_target_set_meter(struct bide_target *target, uint64_t version, struct bide_meter *meter);

/* Returns the version of a target's slot, which changes with its name; RENAMED if it does not have that name (any
 * more): a call may begin after the target that it looked up was evicted. */
uint64_t os_table_target_version(const struct bide_target *target, const char *name);

#endif
