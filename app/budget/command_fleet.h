/* command_fleet.h - prints a fleet's token bucket in Redis, for `bide budget show --fleet`. */
#ifndef BUDGET_COMMAND_FLEET_H
#define BUDGET_COMMAND_FLEET_H

#include "common/fleet.h"

#include "snapshot.h"

#include <stdio.h>

/* For people: a page like that of a shared target. */
void budget_fleet_page(FILE *out, const char *name, const struct bide_fleet_bucket *bucket);

/* For programs: appends an object. */
void budget_fleet_json(struct text_json *json, const char *name, const struct bide_fleet_bucket *bucket);

#endif
