/* lists.h - what there is, for programs that choose from it: scenarios, keys and metrics as JSON arrays of objects. */
#ifndef SIM_LISTS_H
#define SIM_LISTS_H

#include <stdbool.h>
#include <stdio.h>

#include "scenario.h"

#define SIM_TITLE_MAX 256u

/* The title of the i-th scenario of the catalogue. Returns `title`. */
const char *sim_catalogue_title(size_t i, char title[SIM_TITLE_MAX]);

/* False: no memory, or it could not all be written. */
bool sim_catalogue_json(FILE *out); /* name, title, question, rows */
bool sim_keys_json(FILE *out);      /* section, key, default (null: none), want, about */
bool sim_metrics_json(FILE *out);   /* name, unit, flag, about */

#endif
