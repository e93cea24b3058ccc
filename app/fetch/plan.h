/* plan.h - URLs and their output files: the list of jobs, before anything is sent.
 *
 * As with curl, the first -o belongs to the first URL, the second to the second. A URL without -o is written to a file
 * named after it (-O), or to standard output. */
#ifndef FETCH_PLAN_H
#define FETCH_PLAN_H

#include "fetch.h"

#define FETCH_URLS_MAX 100000u

struct fetch_plan {
    struct fetch_job *jobs;
    size_t count;
    size_t room;
};

struct fetch_output_options {
    const char **path; /* "-": standard output */
    size_t count;
    bool remote_name;
    const char *directory; /* for relative paths; NULL: the current directory */
    bool continues;        /* -C -: each response needs a regular file, and uses FILE.part as well */
};

/* Adds a job. Returns NULL, or a description of a valid URL. */
const char *fetch_plan_add(struct fetch_plan *plan, const char *url);

/* "-o a: is a directory". The texts are borrowed from plan and options. */
struct fetch_plan_problem {
    const char *option; /* NULL: bide itself failed; there is no value, either */
    const char *value;
    const char *text;
};

/* Assigns an output to each job. Returns false after setting *problem. */
bool fetch_plan_assign_outputs(struct fetch_plan *plan, const struct fetch_output_options *outputs,
                               struct fetch_plan_problem *problem);

bool fetch_plan_uses_stdout(const struct fetch_plan *plan);

void fetch_plan_free(struct fetch_plan *plan);

#endif
