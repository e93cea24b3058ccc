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

#define MAPS_MAX   256u
#define START_BUSY 1u

struct entry {
    uintptr_t start;
    size_t size;
    void *spare; /* NULL: it was moved to start */
};

static struct entry entries[MAPS_MAX];
static struct sigaction previous_action;

/* ---- the table ---- */

static uintptr_t entry_start(const struct entry *entry)
{
    return __atomic_load_n(&entry->start, __ATOMIC_ACQUIRE);
}

static bool entry_claim(struct entry *entry, uintptr_t from)
{
    return __atomic_compare_exchange_n(&entry->start, &from, START_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool os_guard_add(struct os_guarded guarded)
{
    for (struct entry *entry = entries; entry < entries + MAPS_MAX; entry++) {
        if (entry_start(entry) != 0 || !entry_claim(entry, 0))
            continue;
        entry->size = guarded.size;
        __atomic_store_n(&entry->spare, guarded.spare, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->start, (uintptr_t)guarded.map, __ATOMIC_RELEASE);
        return true;
    }
    munmap(guarded.spare, guarded.size);
    return false;
}

void *os_guard_spare(const void *map)
{
    for (struct entry *entry = entries; entry < entries + MAPS_MAX; entry++)
        if (entry_start(entry) == (uintptr_t)map)
            return __atomic_load_n(&entry->spare, __ATOMIC_RELAXED);
    return NULL;
}

void os_guard_remove(const void *map)
{
    for (struct entry *entry = entries; entry < entries + MAPS_MAX; entry++) {
        if (entry_start(entry) != (uintptr_t)map || !entry_claim(entry, (uintptr_t)map))
            continue;
        void *spare = __atomic_exchange_n(&entry->spare, NULL, __ATOMIC_RELAXED);
        if (spare != NULL)
            munmap(spare, entry->size);
        __atomic_store_n(&entry->start, 0, __ATOMIC_RELEASE);
        return;
    }
}

/* ---- the signal ---- */

/* The place whose map has this address; NULL: none of ours. */
static struct entry *find_entry(uintptr_t address)
{
    for (struct entry *entry = entries; entry < entries + MAPS_MAX; entry++) {
        uintptr_t start = entry_start(entry);
        if (start > START_BUSY && address >= start && address - start < entry->size)
            return entry;
    }
    return NULL;
}

static bool entry_replace_map(struct entry *entry)
{
    void *spare = __atomic_exchange_n(&entry->spare, NULL, __ATOMIC_ACQ_REL);
    if (spare == NULL)
        return true; /* another thread is at it */
    void *start = (void *)entry_start(entry);
    return mremap(spare, entry->size, entry->size, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start;
}

/* With nobody to pass it on to, it kills as it would have: when this handler returns, the signal raised here comes. One
 * that was merely sent may be ignored. */
static void forward_signal(int number, siginfo_t *info, void *context)
{
    static const struct sigaction default_action = {.sa_handler = SIG_DFL};
    if (previous_action.sa_flags & SA_SIGINFO) {
        previous_action.sa_sigaction(number, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(number);
    } else if (previous_action.sa_handler == SIG_DFL || info->si_code > 0) {
        sigaction(SIGBUS, &default_action, NULL);
        raise(SIGBUS);
    }
}

/* BUS_ADRERR: there is no such page in the file. A page that the hardware lost is another matter. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    struct entry *entry = info->si_code == BUS_ADRERR ? find_entry((uintptr_t)info->si_addr) : NULL;
    if (entry == NULL || !entry_replace_map(entry))
        forward_signal(number, info, context);
}

bool bide_shared_guard(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool installed;
    struct sigaction ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    pthread_mutex_lock(&lock);
    if (!installed) /* the one before must be known when the first signal comes */
        installed = sigaction(SIGBUS, NULL, &previous_action) == 0 && sigaction(SIGBUS, &ours, NULL) == 0;
    bool is_installed = installed;
    pthread_mutex_unlock(&lock);
    return is_installed;
}
