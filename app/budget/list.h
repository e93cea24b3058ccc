/* list.h - all shared targets, or some of them, as they stood: each opened, read, and closed again.
 *
 * A file that cannot be used has a row as well, which says why. */
#ifndef BUDGET_LIST_H
#define BUDGET_LIST_H

#include <bide/shared.h>

#include "snapshot.h"

struct budget_entry {
    char name[BIDE_TARGET_NAME_MAX + 1];
    bool is_open;                       /* `look` is valid; else `problem` */
    struct bide_shared_problem problem; /* why it cannot be used */
    struct budget_snapshot snapshot;
    char file[BIDE_SHARED_PATH_MAX];
};

struct budget_list {
    struct budget_entry *entry; /* owned; all of them are in the order of names */
    size_t count;
    size_t room;
    bool no_memory;
};

/* Opens one that is there, with the configuration it has. */
bool budget_open(struct bide_shared *shared_target, const char *name, const char *directory,
                 struct bide_shared_problem *problem);

/* The names there are, and what is wrong with those that cannot be used. A directory that nobody made has none. False:
 * see the problem. */
bool budget_list_names(struct budget_list *list, const char *directory, struct bide_shared_problem *problem);

/* Those of the names (NULL-terminated; empty: all), looked at. False: see the problem. */
bool budget_list_read(struct budget_list *list, char **names, const char *directory,
                      struct bide_shared_problem *problem);

void budget_list_free(struct budget_list *list); /* accepts an empty one */

/* An object with everything; of one that cannot be used: target, problem, text. NULL: no memory. */
struct json_t *budget_entry_json(const struct budget_entry *entry);

/* ---- what is new ---- */

/* What was last told of each name. Begins zeroed. */
struct budget_history {
    struct budget_history_entry *entry; /* owned */
    size_t count;
};

/* All of it but times, in a few words: "budget 2.5 of 10, breaker open, refused 3". */
const char *budget_entry_text(char text[BUDGET_TEXT_SIZE], const struct budget_entry *entry);

/* True if these words of that name are not those of the last time. */
bool budget_history_update(struct budget_history *history, const char *name, const char *text);

/* After all rows of a look: the next name that was told of before and was not among them now, once; NULL: no more. */
const char *budget_history_next_removed(struct budget_history *history);

void budget_history_free(struct budget_history *history);

#endif
