/* targets.c - table of the targets of a process, by name, bounded in size.
 *
 * Three parts. SLOTS hold a target and its name; they are allocated in chunks as names arrive and never move, so a
 * target pointer stays valid. The DIRECTORY is an open-addressing hash table, at most half full, that maps a name's
 * hash to its slot by linear probing; a cell is one 64-bit word with 32 bits of the hash and the slot number. The LOCK
 * protects all changes to names and cells.
 *
 * Look-ups take no lock; the race is with a writer that holds it. The reader probes the cells and accepts a slot only
 * if the slot has the requested name and the slot's version was even and equal before and after reading the name (a
 * seqlock): the writer makes the version odd before it changes the name and even again afterwards, so a reader that
 * loads any word of the new name sees an odd or a different version and rejects the slot. A reader that loads only the
 * old name may accept it while the slot is being evicted, as if the look-up had come before the eviction (see the first
 * weakness). A reader may miss a name that is in the table, because a removal shifts cells under the probe, or because
 * an eviction that fails makes the version odd for a moment. Therefore a miss without the lock means nothing: the
 * look-up is repeated under the lock, where cells and names do not change.
 *
 * A full table evicts with the clock algorithm: a hand moves round the slots. A target with state worth keeping is
 * skipped. An evictable target that was used since the hand last passed loses its reference bit and is skipped too, as
 * long as the scan finds a better candidate. Each insertion earns SCAN_CREDIT_PER_INSERT slots to examine, unused
 * credit is kept up to SCAN_CREDIT_MAX, and the next insertion continues where the last insertion stopped: the cost per
 * name is constant for ten million names even when nothing can be evicted, and an evictable target is found after at
 * most capacity / SCAN_CREDIT_PER_INSERT insertions, mostly at once. Until then new names share the overflow target,
 * which never occupies a slot.
 *
 * Known weaknesses. Between look-up and bide_call_begin a target may be evicted and given to another name; the call
 * then runs on that name's gates. If callers look the target up for every call, that takes an insertion whose scan
 * passes the slot in that instant; the look-up of a known name has set the reference bit, so such a scan must also have
 * found no better candidate. A name that is served by the overflow target takes the lock at each look-up. The lock is
 * not restored by fork: the child of a process with several threads may find it locked for ever. */
#include <bide/entropy.h>
#include <bide/request.h>
#include <bide/targets.h>

#include "core/gates.h"
#include "core/problem.h"
#include "core/random.h"
#include "memory.h"
#include "targets.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX            1000000u
#define CHUNK_SLOTS            32u
#define SCAN_CREDIT_PER_INSERT 16u
#define SCAN_CREDIT_MAX        16384u /* about a millisecond */
#define CONFIGURE_TRIES_MAX    1000u  /* while another thread is configuring the same target */
#define NAME_WORDS             ((BIDE_TARGET_NAME_MAX + 1) / sizeof(uint64_t))

/* A name as 64-bit words, padded with zeros, so that a reader can load whole words while a writer may be changing
 * them. */
struct name_key {
    uint64_t word[NAME_WORDS];
    size_t words; /* with the name and at least one zero byte after it */
    uint32_t tag; /* of the name; its low bits are the first cell of the probe */
};

struct slot {
    struct os_table_target table_target;
    uint64_t name[NAME_WORDS];
    uint64_t version;    /* odd: the name is changing */
    uint32_t tag;        /* protected by the lock */
    uint32_t referenced; /* reference bit: used since the hand passed */
};

struct bide_targets {
    struct os_table_target overflow;  /* never has a meter: it serves several names */
    struct bide_target_config config; /* for new targets; protected by the lock */
    bool overflow_ready;              /* protected by the lock */
    pthread_mutex_t lock;
    struct slot **chunk; /* NULL: not allocated yet */
    uint64_t *cell;      /* 0: empty; else tag << 32 | slot + 1 */
    uint32_t cell_mask;
    uint32_t capacity;
    uint32_t hand;
    uint32_t scan_credit; /* slots that the hand may examine */
    uint32_t held;
    uint64_t hash_key; /* secret, against names chosen to collide */
    uint64_t evicted;
    uint64_t overflowed;
};

/* Hashes the name, word by word, from a secret start: without the key an attacker cannot choose names that collide. */
static uint32_t name_hash(const struct name_key *name, uint64_t key)
{
    for (size_t i = 0; i < name->words; i++)
        key = core_mix(key ^ name->word[i]);
    return (uint32_t)key;
}

/* Sets the words of a key, not its tag. */
static bool name_key_set(struct name_key *name, const char *text)
{
    size_t length = text != NULL ? strnlen(text, BIDE_TARGET_NAME_MAX + 1) : 0;
    if (length == 0 || length > BIDE_TARGET_NAME_MAX)
        return false;
    name->words = length / sizeof(uint64_t) + 1;
    memset(name->word, 0, name->words * sizeof(uint64_t));
    memcpy(name->word, text, length);
    return true;
}

static bool name_key_init(struct name_key *name, const struct bide_targets *table, const char *text)
{
    if (!name_key_set(name, text))
        return false;
    name->tag = name_hash(name, table->hash_key);
    return true;
}

enum bide_err bide_targets_name_check(const char *name, struct bide_problem *problem)
{
    size_t length = name != NULL ? strnlen(name, BIDE_TARGET_NAME_MAX + 1) : 0;
    if (length == 0 || length > BIDE_TARGET_NAME_MAX)
        return core_problem_set(problem, "name", (int64_t)length, "1 to 127 bytes (the value is the length)");
    for (; *name != 0; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f)
            return core_problem_set(problem, "name", (unsigned char)*name,
                                    "without control characters (the value is the first of them)");
    return BIDE_OK;
}

/* Returns NULL if the chunk is not allocated. */
static struct slot *slot_at(const struct bide_targets *table, uint32_t number)
{
    struct slot *chunk = __atomic_load_n(&table->chunk[number / CHUNK_SLOTS], __ATOMIC_ACQUIRE);
    return chunk != NULL ? &chunk[number % CHUNK_SLOTS] : NULL;
}

/* Compares without the lock, against a writer that goes "version odd, name words, version even". Three cases. The first
 * load of the version returns the new even one: it is an acquire load and pairs with slot_end_change, so all words are
 * new. It returns the old one and a word is new: the acquire load of that word pairs with the writer's release store of
 * it, so the second load of the version returns the odd one or a later one, and the comparison fails. It returns the
 * old one and all words are old: the result is that of a look-up before the change. */
static bool slot_has_name(const struct slot *slot, const struct name_key *name)
{
    uint64_t version = __atomic_load_n(&slot->version, __ATOMIC_ACQUIRE);
    uint64_t differs = version & 1;
    for (size_t i = 0; i < name->words && differs == 0; i++)
        differs = __atomic_load_n(&slot->name[i], __ATOMIC_ACQUIRE) ^ name->word[i];
    return differs == 0 && __atomic_load_n(&slot->version, __ATOMIC_RELAXED) == version;
}

/* Makes the version odd: a reader that loads it rejects the slot. A reader that has already loaded the even version may
 * still accept the old name, until it loads a word of the new name. The store is relaxed; the release stores of the
 * name words order it before them. */
static void slot_begin_change(struct slot *slot)
{
    assert(slot->version % 2 == 0);
    __atomic_store_n(&slot->version, slot->version + 1, __ATOMIC_RELAXED);
}

static void slot_end_change(struct slot *slot)
{
    assert(slot->version % 2 == 1);
    __atomic_store_n(&slot->version, slot->version + 1, __ATOMIC_RELEASE);
}

static void slot_set_name(struct slot *slot, const struct name_key *name)
{
    assert(slot->version % 2 == 1 && name->words <= NAME_WORDS);
    slot->tag = name->tag;
    for (size_t i = 0; i < name->words; i++)
        __atomic_store_n(&slot->name[i], name->word[i], __ATOMIC_RELEASE);
}

/* NULL means "not seen" without the lock, and "not in the table" with it. */
static struct slot *table_probe(const struct bide_targets *table, const struct name_key *name)
{
    for (uint32_t i = 0; i <= table->cell_mask; i++) {
        uint64_t cell = __atomic_load_n(&table->cell[(name->tag + i) & table->cell_mask], __ATOMIC_ACQUIRE);
        if (cell == 0)
            return NULL;
        struct slot *slot = cell >> 32 == name->tag ? slot_at(table, (uint32_t)cell - 1) : NULL;
        if (slot != NULL && slot_has_name(slot, name))
            return slot;
    }
    return NULL;
}

static struct bide_target *slot_use(struct slot *slot)
{
    /* The bit is mostly set already: avoid writing to a shared cache line. */
    if (__atomic_load_n(&slot->referenced, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&slot->referenced, 1, __ATOMIC_RELAXED);
    return &slot->table_target.target;
}

/* -- Under the lock ------------------------------------------------------------------------------------------------ */

static void cell_set(struct bide_targets *table, uint32_t at, uint64_t cell)
{
    __atomic_store_n(&table->cell[at], cell, __ATOMIC_RELEASE);
}

static void cell_add(struct bide_targets *table, uint32_t tag, uint32_t number)
{
    uint32_t at = tag & table->cell_mask;
    assert(number < table->held && table->held <= table->cell_mask / 2 + 1); /* half full at most: the search ends */
    while (table->cell[at] != 0)
        at = (at + 1) & table->cell_mask;
    cell_set(table, at, (uint64_t)tag << 32 | (number + 1));
}

/* Removes by backward shift: each cell behind the gap whose probe would stop at the gap moves into it. A concurrent
 * reader may miss such a cell or see it twice; a miss is repeated under the lock. */
static void cell_remove(struct bide_targets *table, uint32_t tag, uint32_t number)
{
    uint32_t mask = table->cell_mask, gap = tag & mask;
    while ((uint32_t)table->cell[gap] != number + 1) {
        assert(table->cell[gap] != 0); /* every slot in use has its cell on the path of its tag */
        gap = (gap + 1) & mask;
    }
    for (uint32_t at = (gap + 1) & mask; table->cell[at] != 0; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)(table->cell[at] >> 32) & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* its probe begins behind the gap */
        cell_set(table, gap, table->cell[at]);
        gap = at;
    }
    cell_set(table, gap, 0);
}

/* Returns the next slot that was never used; NULL if all are in use, or there is no memory for more. */
static struct slot *table_unused_slot(struct bide_targets *table)
{
    if (table->held == table->capacity)
        return NULL;
    struct slot **chunk = &table->chunk[table->held / CHUNK_SLOTS];
    if (*chunk == NULL) {
        uint32_t left = table->capacity - table->held;
        struct slot *made = os_memory_lines(left < CHUNK_SLOTS ? left : CHUNK_SLOTS, sizeof(struct slot));
        if (made == NULL)
            return NULL;
        __atomic_store_n(chunk, made, __ATOMIC_RELEASE);
    }
    return slot_at(table, table->held);
}

/* Advances the clock hand, clears the reference bits that it passes, and stops when the scan credit is used up. Returns
 * the number of an evictable slot that was not used since the hand last passed, or else of the first evictable slot;
 * `held` if the scan found none. */
static uint32_t clock_scan(struct bide_targets *table, int64_t now_ns)
{
    uint32_t found = table->held;
    for (uint32_t i = 0; i < table->held && table->scan_credit > 0; i++, table->scan_credit--) {
        uint32_t number = table->hand;
        struct slot *slot = slot_at(table, number);
        assert(slot != NULL && number < table->held);
        table->hand = number + 1 < table->held ? number + 1 : 0;
        uint32_t referenced = __atomic_exchange_n(&slot->referenced, 0, __ATOMIC_RELAXED);
        if (!core_target_is_evictable(&slot->table_target.target, now_ns))
            continue;
        if (referenced == 0)
            return number;
        found = found < table->held ? found : number;
    }
    return found;
}

/* Evicts the name and resets the target; the caller then sets the new name and ends the change. Returns false, with
 * name and target unchanged, if since the scan a call acquired a permit of the target or a lease began, or if another
 * thread is configuring the target (core_target_reuse). A charge to the budget that a call in flight makes in the
 * nanoseconds between the check and the reuse is lost with the old owner. */
static bool slot_evict(struct bide_targets *table, struct slot *slot, uint32_t number, int64_t now_ns)
{
    slot_begin_change(slot);
    if (core_target_reuse(&slot->table_target.target, &table->config, now_ns, NULL) != BIDE_OK) {
        slot_end_change(slot);
        return false;
    }
    core_store(&slot->table_target.meter, 0);
    cell_remove(table, slot->tag, number);
    __atomic_add_fetch(&table->evicted, 1, __ATOMIC_RELAXED);
    return true;
}

/* Initialises the target of a slot that was never used; the caller then sets the name and ends the change. */
static void slot_occupy(struct bide_targets *table, struct slot *slot, int64_t now_ns)
{
    slot_begin_change(slot);
    bide_target_init(&slot->table_target.target, &table->config, now_ns, NULL);
    __atomic_add_fetch(&table->held, 1, __ATOMIC_RELAXED);
}

/* The race is with an eviction, which forgets the meter while the version is odd: whoever stores a meter that was found
 * before the eviction finds another version afterwards and takes it back, unless the meter of the new name is there
 * already. A call of the new name that begins in between is counted by the old meter: see the first weakness. */
void os_table_target_set_meter(struct bide_target *target, uint64_t version, struct bide_meter *meter)
{
    struct slot *slot = (struct slot *)target;
    assert((core_load(&target->identity) & CORE_OVERFLOW) == 0);
    uint64_t none = 0, ours = (uintptr_t)meter, *cell = &slot->table_target.meter;
    if ((version & 1) != 0 || /* renamed, or being renamed */
        !__atomic_compare_exchange_n(cell, &none, ours, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    if (__atomic_load_n(&slot->version, __ATOMIC_SEQ_CST) != version)
        core_cas(cell, &ours, 0);
}

/* If the name is there only under a later version than that which was loaded, os_table_target_set_meter sees it. */
uint64_t os_table_target_version(const struct bide_target *target, const char *name)
{
    const struct slot *slot = (const struct slot *)target;
    uint64_t version = __atomic_load_n(&slot->version, __ATOMIC_ACQUIRE);
    struct name_key key;
    return name_key_set(&key, name) && slot_has_name(slot, &key) ? version : OS_TABLE_TARGET_RENAMED;
}

/* Initialises the overflow target when it is first needed, because only then the time is known: its budget refills from
 * that instant. */
static struct bide_target *table_overflow(struct bide_targets *table, int64_t now_ns)
{
    if (!table->overflow_ready) {
        bide_target_init(&table->overflow.target, &table->config, now_ns, NULL);
        table->overflow.target.identity |= CORE_OVERFLOW;
    }
    table->overflow_ready = true;
    __atomic_add_fetch(&table->overflowed, 1, __ATOMIC_RELAXED);
    return &table->overflow.target;
}

static struct bide_target *table_insert(struct bide_targets *table, const struct name_key *name, int64_t now_ns)
{
    uint32_t number = table->held;
    struct slot *slot = table_unused_slot(table);
    table->scan_credit = table->scan_credit < SCAN_CREDIT_MAX - SCAN_CREDIT_PER_INSERT
                             ? table->scan_credit + SCAN_CREDIT_PER_INSERT
                             : SCAN_CREDIT_MAX;
    if (slot != NULL) {
        slot_occupy(table, slot, now_ns);
    } else {
        number = clock_scan(table, now_ns);
        slot = number < table->held ? slot_at(table, number) : NULL;
        if (slot == NULL || !slot_evict(table, slot, number, now_ns))
            return table_overflow(table, now_ns);
    }
    assert(table->held <= table->capacity && table->scan_credit <= SCAN_CREDIT_MAX);
    slot_set_name(slot, name);
    slot_end_change(slot);
    cell_add(table, name->tag, number); /* last: a reader that loads the cell sees the name and its even version */
    return &slot->table_target.target; /* reference bit not set: a name used once is evicted before a name used twice */
}

/* -- The table ----------------------------------------------------------------------------------------------------- */

static enum bide_err table_check_capacity(size_t capacity, struct bide_problem *problem)
{
    if (capacity >= 1 && capacity <= TARGETS_MAX)
        return BIDE_OK;
    return core_problem_set(problem, "most", capacity > INT64_MAX ? INT64_MAX : (int64_t)capacity,
                            "1 to 1000000 targets");
}

/* Allocates at least twice as many cells as slots, so that probes are short and always end. On failure the caller
 * frees. */
static enum bide_err table_allocate(struct bide_targets **table, uint32_t capacity)
{
    uint32_t cells = 2;
    while (cells < capacity * 2)
        cells *= 2;
    struct bide_targets *made = *table = os_memory_lines(1, sizeof *made);
    if (made == NULL)
        return BIDE_ERR_NOMEM;
    pthread_mutex_init(&made->lock, NULL);
    made->capacity = capacity;
    made->cell_mask = cells - 1;
    made->cell = os_memory(cells, sizeof *made->cell);
    made->chunk = os_memory((capacity + CHUNK_SLOTS - 1) / CHUNK_SLOTS, sizeof *made->chunk);
    return made->cell != NULL && made->chunk != NULL ? BIDE_OK : BIDE_ERR_NOMEM;
}

enum bide_err bide_targets_new(struct bide_targets **table, size_t capacity, const struct bide_target_config *config,
                               struct bide_problem *problem)
{
    struct bide_targets *made = NULL;
    struct bide_target_config service;
    enum bide_err err;
    *table = NULL;
    if (config == NULL) {
        bide_target_config_init(&service, BIDE_PRESET_SERVICE);
        config = &service;
    }
    if ((err = table_check_capacity(capacity, problem)) != BIDE_OK ||
        (err = bide_target_config_check(config, problem)) != BIDE_OK)
        goto out;
    if ((err = table_allocate(&made, (uint32_t)capacity)) != BIDE_OK) {
        core_problem_set_text(problem, err, "out of memory");
        goto out;
    }
    made->hash_key = bide_seed();
    made->config = *config;
    *table = made;
    made = NULL;
out:
    bide_targets_free(made);
    return err;
}

void bide_targets_free(struct bide_targets *table)
{
    if (table == NULL)
        return;
    for (uint32_t i = 0; table->chunk != NULL && i < table->capacity; i += CHUNK_SLOTS)
        free(table->chunk[i / CHUNK_SLOTS]);
    pthread_mutex_destroy(&table->lock);
    free(table->chunk);
    free(table->cell);
    free(table);
}

/* Called after a miss without the lock. `name` is NULL if the text is not a valid name. */
static struct bide_target *table_get_locked(struct bide_targets *table, const struct name_key *name, int64_t now_ns)
{
    struct slot *slot = name != NULL ? table_probe(table, name) : NULL;
    if (slot != NULL)
        return slot_use(slot);
    return name != NULL ? table_insert(table, name, now_ns) : table_overflow(table, now_ns);
}

struct bide_target *bide_targets_get(struct bide_targets *table, const char *name, int64_t now_ns)
{
    struct name_key key, *known = name_key_init(&key, table, name) ? &key : NULL;
    struct slot *slot = known != NULL ? table_probe(table, known) : NULL;
    if (slot != NULL)
        return slot_use(slot);
    if (bide_targets_name_check(name, NULL) != BIDE_OK) /* checked late: an invalid name is in no table */
        known = NULL;
    pthread_mutex_lock(&table->lock);
    struct bide_target *target = table_get_locked(table, known, now_ns);
    pthread_mutex_unlock(&table->lock);
    return target;
}

struct bide_target *bide_targets_find(struct bide_targets *table, const char *name)
{
    struct name_key key;
    if (!name_key_init(&key, table, name))
        return NULL;
    struct slot *slot = table_probe(table, &key);
    if (slot == NULL) {
        pthread_mutex_lock(&table->lock);
        slot = table_probe(table, &key);
        pthread_mutex_unlock(&table->lock);
    }
    return slot != NULL ? slot_use(slot) : NULL;
}

/* Retries, up to CONFIGURE_TRIES_MAX times, while another thread is configuring the same target, which takes
 * microseconds. */
static enum bide_err target_configure(struct bide_target *target, const struct bide_target_config *config,
                                      int64_t now_ns, struct bide_problem *problem)
{
    enum bide_err err = bide_target_configure(target, config, now_ns, problem);
    for (uint32_t tries = 1; err == BIDE_ERR_BUSY && tries < CONFIGURE_TRIES_MAX; tries++) {
        sched_yield();
        err = bide_target_configure(target, config, now_ns, problem);
    }
    return err;
}

/* A target that stays busy is reported with BIDE_ERR_BUSY, but the others get the new configuration; callers repeat the
 * call. */
enum bide_err bide_targets_configure(struct bide_targets *table, const struct bide_target_config *config,
                                     int64_t now_ns, struct bide_problem *problem)
{
    enum bide_err err = bide_target_config_check(config, problem);
    if (err != BIDE_OK)
        return err;
    pthread_mutex_lock(&table->lock);
    table->config = *config;
    if (table->overflow_ready)
        err = target_configure(&table->overflow.target, config, now_ns, problem);
    for (uint32_t i = 0; i < table->held; i++) {
        bool first = err == BIDE_OK; /* error, if there is one: it is returned */
        enum bide_err one =
            target_configure(&slot_at(table, i)->table_target.target, config, now_ns, first ? problem : NULL);
        err = first ? one : err;
    }
    pthread_mutex_unlock(&table->lock);
    return err;
}

struct bide_targets_view bide_targets_view_get(struct bide_targets *table)
{
    return (struct bide_targets_view){
        .held = __atomic_load_n(&table->held, __ATOMIC_RELAXED),
        .evicted = __atomic_load_n(&table->evicted, __ATOMIC_RELAXED),
        .overflowed = __atomic_load_n(&table->overflowed, __ATOMIC_RELAXED),
    };
}
