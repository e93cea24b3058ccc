/* atomic.h - the atomic operations of the engine, on plain 64-bit words.
 *
 * Public structs hold no _Atomic, so that C++ can include them and any memory (stack, heap, shared mapping) can hold
 * them; the compiler's __atomic builtins do the rest. Loads, stores, adds and exchanges are relaxed: enough for
 * evidence counters, and for a word that decides alone. A compare-and-swap (CAS) that succeeds acquires and releases; a
 * failed CAS acquires. Where a word publishes others (the generation publishes a configuration, edge_ns publishes a
 * window slot), the code uses core_load_acquire and core_store_release.
 *
 * BIDE_INJECT_CAS (test builds) makes CAS and re-checks fail on demand, as they do when another thread is faster. */
#ifndef CORE_ATOMIC_H
#define CORE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

_Static_assert(__atomic_always_lock_free(sizeof(uint64_t), 0), "a target needs lock-free 64-bit words");
_Static_assert(_Alignof(struct { uint64_t word; }) == 8, "a target needs its 64-bit words aligned");

#ifdef BIDE_INJECT_CAS
extern uint32_t core_cas_successes;                                /* set by tests: this many CAS succeed, ... */
extern uint32_t core_cas_failures;                                 /* ... then this many fail */
extern uint32_t core_unchanged_successes, core_unchanged_failures; /* the same for calls of core_is_unchanged */

/* Set by tests: acts as another thread does just before a CAS of this word. Called once; it may set itself again. */
extern void (*core_before_cas)(uint64_t *word);

static inline void core_act_before_cas(uint64_t *word)
{
    void (*act)(uint64_t *) = core_before_cas;
    if (!act)
        return;
    core_before_cas = 0;
    act(word);
}
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

/* Returns the value after the addition. */
static inline uint64_t core_add(uint64_t *word, uint64_t n)
{
    return __atomic_add_fetch(word, n, __ATOMIC_RELAXED);
}

/* Stores `value` and returns the value that it replaced. */
static inline uint64_t core_exchange(uint64_t *word, uint64_t value)
{
    return __atomic_exchange_n(word, value, __ATOMIC_RELAXED);
}

/* Compare-and-swap. On failure *expected receives the value found in the word. */
static inline bool core_cas(uint64_t *word, uint64_t *expected, uint64_t desired)
{
#ifdef BIDE_INJECT_CAS
    core_act_before_cas(word);
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

/* Stores at_ns if it is later than the stored instant. If two threads do so at once, the later instant stands. */
static inline void core_raise(uint64_t *word, int64_t at_ns)
{
    uint64_t seen = core_load(word);
    while ((int64_t)seen < at_ns)
        if (core_cas(word, &seen, (uint64_t)at_ns))
            return;
}

/* Returns true if the word still equals `seen`, which the caller loaded before a series of other loads. The writer
 * changes this word first and the data afterwards, with release stores; the loads in between must be acquire loads.
 * Then a load that returned new data makes the change of this word visible here. */
static inline bool core_is_unchanged(const uint64_t *word, uint64_t seen)
{
#ifdef BIDE_INJECT_CAS
    if (core_unchanged_successes > 0) {
        core_unchanged_successes--;
    } else if (core_unchanged_failures > 0) {
        core_unchanged_failures--;
        return false;
    }
#endif
    return core_load(word) == seen;
}

#endif
