/* atomic.h - the few atomic operations of the engine, on plain 64-bit words.
 *
 * Public structs hold no _Atomic, so that C++ can include them and any memory can carry them; the builtins do the rest.
 * Relaxed order is enough for evidence and for words that decide by themselves; what publishes other words (a swapped
 * configuration, the claim to write one) says so with acquire and release.
 *
 * BIDE_INJECT_CAS (test builds) lets these fail on demand, as they do when another thread was faster. */
#ifndef CORE_ATOMIC_H
#define CORE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef BIDE_INJECT_CAS
extern uint32_t core_cas_spared;     /* tests set them: so many compare-and-swaps succeed, ... */
extern uint32_t core_cas_failures;   /* ... then so many fail, */
extern uint32_t core_still_failures; /* and so many looks whether a word is still the same */
#endif

static inline uint64_t core_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void core_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
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

/* On failure *expected holds what was found. */
static inline bool core_cas(uint64_t *word, uint64_t *expected, uint64_t desired)
{
#ifdef BIDE_INJECT_CAS
    if (core_cas_spared > 0) {
        core_cas_spared--;
    } else if (core_cas_failures > 0) {
        core_cas_failures--;
        *expected = core_load(word);
        return false;
    }
#endif
    return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Is it still what was seen before the loads in between? */
static inline bool core_still(const uint64_t *word, uint64_t seen)
{
#ifdef BIDE_INJECT_CAS
    if (core_still_failures > 0) {
        core_still_failures--;
        return false;
    }
#endif
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) == seen;
}

#endif
