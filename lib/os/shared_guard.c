/* shared_guard.c - SIGBUS handler that replaces a truncated shared target by private memory: see shared_guard.h and
 * bide_shared_guard.
 *
 * A signal handler can neither allocate nor lock, so the mappings are in a table of fixed size. The `start` of an entry
 * is 0 (free), START_BUSY (a thread is filling or emptying it) or the address of a guarded mapping. Threads claim an
 * entry by compare-and-swap of `start` to START_BUSY; a thread that adds a mapping then writes `spare` and stores
 * `start` last, with release, so the handler, which loads `start` with acquire, sees complete entries only. All
 * mappings have one size: an entry that stored its own could be given to another mapping between a handler's loads of
 * `start` and of the size, and match an address of neither.
 *
 * A removal cannot race with a handler for the same mapping: no thread may be accessing it any more. A handler for
 * another mapping does not match the entry, because its address is outside. The entry is emptied before the mapping is
 * unmapped, so a later mapping at the same address finds only its own entry.
 *
 * Several threads may raise SIGBUS on the same mapping. Each exchanges the entry's `spare` with NULL: exactly one
 * thread gets the pointer and moves the pages. The others return from the handler and repeat their access; if the pages
 * are not there yet, the access faults again and enters the handler again, until the first thread's mremap is done.
 *
 * Known weaknesses: mappings beyond MAPS_MAX are not guarded. A SIGBUS handler that is installed later and does not
 * forward signals of other owners disables the guard. */
#include <bide/shared.h>

#include "shared_guard.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#define MAPS_MAX   256u
#define START_BUSY 1u

struct entry {
    uintptr_t start;
    void *spare; /* NULL: moved to `start`, or being moved */
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
    assert((uintptr_t)guarded.map > START_BUSY && guarded.spare != NULL && guarded.spare != guarded.map);
    for (struct entry *entry = entries; entry < entries + MAPS_MAX; entry++) {
        if (entry_start(entry) != 0 || !entry_claim(entry, 0))
            continue;
        assert(__atomic_load_n(&entry->spare, __ATOMIC_RELAXED) == NULL); /* a free entry owns nothing */
        __atomic_store_n(&entry->spare, guarded.spare, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->start, (uintptr_t)guarded.map, __ATOMIC_RELEASE);
        return true;
    }
    munmap(guarded.spare, OS_GUARDED_SIZE);
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
            munmap(spare, OS_GUARDED_SIZE);
        __atomic_store_n(&entry->start, 0, __ATOMIC_RELEASE);
        return;
    }
}

/* ---- the signal ---- */

/* Returns the entry of the mapping that contains this address, or NULL. */
static struct entry *find_entry(uintptr_t address)
{
    for (struct entry *entry = entries; entry < entries + MAPS_MAX; entry++) {
        uintptr_t start = entry_start(entry);
        if (start > START_BUSY && address >= start && address - start < OS_GUARDED_SIZE)
            return entry;
    }
    return NULL;
}

/* Moves the spare to the address of the mapping. Returns false if the kernel refused. */
static bool entry_replace_map(struct entry *entry)
{
    void *spare = __atomic_exchange_n(&entry->spare, NULL, __ATOMIC_ACQ_REL);
    if (spare == NULL)
        return true; /* another thread took the spare and is moving it */
    void *start = (void *)entry_start(entry);
    return mremap(spare, OS_GUARDED_SIZE, OS_GUARDED_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start;
}

/* Forwards the signal to the previous handler. If there was none, restores the default action and raises SIGBUS again:
 * it is blocked until this handler returns and then kills the process, as it would have without the guard. If the
 * previous action was SIG_IGN, a signal sent by kill() (si_code <= 0) is ignored, while a real fault still kills. */
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

/* Handles only BUS_ADRERR: an access beyond the end of the file. Hardware memory errors have other codes. */
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
    if (!installed) /* `previous_action` must be set before our handler can run */
        installed = sigaction(SIGBUS, NULL, &previous_action) == 0 && sigaction(SIGBUS, &ours, NULL) == 0;
    bool is_installed = installed;
    pthread_mutex_unlock(&lock);
    return is_installed;
}
