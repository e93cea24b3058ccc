/* targets_default.c - the table of targets of this process: see bide_targets_default in bide/targets.h.
 *
 * The table lives until dlclose unloads the library. At the end of the process it is not freed: a thread may still be
 * making a call. Both run the destructor below; only exit runs handlers of atexit before it, dlclose after it. */
#include <bide/targets.h>

#include <pthread.h>
#include <stdlib.h>

#define TARGETS_MAX 1024u

static struct bide_targets *default_table; /* written under create_lock, once */
static pthread_mutex_t create_lock = PTHREAD_MUTEX_INITIALIZER;
static bool process_exits;

static void note_process_exit(void)
{
    process_exits = true;
}

/* Under create_lock. Two threads may find no table at the same time: the second finds the table of the first here. */
static struct bide_targets *table_create(void)
{
    struct bide_targets *table = default_table;
    if (table != NULL || bide_targets_new(&table, TARGETS_MAX, NULL, NULL) != BIDE_OK)
        return table;
    if (atexit(note_process_exit) != 0)
        process_exits = true; /* never freed, then */
    __atomic_store_n(&default_table, table, __ATOMIC_RELEASE);
    return table;
}

struct bide_targets *bide_targets_default(void)
{
    struct bide_targets *table = __atomic_load_n(&default_table, __ATOMIC_ACQUIRE);
    if (table != NULL)
        return table;
    pthread_mutex_lock(&create_lock);
    table = table_create();
    pthread_mutex_unlock(&create_lock);
    return table;
}

__attribute__((destructor)) static void table_free_at_unload(void)
{
    if (!process_exits)
        bide_targets_free(default_table);
}
