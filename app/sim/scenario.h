/* scenario.h - a scenario: a world, and the variations of it to be compared.
 *
 *     [scenario]
 *     title    = A cut network, and a database that never recovers
 *     question = How many retries can it sustain?
 *     duration = 600s
 *     bin      = 1s
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
 *     [case lifo]              # a variation: the world with these keys set
 *     service.order = lifo
 *     [case none]
 *     clients.policy = none
 *
 *     [sweep]                  # each case at each of these values; two keys make a grid
 *     clients.rate = 100/s, 140/s, 150/s
 *
 * The scenarios of the catalogue are such files too (scenarios/NAME.ini, compiled into the program), so each is an
 * example to start from. A file is checked completely when it is read; each mistake is reported with file, line, key,
 * value and the valid form. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "world.h"

#define SIM_CASES_MAX  32u
#define SIM_SWEEPS_MAX 2u
#define SIM_ROWS_MAX   512u
#define SIM_LABEL_MAX  160u

struct sim_scenario; /* opaque */

/* One variation of the world, ready to run. */
struct sim_row {
    char label[SIM_LABEL_MAX]; /* "lifo, clients.rate=140/s"; never empty */
    char name[SIM_NAME_MAX];   /* of the case or the policy: "lifo" */
    char swept[SIM_LABEL_MAX]; /* "clients.rate=140/s"; empty without a sweep */
    double swept_value;        /* the value of the first swept key, for charts: seconds, per second, shares from 0 to 1,
                                * else the number itself; 0 if it is not a number */
    struct sim_world world;
};

/* Options of the command line that change a scenario. */
struct sim_overrides {
    const char *const *set;    /* "clients.rate=300/s", "policy.attempts=3"; NULL-terminated; NULL: none */
    const char *const *policy; /* "bide.conf#payments", "service": each replaces the cases; NULL-terminated */
    const char *config;        /* policy file for names without a file; NULL: the default locations */
};

/* Reads a scenario of the catalogue by name, or a file: a name that contains a / or a . is a file, "-" is stdin.
 * Returns NULL after writing the mistakes to `errors`, one per line. --set on a key of the world applies before cases
 * and sweeps, and removes that key from them; "policy.KEY" applies to every policy in use. Each policy given is a case
 * that every group of clients and every calling service uses; the scenario's own cases are then left out. */
struct sim_scenario *sim_scenario_read(const char *name, const struct sim_overrides *overrides,
                                       char errors[CONF_ERROR_MAX]);

/* Reads a scenario from memory; messages show `name` as the file. */
struct sim_scenario *sim_scenario_read_text(const char *name, struct bide_text text,
                                            const struct sim_overrides *overrides, char errors[CONF_ERROR_MAX]);
void sim_scenario_free(struct sim_scenario *scenario); /* accepts NULL */

const char *sim_scenario_name(const struct sim_scenario *scenario);
const char *sim_scenario_title(const struct sim_scenario *scenario);
const char *sim_scenario_question(const struct sim_scenario *scenario); /* "" if there is none */
uint64_t sim_scenario_seed(const struct sim_scenario *scenario);        /* unless --seed is given */

/* Returns the names of the metrics (result.h) that the table shows first: `columns = amplification,
 * peak_served_50ms`. */
const char *const *sim_scenario_columns(const struct sim_scenario *scenario, size_t *count);

/* `picture = series` (over time, default), `bars` (a metric per row) or `curve` (a metric over the swept key), and the
 * metric of bars and curves: `plot = amplification`. */
enum sim_picture { SIM_PICTURE_SERIES, SIM_PICTURE_BARS, SIM_PICTURE_CURVE };
enum sim_picture sim_scenario_picture(const struct sim_scenario *scenario);
const char *sim_scenario_plot(const struct sim_scenario *scenario);

size_t sim_scenario_rows(const struct sim_scenario *scenario);
const struct sim_row *sim_scenario_row(const struct sim_scenario *scenario, size_t row);

/* Gets the i-th key that is not at its default, as "clients.rate" and "280/s", in the order of the key table: of the
 * keys that all rows share (SIM_ALL_ROWS), or of those in which this row differs from another. Returns false past the
 * last. */
#define SIM_ALL_ROWS SIZE_MAX
bool sim_scenario_setting(const struct sim_scenario *scenario, size_t row, size_t i, const char **key, char value[256]);

/* ---- the catalogue ---- */

struct sim_entry {
    const char *name; /* "storm_herd" */
    const char *text; /* the file */
    size_t length;
};

/* Returns the i-th scenario, in the order of the documentation; NULL past the last. */
const struct sim_entry *sim_catalogue(size_t i);

/* ---- keys, for the reference in the docs ---- */

struct sim_key {
    const char *section;  /* "clients" */
    const char *key;      /* "rate" */
    const char *want;     /* the form of a value */
    const char *about;    /* one line of help */
    const char *standard; /* the default, as written */
};
const struct sim_key *sim_key(size_t i); /* NULL past the last */

#endif
