/* sim_lists.h - the words of `bide sim` that only tell what there is: for people in two columns, or as JSON. */
#ifndef CLI_SIM_LISTS_H
#define CLI_SIM_LISTS_H

#include <stdbool.h>

/* Each prints to stdout and returns the exit status. */
int cli_sim_list(bool json);    /* the scenarios of the catalogue */
int cli_sim_keys(bool json);    /* the keys of scenario files */
int cli_sim_metrics(bool json); /* all figures by name */

#endif
