/* list.h - all shared targets, or some of them, as they stood: each opened, read, and closed again.
 *
 * A file that cannot be used has a row as well, which says why. */
#ifndef BUDGET_ROWS_H
#define BUDGET_ROWS_H

#include <bide/shared.h>

#include "snapshot.h"

struct budget_row {
    char name[BIDE_TARGET_NAME_MAX + 1];
    bool is_open;                       /* `look` is valid; else `problem` */
    struct bide_shared_problem problem; /* why it cannot be used */
    struct budget_look look;
    char file[BIDE_SHARED_PATH_MAX];
};

struct budget_rows {
    struct budget_row *row; /* owned; all of them are in the order of names */
    size_t count;
    size_t room;
    bool no_memory;
};

/* Opens one that is there, with the configuration it has. */
bool budget_open(struct bide_shared *host, const char *name, const char *directory,
                 struct bide_shared_problem *problem);

/* The names there are, and what is wrong with those that cannot be used. A directory that nobody made has none. False:
 * see the problem. */
bool budget_rows_list(struct budget_rows *rows, const char *directory, struct bide_shared_problem *problem);

/* Those of the names (NULL-terminated; empty: all), looked at. False: see the problem. */
bool budget_rows_look(struct budget_rows *rows, char **names, const char *directory,
                      struct bide_shared_problem *problem);

void budget_rows_free(struct budget_rows *rows); /* accepts an empty one */

/* An object with everything; of one that cannot be used: target, problem, text. NULL: no memory. */
struct json_t *budget_row_json(const struct budget_row *row);

/* ---- what is new ---- */

/* What was last told of each name. Begins zeroed. */
struct budget_told {
    struct budget_told_one *one; /* owned */
    size_t count;
};

/* All of it but times, in a few words: "budget 2.5 of 10, breaker open, refused 3". */
const char *budget_row_words(char words[BUDGET_WORDS], const struct budget_row *row);

/* True if these words of that name are not those of the last time. */
bool budget_told_news(struct budget_told *told, const char *name, const char *words);

/* After all rows of a look: the next name that was told of before and was not among them now, once; NULL: no more. */
const char *budget_told_gone(struct budget_told *told);

void budget_told_free(struct budget_told *told);

#endif
