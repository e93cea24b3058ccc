/* scenario_key.h - every key of a scenario file, as one table over struct sim_world and the head of the file.
 *
 * A key is the field's name without its unit; the value carries the unit. The file, its cases and sweeps, `--set`, the
 * settings in reports and the reference documentation all read and write through this table. It also holds the
 * defaults: sim_world_init reads them from here.
 *
 * A part is the subject of a section. A world has several elements of some parts, distinguished by index. */
#ifndef SIM_SCENARIO_KEY_H
#define SIM_SCENARIO_KEY_H

#include "scenario.h"

enum sim_part {
    SIM_PART_HEAD = 0, /* [scenario]: title, columns and so on */
    SIM_PART_WORLD,    /* [scenario] too: keys of struct sim_world */
    SIM_PART_CLIENTS,
    SIM_PART_NETWORK,
    SIM_PART_FLEET,
    SIM_PART_SERVICE,
    SIM_PART_OUTAGE,
    SIM_PARTS,
};

/* The descriptive keys of [scenario]. */
struct sim_head {
    char title[256];
    char question[1024];
    char columns[1024]; /* names of metrics, separated by commas; empty: none */
    char plot[64];
    enum sim_picture picture;
    uint64_t seed;
};

enum sim_form {
    SIM_FORM_TIME,        /* 10s; `never` only where the default is never */
    SIM_FORM_SHAPE,       /* exponential 10ms: see random.h */
    SIM_FORM_RATE,        /* 280/s, 18M/s, 30/min; stored in millionths a second, 64 bits */
    SIM_FORM_COUNT,       /* 3, 10k; 32 bits */
    SIM_FORM_COUNT_64,    /* 25M */
    SIM_FORM_COUNT_NEVER, /* 20, or never: UINT32_MAX */
    SIM_FORM_MILLI,       /* 6, 2.5 */
    SIM_FORM_PERMILLE,    /* 10%, 0.1% */
    SIM_FORM_PPM,         /* 10%, 0.0001% */
    SIM_FORM_PPM_USUAL,   /* the same, or usual: SIM_USUAL */
    SIM_FORM_WORD,        /* one of the words, stored as its index; - equals _, and case does not matter */
    SIM_FORM_FLAG,        /* yes, no (true, false, on, off) */
    SIM_FORM_SERVICE,     /* the name of a service, stored as its index; default the first */
    SIM_FORM_CALLS,       /* the name of a service, or none: -1 */
    SIM_FORM_POLICY,      /* the name of a policy; setting.c checks that it exists */
    SIM_FORM_TEXT,        /* any text */
    SIM_FORM_METRIC,      /* the name of a metric: see result.h */
    SIM_FORM_METRICS,     /* several names, separated by commas */
};

struct sim_field {
    struct sim_key key; /* section, name, help */
    enum sim_part part;
    enum sim_form form;
    size_t offset; /* in the element: struct sim_head, sim_clients, sim_service or sim_outage; else sim_world */
    size_t size;   /* of the member: for a text, with its NUL */
    const char *const *words;
};

/* Returns the i-th field; NULL past the last. */
const struct sim_field *sim_field(size_t i);
#define SIM_FIELDS_MAX 96u /* upper bound */
size_t sim_field_index(const struct sim_field *field);

/* Finds the key of a section ("clients", "rate"), given with its length; NULL: not found. */
const struct sim_field *sim_field_find(const char *section, const char *key, size_t length);
const struct sim_field *sim_field_of(enum sim_part part, const char *key);

/* Returns the key of a section nearest to a misspelt key; NULL: none is near enough. */
const char *sim_field_suggest(const char *section, const char *key, size_t length);

/* The number of elements of a part in a world, and the i-th of them. Not for the head, which is not in the world. */
uint32_t sim_part_count(const struct sim_world *world, enum sim_part part);
void *sim_part_at(struct sim_world *world, enum sim_part part, uint32_t i);
const void *sim_part_in(const struct sim_world *world, enum sim_part part, uint32_t i);

/* Returns the name of an element: "background" of [clients background]; empty if it has none. */
const char *sim_part_name(const struct sim_world *world, enum sim_part part, uint32_t i);

#define SIM_USUAL UINT32_MAX /* an outage's fail: 100%, or, if slow, the service's own. See sim_world_prepare */

/* Assigns a value to an element; `world` has the names of the services. Returns NULL, or a description of valid values
 * (a static string): nothing is then changed. */
const char *sim_field_read(const struct sim_field *field, void *element, const struct sim_world *world,
                           const char *value);

/* Writes the value as in a scenario file. Returns text. Not for SIM_PART_HEAD: its texts may be longer. */
#define SIM_VALUE_MAX 256u
const char *sim_field_text(char text[SIM_VALUE_MAX], const struct sim_field *field, const void *element,
                           const struct sim_world *world);

/* Gets the value as a number for charts: seconds, per second, shares from 0 to 1, else the number itself. Returns false
 * if it is not a number. */
bool sim_field_number(const struct sim_field *field, const void *element, double *number);

/* Sets all fields of an element to their defaults. */
void sim_element_init(enum sim_part part, void *element);

/* ---- faults of a world ---- */

struct sim_fault {
    const struct sim_field *field;
    uint32_t element;
    bool ignored; /* the value is valid, but has no effect in this world */
    char reason[192];
};
#define SIM_FAULTS_MAX 16u

/* Collects at most SIM_FAULTS_MAX faults. Returns their number. */
size_t sim_world_faults(const struct sim_world *world, struct sim_fault faults[SIM_FAULTS_MAX]);

/* Writes the key as --set takes it: "clients.rate", "clients.background.rate". Returns text. */
#define SIM_KEY_MAX 128u
const char *sim_key_path(char text[SIM_KEY_MAX], const struct sim_field *field, const char *name);

#endif
