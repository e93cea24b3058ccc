/* entropy.h - bytes of the kernel's random number generator. */
#ifndef OS_ENTROPY_H
#define OS_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills the bytes by getrandom. Returns false and sets errno if it has none: it does not wait for them, because a call
 * has a deadline and the kernel may lack entropy for long early in boot. */
bool os_fill_random(void *bytes, size_t size);

/* Draws two words, as bide_seed draws one and at about the same cost. */
void os_draw_pair(uint64_t *one, uint64_t *other);

#endif
