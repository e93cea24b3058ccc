/* plan.h - which URLs, and where their answers go: jobs, before anything is sent.
 *
 * The first -o is for the first URL, the second for the second, as with curl; a URL without one goes to a file named
 * after it (-O), or to standard output. */
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
    const char *directory; /* of what is not absolute; NULL: the present one */
};

/* One more URL. NULL, or what would be right. */
const char *fetch_plan_add(struct fetch_plan *plan, const char *url);

/* Where each answer goes. NULL, or what is wrong: a sentence to be freed. */
char *fetch_plan_assign_outputs(struct fetch_plan *plan, const struct fetch_output_options *outputs);

bool fetch_plan_uses_stdout(const struct fetch_plan *plan);

void fetch_plan_free(struct fetch_plan *plan);

#endif
