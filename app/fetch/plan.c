/* plan.c - the list of jobs; see plan.h. Reports before the first request: two responses for one file, a URL without a
 * file name, a directory as output. */
#include "plan.h"

#include "partial.h"
#include "secret.h"
#include "url.h"

#include "common/atomic_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *fetch_plan_add(struct fetch_plan *plan, const char *url)
{
    const char *want = fetch_url_check(url);
    if (want)
        return want;
    if (plan->count >= FETCH_URLS_MAX)
        return "one of at most 100000 URLs";
    if (plan->count == plan->room) {
        size_t room = plan->room > 0 ? 2 * plan->room : 4;
        struct fetch_job *grown = realloc(plan->jobs, room * sizeof *grown);
        if (!grown)
            return "shorter (out of memory)";
        plan->jobs = grown;
        plan->room = room;
    }
    struct fetch_job job = {.url = strdup(url), .display_url = fetch_url_display(url)};
    plan->jobs[plan->count++] = job;
    return job.url && job.display_url ? NULL : "shorter (out of memory)";
}

void fetch_plan_free(struct fetch_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        fetch_secret_free(plan->jobs[i].url);
        free(plan->jobs[i].display_url);
        free(plan->jobs[i].output_path);
    }
    free(plan->jobs);
    *plan = (struct fetch_plan){0};
}

bool fetch_plan_uses_stdout(const struct fetch_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!plan->jobs[i].output_path)
            return true;
    return false;
}

/* ---- outputs ---- */

static const struct fetch_plan_problem out_of_memory = {.text = "out of memory"};

static char *path_join(const char *directory, const char *name)
{
    char *path = NULL;
    if (!directory || name[0] == '/')
        return strdup(name);
    return asprintf(&path, "%s/%s", directory, name) >= 0 ? path : NULL;
}

static bool path_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Several jobs may write to an existing path that is not a regular file, such as /dev/null. */
static bool path_is_device(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static bool plan_fail(struct fetch_plan_problem *problem, struct fetch_plan_problem found)
{
    *problem = found;
    return false;
}

#define NEEDS_FILE "each URL needs a regular file: -o FILE or -O (standard output and devices cannot be continued)"

static bool plan_assign_output(struct fetch_job *job, const struct fetch_output_options *o, size_t index,
                               struct fetch_plan_problem *problem)
{
    const char *given = index < o->count ? o->path[index] : NULL;
    char *name = NULL;
    bool to_stdout = given ? strcmp(given, "-") == 0 : !o->remote_name;
    if (to_stdout && o->continues)
        return plan_fail(problem, (struct fetch_plan_problem){"-C", "-", NEEDS_FILE});
    if (to_stdout)
        return true;
    if (!given && !(name = fetch_url_file_name(job->url)))
        return plan_fail(problem, out_of_memory);
    bool named = given || name[0] != '\0';
    job->output_path = named ? path_join(o->directory, given ? given : name) : NULL;
    free(name);
    if (!named)
        return plan_fail(problem, (struct fetch_plan_problem){"-O", job->display_url,
                                                              "the path of the URL has no file name; use -o FILE"});
    if (!job->output_path)
        return plan_fail(problem, out_of_memory);
    if (path_is_directory(job->output_path))
        return plan_fail(problem,
                         (struct fetch_plan_problem){given ? "-o" : "-O", job->output_path,
                                                     "is a directory; use a file name, or --output-dir with -O"});
    if (o->continues && path_is_device(job->output_path))
        return plan_fail(problem, (struct fetch_plan_problem){"-C", "-", NEEDS_FILE});
    return true;
}

/* Returns the canonical path, for duplicates that are spelled differently; the directory decides if the file does not
 * exist. The caller frees it. */
static char *path_canonical(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *real = realpath(path, NULL), *file = NULL;
    if (real)
        return real;
    char *directory = slash ? strndup(path, (size_t)(name - path)) : strdup(".");
    real = directory ? realpath(directory, NULL) : NULL;
    if (directory && asprintf(&file, "%s/%s", real ? real : directory, name) < 0)
        file = NULL;
    free(real);
    free(directory);
    return file;
}

struct planned_file {
    char *path; /* canonical */
    size_t job;
};

static int compare_files(const void *one, const void *other)
{
    return strcmp(((const struct planned_file *)one)->path, ((const struct planned_file *)other)->path);
}

#define FILES_PER_JOB 3 /* FILE; with -C - also FILE.part and FILE.part.bide */

/* Appends a path with a suffix. Returns false if out of memory. */
static bool files_add(struct planned_file *files, size_t *count, size_t job, const char *path, const char *suffix)
{
    char *file = NULL;
    if (!path || asprintf(&file, "%s%s", path, suffix) < 0)
        return false;
    files[(*count)++] = (struct planned_file){file, job};
    return true;
}

/* Appends the canonical path of each regular file that a job will write. Returns false if out of memory. */
static bool files_collect(const struct fetch_plan *plan, bool continues, struct planned_file *files, size_t *count)
{
    bool added = true;
    for (size_t i = 0; i < plan->count && added; i++) {
        const char *path = plan->jobs[i].output_path;
        if (!path || path_is_device(path))
            continue;
        char *canonical = path_canonical(path);
        added = files_add(files, count, i, canonical, "");
        if (continues)
            added = added && files_add(files, count, i, canonical, CLI_PARTIAL_SUFFIX) &&
                    files_add(files, count, i, canonical, CLI_PARTIAL_SUFFIX FETCH_RECORD_SUFFIX);
        free(canonical);
    }
    return added;
}

/* Two responses for the same file: the last would win. Returns false after setting *problem. */
static bool plan_check_duplicates(const struct fetch_plan *plan, const struct fetch_output_options *o,
                                  struct fetch_plan_problem *problem)
{
    struct planned_file *files = calloc(FILES_PER_JOB * plan->count + 1, sizeof *files);
    size_t count = 0;
    bool ok = (files && files_collect(plan, o->continues, files, &count)) || plan_fail(problem, out_of_memory);
    if (ok)
        qsort(files, count, sizeof *files, compare_files);
    for (size_t i = 1; i < count && ok; i++)
        if (compare_files(&files[i - 1], &files[i]) == 0)
            ok = plan_fail(problem, (struct fetch_plan_problem){
                                        files[i].job < o->count ? "-o" : "-O", plan->jobs[files[i].job].output_path,
                                        "two URLs would be written to this file; use -o for each"});
    for (size_t i = 0; i < count; i++)
        free(files[i].path);
    free(files);
    return ok;
}

bool fetch_plan_assign_outputs(struct fetch_plan *plan, const struct fetch_output_options *o,
                               struct fetch_plan_problem *problem)
{
    if (o->count > plan->count)
        return plan_fail(problem,
                         (struct fetch_plan_problem){"-o", o->path[plan->count], "there are more -o than URLs"});
    for (size_t i = 0; i < plan->count; i++)
        if (!plan_assign_output(&plan->jobs[i], o, i, problem))
            return false;
    return plan_check_duplicates(plan, o, problem);
}
