/* targets.c - the targets of one process, by name, in a bounded table.
 *
 * Three parts. SLOTS hold a target and its name; they are allocated in chunks as names come and never move, so a target
 * pointer stays valid. The DIRECTORY is an array of cells, at most half of them in use, that leads from a name's hash
 * to its slot by linear probing; a cell is one 64-bit word with 32 bits of the hash and the slot's number. The LOCK is
 * for whoever changes either.
 *
 * A look-up takes no lock. It probes the cells, and believes what it finds only if the slot's name is the one asked for
 * and the slot's version was even and the same before and after the name was read: a slot that is being given to
 * another name is odd. What it does not find may still be there, since a removal shifts cells under the reader. So a
 * miss is never believed: it is asked again under the lock, where the answer is certain.
 *
 * When the table is full, a hand goes round the slots as in a clock cache. A target with something to remember is
 * passed over. A blank one that was asked for since the hand last came by loses its mark and is passed over too, as
 * long as a better one is in reach. Each insertion earns SCAN_EARNED slots to look at, unused ones are saved up to
 * SCAN_SAVED, and the next insertion goes on where this one stopped: ten million names cost the same each even when
 * nothing can go, and a target that can go is found after most / SCAN_EARNED insertions at the latest, mostly at once.
 * Until then new names share the overflow target, which never belongs to a slot.
 *
 * Known weaknesses. Between look-up and bide_call_begin a target may be given to another name, and the call then runs
 * on that name's gates; ask for the target anew for every call, and the hand has to come round in that instant for it.
 * A name that lives in the overflow target takes the lock at each look-up. The lock is not restored by fork: a child of
 * a process with several threads may find it held for ever. */
#include <bide/entropy.h>
#include <bide/request.h>
#include <bide/targets.h>

#include "core/random.h"
#include "memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX            1000000u
#define CHUNK_SLOTS            32u
#define SCAN_CREDIT_PER_INSERT 16u
#define SCAN_CREDIT_MAX        16384u /* about a millisecond */
#define CONFIGURE_TRIES_MAX    1000u  /* tries to configure one target that somebody else is configuring */
#define NAME_WORDS             ((BIDE_TARGET_NAME_MAX + 1) / sizeof(uint64_t))

/* A name as words, padded with zeros, so that a reader can load it whole words at a time while it may be changing. */
struct name_key {
    uint64_t word[NAME_WORDS];
    size_t words; /* that hold the name and at least one zero byte after it */
    uint32_t tag; /* of its hash: its low bits are where the probe begins */
};

struct slot {
    struct bide_target target;
    uint64_t name[NAME_WORDS];
    uint64_t version;    /* odd: the name is changing */
    uint32_t tag;        /* under the lock */
    uint32_t referenced; /* asked for since the hand came by */
};

struct bide_targets {
    struct bide_target overflow;
    struct bide_target_config config; /* of targets made from now on; under the lock */
    bool overflow_ready;              /* under the lock */
    pthread_mutex_t lock;
    struct slot **chunk; /* NULL: not allocated yet */
    uint64_t *cell;      /* 0: empty; else tag << 32 | slot + 1 */
    uint32_t cell_mask;
    uint32_t capacity;
    uint32_t hand;
    uint32_t scan_credit; /* slots that the hand may look at, saved up */
    uint32_t held;
    uint64_t hash_key; /* secret, so that nobody can choose names that all begin at one cell */
    uint64_t evicted;
    uint64_t overflowed;
};

/* Word by word into a secret start: who does not know the key cannot choose names that meet. */
static uint32_t name_hash(const struct name_key *name, uint64_t key)
{
    for (size_t i = 0; i < name->words; i++)
        key = core_mix(key ^ name->word[i]);
    return (uint32_t)key;
}

static bool name_key_init(struct name_key *name, const struct bide_targets *table, const char *text)
{
    size_t length = text != NULL ? strnlen(text, BIDE_TARGET_NAME_MAX + 1) : 0;
    if (length == 0 || length > BIDE_TARGET_NAME_MAX)
        return false;
    name->words = length / sizeof(uint64_t) + 1;
    memset(name->word, 0, name->words * sizeof(uint64_t));
    memcpy(name->word, text, length);
    name->tag = name_hash(name, table->hash_key);
    return true;
}

static enum bide_err name_problem(struct bide_problem *problem, int64_t value, const char *want)
{
    if (problem != NULL)
        *problem = (struct bide_problem){.field = "name", .want = want, .value = value};
    return BIDE_ERR_INVALID;
}

enum bide_err bide_targets_name_check(const char *name, struct bide_problem *problem)
{
    size_t length = name != NULL ? strnlen(name, BIDE_TARGET_NAME_MAX + 1) : 0;
    if (length == 0 || length > BIDE_TARGET_NAME_MAX)
        return name_problem(problem, (int64_t)length, "1 to 127 bytes (this is their number)");
    for (; *name != 0; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f)
            return name_problem(problem, (unsigned char)*name, "no control characters (this is the first)");
    return BIDE_OK;
}

/* NULL: the chunk is not there. */
static struct slot *slot_at(const struct bide_targets *table, uint32_t number)
{
    struct slot *chunk = __atomic_load_n(&table->chunk[number / CHUNK_SLOTS], __ATOMIC_ACQUIRE);
    return chunk != NULL ? &chunk[number % CHUNK_SLOTS] : NULL;
}

/* The acquire and release on each word stand for fences: who sees a new word sees the odd version that preceded it. */
static bool slot_has_name(const struct slot *slot, const struct name_key *name)
{
    uint64_t version = __atomic_load_n(&slot->version, __ATOMIC_ACQUIRE);
    uint64_t differs = version & 1;
    for (size_t i = 0; i < name->words && differs == 0; i++)
        differs = __atomic_load_n(&slot->name[i], __ATOMIC_ACQUIRE) ^ name->word[i];
    return differs == 0 && __atomic_load_n(&slot->version, __ATOMIC_RELAXED) == version;
}

/* An odd version hides the slot: it answers to no name until it is shown again. */
static void slot_begin_change(struct slot *slot)
{
    __atomic_store_n(&slot->version, slot->version + 1, __ATOMIC_RELAXED);
}

static void slot_end_change(struct slot *slot)
{
    __atomic_store_n(&slot->version, slot->version + 1, __ATOMIC_RELEASE);
}

static void slot_set_name(struct slot *slot, const struct name_key *name)
{
    slot->tag = name->tag;
    for (size_t i = 0; i < name->words; i++)
        __atomic_store_n(&slot->name[i], name->word[i], __ATOMIC_RELEASE);
}

/* Without the lock NULL means "not seen"; with it, "not there". */
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
    if (__atomic_load_n(&slot->referenced, __ATOMIC_RELAXED) ==
        0) /* most often it is set: do not write to a shared line */
        __atomic_store_n(&slot->referenced, 1, __ATOMIC_RELAXED);
    return &slot->target;
}

/* -- Under the lock ------------------------------------------------------------------------------------------------ */

static void cell_set(struct bide_targets *table, uint32_t at, uint64_t cell)
{
    __atomic_store_n(&table->cell[at], cell, __ATOMIC_RELEASE);
}

static void cell_add(struct bide_targets *table, uint32_t tag, uint32_t number)
{
    uint32_t at = tag & table->cell_mask;
    while (table->cell[at] != 0)
        at = (at + 1) & table->cell_mask;
    cell_set(table, at, (uint64_t)tag << 32 | (number + 1));
}

/* Backward shift: every cell behind the gap that would no longer be reached across it moves into it. */
static void cell_remove(struct bide_targets *table, uint32_t tag, uint32_t number)
{
    uint32_t mask = table->cell_mask, gap = tag & mask;
    while ((uint32_t)table->cell[gap] != number + 1)
        gap = (gap + 1) & mask;
    for (uint32_t at = (gap + 1) & mask; table->cell[at] != 0; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)(table->cell[at] >> 32) & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* its probe begins behind the gap */
        cell_set(table, gap, table->cell[at]);
        gap = at;
    }
    cell_set(table, gap, 0);
}

/* The next slot that was never used; NULL: all are in use, or there is no memory for more. */
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

/* The hand: a blank slot that nobody asked for lately, or failing that the first blank one; held: none in reach. */
static uint32_t clock_scan(struct bide_targets *table, int64_t now_ns)
{
    uint32_t found = table->held;
    for (uint32_t i = 0; i < table->held && table->scan_credit > 0; i++, table->scan_credit--) {
        uint32_t number = table->hand;
        struct slot *slot = slot_at(table, number);
        table->hand = number + 1 < table->held ? number + 1 : 0;
        uint32_t referenced = __atomic_exchange_n(&slot->referenced, 0, __ATOMIC_RELAXED);
        if (!bide_target_is_evictable(&slot->target, now_ns))
            continue;
        if (referenced == 0)
            return number;
        found = found < table->held ? found : number;
    }
    return found;
}

/* Takes a slot from its name; false if a call came to hold something of it since the scan looked, or somebody is
 * configuring it. (A charge that a call in flight makes in these nanoseconds is lost with the old owner.) */
static bool slot_evict(struct bide_targets *table, struct slot *slot, uint32_t number, int64_t now_ns)
{
    slot_begin_change(slot);
    if (bide_target_reuse(&slot->target, &table->config, now_ns, NULL) != BIDE_OK) {
        slot_end_change(slot);
        return false;
    }
    cell_remove(table, slot->tag, number);
    __atomic_add_fetch(&table->evicted, 1, __ATOMIC_RELAXED);
    return true;
}

static void slot_occupy(struct bide_targets *table, struct slot *slot, int64_t now_ns)
{
    slot_begin_change(slot);
    bide_target_init(&slot->target, &table->config, now_ns, NULL);
    __atomic_add_fetch(&table->held, 1, __ATOMIC_RELAXED);
}

/* Made when first needed, because only then is the time known: a budget earns from its beginning. */
static struct bide_target *table_overflow(struct bide_targets *table, int64_t now_ns)
{
    if (!table->overflow_ready)
        bide_target_init(&table->overflow, &table->config, now_ns, NULL);
    table->overflow_ready = true;
    __atomic_add_fetch(&table->overflowed, 1, __ATOMIC_RELAXED);
    return &table->overflow;
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
    slot_set_name(slot, name);
    slot_end_change(slot);
    cell_add(table, name->tag, number);
    return &slot->target; /* not marked as used: a name asked for once goes before one asked for again */
}

/* -- The table ----------------------------------------------------------------------------------------------------- */

static enum bide_err table_check_capacity(size_t capacity, struct bide_problem *problem)
{
    if (capacity >= 1 && capacity <= TARGETS_MAX)
        return BIDE_OK;
    if (problem != NULL)
        *problem = (struct bide_problem){.field = "most",
                                         .want = "1 to 1000000 targets",
                                         .value = capacity > INT64_MAX ? INT64_MAX : (int64_t)capacity};
    return BIDE_ERR_INVALID;
}

/* At least twice as many cells as slots, so that a probe is short and always ends. On failure the caller frees. */
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
    *table = NULL;
    struct bide_targets *made = NULL;
    enum bide_err err;
    if ((err = table_check_capacity(capacity, problem)) != BIDE_OK ||
        (err = bide_target_config_check(config, problem)) != BIDE_OK)
        goto out;
    if ((err = table_allocate(&made, (uint32_t)capacity)) != BIDE_OK)
        goto out;
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

/* The name is in no slot that a look without the lock found. NULL: it cannot be a name at all. */
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
    if (bide_targets_name_check(name, NULL) != BIDE_OK) /* looked at only now: such a name is in no table */
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

/* Somebody else may be configuring this very target. That takes them microseconds. */
static enum bide_err target_configure(struct bide_target *target, const struct bide_target_config *config,
                                      int64_t now_ns)
{
    enum bide_err err = bide_target_configure(target, config, now_ns, NULL);
    for (uint32_t tries = 1; err == BIDE_ERR_BUSY && tries < CONFIGURE_TRIES_MAX; tries++) {
        sched_yield();
        err = bide_target_configure(target, config, now_ns, NULL);
    }
    return err;
}

/* A target that stays busy is reported, but does not keep the others from their new configuration: do it again. */
enum bide_err bide_targets_configure(struct bide_targets *table, const struct bide_target_config *config,
                                     int64_t now_ns, struct bide_problem *problem)
{
    enum bide_err err = bide_target_config_check(config, problem);
    if (err != BIDE_OK)
        return err;
    pthread_mutex_lock(&table->lock);
    table->config = *config;
    if (table->overflow_ready)
        err = target_configure(&table->overflow, config, now_ns);
    for (uint32_t i = 0; i < table->held; i++) {
        enum bide_err one = target_configure(&slot_at(table, i)->target, config, now_ns);
        err = one != BIDE_OK ? one : err;
    }
    pthread_mutex_unlock(&table->lock);
    return err;
}

struct bide_targets_view bide_targets_stats(struct bide_targets *table)
{
    return (struct bide_targets_view){
        .held = __atomic_load_n(&table->held, __ATOMIC_RELAXED),
        .evicted = __atomic_load_n(&table->evicted, __ATOMIC_RELAXED),
        .overflowed = __atomic_load_n(&table->overflowed, __ATOMIC_RELAXED),
    };
}
