/* page.c - see page.h. */
#include "page.h"

#include "telemetry/snapshot.h"

#include <bide/clock.h>

#include <stdlib.h>

#define TEXT_SPARE 4096u /* counts may gain digits between two writes */

/* ---- reading ---- */

static void target_read(struct telemetry_target *to, const struct bide_shared *shared, const char *name)
{
    *to = (struct telemetry_target){.name = name, .is_shared = true, .now_ns = bide_now()};
    bide_meter_get(bide_shared_meter_get(shared), &to->meter);
    telemetry_snapshot_state(to, shared->target, to->now_ns);
}

/* Reports a problem, unless it was reported last time. */
static void source_report(struct metrics_source *source, const struct budget_entry *entry)
{
    char text[BUDGET_TEXT_SIZE];
    if (budget_history_update(&source->reported, entry->name, budget_entry_text(text, entry)))
        source->report(source->context, entry->name, &entry->problem);
}

/* Reads all usable targets. Returns their number. */
static size_t list_read_targets(struct metrics_source *source, struct budget_list *list, struct telemetry_target *to)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct budget_entry *entry = &list->entry[i];
        struct bide_shared shared;
        bool open = entry->problem.reason == BIDE_SHARED_REASON_NOTHING &&
                    budget_open(&shared, entry->name, source->directory, &entry->problem);
        if (open) {
            target_read(&to[count++], &shared, entry->name);
            bide_shared_close(&shared);
        } else if (entry->problem.reason != BIDE_SHARED_REASON_NOT_THERE) { /* removed after it was listed */
            source_report(source, entry);
        }
    }
    while (budget_history_next_removed(&source->reported) != NULL)
        ;
    return count;
}

/* ---- writing ---- */

/* Returns the text in memory of its size, or NULL. */
static char *text_write(const struct telemetry_target *targets, size_t count, size_t *length)
{
    char *text = NULL;
    size_t size = 0;
    while ((*length = telemetry_prometheus_write(text, size, targets, count)) >= size) {
        size = *length + TEXT_SPARE;
        char *grown = realloc(text, size);
        if (grown == NULL) {
            free(text);
            return NULL;
        }
        text = grown;
    }
    return text;
}

char *metrics_page(struct metrics_source *source, size_t *length, size_t *targets, struct bide_problem *problem)
{
    struct budget_list list = {0};
    struct telemetry_target *read = NULL;
    char *text = NULL;
    if (!budget_list_names(&list, source->directory, problem))
        goto out;
    *problem = (struct bide_problem){.text = "out of memory"};
    read = calloc(list.count + 1, sizeof *read);
    if (read == NULL)
        goto out;
    *targets = list_read_targets(source, &list, read);
    text = text_write(read, *targets, length);
out:
    free(read);
    budget_list_free(&list); /* it has the names */
    return text;
}

void metrics_source_free(struct metrics_source *source)
{
    budget_history_free(&source->reported);
}
