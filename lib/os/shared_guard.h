/* shared_guard.h - table of mapped shared targets and their spares, for the SIGBUS handler of bide_shared_guard.
 *
 * For each file that it maps, shared.c also maps a spare: private memory of the same size that holds a usable target
 * and an empty meter.
 * When an access to the mapping raises SIGBUS because the file was truncated, the handler moves the spare to the
 * address of the mapping with one mremap, so other threads see either the old pages or the new ones. */
#ifndef OS_SHARED_GUARD_H
#define OS_SHARED_GUARD_H

#include <bide/meter.h>
#include <bide/target.h>

/* Of every mapping: the size of a target's file. */
#define OS_GUARDED_SIZE (256u + sizeof(struct bide_target) + sizeof(struct bide_meter))

/* Both were returned by mmap for OS_GUARDED_SIZE bytes. */
struct os_guarded {
    void *map;
    void *spare;
};

/* Adds a mapping; the spare belongs to the table from now on. Returns false after freeing the spare if the table is
 * full: the mapping is then not guarded. */
bool os_guard_add(struct os_guarded guarded);

/* Returns the unused spare of a mapping; NULL if it is already in place, or the mapping is not guarded. */
void *os_guard_spare(const void *map);

/* Removes a mapping, if it is in the table, and frees its unused spare. No other thread may be accessing the
 * mapping. */
void os_guard_remove(const void *map);

#endif
