/* command_outputs.h - the outputs of `bide sim`.
 *
 * Standard output has exactly one of: the table, JSON, CSV, or a file named "-". Series and pictures go to files, which
 * are opened before anything runs and get their names when they are complete (an atomic rename). No output may be an
 * input of the run: a picture would replace bide.conf. */
#ifndef CLI_SIM_OUTPUTS_H
#define CLI_SIM_OUTPUTS_H

#include "common/atomic_file.h"

#include "report.h"

enum cli_sim_file { CLI_SIM_SERIES, CLI_SIM_SVG, CLI_SIM_HTML, CLI_SIM_FILES };

/* The content of standard output. */
enum cli_sim_stdout {
    CLI_SIM_STDOUT_TABLE = 0,
    CLI_SIM_STDOUT_DATA,  /* JSON, CSV, or a file named "-" */
    CLI_SIM_STDOUT_LINES, /* only one line per expectation */
};

struct cli_sim_outputs {
    bool json, csv;
    const char *file[CLI_SIM_FILES]; /* NULL: not requested; "-": stdout */
    enum cli_sim_stdout stdout_content;
    struct cli_atomic_file atomic_file[CLI_SIM_FILES];
};

/* The functions below return false after reporting a mistake. */

/* Checks that no two outputs go to the same place, and sets stdout_content. `asserts`: only lines of expectations. */
bool cli_sim_outputs_check(struct cli_sim_outputs *outputs, bool asserts);

/* Checks that no output is this input file; "-" is standard input. */
bool cli_sim_outputs_check_input(const struct cli_sim_outputs *outputs, const char *input);

bool cli_sim_outputs_open(struct cli_sim_outputs *outputs);
bool cli_sim_outputs_write(struct cli_sim_outputs *outputs, const struct sim_batch *batch);

/* Removes incomplete files. */
void cli_sim_outputs_close(struct cli_sim_outputs *outputs);

#endif
