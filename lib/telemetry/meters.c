/* meters.c - the meters of this process, by name: see meters.h.
 *
 * TABLE: an open-addressing hash table of pointers to meters, at most half full. Meters are only added, under the lock.
 * A look-up takes no lock: a cell is written once, with release, after the meter and its name are complete. A look-up
 * that races with an insertion and misses it repeats: under the lock, or, if the limit is reached, after it has seen
 * that. So only the first call of a name takes the lock, and fork, lest the child find it taken by a thread that it
 * does not have. */
#include "meters.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;          /* of all changes */
    struct telemetry_meter **cell; /* the hash table */
    struct telemetry_meter **all;  /* in the order of creation */
    uint32_t cell_mask;
    uint32_t names_max;
    uint32_t count; /* of all meters */
    uint32_t names; /* of meters but `other` */
    bool is_full;   /* names has reached names_max, and `other` is in the table */
    struct telemetry_meter *other;
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

/* Returns the meter of the name, or NULL. *cell receives its cell, or the empty one where it belongs. Without the lock
 * another name may take that at once: it must not be read again. */
static struct telemetry_meter *table_find(const char *name, struct telemetry_meter ***cell)
{
    uint32_t at = name_hash(name) & meters.cell_mask;
    for (;; at = (at + 1) & meters.cell_mask) {
        struct telemetry_meter *meter = __atomic_load_n(&meters.cell[at], __ATOMIC_ACQUIRE);
        *cell = &meters.cell[at];
        if (meter == NULL || strcmp(meter->name, name) == 0)
            return meter;
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
    struct telemetry_meter **cell;
    if (table_find(TELEMETRY_OTHER, &cell) == NULL)
        table_publish(cell, meters.other);
    return meters.other;
}

/* Returns the meter of a name that a look-up without the lock missed. */
static struct telemetry_meter *table_insert(const char *name)
{
    table_lock();
    struct telemetry_meter **cell, *meter = table_find(name, &cell);
    bool is_other = strcmp(name, TELEMETRY_OTHER) == 0; /* a target of that name must not get a second meter for it */
    if (meter == NULL && !is_other && meters.names < meters.names_max && (meter = meter_new(name)) != NULL) {
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
    struct telemetry_meter **cell, *meter = table_find(name, &cell);
    if (meter == NULL && __atomic_load_n(&meters.is_full, __ATOMIC_ACQUIRE)) {
        meter = table_find(name, &cell);
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
        table_lock(); /* a call that began before the stop may be adding a meter */
        meters.names_max = names_max < meters.cell_mask / 2 ? names_max : meters.cell_mask / 2;
        __atomic_store_n(&meters.is_full, false, __ATOMIC_RELEASE);
        table_unlock();
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

/* ---- a call ---- */

struct bide_meter *telemetry_meters_find(void *context, const struct bide_report_call *call)
{
    const char *name = bide_report_target_name(call);
    (void)context;
    return &table_get(name[0] != '\0' ? name : TELEMETRY_UNNAMED)->meter;
}
