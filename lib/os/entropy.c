/* entropy.c - seeds and lane numbers for calls, different in every thread and in every process.
 *
 * Each thread has its own generator (xoshiro256**, Blackman and Vigna), so a draw takes no lock and no system call. The
 * thread's first draw seeds the generator with getrandom.
 *
 * Fork is the hazard: a child that inherits its parent's generator draws the same jitter as the parent and as all its
 * siblings, and a whole pre-fork server retries in step (a thundering herd). Therefore the process keeps an epoch
 * number in a page that the kernel zeroes in every child (MADV_WIPEONFORK). A generator records the epoch in which it
 * was seeded. The child reads epoch 0 from the wiped page, takes a new epoch from `epochs_issued`, and that counter is
 * inherited memory that already counts all epochs of the ancestors: no generator that was copied from an ancestor can
 * match, so the child reseeds before its first draw. The page detects every child that has its own memory, including a
 * raw clone, which pthread_atfork misses. A vfork child shares memory with its suspended parent, page and generator
 * alike: it advances the same generator, and the parent continues from there.
 *
 * Without such a page (kernels before 4.14, some sandboxes) the process id replaces the epoch. That costs a system call
 * per draw, and a child whose process id equals its parent's (in a new PID namespace) is not detected.
 *
 * Without getrandom (very early in boot, or forbidden) the generator is seeded from clocks, process and thread ids and
 * addresses: seeds differ, but are not unpredictable.
 *
 * The page is unmapped when dlclose unloads the library, but not at the end of the process, where other threads may
 * still draw: exit runs handlers of atexit that were registered since the program began before the destructors of a
 * library, dlclose after them.
 *
 * Known weaknesses: a virtual machine that is resumed twice from a snapshot continues twice with the same generator. A
 * task cloned with CLONE_VM but without its own thread-local storage races with its parent for the generator. Neither
 * bide_seed nor bide_lane may be called from a signal handler. */
#include <bide/clock.h>
#include <bide/entropy.h>

#include "core/random.h"
#include "entropy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define OUT_OF_LINE static __attribute__((noinline)) /* called once per thread or process: draws need no frame for it */

struct generator {
    uint64_t epoch; /* 0: not seeded yet */
    uint64_t state[4];
};

static __thread struct generator thread_generator;
static __thread uint64_t thread_lane_epoch; /* 0: no lane yet */
static __thread uint32_t thread_lane;

static uint64_t *epoch_page;   /* NULL: not mapped yet; &no_page: not available */
static uint64_t no_page;       /* always 0 */
static uint64_t epochs_issued; /* ancestors' epochs included, so a child's epoch is new to it */
static uint32_t lanes_issued;
static uint64_t fallback_draws; /* distinguishes threads that seed in the same nanosecond */

static uint64_t rotate_left(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static uint64_t *map_epoch_page(void)
{
    void *page = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return &no_page;
    if (madvise(page, sizeof(uint64_t), MADV_WIPEONFORK) == 0)
        return page;
    munmap(page, sizeof(uint64_t));
    return &no_page;
}

static bool process_exits;

static void note_process_exit(void)
{
    __atomic_store_n(&process_exits, true, __ATOMIC_RELAXED);
}

static pid_t loaded_by;

__attribute__((constructor)) static void epoch_page_note_loader(void)
{
    loaded_by = getpid();
}

/* At the first draw, not when the library is loaded: a handler that is registered before the program begins is run
 * behind the destructors of libraries. But not in a forked child, where atexit may find a lock taken for ever. */
static void epoch_page_watch_exit(void)
{
    if (getpid() != loaded_by || atexit(note_process_exit) != 0)
        note_process_exit(); /* never unmapped, then */
}

__attribute__((destructor)) static void epoch_page_unmap_at_unload(void)
{
    if (!__atomic_load_n(&process_exits, __ATOMIC_RELAXED) && epoch_page != NULL && epoch_page != &no_page)
        munmap(epoch_page, sizeof *epoch_page);
}

/* Maps the page on first use. Several threads may map one at the same time: the compare-and-swap publishes the first
 * thread's page, the other threads see it and unmap their own. */
static uint64_t *process_epoch_page(void)
{
    uint64_t *page = __atomic_load_n(&epoch_page, __ATOMIC_ACQUIRE);
    if (page != NULL)
        return page;
    epoch_page_watch_exit();
    uint64_t *mapped = map_epoch_page();
    if (__atomic_compare_exchange_n(&epoch_page, &page, mapped, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return mapped;
    if (mapped != &no_page)
        munmap(mapped, sizeof *mapped);
    return page;
}

/* Takes a new epoch for this process, unless another thread has. Several threads may find the page empty after a fork:
 * the compare-and-swap lets one number win, and the losers use the winner's.
 *
 * The order matters to a thread that finds the winner's number and forks: its child must inherit a counter that
 * includes that number, or the child would take the same number and keep its parent's generator. The winner counts
 * first and publishes with release; the others load with acquire, so their children inherit the count. */
OUT_OF_LINE uint64_t process_epoch_begin(void)
{
    uint64_t *page = process_epoch_page();
    if (page == &no_page)
        return (uint64_t)getpid();
    uint64_t epoch = __atomic_load_n(page, __ATOMIC_ACQUIRE);
    if (epoch != 0)
        return epoch;
    uint64_t next = __atomic_add_fetch(&epochs_issued, 1, __ATOMIC_RELAXED);
    assert(thread_generator.epoch < next); /* an inherited generator is older than every new epoch */
    if (__atomic_compare_exchange_n(page, &epoch, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return next;
    return epoch; /* another thread stored its number first */
}

/* Returns the epoch of this process, never 0. A generator with the same epoch was seeded by this process, not by an
 * ancestor. Fast path: the page is mapped and has an epoch. */
static inline uint64_t process_epoch(void)
{
    const uint64_t *page = __atomic_load_n(&epoch_page, __ATOMIC_ACQUIRE);
    uint64_t epoch = page != NULL ? __atomic_load_n(page, __ATOMIC_ACQUIRE) : 0;
    return epoch != 0 ? epoch : process_epoch_begin();
}

bool os_fill_random(void *bytes, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = getrandom((char *)bytes + got, size - got, GRND_NONBLOCK);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return false;
    }
    return true;
}

static void fill_from_clocks_and_ids(uint64_t *words, size_t count)
{
    struct timespec wall = {0};
    clock_gettime(CLOCK_REALTIME, &wall);
    const uint64_t sources[] = {
        (uint64_t)bide_now(),
        (uint64_t)wall.tv_sec * (uint64_t)BIDE_S + (uint64_t)wall.tv_nsec,
        (uint64_t)getpid() << 32 ^ (uint64_t)gettid(),
        (uint64_t)(uintptr_t)&thread_generator, /* thread */
        (uint64_t)(uintptr_t)&wall,             /* stack */
        (uint64_t)(uintptr_t)&bide_seed,        /* image */
        __atomic_add_fetch(&fallback_draws, 1, __ATOMIC_RELAXED),
    };
    uint64_t pool = CORE_GOLDEN;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        pool = core_mix(pool + sources[i]) + CORE_GOLDEN;
    for (size_t i = 0; i < count; i++)
        words[i] = core_mix(pool += CORE_GOLDEN);
}

OUT_OF_LINE void generator_seed(struct generator *g, uint64_t epoch)
{
    int saved = errno;
    if (!os_fill_random(g->state, sizeof g->state))
        fill_from_clocks_and_ids(g->state, sizeof g->state / sizeof *g->state);
    if ((g->state[0] | g->state[1] | g->state[2] | g->state[3]) == 0)
        g->state[0] = CORE_GOLDEN; /* xoshiro never leaves the all-zero state */
    g->epoch = epoch;
    errno = saved;
}

static uint64_t generator_next(struct generator *g)
{
    assert((g->state[0] | g->state[1] | g->state[2] | g->state[3]) != 0);
    uint64_t *s = g->state, result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* The two words are different functions of the same state of 256 bits (the scramblers ** and ++), which one step then
 * changes. */
void os_draw_pair(uint64_t *one, uint64_t *other)
{
    struct generator *g = &thread_generator;
    uint64_t epoch = process_epoch();
    if (g->epoch != epoch)
        generator_seed(g, epoch);
    *other = rotate_left(g->state[0] + g->state[3], 23) + g->state[0];
    *one = generator_next(g);
}

uint64_t bide_seed(void)
{
    uint64_t epoch = process_epoch();
    if (thread_generator.epoch != epoch)
        generator_seed(&thread_generator, epoch);
    uint64_t number = generator_next(&thread_generator);
    return number != 0 ? number : CORE_GOLDEN; /* 0 means "no seed" in a request */
}

/* Returns the lane number of this thread. Processes that share a target should also spread over the lanes, so the first
 * number depends on the process id, and on the load address too: in containers every process may have id 1. */
uint32_t bide_lane(void)
{
    uint64_t epoch = process_epoch();
    if (thread_lane_epoch != epoch) {
        uint32_t first = (uint32_t)core_mix((uint64_t)getpid() ^ (uintptr_t)&lanes_issued);
        thread_lane = first + __atomic_add_fetch(&lanes_issued, 1, __ATOMIC_RELAXED);
        thread_lane_epoch = epoch;
    }
    return thread_lane;
}
