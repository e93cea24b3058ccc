/* command_lists.h - the subcommands list, keys and metrics of `bide sim`: two columns for people, or JSON. */
#ifndef CLI_SIM_LISTS_H
#define CLI_SIM_LISTS_H

#include <stdbool.h>

/* Each prints to stdout and returns the exit status. */
int cli_sim_list(bool json);    /* scenarios of the catalogue */
int cli_sim_keys(bool json);    /* keys of scenario files */
int cli_sim_metrics(bool json); /* all metrics by name */

#endif
