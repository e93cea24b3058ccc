/* page.h - reads the meters of all shared targets of this host, and writes them as text for Prometheus.
 *
 * Each target is opened, read and closed: a target that is created, removed or replaced meanwhile needs no bookkeeping.
 * A file that cannot be used is reported and left out; the others are exported. */
#ifndef METRICS_PAGE_H
#define METRICS_PAGE_H

#include "budget/list.h"

struct metrics_source {
    const char *directory; /* NULL: the default */
    /* Is called for each unusable file, once for each of its problems: again if the problem changes or comes back. */
    void (*report)(void *context, const char *name, const struct bide_problem *problem);
    void *context;
    struct budget_history reported; /* private; begins zeroed */
};

/* Returns the text and its length, to be freed. NULL after setting *problem: the directory cannot be read, or there is
 * no memory. `targets` receives the number of targets that are exported. */
char *metrics_page(struct metrics_source *source, size_t *length, size_t *targets, struct bide_problem *problem);

void metrics_source_free(struct metrics_source *source);

#endif
