/* list.h - snapshots of all or some shared targets: each is opened, read and closed.
 *
 * A file that cannot be used has an entry, too, with the reason. */
#ifndef BUDGET_LIST_H
#define BUDGET_LIST_H

#include <bide/shared.h>

#include "snapshot.h"

struct budget_entry {
    char name[BIDE_TARGET_NAME_MAX + 1];
    bool is_open;                /* the members after `problem` are valid; otherwise `problem` is */
    struct bide_problem problem; /* why the file cannot be used */
    struct budget_snapshot snapshot;
    struct bide_meter_view meter;
    int64_t read_ns;
    char file[BIDE_SHARED_PATH_MAX];
};

struct budget_list {
    struct budget_entry *entry; /* owned; sorted by name if all targets are listed */
    size_t count;
    size_t room;
    bool no_memory;
};

/* Returns the directory, or the default one. `path` is a buffer for it. */
const char *budget_directory(char path[BIDE_SHARED_PATH_MAX], const char *directory);

/* Opens an existing target without changing its configuration. Returns false after setting *problem. */
bool budget_open(struct bide_shared *shared_target, const char *name, const char *directory,
                 struct bide_problem *problem);

/* Lists the names of all targets, and the problems of unusable files. A missing directory is an empty list. Returns
 * false after setting *problem. */
bool budget_list_names(struct budget_list *list, const char *directory, struct bide_problem *problem);

/* Reads the named targets (NULL-terminated; none: all). Returns false after setting *problem. */
bool budget_list_read(struct budget_list *list, char **names, const char *directory, struct bide_problem *problem);

void budget_list_free(struct budget_list *list); /* accepts an empty list */

/* Appends the members of the open object; for an unusable file: target, problem, text. */
void budget_entry_json(struct text_json *json, const struct budget_entry *entry);

/* ---- changes ---- */

/* The text last reported for each name. Starts zeroed. */
struct budget_history {
    struct budget_history_entry *entry; /* owned */
    size_t count;
};

/* Everything except times in short: "budget 2.5 of 10, breaker open, refused 3". */
const char *budget_entry_text(char text[BUDGET_TEXT_SIZE], const struct budget_entry *entry);

/* Records the text. Returns true if it differs from the last one of that name. */
bool budget_history_update(struct budget_history *history, const char *name, const char *text);

/* After all entries of a round: returns the next name that was reported before and is missing now, each once; then
 * NULL. */
const char *budget_history_next_removed(struct budget_history *history);

void budget_history_free(struct budget_history *history);

#endif
