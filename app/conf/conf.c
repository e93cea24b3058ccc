/* conf.c - policies by name: finds the file, reads it, and looks a policy up in it. */
#include "conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conf_internal.h"
#include "suggest.h"
#include "text/slice.h"
#include "text/utf8.h"

/* ---- policies ---- */

void conf_policy_set_preset(struct conf_policy *policy, enum bide_preset preset)
{
    policy->preset = preset;
    policy->status = policy->exits = policy->grpc = (struct conf_rules){.count = 0};
    conf_pair_init(&policy->pair, preset);
}

void conf_policy_init(struct conf_policy *policy, enum bide_preset preset)
{
    *policy = (struct conf_policy){.line = 0};
    snprintf(policy->name, sizeof policy->name, "%s", bide_preset_label(preset));
    conf_policy_set_preset(policy, preset);
}

bool conf_name_is_valid(struct bide_text name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/*:@+~";
    if (name.length == 0 || name.length >= CONF_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.length; i++)
        if (memchr(allowed, name.at[i], sizeof allowed - 1) == NULL)
            return false;
    return true;
}

struct conf_policy *conf_policy_by_name(const struct conf *conf, struct bide_text name)
{
    for (size_t i = 0; i < conf->count; i++)
        if (text_equals(name, conf->policy[i].name))
            return &conf->policy[i];
    return NULL;
}

/* Stores the path of the policy's file. A path that is too long loses its beginning, since its end tells more. */
static void policy_set_file(struct conf_policy *policy, const char *file)
{
    size_t length = strlen(file), room = sizeof policy->file - 1;
    if (length <= room)
        snprintf(policy->file, sizeof policy->file, "%s", file);
    else
        snprintf(policy->file, sizeof policy->file, "...%s", file + length - (room - 3));
}

struct conf_policy *conf_add_policy(struct conf *conf, struct bide_text name, unsigned line,
                                    struct conf_diagnostics *diagnostics)
{
    if (conf->count == CONF_POLICIES_MAX) {
        conf_diagnostics_add(diagnostics, line, "more than %u sections: must be split into several files",
                             CONF_POLICIES_MAX);
        return NULL;
    }
    if ((conf->count & (conf->count - 1)) == 0) { /* 0, 1, 2, 4, ...: the array is full */
        size_t room = conf->count == 0 ? 1 : 2 * conf->count;
        struct conf_policy *grown = realloc(conf->policy, room * sizeof *grown);
        if (grown == NULL) {
            conf_diagnostics_add(diagnostics, line, "out of memory");
            return NULL;
        }
        conf->policy = grown;
    }
    struct conf_policy *policy = &conf->policy[conf->count++];
    *policy = (struct conf_policy){.line = line};
    snprintf(policy->name, sizeof policy->name, "%.*s", (int)name.length, name.at);
    policy_set_file(policy, diagnostics->file);
    return policy;
}

void conf_free(struct conf *conf)
{
    if (conf == NULL)
        return;
    free(conf->policy);
    *conf = (struct conf){.count = 0};
}

/* ---- files ---- */

static bool text_is_json(struct bide_text text)
{
    size_t i = 0;
    while (i < text.length && strchr(" \t\r\n", text.at[i]) != NULL && text.at[i] != '\0')
        i++;
    return i < text.length && text.at[i] == '{';
}

bool conf_read_text(struct conf *conf, const char *name, struct bide_text text, char errors[CONF_ERROR_MAX])
{
    struct conf_diagnostics diagnostics;
    conf_diagnostics_begin(&diagnostics, errors, name);
    *conf = (struct conf){.count = 0};
    text = text_utf8_skip_mark(text);
    if (text.length > CONF_FILE_MAX)
        conf_diagnostics_add(&diagnostics, 0, "larger than %u bytes: must be a policy file", CONF_FILE_MAX);
    else
        (text_is_json(text) ? conf_grpc_read : conf_policy_file_read)(conf, text, &diagnostics);
    if (conf_diagnostics_finish(&diagnostics))
        return true;
    conf_free(conf);
    return false;
}

/* Reads a stream to its end, but at most one byte more than is allowed, which shows that the file is too large. */
static char *stream_read(FILE *stream, size_t *length)
{
    char *bytes = malloc(CONF_FILE_MAX + 1);
    if (bytes == NULL)
        return NULL;
    *length = fread(bytes, 1, CONF_FILE_MAX + 1, stream);
    if (ferror(stream)) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Copies a path with control characters and malformed UTF-8 replaced: file names can be untrusted input. */
static const char *path_printable(char name[CONF_PATH_MAX], const char *path)
{
    snprintf(name, CONF_PATH_MAX, "%s", path);
    for (size_t at = 0, left = strlen(name), length; left > 0; at += length, left -= length) {
        length = text_utf8_printable(name + at, left);
        if (length == 0)
            name[at] = '?';
        length = length > 0 ? length : 1;
    }
    return name;
}

char *conf_read_bytes(const char *path, char name[CONF_PATH_MAX], size_t *length, char errors[CONF_ERROR_MAX])
{
    bool is_stdin = strcmp(path, "-") == 0;
    path_printable(name, is_stdin ? "stdin" : path);
    errno = 0;
    FILE *stream = is_stdin ? stdin : fopen(path, "re");
    char *bytes = stream == NULL ? NULL : stream_read(stream, length);
    if (bytes == NULL)
        snprintf(errors, CONF_ERROR_MAX, "%.3000s: cannot be read: %s", name, strerror(errno));
    if (stream != NULL && !is_stdin)
        fclose(stream);
    return bytes;
}

bool conf_read(struct conf *conf, const char *path, char errors[CONF_ERROR_MAX])
{
    char name[CONF_PATH_MAX];
    size_t length = 0;
    char *bytes = conf_read_bytes(path, name, &length, errors);
    *conf = (struct conf){.count = 0};
    bool read = bytes != NULL && conf_read_text(conf, name, (struct bide_text){bytes, length}, errors);
    free(bytes);
    return read;
}

/* ---- search paths ---- */

#define SEARCH_PATHS 3u

/* Sets the i-th path of the search order, or "" if the environment defines none. The XDG base directory specification
 * requires relative paths to be ignored; a relative HOME is ignored as well. */
static void search_path(char path[CONF_PATH_MAX], unsigned i)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int length = 0;
    path[0] = '\0';
    if (i == 0)
        length = snprintf(path, CONF_PATH_MAX, "bide.conf");
    else if (i == 2)
        length = snprintf(path, CONF_PATH_MAX, "/etc/bide/bide.conf");
    else if (xdg != NULL && xdg[0] == '/')
        length = snprintf(path, CONF_PATH_MAX, "%s/bide/bide.conf", xdg);
    else if (home != NULL && home[0] == '/')
        length = snprintf(path, CONF_PATH_MAX, "%s/.config/bide/bide.conf", home);
    if (length < 0 || (size_t)length >= CONF_PATH_MAX)
        path[0] = '\0';
}

/* Returns false if the file does not exist, or if its directory may not be searched (the home of another user). Returns
 * true after any other error (a loop of symbolic links): reading the file then reports it. */
static bool path_may_exist(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 || (errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ENAMETOOLONG);
}

bool conf_default_path(char path[CONF_PATH_MAX])
{
    for (unsigned i = 0; i < SEARCH_PATHS; i++) {
        search_path(path, i);
        if (path[0] != '\0' && path_may_exist(path))
            return true;
    }
    return false;
}

/* "bide.conf, /home/ann/.config/bide/bide.conf or /etc/bide/bide.conf" */
static void format_search_paths(char *text, size_t size)
{
    char path[CONF_PATH_MAX];
    size_t used = 0;
    for (unsigned i = 0; i < SEARCH_PATHS && used < size; i++) {
        search_path(path, i);
        if (path[0] != '\0')
            used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : i == 2 ? " or " : ", ", path);
    }
}

/* ---- lookup ---- */

/* Where a name was looked up. */
struct search {
    const char *file; /* NULL: there is no file */
    bool presets;
};

static const char *search_suggest(const struct conf *conf, struct search search, struct bide_text name)
{
    struct conf_suggestion suggestion = {.word = name.at, .length = name.length};
    for (size_t i = 0; i < conf->count; i++)
        conf_suggestion_consider(&suggestion, conf->policy[i].name, conf->policy[i].name);
    for (unsigned i = 0; i < BIDE_PRESET_COUNT && search.presets; i++)
        conf_suggestion_consider(&suggestion, bide_preset_label((enum bide_preset)i),
                                 bide_preset_label((enum bide_preset)i));
    return suggestion.found;
}

static bool name_is_regular_file(struct bide_text name, char path[CONF_PATH_MAX])
{
    struct stat file;
    int length = snprintf(path, CONF_PATH_MAX, "%.*s", (int)name.length, name.at);
    return length > 0 && (unsigned)length < CONF_PATH_MAX && stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

/* Formats ": must be svc.json#NAME, one of: a, b". */
static void format_policy_names(const struct conf *conf, const char *file, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, ": must be %.1000s#NAME", file);
    for (size_t i = 0; i < conf->count && used < size; i++) {
        bool fits = used + strlen(conf->policy[i].name) + sizeof ", one of: , ..." <= size;
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? ", one of: " : ", ",
                                 fits ? conf->policy[i].name : "...");
        if (!fits)
            return;
    }
}

/* Reports that a file was given where a policy's name is expected, with the names of its policies or its first
 * mistake. */
static void report_file_as_name(const char *path, char errors[CONF_ERROR_MAX])
{
    char space[CONF_PATH_MAX], rest[CONF_ERROR_MAX / 2];
    const char *name = path_printable(space, path);
    struct conf conf;
    if (conf_read(&conf, path, errors))
        format_policy_names(&conf, name, rest, sizeof rest);
    else
        snprintf(rest, sizeof rest, ", but not a policy file: %.*s", (int)strcspn(errors, "\n"), errors);
    snprintf(errors, CONF_ERROR_MAX, "%.1000s is a file%s", name, rest);
    conf_free(&conf);
}

static void report_not_found(const struct conf *conf, struct search search, struct bide_text name,
                             char errors[CONF_ERROR_MAX])
{
    char places[CONF_ERROR_MAX / 2];
    const char *suggestion = search_suggest(conf, search, name);
    size_t used = 0;
    if (search.file != NULL)
        snprintf(places, sizeof places, "not in %s%s", search.file, search.presets ? ", and not a preset" : "");
    else {
        used = (size_t)snprintf(places, sizeof places, "not a preset, and there is no ");
        format_search_paths(places + used, sizeof places - used);
    }
    snprintf(errors, CONF_ERROR_MAX, "no policy named %s: %s%s%s%s", conf_printable(name.at, name.length).text, places,
             suggestion != NULL ? "; did you mean " : "", suggestion != NULL ? suggestion : "",
             suggestion != NULL ? "?" : "");
}

static bool search_find(struct conf_policy *policy, struct search search, struct bide_text name,
                        char errors[CONF_ERROR_MAX])
{
    struct conf conf = {.count = 0};
    char path[CONF_PATH_MAX];
    if (search.file != NULL && !conf_read(&conf, search.file, errors))
        return false;
    const struct conf_policy *found = conf_policy_by_name(&conf, name);
    enum bide_preset preset = search.presets ? bide_preset_by_name(name.at, name.length) : BIDE_PRESET_COUNT;
    if (found != NULL)
        *policy = *found;
    else if (preset != BIDE_PRESET_COUNT)
        conf_policy_init(policy, preset);
    else if (search.presets && name_is_regular_file(name, path))
        report_file_as_name(path, errors);
    else {
        policy->name[0] = '\0';
        report_not_found(&conf, search, name, errors);
    }
    bool ok = found != NULL || preset != BIDE_PRESET_COUNT;
    conf_free(&conf);
    return ok;
}

bool conf_find(struct conf_policy *policy, const char *config, const char *name, char errors[CONF_ERROR_MAX])
{
    char path[CONF_PATH_MAX];
    const char *mark = strrchr(name, '#');
    errors[0] = '\0';
    if (mark == NULL) {
        const char *file = config != NULL ? config : conf_default_path(path) ? path : NULL;
        return search_find(policy, (struct search){file, true}, (struct bide_text){name, strlen(name)}, errors);
    }
    int length = snprintf(path, sizeof path, "%.*s", (int)(mark - name), name);
    if (length <= 0 || (size_t)length >= sizeof path || mark[1] == '\0') {
        snprintf(errors, CONF_ERROR_MAX, "no policy named %s: must be NAME or FILE#NAME",
                 conf_printable(name, strlen(name)).text);
        return false;
    }
    return search_find(policy, (struct search){path, false}, (struct bide_text){mark + 1, strlen(mark + 1)}, errors);
}
