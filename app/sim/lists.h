/* lists.h - the catalogue, the keys and the metrics as JSON arrays of objects, for programs that choose from them. */
#ifndef SIM_LISTS_H
#define SIM_LISTS_H

#include <stdbool.h>
#include <stdio.h>

#include "scenario.h"

#define SIM_TITLE_MAX 256u

/* Writes the title of the i-th scenario of the catalogue. Returns `title`, or NULL without memory. */
const char *sim_catalogue_title(size_t i, char title[SIM_TITLE_MAX]);

/* Return false without memory, or if the output could not be written. */
bool sim_catalogue_json(FILE *out); /* name, title, question, rows */
bool sim_keys_json(FILE *out);      /* section, key, default (null: none), want, about */
bool sim_metrics_json(FILE *out);   /* name, unit, flag, about */

#endif
