/* key.h - every key of a scenario file as one table over struct sim_world, and over the head of the file.
 *
 * A key is the field's own name without its unit; the value carries the unit instead. The file, its cases and sweeps,
 * `--set`, the settings in reports and the reference in the docs all read and write through this table. Its defaults
 * are the defaults: sim_world_init reads them from here.
 *
 * A part is what a section describes. Of some there are several in a world, told apart by their index: its elements. */
#ifndef SIM_KEY_H
#define SIM_KEY_H

#include "scenario.h"

enum sim_part {
    SIM_PART_HEAD = 0, /* [scenario]: what is said about the world */
    SIM_PART_WORLD,    /* [scenario] too: what holds for all of it */
    SIM_PART_CLIENTS,
    SIM_PART_NETWORK,
    SIM_PART_FLEET,
    SIM_PART_SERVICE,
    SIM_PART_OUTAGE,
    SIM_PARTS,
};

/* What the file says about itself. */
struct sim_head {
    char title[256];
    char question[1024];
    char columns[1024]; /* names of metrics, with commas between them; empty: none said */
    char plot[64];
    enum sim_picture picture;
    uint64_t seed;
};

enum sim_form {
    SIM_FORM_TIME,        /* 10s; `never` only where the default is never */
    SIM_FORM_SHAPE,       /* exponential 10ms: see draw.h */
    SIM_FORM_RATE,        /* 280/s, 18M/s, 30/min; in millionths a second, 64 bits */
    SIM_FORM_COUNT,       /* 3, 10k; 32 bits */
    SIM_FORM_COUNT_64,    /* 25M */
    SIM_FORM_COUNT_NEVER, /* 20, or never: the largest number */
    SIM_FORM_MILLI,       /* 6, 2.5 */
    SIM_FORM_PERMILLE,    /* 10%, 0.1% */
    SIM_FORM_PPM,         /* 10%, 0.0001% */
    SIM_FORM_PPM_USUAL,   /* the same, or usual: SIM_USUAL */
    SIM_FORM_WORD,        /* one of the words, numbered as they are; - and _ are the same, and so are capitals */
    SIM_FORM_FLAG,        /* yes, no (true, false, on, off) */
    SIM_FORM_SERVICE,     /* a service's name; kept as its index. The first one by default */
    SIM_FORM_CALLS,       /* the same, or none: -1 */
    SIM_FORM_POLICY,      /* a policy's name: whether there is one is asked by others */
    SIM_FORM_TEXT,        /* anything */
    SIM_FORM_METRIC,      /* a name of result.h */
    SIM_FORM_METRICS,     /* several, with commas between them */
};

struct sim_field {
    struct sim_key key; /* its section, name, ... */
    enum sim_part part;
    enum sim_form form;
    size_t offset; /* in its element: struct sim_head, sim_clients, sim_service or sim_outage; else sim_world */
    size_t size;   /* of a text, with its NUL */
    const char *const *words;
};

/* The i-th; NULL past the last. */
const struct sim_field *sim_field(size_t i);
#define SIM_FIELDS_MAX 96u /* there are fewer */
size_t sim_field_index(const struct sim_field *field);

/* A key of a section ("clients", "rate"); NULL: it has none of that name. `key` has that length. */
const struct sim_field *sim_field_find(const char *section, const char *key, size_t length);
const struct sim_field *sim_field_of(enum sim_part part, const char *key);

/* The key of a section that is nearest to a misspelt one; NULL: none is near enough. */
const char *sim_field_suggest(const char *section, const char *key, size_t length);

/* How many elements of a part a world has, and the i-th of them. The head is none of the world's. */
uint32_t sim_part_count(const struct sim_world *world, enum sim_part part);
void *sim_part_at(struct sim_world *world, enum sim_part part, uint32_t i);
const void *sim_part_in(const struct sim_world *world, enum sim_part part, uint32_t i);

/* The name of an element: "background" of [clients background]; empty if it has none. */
const char *sim_part_name(const struct sim_world *world, enum sim_part part, uint32_t i);

#define SIM_USUAL UINT32_MAX /* an outage's fail: 100%, or if it is slow the service's own. See sim_world_ready */

/* Assigns a value to an element. `world` knows the names of services. NULL, or what would be right: nothing is then
 * changed. The strings are static. */
const char *sim_field_read(const struct sim_field *field, void *element, const struct sim_world *world,
                           const char *value);

/* The value as it would be written in a file. Returns text. Not for SIM_PART_HEAD, whose texts may be longer. */
#define SIM_VALUE_MAX 256u
const char *sim_field_text(char text[SIM_VALUE_MAX], const struct sim_field *field, const void *element,
                           const struct sim_world *world);

/* The value as a number for charts: seconds, per second, shares from 0 to 1, else the number itself; false: a word. */
bool sim_field_number(const struct sim_field *field, const void *element, double *number);

/* Everything of an element at its default. */
void sim_element_init(enum sim_part part, void *element);

/* ---- what is wrong with a world ---- */

struct sim_fault {
    const struct sim_field *field;
    uint32_t element;
    bool ignored; /* the value is good, but of no consequence in this world */
    char reason[192];
};
#define SIM_FAULTS_MAX 16u

/* Fills in what it finds, as far as there is room. Returns how many. */
size_t sim_world_faults(const struct sim_world *world, struct sim_fault faults[SIM_FAULTS_MAX]);

/* How a key is written for --set: "clients.rate", "clients.background.rate". Returns text. */
#define SIM_KEY_MAX 128u
const char *sim_key_path(char text[SIM_KEY_MAX], const struct sim_field *field, const char *name);

#endif
