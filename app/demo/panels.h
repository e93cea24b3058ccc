/* panels.h - the two sides next to each other, as text: the servers' load per 100 ms.
 *
 *     naive loop                              bide, interactive
 *     10 attempts, 500ms apart, no jitter,    3 attempts, full jitter 100ms..2s,
 *     2s an attempt, no budget, no breaker    2s an attempt, budget, breaker
 *      200│             █                     200│
 *         │           ▂▅█   ...                  │
 *        0└─────▒▒▒▒▒▒▒▒─────                   0└─────▒▒▒▒▒▒▒▒─────
 *               outage                                 outage
 *
 * Both panels have the same scale. A column covers as many intervals as needed to show the whole run, and shows the
 * busiest of them. The same lines are drawn live, repeatedly in the same place, and once more at the end. */
#ifndef DEMO_PANELS_H
#define DEMO_PANELS_H

#include "common/term.h"
#include "counters.h"

#define DEMO_PANELS_WIDTH_MIN 60u /* columns */
#define DEMO_PANELS_LINES     13u

struct demo_panel {
    const char *name, *summary;
    const uint32_t *requests; /* per interval */
    size_t count;             /* known so far */
};

/* Draws DEMO_PANELS_LINES lines. On a live terminal they may overwrite older lines. */
void demo_panels(const struct cli_term *term, const struct demo_scenario *scenario, const struct demo_panel panel[2]);

/* Prints a text under each panel, cut to its width, in the panel's colour. */
void demo_panels_line(const struct cli_term *term, const char *const text[2]);

#endif
