/* plan.c - the list of jobs; see plan.h. Reports before the first request: two responses for one file, a URL without a
 * file name, a directory as output. */
#include "plan.h"

#include "secret.h"
#include "url.h"

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

static char *plan_error(const char *about, const char *wrong)
{
    char *text = NULL;
    return asprintf(&text, "%s%s", about, wrong) >= 0 ? text : NULL;
}

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

static char *plan_assign_output(struct fetch_job *job, const struct fetch_output_options *o, size_t index)
{
    const char *given = index < o->count ? o->path[index] : NULL;
    char *name = NULL;
    if (given && strcmp(given, "-") == 0)
        return NULL;
    if (!given && o->remote_name && !(name = fetch_url_file_name(job->url)))
        return plan_error(job->display_url, ": the path of the URL has no file name; use -o FILE");
    if (given || name)
        job->output_path = path_join(o->directory, given ? given : name);
    bool missing = (given || name) && !job->output_path;
    free(name);
    if (missing)
        return strdup("out of memory");
    if (job->output_path && path_is_directory(job->output_path))
        return plan_error(job->output_path, ": is a directory; use a file name, or --output-dir with -O");
    return NULL;
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

static int compare_paths(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Two responses for the same file: the last would win. Returns an error text, or NULL. */
static char *plan_find_duplicate(const struct fetch_plan *plan)
{
    char **files = calloc(plan->count + 1, sizeof(char *)), *wrong = NULL;
    size_t n = 0;
    if (!files)
        return strdup("out of memory");
    for (size_t i = 0; i < plan->count && !wrong; i++)
        if (plan->jobs[i].output_path && !path_is_device(plan->jobs[i].output_path) &&
            !(files[n++] = path_canonical(plan->jobs[i].output_path)))
            wrong = strdup("out of memory");
    if (!wrong)
        qsort(files, n, sizeof(char *), compare_paths);
    for (size_t i = 1; i < n && !wrong; i++)
        if (compare_paths(&files[i - 1], &files[i]) == 0)
            wrong = plan_error(files[i], ": two URLs would be written to this file; use -o for each");
    for (size_t i = 0; i < n; i++)
        free(files[i]);
    free(files);
    return wrong;
}

char *fetch_plan_assign_outputs(struct fetch_plan *plan, const struct fetch_output_options *o)
{
    char *wrong = NULL;
    if (o->count > plan->count)
        return plan_error(o->path[plan->count], ": there are more -o than URLs");
    for (size_t i = 0; i < plan->count && !wrong; i++)
        wrong = plan_assign_output(&plan->jobs[i], o, i);
    return wrong ? wrong : plan_find_duplicate(plan);
}
