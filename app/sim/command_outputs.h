/* sim_outputs.h - what `bide sim` writes, and where.
 *
 * One thing goes to standard output: the table, JSON, CSV, or a file named "-". Series and pictures go to files, which
 * are opened before anything is run and get their names when they are whole. None of them may be a file that the run
 * itself is read from: a picture in the place of bide.conf would be the end of it. */
#ifndef CLI_SIM_OUTPUTS_H
#define CLI_SIM_OUTPUTS_H

#include "common/atomic_file.h"

#include "report.h"

enum cli_sim_file { CLI_SIM_SERIES, CLI_SIM_SVG, CLI_SIM_HTML, CLI_SIM_FILES };

/* What standard output has. */
enum cli_sim_stdout {
    CLI_SIM_STDOUT_TABLE = 0,
    CLI_SIM_STDOUT_DATA,  /* JSON, CSV, or a file named "-" */
    CLI_SIM_STDOUT_LINES, /* one per expectation, and no more */
};

struct cli_sim_outputs {
    bool json, csv;
    const char *file[CLI_SIM_FILES]; /* NULL: not wanted; "-": stdout */
    enum cli_sim_stdout stdout_content;
    struct cli_atomic_file draft[CLI_SIM_FILES];
};

/* The others return false when they have told what is wrong. */

/* No two of them to one place; settles what is shown. `asserts`: only the lines of expectations. */
bool cli_sim_outputs_check(struct cli_sim_outputs *outputs, bool asserts);

/* None is this file, which is read; "-" is standard input. */
bool cli_sim_outputs_check_input(const struct cli_sim_outputs *outputs, const char *input);

bool cli_sim_outputs_open(struct cli_sim_outputs *outputs);
bool cli_sim_outputs_write(struct cli_sim_outputs *outputs, const struct sim_batch *batch);

/* Leaves nothing behind that is not whole. */
void cli_sim_outputs_close(struct cli_sim_outputs *outputs);

#endif
