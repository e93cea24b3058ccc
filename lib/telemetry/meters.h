/* meters.h - the meters of this process: one for each target name, up to a limit, and one for all further names.
 *
 * A meter is created when a call of its name begins, and is never freed: calls in flight, and a later start of
 * telemetry, refer to it. */
#ifndef TELEMETRY_METERS_H
#define TELEMETRY_METERS_H

#include <bide/event.h>
#include <bide/meter.h>

#define TELEMETRY_OTHER   "_other"   /* name of the meter that counts names beyond the limit */
#define TELEMETRY_UNNAMED "_unnamed" /* name of the meter that counts calls without a target name */

/* A named meter. */
struct telemetry_meter {
    struct bide_meter meter; /* first: it is what a call refers to */
    const char *name;
};

/* Sets the limit for names that come later. Returns false if there is no memory. */
bool telemetry_meters_begin(uint32_t names_max);

/* Returns the meter that counts a call: see struct bide_listener. */
struct bide_meter *telemetry_meters_find(void *context, const struct bide_report_call *call);

/* Returns how many meters there are; their numbers are 0 to one less, in the order of their creation. */
uint32_t telemetry_meters_count(void);
const struct telemetry_meter *telemetry_meters_at(uint32_t number);

#endif
