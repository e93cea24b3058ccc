/* rows.c - see rows.h. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* Returns the entry of that name in an earlier list; NULL: it had none, or it was unusable. */
static const struct budget_entry *entry_find(const struct budget_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->entry[i].name, name) == 0)
            return list->entry[i].is_open ? &list->entry[i] : NULL;
    return NULL;
}

static void row_fill(struct top_row *row, const struct budget_entry *entry, const struct budget_list *before)
{
    const struct budget_entry *earlier = entry->is_open ? entry_find(before, entry->name) : NULL;
    *row = (struct top_row){.entry = entry};
    if (earlier != NULL)
        top_rates_take(&row->rates, &earlier->meter, &entry->meter, entry->read_ns - earlier->read_ns);
}

static int compare_rows(const void *one, const void *other)
{
    const struct top_row *mine = one, *theirs = other;
    int order = top_rates_compare(&mine->rates, &theirs->rates);
    return order != 0 ? order : strcmp(mine->entry->name, theirs->entry->name);
}

/* Returns false if out of memory. */
static bool rows_fill(struct top_rows *rows)
{
    size_t count = rows->list.count;
    struct top_row *grown = count > 0 ? realloc(rows->row, count * sizeof *grown) : rows->row;
    if (count > 0 && grown == NULL)
        return false;
    rows->row = grown;
    for (size_t i = 0; i < count; i++)
        row_fill(&rows->row[i], &rows->list.entry[i], &rows->before);
    if (count > 0)
        qsort(rows->row, count, sizeof *rows->row, compare_rows);
    return true;
}

bool top_rows_update(struct top_rows *rows, char **names, const char *directory, struct bide_problem *problem)
{
    budget_list_free(&rows->before);
    rows->before = rows->list;
    rows->list = (struct budget_list){0};
    bool ok = budget_list_read(&rows->list, names, directory, problem);
    rows->no_memory = rows->list.no_memory || (ok && !rows_fill(rows));
    if (ok && rows->no_memory)
        *problem = (struct bide_problem){.text = "out of memory"};
    return ok && !rows->no_memory;
}

void top_rows_free(struct top_rows *rows)
{
    budget_list_free(&rows->before);
    budget_list_free(&rows->list);
    free(rows->row);
    *rows = (struct top_rows){0};
}
