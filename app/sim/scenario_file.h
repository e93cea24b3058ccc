/* scenario_file.h - splits a scenario file into sections, keys and values, without interpreting them. */
#ifndef SIM_SCENARIO_FILE_H
#define SIM_SCENARIO_FILE_H

#include "conf/conf_internal.h"

/* [kind name] */
struct sim_section {
    const struct conf_ini_section *ini;
    char kind[16];      /* cut: no kind of section is that long */
    size_t kind_length; /* in ini->heading */
    const char *name;   /* empty if missing */
};

struct sim_file {
    struct conf_ini ini;
    struct sim_section *section; /* without policies, and without malformed headings */
    size_t sections;
    size_t policies; /* number of [policy NAME] sections */
};

/* Reports syntax errors. Returns false without memory, after reporting that too. */
bool sim_file_read(struct sim_file *file, struct bide_text text, struct conf_diagnostics *diagnostics);
void sim_file_free(struct sim_file *file); /* accepts an empty struct */

#endif
