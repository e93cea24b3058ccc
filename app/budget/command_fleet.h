/* budget_fleet.h - what `bide budget show --fleet` prints of what lies in Redis. */
#ifndef BUDGET_COMMAND_FLEET_H
#define BUDGET_COMMAND_FLEET_H

#include "common/fleet.h"

#include <jansson.h>
#include <stdio.h>

/* For people: a page, as that of a target of the host. */
void budget_fleet_page(FILE *out, const char *name, const struct bide_fleet_bucket *bucket);

/* For programs. NULL: no memory. */
json_t *budget_fleet_json(const char *name, const struct bide_fleet_bucket *bucket);

#endif
