/* guard.h - the maps of shared targets, and what takes their place when a file is truncated. See bide_shared_guard.
 *
 * Whoever maps a file here also makes a spare: memory of the process's own, of the same size, filled so that it can be
 * used at once. When a touch of the map raises SIGBUS the spare is moved to where the map was, in one step: other
 * threads see either the one or the other. */
#ifndef OS_GUARD_H
#define OS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Pages; both of them `size` bytes. */
struct os_guarded {
    void *map;
    void *spare;
    size_t size;
};

/* From now on the spare belongs to the guard. False: too many are watched already, and this one is not. */
bool os_guard_add(struct os_guarded guarded);

/* The spare that waits for a map; NULL: it is there already, or none is watched. */
void *os_guard_spare(const void *map);

/* Ends the watch over a map, if there is one, and frees its spare. Nobody may be touching the map. */
void os_guard_remove(const void *map);

#endif
