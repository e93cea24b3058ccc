/* scenario_file.h - a scenario file cut into sections, keys and values: what it says, not yet what it means. */
#ifndef SIM_SCENARIO_FILE_H
#define SIM_SCENARIO_FILE_H

#include <bide/hint.h>

#include "conf/diagnostics.h"

/* key = value */
struct sim_assignment {
    unsigned line;
    char *key, *value; /* without blanks around them */
};

/* [kind name] and what is below it. */
struct sim_section {
    unsigned line;
    char *head;        /* all that is between the brackets */
    char *kind, *name; /* name: empty if there is none */
    size_t first, count;
};

struct sim_file {
    struct sim_section *section;
    size_t sections;
    struct sim_assignment *assignment;
    size_t assignments;
    /* The [policy NAME] sections as a policy file, each in its own line: all other lines are empty. */
    char *policies;
    size_t policies_length;
};

/* Tells what cannot be cut. False: no memory, and that is told, too. [policy NAME] sections are not in `section`. */
bool sim_file_read(struct sim_file *file, struct bide_text text, struct conf_diagnostics *diagnostics);
void sim_file_free(struct sim_file *file); /* accepts an empty one */

#endif
