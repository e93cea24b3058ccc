/* list.c - see list.h. */
#include "list.h"

#include "mapping.h"

#include <bide/clock.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

void budget_rows_free(struct budget_rows *rows)
{
    free(rows->row);
    *rows = (struct budget_rows){0};
}

static bool add(void *context, const char *name, const struct bide_shared_problem *wrong)
{
    struct budget_rows *rows = context;
    if (rows->count == rows->room) {
        size_t room = rows->room > 0 ? 2 * rows->room : 8;
        struct budget_row *grown = realloc(rows->row, room * sizeof *grown);
        rows->no_memory = grown == NULL;
        if (grown == NULL)
            return false;
        rows->row = grown;
        rows->room = room;
    }
    struct budget_row *row = &rows->row[rows->count++];
    memset(row, 0, sizeof *row);
    snprintf(row->name, sizeof row->name, "%s", name);
    if (wrong != NULL)
        row->problem = *wrong;
    return true;
}

static int by_name(const void *one, const void *other)
{
    return strcmp(((const struct budget_row *)one)->name, ((const struct budget_row *)other)->name);
}

bool budget_open(struct bide_shared *host, const char *name, const char *directory, struct bide_shared_problem *problem)
{
    struct bide_shared_options options = {.directory = directory, .must_exist = true};
    *problem = (struct bide_shared_problem){.text = "no memory"};
    return bide_shared_open(host, name, NULL, &options, bide_now(), problem) == BIDE_OK;
}

bool budget_rows_list(struct budget_rows *rows, const char *directory, struct bide_shared_problem *problem)
{
    struct bide_shared_options options = {.directory = directory, .must_exist = true};
    *problem = (struct bide_shared_problem){.text = "no memory"};
    enum bide_err err = bide_shared_list(&options, add, rows, problem);
    bool none = problem->reason == BIDE_SHARED_REASON_NOT_THERE ||
                (problem->reason == BIDE_SHARED_REASON_NO_DIRECTORY && problem->system_errno == ENOENT);
    if (rows->no_memory || (err != BIDE_OK && !none))
        return false;
    if (rows->count > 0)
        qsort(rows->row, rows->count, sizeof *rows->row, by_name);
    return true;
}

static void look_at(struct budget_row *row, const char *directory)
{
    struct bide_shared host;
    if (row->problem.reason != BIDE_SHARED_REASON_NOTHING || !budget_open(&host, row->name, directory, &row->problem))
        return;
    budget_look(&row->look, host.target, row->name, bide_now());
    row->look.file = budget_where(row->file, sizeof row->file, host.target) ? row->file : NULL;
    row->is_open = true;
    bide_shared_close(&host);
}

/* Each in its place before it is looked at, for a look points into its row. What is gone since it was listed is no row.
 */
static void look_at_all(struct budget_rows *rows, const char *directory, bool listed)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct budget_row *row = &rows->row[kept];
        *row = rows->row[i];
        look_at(row, directory);
        kept += !(listed && row->problem.reason == BIDE_SHARED_REASON_NOT_THERE);
    }
    rows->count = kept;
}

bool budget_rows_look(struct budget_rows *rows, char **names, const char *directory,
                      struct bide_shared_problem *problem)
{
    bool well = true, listed = names[0] == NULL;
    *problem = (struct bide_shared_problem){.text = "no memory"};
    if (listed)
        well = budget_rows_list(rows, directory, problem);
    for (; *names != NULL && well; names++)
        well = add(rows, *names, NULL);
    if (well)
        look_at_all(rows, directory, listed);
    return well;
}

/* ---- what is new ---- */

struct budget_told_one {
    char name[BIDE_TARGET_NAME_MAX + 1];
    char words[BUDGET_WORDS];
    bool seen;    /* in the present look */
    bool is_gone; /* and that was told */
};

const char *budget_row_words(char words[BUDGET_WORDS], const struct budget_row *row)
{
    if (row->is_open)
        return budget_change_words(words, &row->look);
    snprintf(words, BUDGET_WORDS, "%s", bide_shared_reason_text(row->problem.reason));
    return words;
}

/* NULL: no memory. */
static struct budget_told_one *told_of(struct budget_told *told, const char *name)
{
    for (size_t i = 0; i < told->count; i++)
        if (strcmp(told->one[i].name, name) == 0)
            return &told->one[i];
    struct budget_told_one *grown = realloc(told->one, (told->count + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    told->one = grown;
    struct budget_told_one *one = &told->one[told->count++];
    *one = (struct budget_told_one){0};
    snprintf(one->name, sizeof one->name, "%s", name);
    return one;
}

bool budget_told_news(struct budget_told *told, const char *name, const char *words)
{
    struct budget_told_one *one = told_of(told, name);
    if (one == NULL)
        return true;
    bool news = one->is_gone || strcmp(one->words, words) != 0;
    snprintf(one->words, sizeof one->words, "%s", words);
    one->seen = true;
    one->is_gone = false;
    return news;
}

const char *budget_told_gone(struct budget_told *told)
{
    for (size_t i = 0; i < told->count; i++)
        if (!told->one[i].seen && !told->one[i].is_gone) {
            told->one[i].is_gone = true;
            return told->one[i].name;
        }
    for (size_t i = 0; i < told->count; i++)
        told->one[i].seen = false;
    return NULL;
}

void budget_told_free(struct budget_told *told)
{
    free(told->one);
    *told = (struct budget_told){0};
}
