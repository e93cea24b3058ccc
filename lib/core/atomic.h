/* atomic.h - the few atomic operations of the engine, on plain 64-bit words.
 *
 * Public structs hold no _Atomic, so that C++ can include them and any memory can carry them; the builtins do the rest.
 * Loads, stores and adds are relaxed: enough for evidence, and for words that decide by themselves. A compare-and-swap
 * acquires and releases; one that fails acquires. Where words are published by another one (a configuration by its
 * generation, a slot of a window by its edge), core_load_acquire and core_store_release say so on the spot.
 *
 * BIDE_INJECT_CAS (test builds) lets these fail on demand, as they do when another thread was faster. */
#ifndef CORE_ATOMIC_H
#define CORE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

_Static_assert(__atomic_always_lock_free(sizeof(uint64_t), 0), "a target needs lock-free 64-bit words");
_Static_assert(_Alignof(struct { uint64_t word; }) == 8, "a target needs its 64-bit words aligned");

#ifdef BIDE_INJECT_CAS
extern uint32_t core_cas_successes;      /* tests set them: so many compare-and-swaps succeed, ... */
extern uint32_t core_cas_failures;       /* ... then so many fail, */
extern uint32_t core_unchanged_failures; /* and so many looks whether a word is still the same */
#endif

static inline uint64_t core_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void core_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static inline uint64_t core_load_acquire(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void core_store_release(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Both return the value after the operation. */
static inline uint64_t core_add(uint64_t *word, uint64_t n)
{
    return __atomic_add_fetch(word, n, __ATOMIC_RELAXED);
}

static inline uint64_t core_sub(uint64_t *word, uint64_t n)
{
    return __atomic_sub_fetch(word, n, __ATOMIC_RELAXED);
}

/* Returns the value before. */
static inline uint64_t core_exchange(uint64_t *word, uint64_t value)
{
    return __atomic_exchange_n(word, value, __ATOMIC_RELAXED);
}

/* On failure *expected holds what was found. */
static inline bool core_cas(uint64_t *word, uint64_t *expected, uint64_t desired)
{
#ifdef BIDE_INJECT_CAS
    if (core_cas_successes > 0) {
        core_cas_successes--;
    } else if (core_cas_failures > 0) {
        core_cas_failures--;
        *expected = core_load_acquire(word);
        return false;
    }
#endif
    return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Is it still what was seen before the loads in between? They must have acquired what was released after it. */
static inline bool core_is_unchanged(const uint64_t *word, uint64_t seen)
{
#ifdef BIDE_INJECT_CAS
    if (core_unchanged_failures > 0) {
        core_unchanged_failures--;
        return false;
    }
#endif
    return core_load(word) == seen;
}

#endif
