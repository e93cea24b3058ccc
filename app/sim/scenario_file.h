/* scenario_file.h - splits a scenario file into sections, keys and values, without interpreting them. */
#ifndef SIM_SCENARIO_FILE_H
#define SIM_SCENARIO_FILE_H

#include <bide/hint.h>

#include "conf/diagnostics.h"

/* key = value */
struct sim_assignment {
    unsigned line;
    char *key, *value; /* trimmed */
};

/* [kind name] and the assignments below it. */
struct sim_section {
    unsigned line;
    char *head;        /* the text between the brackets */
    char *kind, *name; /* name: empty if missing */
    size_t first, count;
};

struct sim_file {
    struct sim_section *section;
    size_t sections;
    struct sim_assignment *assignment;
    size_t assignments;
    /* The [policy NAME] sections as the text of a policy file with the same line numbers: all other lines are empty. */
    char *policies;
    size_t policies_length;
};

/* Reports syntax errors. Returns false without memory, after reporting that too. [policy NAME] sections are not in
 * `section`. */
bool sim_file_read(struct sim_file *file, struct bide_text text, struct conf_diagnostics *diagnostics);
void sim_file_free(struct sim_file *file); /* accepts an empty struct */

#endif
