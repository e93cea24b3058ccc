/* log_fold.c - see log_fold.h. The entries are searched one by one: only lines of failures come here, and 256 hashes
 * are read in less time than a line is rendered. */
#include "log_fold.h"

#include "core/saturate.h"

#include <assert.h>
#include <string.h>

/* FNV-1a. */
static uint64_t fold_hash(struct bide_text target, enum bide_reason reason)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)reason;
    for (size_t i = 0; i < target.length; i++)
        hash = (hash ^ (unsigned char)target.at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool entry_has_ended(const struct telemetry_fold_entry *entry, int64_t now_ns)
{
    return now_ns >= core_sum(entry->begin_ns, TELEMETRY_FOLD_WINDOW_NS);
}

static bool entry_is_free(const struct telemetry_fold_entry *entry, int64_t now_ns)
{
    return entry->lines == 0 || (entry->suppressed == 0 && entry_has_ended(entry, now_ns));
}

static bool entry_is_of(const struct telemetry_fold_entry *entry, const struct telemetry_fold_entry *key)
{
    return entry->lines > 0 && entry->hash == key->hash && entry->reason == key->reason &&
           entry->target_length == key->target_length && memcmp(entry->target, key->target, key->target_length) == 0;
}

/* Returns the entry of the key, a free one made its own, or the shared one. */
static struct telemetry_fold_entry *fold_find(struct telemetry_fold *fold, const struct telemetry_fold_entry *key,
                                              int64_t now_ns)
{
    struct telemetry_fold_entry *free = NULL;
    for (size_t i = 0; i < TELEMETRY_FOLD_ENTRIES; i++) {
        struct telemetry_fold_entry *entry = &fold->entry[i];
        if (entry_is_of(entry, key))
            return entry;
        if (free == NULL && entry_is_free(entry, now_ns))
            free = entry;
    }
    if (free != NULL) {
        *free = *key;
        return free;
    }
    fold->entry[TELEMETRY_FOLD_ENTRIES].is_shared = true;
    return &fold->entry[TELEMETRY_FOLD_ENTRIES];
}

struct telemetry_fold_entry *telemetry_fold_count(struct telemetry_fold *fold, struct bide_text target,
                                                  enum bide_reason reason, int64_t now_ns)
{
    assert(target.length <= BIDE_TARGET_NAME_MAX);
    struct telemetry_fold_entry key = {
        .hash = fold_hash(target, reason), .reason = reason, .target_length = target.length, .begin_ns = now_ns};
    if (target.length > 0)
        memcpy(key.target, target.at, target.length);
    struct telemetry_fold_entry *entry = fold_find(fold, &key, now_ns);
    if (entry->lines == 0 || entry_has_ended(entry, now_ns)) {
        entry->begin_ns = now_ns;
        entry->lines = 0;
    }
    if (entry->lines == TELEMETRY_FOLD_LINES) {
        entry->suppressed++;
        return NULL;
    }
    entry->lines++;
    return entry;
}

struct telemetry_fold_entry *telemetry_fold_next(struct telemetry_fold *fold, int64_t now_ns)
{
    for (size_t i = 0; i <= TELEMETRY_FOLD_ENTRIES; i++) {
        struct telemetry_fold_entry *entry = &fold->entry[i];
        if (entry->suppressed == 0 || !entry_has_ended(entry, now_ns))
            continue;
        entry->begin_ns = now_ns;
        entry->lines = 1;
        return entry;
    }
    return NULL;
}

struct telemetry_fold_entry *telemetry_fold_any(struct telemetry_fold *fold)
{
    for (size_t i = 0; i <= TELEMETRY_FOLD_ENTRIES; i++)
        if (fold->entry[i].suppressed > 0)
            return &fold->entry[i];
    return NULL;
}

int64_t telemetry_fold_due(const struct telemetry_fold *fold)
{
    int64_t due_ns = BIDE_NEVER;
    for (size_t i = 0; i <= TELEMETRY_FOLD_ENTRIES; i++)
        if (fold->entry[i].suppressed > 0)
            due_ns = core_min(due_ns, core_sum(fold->entry[i].begin_ns, TELEMETRY_FOLD_WINDOW_NS));
    return due_ns;
}
