/* scenario.h - a scenario: a world, and the variations of it that are to be compared.
 *
 *     [scenario]
 *     title    = A cut network, and a database that never comes back
 *     question = How much retrying can it stand?
 *     duration = 600s
 *     bucket   = 1s
 *
 *     [policy one]             # as in bide.conf
 *     attempts = 2
 *
 *     [clients]                # or several: [clients NAME]
 *     arrival = poisson
 *     rate    = 280/s
 *     policy  = one
 *
 *     [network]
 *     delay = exponential 10ms
 *
 *     [service]                # or several: [service NAME]
 *     time = exponential 3.333333ms
 *
 *     [outage]                 # or several: [outage NAME]
 *     kind = hold
 *     from = 30s
 *     until = 40s
 *
 *     [case lifo]              # what is compared: each case is the world with these keys set
 *     service.order = lifo
 *     [case none]
 *     clients.policy = none
 *
 *     [sweep]                  # each case at each of these values; two keys make a grid
 *     clients.rate = 100/s, 140/s, 150/s
 *
 * The catalogue's scenarios are such files too (scenarios/NAME.ini, inside the program), so each of them is an example
 * to start from. Everything is checked when it is read, and each mistake is told with file, line, key, value and what
 * would be right. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "world.h"

#define SIM_CASES_MAX  32u
#define SIM_SWEEPS_MAX 2u
#define SIM_ROWS_MAX   512u
#define SIM_LABEL_MAX  160u

struct sim_scenario; /* opaque */

/* One variation, ready to run. */
struct sim_row {
    char label[SIM_LABEL_MAX]; /* "lifo, clients.rate=140/s"; never empty */
    char name[SIM_NAME_MAX];   /* of the case or the policy: "lifo" */
    char swept[SIM_LABEL_MAX]; /* "clients.rate=140/s"; empty: nothing is swept */
    double swept_value;        /* the first swept key as a number, for charts: seconds, per second, shares from 0 to 1,
                                   else the number itself; 0 if it is none */
    struct sim_world world;
};

/* What the command line adds. */
struct sim_overrides {
    const char *const *set;    /* "clients.rate=300/s", "policy.attempts=3"; NULL-terminated; NULL: none */
    const char *const *policy; /* "bide.conf#payments", "service": the cases are these; NULL-terminated */
    const char *config;        /* for policy names without a file; NULL: the usual places */
};

/* Reads a catalogue scenario by name, or a file: a name with a / or a . in it is a file, "-" is stdin. NULL on a
 * mistake, told in `errors`, one per line. --set on a key of the world applies to the world before cases and sweeps,
 * and takes a key that is swept out of the sweep, and out of every case; "policy.KEY" applies to every policy used.
 * With policies given, each is a case of its own, used by every group of clients and every service that makes calls;
 * the scenario's own cases are then left out. */
struct sim_scenario *sim_scenario_read(const char *name, const struct sim_overrides *overrides,
                                       char errors[CONF_ERROR_MAX]);

/* The same for text that is already here; `name` stands for the file in messages. */
struct sim_scenario *sim_scenario_read_text(const char *name, struct bide_text text,
                                            const struct sim_overrides *overrides, char errors[CONF_ERROR_MAX]);
void sim_scenario_free(struct sim_scenario *scenario); /* accepts NULL */

const char *sim_scenario_name(const struct sim_scenario *scenario);
const char *sim_scenario_title(const struct sim_scenario *scenario);
const char *sim_scenario_question(const struct sim_scenario *scenario); /* "" if there is none */
uint64_t sim_scenario_seed(const struct sim_scenario *scenario);        /* unless the command line says another */

/* The metrics that its table shows first, by name (result.h): `columns = amplification, peak_served_50ms`. */
const char *const *sim_scenario_columns(const struct sim_scenario *scenario, size_t *count);

/* What its picture shows: `picture = series` (over time, default), `bars` (a metric per row) or `curve` (a metric over
 * what is swept), and `plot = amplification`: of which metric. */
enum sim_picture { SIM_PICTURE_SERIES, SIM_PICTURE_BARS, SIM_PICTURE_CURVE };
enum sim_picture sim_scenario_picture(const struct sim_scenario *scenario);
const char *sim_scenario_plot(const struct sim_scenario *scenario);

size_t sim_scenario_rows(const struct sim_scenario *scenario);
const struct sim_row *sim_scenario_row(const struct sim_scenario *scenario, size_t row);

/* The i-th key that is not at its default, as "clients.rate" and "280/s", in the order of the table: of those that all
 * rows have in common, or of those in which this row differs from another. False past the last. */
#define SIM_ALL_ROWS SIZE_MAX
bool sim_scenario_setting(const struct sim_scenario *scenario, size_t row, size_t i, const char **key, char value[256]);

/* ---- the catalogue ---- */

struct sim_entry {
    const char *name; /* "storm_herd" */
    const char *text; /* the file */
    size_t length;
};

/* The i-th, in the order of the list in the docs; NULL past the last. */
const struct sim_entry *sim_catalogue(size_t i);

/* ---- keys, for the reference in the docs ---- */

struct sim_key {
    const char *section;  /* "clients" */
    const char *key;      /* "rate" */
    const char *want;     /* what a value looks like */
    const char *about;    /* one line */
    const char *standard; /* the default, as written */
};
const struct sim_key *sim_key(size_t i); /* NULL past the last */

#endif
