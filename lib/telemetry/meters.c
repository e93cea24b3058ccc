/* meters.c - the meters of this process, by name: see meters.h.
 *
 * TABLE: an open-addressing hash table of pointers to meters, at most half full. Meters are only added, under the lock.
 * A look-up takes no lock: a cell is written once, with release, after the meter and its name are complete. A look-up
 * that races with an insertion and misses it repeats: under the lock, or, if the limit is reached, after it has seen
 * that. So only the first call of a name takes the lock, and fork, lest the child find it taken by a thread that it does
 * not have.
 *
 * CACHE: which meter counts calls on a target, so that most calls need not find their name. A cell has a target, the
 * identity word that the target had (a table that reuses the memory for another name changes it), and the meter. It is
 * a seqlock: a writer makes `version` odd by compare-and-swap (of two writers the second gives up), writes the other
 * words, and makes it even. A reader accepts the words only if the version was even, and the same before and after. A
 * cell is found by the address of the target, and the newest target replaces an older one.
 *
 * A target stands for a name only if it was found in a table by that name, and is not the table's overflow target, which
 * many names share. Any other target may serve several names: then the name of the call is compared, too. */
#include "meters.h"

#include "core/atomic.h"
#include "core/gates.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LOG2  9
#define CACHE_CELLS (1u << CACHE_LOG2)

struct cache_cell {
    uint64_t version; /* odd: being written; 0: empty */
    uint64_t target;
    uint64_t identity;
    uint64_t meter;
};

static struct {
    pthread_mutex_t lock;          /* of all changes but those of the cache */
    struct telemetry_meter **cell; /* the hash table */
    struct telemetry_meter **all;  /* in the order of creation */
    uint32_t cell_mask;
    uint32_t names_max;
    uint32_t count; /* of all meters */
    uint32_t names; /* of meters but `other` */
    bool is_full;   /* names has reached names_max, and `other` is in the table */
    struct telemetry_meter *other;
    struct cache_cell cache[CACHE_CELLS];
} meters = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the table ---- */

static void table_lock(void)
{
    pthread_mutex_lock(&meters.lock);
}

static void table_unlock(void)
{
    pthread_mutex_unlock(&meters.lock);
}

/* FNV-1a. */
static uint32_t name_hash(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash >> 32);
}

/* Returns the cell of the name: its meter's, or the empty one where it belongs. */
static struct telemetry_meter **table_find(const char *name)
{
    uint32_t at = name_hash(name) & meters.cell_mask;
    for (;; at = (at + 1) & meters.cell_mask) {
        struct telemetry_meter *meter = __atomic_load_n(&meters.cell[at], __ATOMIC_ACQUIRE);
        if (meter == NULL || strcmp(meter->name, name) == 0)
            return &meters.cell[at];
    }
}

static struct telemetry_meter *meter_new(const char *name)
{
    struct telemetry_meter *meter = NULL;
    size_t length = strlen(name) + 1;
    if (posix_memalign((void **)&meter, 64, sizeof *meter + length) != 0)
        return NULL;
    memset(meter, 0, sizeof *meter);
    meter->name = memcpy(meter + 1, name, length);
    return meter;
}

/* Under the lock. Publishes a meter; the count last, for readers of `all`. */
static void table_publish(struct telemetry_meter **cell, struct telemetry_meter *meter)
{
    meters.all[meters.count] = meter;
    __atomic_store_n(cell, meter, __ATOMIC_RELEASE);
    __atomic_store_n(&meters.count, meters.count + 1, __ATOMIC_RELEASE);
}

/* Returns the meter of names beyond the limit, which is listed from its first call on. */
static struct telemetry_meter *table_other(void)
{
    struct telemetry_meter **cell = table_find(TELEMETRY_OTHER);
    if (*cell == NULL)
        table_publish(cell, meters.other);
    return *cell;
}

/* Returns the meter of a name that a look-up without the lock missed. */
static struct telemetry_meter *table_insert(const char *name)
{
    table_lock();
    struct telemetry_meter **cell = table_find(name), *meter = *cell;
    if (meter == NULL && meters.names < meters.names_max && (meter = meter_new(name)) != NULL) {
        table_publish(cell, meter);
        meters.names++;
    }
    if (meter == NULL) {
        meter = table_other();
        __atomic_store_n(&meters.is_full, meters.names >= meters.names_max, __ATOMIC_RELEASE);
    }
    table_unlock();
    return meter;
}

/* Returns the meter of a name. No meter is added after is_full was stored: who loads it sees all of them. */
static struct telemetry_meter *table_get(const char *name)
{
    struct telemetry_meter *meter = *table_find(name);
    if (meter == NULL && __atomic_load_n(&meters.is_full, __ATOMIC_ACQUIRE)) {
        meter = *table_find(name);
        return meter != NULL ? meter : meters.other;
    }
    return meter != NULL ? meter : table_insert(name);
}

/* Frees what a failed begin has allocated. */
static bool table_abandon(void)
{
    free(meters.cell);
    free(meters.all);
    free(meters.other);
    meters.cell = NULL;
    meters.all = NULL;
    meters.other = NULL;
    return false;
}

/* The table keeps the size of the first start: a later start cannot raise the limit above it. */
bool telemetry_meters_begin(uint32_t names_max)
{
    uint32_t cells = 4;
    assert(names_max > 0);
    if (meters.cell != NULL) {
        meters.names_max = names_max < meters.cell_mask / 2 ? names_max : meters.cell_mask / 2;
        meters.is_full = false;
        return true;
    }
    while (cells < 2 * (names_max + 1))
        cells *= 2;
    meters.all = calloc(cells, sizeof *meters.all);
    meters.other = meter_new(TELEMETRY_OTHER);
    meters.cell = calloc(cells, sizeof *meters.cell);
    if (meters.all == NULL || meters.other == NULL || meters.cell == NULL ||
        pthread_atfork(table_lock, table_unlock, table_unlock) != 0)
        return table_abandon();
    meters.cell_mask = cells - 1;
    meters.names_max = names_max;
    return true;
}

uint32_t telemetry_meters_count(void)
{
    return __atomic_load_n(&meters.count, __ATOMIC_ACQUIRE);
}

const struct telemetry_meter *telemetry_meters_at(uint32_t number)
{
    assert(number < telemetry_meters_count());
    return meters.all[number];
}

/* ---- the cache ---- */

static struct cache_cell *cache_cell(const struct bide_target *target)
{
    return &meters.cache[(uintptr_t)target * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CACHE_LOG2)];
}

/* Returns true if the meter of that name counts the call. */
static bool call_has_name(const struct bide_report_call *call, uint64_t identity, const struct telemetry_meter *meter)
{
    if (call->is_of_table && (identity & CORE_OVERFLOW) == 0)
        return true;
    return call->target_name != NULL && strcmp(call->target_name, meter->name) == 0;
}

/* Returns the meter in the cache; NULL: there is none, or it is being written. */
static struct telemetry_meter *cache_get(const struct bide_report_call *call, uint64_t identity)
{
    const struct cache_cell *cell = cache_cell(call->target);
    uint64_t version = core_load_acquire(&cell->version);
    uint64_t target = core_load_acquire(&cell->target), seen = core_load_acquire(&cell->identity);
    struct telemetry_meter *meter = (struct telemetry_meter *)(uintptr_t)core_load_acquire(&cell->meter);
    if ((version & 1) != 0 || target != (uintptr_t)call->target || seen != identity ||
        !core_is_unchanged(&cell->version, version) || version == 0)
        return NULL;
    return call_has_name(call, identity, meter) ? meter : NULL;
}

static void cache_put(const struct bide_target *target, uint64_t identity, const struct telemetry_meter *meter)
{
    struct cache_cell *cell = cache_cell(target);
    uint64_t version = core_load(&cell->version);
    if ((version & 1) != 0 || !core_cas(&cell->version, &version, version + 1))
        return;
    core_store_release(&cell->target, (uintptr_t)target); /* a reader of a new word sees the odd version, too */
    core_store_release(&cell->identity, identity);
    core_store_release(&cell->meter, (uintptr_t)meter);
    core_store_release(&cell->version, version + 2);
}

/* ---- a call ---- */

static struct telemetry_meter *find_by_name(const struct bide_report_call *call)
{
    const char *name = bide_report_target_name(call);
    if (name[0] == '\0')
        name = TELEMETRY_UNNAMED;
    return table_get(name);
}

struct bide_meter *telemetry_meters_find(void *context, const struct bide_report_call *call)
{
    const struct bide_target *target = call->target;
    (void)context;
    if (target == NULL || target == BIDE_NO_TARGET)
        return &find_by_name(call)->meter;
    uint64_t identity = core_load(&target->identity);
    struct telemetry_meter *meter = cache_get(call, identity);
    if (meter == NULL) {
        meter = find_by_name(call);
        cache_put(target, identity, meter);
    }
    return &meter->meter;
}
