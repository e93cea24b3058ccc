/* handle_set.c - the hash table of handle_set.h: linear probing, no tombstones. */
#include "handle_set.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#define CAPACITY_MIN 16u

/* Handles are addresses of large blocks: multiply, and use the high bits. */
static size_t handle_home(const struct http_handle_set *set, const void *easy)
{
    return (size_t)((uintptr_t)easy * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (set->capacity - 1);
}

/* Returns the entry of a handle, or the free entry where it would be. */
static struct http_handle_entry *handle_entry(const struct http_handle_set *set, const void *easy)
{
    assert(set->count < set->capacity);
    size_t i = handle_home(set, easy);
    while (set->entries[i].easy && set->entries[i].easy != easy)
        i = (i + 1) & (set->capacity - 1);
    return &set->entries[i];
}

bool http_handle_set_reserve(struct http_handle_set *set)
{
    if (set->capacity >= 2 * (set->count + 1))
        return true;
    struct http_handle_set larger = {.capacity = set->capacity > 0 ? 2 * set->capacity : CAPACITY_MIN};
    larger.entries = calloc(larger.capacity, sizeof *larger.entries);
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->entries[i].easy)
            http_handle_set_add(&larger, set->entries[i].easy, set->entries[i].value);
    free(set->entries);
    *set = larger;
    return true;
}

void http_handle_set_add(struct http_handle_set *set, const void *easy, void *value)
{
    assert(set->capacity >= 2 * (set->count + 1));
    struct http_handle_entry *entry = handle_entry(set, easy);
    assert(!entry->easy);
    *entry = (struct http_handle_entry){easy, value};
    set->count++;
}

/* Closes the gap: moves back each entry of the same run that the gap would hide from its home. */
void http_handle_set_remove(struct http_handle_set *set, const void *easy)
{
    size_t mask = set->capacity - 1;
    size_t gap = (size_t)(handle_entry(set, easy) - set->entries);
    assert(set->entries[gap].easy == easy);
    for (size_t i = (gap + 1) & mask; set->entries[i].easy; i = (i + 1) & mask) {
        size_t from_home = (i - handle_home(set, set->entries[i].easy)) & mask;
        if (from_home < ((i - gap) & mask))
            continue;
        set->entries[gap] = set->entries[i];
        gap = i;
    }
    set->entries[gap] = (struct http_handle_entry){0};
    set->count--;
}

void *http_handle_set_find(const struct http_handle_set *set, const void *easy)
{
    return set->count > 0 ? handle_entry(set, easy)->value : NULL;
}

void http_handle_set_free(struct http_handle_set *set)
{
    free(set->entries);
    *set = (struct http_handle_set){0};
}
