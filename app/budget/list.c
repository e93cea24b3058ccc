/* list.c - snapshots of shared targets, and which of them changed; see list.h. */
#include "list.h"

#include "mapping.h"

#include <bide/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- snapshots ---- */

void budget_list_free(struct budget_list *list)
{
    free(list->entry);
    *list = (struct budget_list){0};
}

static bool list_add(void *context, const char *name, const struct bide_problem *wrong)
{
    struct budget_list *list = context;
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 8;
        struct budget_entry *grown = realloc(list->entry, room * sizeof *grown);
        list->no_memory = grown == NULL;
        if (grown == NULL)
            return false;
        list->entry = grown;
        list->room = room;
    }
    struct budget_entry *entry = &list->entry[list->count++];
    memset(entry, 0, sizeof *entry);
    snprintf(entry->name, sizeof entry->name, "%s", name);
    if (wrong != NULL)
        entry->problem = *wrong;
    return true;
}

static int compare_names(const void *entry, const void *other)
{
    return strcmp(((const struct budget_entry *)entry)->name, ((const struct budget_entry *)other)->name);
}

const char *budget_directory(char path[BIDE_SHARED_PATH_MAX], const char *directory)
{
    return directory != NULL ? directory : bide_shared_directory(path);
}

bool budget_open(struct bide_shared *shared_target, const char *name, const char *directory,
                 struct bide_problem *problem)
{
    struct bide_shared_options options = {.directory = directory, .must_exist = true};
    return bide_shared_open(shared_target, name, NULL, &options, bide_now(), problem) == BIDE_OK;
}

bool budget_list_names(struct budget_list *list, const char *directory, struct bide_problem *problem)
{
    struct bide_shared_options options = {.directory = directory, .must_exist = true};
    enum bide_err err = bide_shared_list(&options, list_add, list, problem);
    list->no_memory |= err != BIDE_OK && problem->system_errno == ENOMEM;
    if (err != BIDE_OK)
        return false;
    if (list->no_memory)
        return *problem = (struct bide_problem){.text = "out of memory"}, false;
    if (list->count > 0)
        qsort(list->entry, list->count, sizeof *list->entry, compare_names);
    return true;
}

/* Returns false if out of memory. */
static bool entry_read(struct budget_entry *entry, const char *directory)
{
    struct bide_shared shared_target;
    if (entry->problem.reason != BIDE_SHARED_REASON_NOTHING ||
        !budget_open(&shared_target, entry->name, directory, &entry->problem))
        return true;
    entry->read_ns = bide_now();
    budget_snapshot_take(&entry->snapshot, shared_target.target, entry->name, entry->read_ns);
    bide_meter_get(bide_shared_meter_get(&shared_target), &entry->meter);
    bool ok = budget_mapping_path(entry->file, sizeof entry->file, shared_target.target);
    entry->snapshot.file = entry->file[0] != '\0' ? entry->file : NULL;
    entry->is_open = true;
    bide_shared_close(&shared_target);
    return ok;
}

/* Moves each entry to its final place before reading it, because the snapshot points into its entry. A target that was
 * removed after it was listed is dropped. */
static void list_read_entries(struct budget_list *list, const char *directory, bool listed)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct budget_entry *entry = &list->entry[kept];
        *entry = list->entry[i];
        list->no_memory |= !entry_read(entry, directory);
        kept += !(listed && entry->problem.reason == BIDE_SHARED_REASON_NOT_THERE);
    }
    list->count = kept;
}

bool budget_list_read(struct budget_list *list, char **names, const char *directory, struct bide_problem *problem)
{
    bool ok = true, listed = names[0] == NULL;
    *problem = (struct bide_problem){.text = "out of memory"};
    if (listed)
        ok = budget_list_names(list, directory, problem);
    for (; *names != NULL && ok; names++)
        ok = list_add(list, *names, NULL);
    if (ok)
        list_read_entries(list, directory, listed);
    if (list->no_memory)
        *problem = (struct bide_problem){.text = "out of memory"};
    return ok && !list->no_memory;
}

/* ---- changes ---- */

struct budget_history_entry {
    char name[BIDE_TARGET_NAME_MAX + 1];
    char text[BUDGET_TEXT_SIZE];
    bool is_present; /* in the current round */
    bool is_removed; /* its removal was reported */
};

const char *budget_entry_text(char text[BUDGET_TEXT_SIZE], const struct budget_entry *entry)
{
    if (entry->is_open)
        return budget_summary_text(text, &entry->snapshot);
    snprintf(text, BUDGET_TEXT_SIZE, "%s", bide_shared_reason_text((enum bide_shared_reason)entry->problem.reason));
    return text;
}

/* Returns the entry of the name, a new one if needed; NULL: out of memory. */
static struct budget_history_entry *history_find(struct budget_history *history, const char *name)
{
    for (size_t i = 0; i < history->count; i++)
        if (strcmp(history->entry[i].name, name) == 0)
            return &history->entry[i];
    struct budget_history_entry *grown = realloc(history->entry, (history->count + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    history->entry = grown;
    struct budget_history_entry *entry = &history->entry[history->count++];
    *entry = (struct budget_history_entry){0};
    snprintf(entry->name, sizeof entry->name, "%s", name);
    return entry;
}

bool budget_history_update(struct budget_history *history, const char *name, const char *text)
{
    struct budget_history_entry *entry = history_find(history, name);
    if (entry == NULL)
        return true;
    bool changed = entry->is_removed || strcmp(entry->text, text) != 0;
    snprintf(entry->text, sizeof entry->text, "%s", text);
    entry->is_present = true;
    entry->is_removed = false;
    return changed;
}

const char *budget_history_next_removed(struct budget_history *history)
{
    for (size_t i = 0; i < history->count; i++)
        if (!history->entry[i].is_present && !history->entry[i].is_removed) {
            history->entry[i].is_removed = true;
            return history->entry[i].name;
        }
    for (size_t i = 0; i < history->count; i++)
        history->entry[i].is_present = false;
    return NULL;
}

void budget_history_free(struct budget_history *history)
{
    free(history->entry);
    *history = (struct budget_history){0};
}
