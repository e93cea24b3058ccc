/* view.h - the two sides beside each other, as text: what the server felt, 100 ms by 100 ms.
 *
 *     naive loop                              bide, interactive
 *     10 attempts, 500ms apart, no jitter,    3 attempts, full jitter 100ms..2s,
 *     2s an attempt, no budget, no breaker    2s an attempt, budget, breaker
 *      200│             █                     200│
 *         │           ▂▅█   ...                  │
 *        0└─────▒▒▒▒▒▒▒▒─────                   0└─────▒▒▒▒▒▒▒▒─────
 *               outage                                 outage
 *
 * Both have the same scale. A column stands for some buckets, as many as it takes to show the whole run, and shows the
 * busiest of them. The same lines are written live, again and again in the same place, and once more at the end. */
#ifndef DEMO_PANELS_H
#define DEMO_PANELS_H

#include <stdio.h>

#include "counters.h"

#define DEMO_PANELS_WIDTH_MIN 60u /* columns */
#define DEMO_PANELS_LINES     13u

struct demo_panel_style {
    unsigned width;
    bool utf8, colour;
    bool wipe; /* lines are written over older ones: what is left of those is wiped */
};

struct demo_panel {
    const char *name, *summary;
    const uint32_t *requests; /* by bucket */
    size_t count;             /* known so far */
};

/* DEMO_VIEW_LINES lines. */
void demo_panels(FILE *out, const struct demo_panel_style *style, const struct demo_scenario *scenario,
                 const struct demo_panel panel[2]);

/* Two texts, one under each panel, cut to its width; in the panels' colours. */
void demo_panels_line(FILE *out, const struct demo_panel_style *style, const char *const text[2]);

#endif
