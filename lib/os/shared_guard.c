/* guard.c - a shared target whose file is truncated becomes a private one: see guard.h and bide_shared_guard.
 *
 * The maps are in a table of fixed size, since a signal handler can neither allocate nor lock. A place in it is free
 * (start 0), being filled or emptied (start TAKEN), or watched; the start is written last, so the handler sees whole
 * places only. Of several threads that run into the same map one gets the spare and moves it; the others return, touch
 * the memory again and, should it not be there yet, come back here.
 *
 * Known weaknesses: more than MAPS_MOST maps are not watched. A handler that somebody installs later, and that does not
 * pass on what is not its own, takes the guard's place. */
#include <bide/shared.h>

#include "shared_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#define MAPS_MOST 256u
#define TAKEN     1u

struct place {
    uintptr_t start;
    size_t size;
    void *spare; /* NULL: it was moved to start */
};

static struct place places[MAPS_MOST];
static struct sigaction previous;

/* ---- the table ---- */

static uintptr_t start_of(const struct place *place)
{
    return __atomic_load_n(&place->start, __ATOMIC_ACQUIRE);
}

static bool take(struct place *place, uintptr_t from)
{
    return __atomic_compare_exchange_n(&place->start, &from, TAKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool os_guard_watch(struct os_guarded guarded)
{
    for (struct place *place = places; place < places + MAPS_MOST; place++) {
        if (start_of(place) != 0 || !take(place, 0))
            continue;
        place->size = guarded.size;
        __atomic_store_n(&place->spare, guarded.spare, __ATOMIC_RELAXED);
        __atomic_store_n(&place->start, (uintptr_t)guarded.map, __ATOMIC_RELEASE);
        return true;
    }
    munmap(guarded.spare, guarded.size);
    return false;
}

void *os_guard_spare(const void *map)
{
    for (struct place *place = places; place < places + MAPS_MOST; place++)
        if (start_of(place) == (uintptr_t)map)
            return __atomic_load_n(&place->spare, __ATOMIC_RELAXED);
    return NULL;
}

void os_guard_forget(const void *map)
{
    for (struct place *place = places; place < places + MAPS_MOST; place++) {
        if (start_of(place) != (uintptr_t)map || !take(place, (uintptr_t)map))
            continue;
        void *spare = __atomic_exchange_n(&place->spare, NULL, __ATOMIC_RELAXED);
        if (spare != NULL)
            munmap(spare, place->size);
        __atomic_store_n(&place->start, 0, __ATOMIC_RELEASE);
        return;
    }
}

/* ---- the signal ---- */

/* The place whose map has this address; NULL: none of ours. */
static struct place *place_of(uintptr_t address)
{
    for (struct place *place = places; place < places + MAPS_MOST; place++) {
        uintptr_t start = start_of(place);
        if (start > TAKEN && address >= start && address - start < place->size)
            return place;
    }
    return NULL;
}

static bool replace(struct place *place)
{
    void *spare = __atomic_exchange_n(&place->spare, NULL, __ATOMIC_ACQ_REL);
    if (spare == NULL)
        return true; /* another thread is at it */
    void *start = (void *)start_of(place);
    return mremap(spare, place->size, place->size, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start;
}

/* With nobody to pass it on to, it kills as it would have: when this handler returns, the signal raised here comes. One
 * that was merely sent may be ignored. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    static const struct sigaction by_default = {.sa_handler = SIG_DFL};
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    } else if (previous.sa_handler == SIG_DFL || info->si_code > 0) {
        sigaction(SIGBUS, &by_default, NULL);
        raise(SIGBUS);
    }
}

/* BUS_ADRERR: there is no such page in the file. A page that the hardware lost is another matter. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    struct place *place = info->si_code == BUS_ADRERR ? place_of((uintptr_t)info->si_addr) : NULL;
    if (place == NULL || !replace(place))
        pass_on(number, info, context);
}

bool bide_shared_guard(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool installed;
    struct sigaction ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    pthread_mutex_lock(&lock);
    if (!installed) /* the one before must be known when the first signal comes */
        installed = sigaction(SIGBUS, NULL, &previous) == 0 && sigaction(SIGBUS, &ours, NULL) == 0;
    bool done = installed;
    pthread_mutex_unlock(&lock);
    return done;
}
