/* command_outputs.c - see command_outputs.h. */
#include "command_outputs.h"

#include "common/commands.h"
#include "common/term.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WIDTH_MAX 120u

static bool output_write_series(FILE *out, const struct sim_batch *batch)
{
    sim_report_csv_series(out, batch);
    return true;
}

/* In the order of the enum. */
static const struct {
    const char *option;
    bool (*write)(FILE *out, const struct sim_batch *batch);
} kinds[CLI_SIM_FILES] = {{"--series", output_write_series}, {"--svg", sim_report_svg}, {"--html", sim_report_html}};

static bool is_stdout(const char *file)
{
    return file != NULL && strcmp(file, "-") == 0;
}

/* ---- before the run ---- */

static bool report_same_file(const struct cli_sim_outputs *outputs, size_t i, size_t k)
{
    cli_fail(&cli_sim, "%s %s: must not be the file of %s", kinds[i].option, outputs->file[i], kinds[k].option);
    return false;
}

bool cli_sim_outputs_check(struct cli_sim_outputs *outputs, bool asserts)
{
    unsigned on_stdout = outputs->json + outputs->csv;
    for (size_t i = 0; i < CLI_SIM_FILES; i++)
        on_stdout += is_stdout(outputs->file[i]);
    outputs->stdout_content = asserts         ? CLI_SIM_STDOUT_LINES
                              : on_stdout > 0 ? CLI_SIM_STDOUT_DATA
                                              : CLI_SIM_STDOUT_TABLE;
    if (on_stdout > 1)
        cli_fail(&cli_sim,
                 "only one of --json, --csv and a file named - is allowed: all of them go to standard output");
    else if (on_stdout > 0 && asserts)
        cli_fail(&cli_sim, "assert prints a line per expectation: use bide sim NAME --expect with --json, --csv or a "
                           "file named -");
    return on_stdout <= (asserts ? 0 : 1);
}

bool cli_sim_outputs_check_input(const struct cli_sim_outputs *outputs, const char *input)
{
    struct stat in, out;
    if ((strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &in) : stat(input, &in)) != 0 || !S_ISREG(in.st_mode))
        return true;
    for (size_t i = 0; i < CLI_SIM_FILES; i++) {
        const char *file = outputs->file[i];
        if (file == NULL || is_stdout(file) || stat(file, &out) != 0 || out.st_dev != in.st_dev ||
            out.st_ino != in.st_ino)
            continue;
        cli_fail(&cli_sim, "%s %s: must be another file: this file is an input", kinds[i].option, file);
        return false;
    }
    return true;
}

/* Returns false after reporting that an earlier output goes to the same file. Compares the resolved paths of the atomic
 * files; a device has none. */
static bool output_check_unique(const struct cli_sim_outputs *outputs, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (outputs->atomic_file[i].path != NULL && outputs->atomic_file[k].path != NULL &&
            strcmp(outputs->atomic_file[i].path, outputs->atomic_file[k].path) == 0)
            return report_same_file(outputs, i, k);
    return true;
}

bool cli_sim_outputs_open(struct cli_sim_outputs *outputs)
{
    for (size_t i = 0; i < CLI_SIM_FILES; i++) {
        if (outputs->file[i] == NULL || is_stdout(outputs->file[i]))
            continue;
        const char *problem = cli_atomic_file_open(&outputs->atomic_file[i], outputs->file[i]);
        if (problem != NULL) {
            cli_fail(&cli_sim, "%s %s: %s", kinds[i].option, outputs->file[i], problem);
            return false;
        }
        if (!output_check_unique(outputs, i))
            return false;
    }
    return true;
}

/* ---- after the run ---- */

static bool output_write(struct cli_sim_outputs *outputs, size_t i, const struct sim_batch *batch)
{
    bool to_stdout = is_stdout(outputs->file[i]);
    const char *problem = NULL;
    if (!kinds[i].write(to_stdout ? stdout : outputs->atomic_file[i].file, batch))
        problem = "no memory";
    else if (!to_stdout)
        problem = cli_atomic_file_commit(&outputs->atomic_file[i]);
    if (problem != NULL)
        cli_fail(&cli_sim, "%s %s: %s; it was not written", kinds[i].option, outputs->file[i], problem);
    return problem == NULL;
}

static void print_table(const struct sim_batch *batch)
{
    struct cli_term term = cli_term_detect(stdout);
    term.width = term.width < WIDTH_MAX ? term.width : WIDTH_MAX;
    sim_report_table(&term, batch);
}

bool cli_sim_outputs_write(struct cli_sim_outputs *outputs, const struct sim_batch *batch)
{
    bool written = true;
    if (outputs->json)
        sim_report_json(stdout, batch);
    else if (outputs->csv)
        sim_report_csv(stdout, batch);
    else if (outputs->stdout_content == CLI_SIM_STDOUT_TABLE)
        print_table(batch);
    for (size_t i = 0; i < CLI_SIM_FILES; i++)
        if (outputs->file[i] != NULL)
            written = output_write(outputs, i, batch) && written;
    return written;
}

void cli_sim_outputs_close(struct cli_sim_outputs *outputs)
{
    for (size_t i = 0; i < CLI_SIM_FILES; i++)
        cli_atomic_file_discard(&outputs->atomic_file[i]);
}
