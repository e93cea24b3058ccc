/* bide.c - the command `bide`: run, wait, budget, top and explain are built in; any other NAME is executed as the
 * program bide-NAME.
 *
 * Subcommands that need libcurl are separate programs, as in git, so that `bide` starts at once. `bide NAME ...` looks
 * for bide-NAME beside the executable, in ../libexec/bide relative to it, and in PATH. The directory of the executable
 * comes from /proc/self/exe, not from argv[0], so that a build directory, an installed tree and a moved tree find their
 * own programs first. Any bide-NAME in PATH is a subcommand, but it cannot replace a built-in command.
 *
 * run and budget also exist as bide-run and bide-budget: the same command linked with libbide-fleet. When the options
 * ask for a fleet, `bide` execs that program with the original argv, and it parses the same words again (see
 * common/fleet.h). */
#include <bide/base.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/commands.h"
#include "common/fleet.h"
#include "common/otlp.h"
#include "common/term.h"
#include "common/topics.h"
#include "conf/field.h"

#define PREFIX     "bide-"
#define LIBEXEC    "../libexec/bide"
#define NAMES_MAX  100u /* listed by help; others can be run as well */
#define NAME_SIZE  32u  /* of a subcommand's name, with its NUL */
#define HELP_WIDTH 79u

static const struct cli_command *const builtin_commands[] = {&cli_run, &cli_wait, &cli_budget, &cli_top, &cli_explain};

static const struct {
    const char *name, *summary;
} known_commands[] = {
#define KNOWN(name, summary) {#name, summary},
    CLI_COMMAND_LIST(KNOWN)
#undef KNOWN
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct cli_command *find_builtin(const char *name)
{
    for (size_t i = 0; i < COUNT(builtin_commands); i++)
        if (strcmp(builtin_commands[i]->name, name) == 0)
            return builtin_commands[i];
    return NULL;
}

static const struct cli_topic *find_topic(const char *name)
{
    const struct cli_topic *topic;
    for (size_t i = 0; (topic = cli_topic(i)) != NULL; i++)
        if (strcmp(topic->name, name) == 0)
            return topic;
    return NULL;
}

/* Sets the directory of this executable, with a slash; empty if /proc is not available. */
static void own_directory(char directory[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", directory, PATH_MAX - 1);
    directory[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(directory, '/');
    if (slash != NULL)
        slash[1] = '\0';
}

/* Accepts lower-case letters, digits and hyphens: such a name cannot refer to another directory. */
static bool is_subcommand_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t length = strspn(name, allowed);
    return length > 0 && length < NAME_SIZE && name[length] == '\0' && name[0] != '-';
}

/* ---- subcommand names ---- */

struct names {
    char name[NAMES_MAX][NAME_SIZE];
    size_t count;
};

static bool names_contain(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return true;
    return false;
}

static void names_add(struct names *names, const char *name)
{
    if (names->count < NAMES_MAX && is_subcommand_name(name) && !names_contain(names, name))
        snprintf(names->name[names->count++], NAME_SIZE, "%s", name);
}

/* Adds the subcommands found in a directory, if it exists. */
static void names_add_directory(struct names *names, const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL)
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
            faccessat(dirfd(directory), entry->d_name, X_OK, 0) == 0)
            names_add(names, entry->d_name + strlen(PREFIX));
    closedir(directory);
}

static int names_compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

/* Returns the built-in commands and every program bide-NAME that can be found, sorted. */
static const struct names *names_collect(void)
{
    static struct names names;
    char path[PATH_MAX + sizeof LIBEXEC];
    for (size_t i = 0; i < COUNT(builtin_commands); i++)
        names_add(&names, builtin_commands[i]->name);
    own_directory(path);
    if (path[0] != '\0') {
        names_add_directory(&names, path);
        size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, LIBEXEC);
        names_add_directory(&names, path);
    }
    const char *next = getenv("PATH");
    while (next != NULL && *next != '\0') {
        size_t length = strcspn(next, ":");
        snprintf(path, sizeof path, "%.*s", length < PATH_MAX ? (int)length : 0, next);
        names_add_directory(&names, path);
        next += length + (next[length] == ':');
    }
    qsort(names.name, names.count, NAME_SIZE, names_compare);
    return &names;
}

/* Returns the subcommand, or with `topics` also the topic, nearest to a misspelt name; NULL if none is near. */
static const char *names_suggest(const char *name, bool topics)
{
    const char *words[NAMES_MAX + 32] = {NULL};
    const struct names *names = names_collect();
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++)
        words[count++] = names->name[i];
    for (size_t i = 0; topics && cli_topic(i) != NULL && count + 2 < COUNT(words); i++)
        words[count++] = cli_topic(i)->name;
    words[count] = "help";
    return conf_suggest(name, strlen(name), words);
}

/* ---- running a subcommand ---- */

/* Execs a program of that directory; returns only on failure, with errno. ENOENT: there is no such program. */
static void exec_in_directory(const char *directory, const char *subdirectory, char **arguments)
{
    char path[2 * PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s%s", directory, subdirectory, arguments[0]);
    if (directory[0] == '\0' || length < 0 || (size_t)length >= sizeof path)
        errno = ENOENT;
    else
        execv(path, arguments);
    errno = errno == ENOTDIR ? ENOENT : errno;
}

/* Execs bide-NAME, where NAME is arguments[0]; returns only on failure, with errno. ENOENT: not found in any place. */
static void exec_program(char **arguments)
{
    static char program[sizeof PREFIX + NAME_SIZE];
    char directory[PATH_MAX];
    own_directory(directory);
    snprintf(program, sizeof program, PREFIX "%s", arguments[0]);
    arguments[0] = program;
    exec_in_directory(directory, "", arguments);
    if (errno == ENOENT)
        exec_in_directory(directory, LIBEXEC "/", arguments);
    if (errno == ENOENT)
        execvp(program, arguments);
}

static int report_unknown_command(const char *name, bool topics)
{
    const char *suggestion = names_suggest(name, topics);
    if (suggestion != NULL)
        fprintf(stderr, "bide: %s: there is no program bide-%s; did you mean %s?\n", name, name, suggestion);
    else
        fprintf(stderr, "bide: %s: there is no program bide-%s; bide help lists the subcommands\n", name, name);
    return CLI_EXIT_BIDE_FAILED;
}

static char **original_argv; /* words of the built-in command that runs, its name first, in their original order */

/* Runs a built-in command. The parser reorders argv, so a copy is kept for cli_fleet_ensure_linked. */
static int run_builtin(const struct cli_command *command, char **arguments)
{
    size_t count = 0;
    while (arguments[count] != NULL)
        count++;
    original_argv = malloc((count + 1) * sizeof *original_argv);
    if (original_argv == NULL)
        return cli_fail(command, "out of memory");
    memcpy(original_argv, arguments, (count + 1) * sizeof *original_argv);
    int status = cli_main(command, arguments + 1);
    free(original_argv);
    return status;
}

/* Runs the subcommand named by arguments[0]. Returns the exit status of a built-in command, or after a failure. */
static int run_command(char **arguments, bool topics)
{
    char *name = arguments[0];
    const struct cli_command *command = find_builtin(name);
    if (command != NULL)
        return run_builtin(command, arguments);
    exec_program(arguments);
    if (errno == ENOENT)
        return report_unknown_command(name, topics);
    fprintf(stderr, "bide: %s: %s\n", arguments[0], strerror(errno));
    return CLI_EXIT_BIDE_FAILED;
}

/* ---- fleet and spans ---- */

/* Execs bide-NAME, which has more libraries linked in, for an option that needs one; returns after reporting an error.
 * */
static void exec_linked_program(const struct cli_command *command, const char *option, const char *missing)
{
    fflush(NULL);
    exec_program(original_argv);
    if (errno == ENOENT)
        cli_fail(command, "%s: there is no program " PREFIX "%s: this bide was built or installed without %s", option,
                 command->name, missing);
    else
        cli_fail(command, "%s: %s: %s", option, original_argv[0], strerror(errno));
}

/* Execs bide-NAME, which has libbide-fleet linked in, if a fleet is in force. */
bool cli_fleet_ensure_linked(const struct cli_fleet_context *context)
{
    const struct cli_command *command = context->command;
    if (!cli_fleet_resolve_url(context))
        return false;
    if (context->fleet->url == NULL)
        return true;
    cli_fleet_unmask_argv(context->fleet);
    exec_linked_program(command, cli_fleet_source(context->fleet),
                        "fleet support (hiredis, OpenSSL); install it, or use --no-fleet");
    cli_fleet_mask_argv(context->fleet);
    return false;
}

/* Execs bide-NAME, which has libbide-telemetry linked in. Called after cli_fleet_ensure_linked: no URL of a fleet is in
 * argv, masked, any more. */
bool cli_otlp_ensure_linked(const struct cli_command *command, const struct cli_otlp *otlp)
{
    if (otlp->on)
        exec_linked_program(command, "--otlp", "telemetry (libcurl)");
    return !otlp->on;
}

/* ---- help ---- */

static void print_usage(FILE *out)
{
    fputs("usage: bide COMMAND [ARGUMENT...]\n"
          "       bide help [COMMAND|TOPIC]\n"
          "       bide --version\n",
          out);
}

static bool command_is_known(const char *name)
{
    for (size_t i = 0; i < COUNT(known_commands); i++)
        if (strcmp(known_commands[i].name, name) == 0)
            return true;
    return false;
}

static void print_help(FILE *out)
{
    const struct names *names = names_collect();
    bool others = false;
    print_usage(out);
    fputs("\nRetries that do not make the failure worse.\n\nCommands:\n", out);
    for (size_t i = 0; i < COUNT(known_commands); i++)
        if (names_contain(names, known_commands[i].name))
            fprintf(out, "  %-12s  %s\n", known_commands[i].name, known_commands[i].summary);
    for (size_t i = 0; i < names->count; i++)
        if (!command_is_known(names->name[i])) {
            fprintf(out, "%s  %s\n", others ? "" : "\nOther programs bide-NAME:\n", names->name[i]);
            others = true;
        }
    fputs("\nTopics:\n", out);
    for (size_t i = 0; cli_topic(i) != NULL; i++)
        fprintf(out, "  %-12s  %s\n", cli_topic(i)->name, cli_topic(i)->summary);
    fputs("\nbide help COMMAND and bide COMMAND --help list its options.\nTry bide run -- false, or bide demo.\n", out);
}

/* Returns the exit status: CLI_EXIT_BIDE_FAILED if stdout could not be written. */
static int flush_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    if (errno != EPIPE)
        fprintf(stderr, "bide: standard output: %s\n", strerror(errno));
    return CLI_EXIT_BIDE_FAILED;
}

/* Prints a topic or the help of a command, or suggests a name. */
static int print_help_about(char *name)
{
    const struct cli_topic *topic = find_topic(name);
    char option[] = "--help";
    char *arguments[] = {name, option, NULL};
    if (topic == NULL)
        return run_command(arguments, true);
    topic->print(&(struct cli_page){stdout, HELP_WIDTH});
    return flush_stdout();
}

/* ---- the command line ---- */

static bool word_is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int report_bad_word(const char *word, const char *want)
{
    fputs("bide: ", stderr);
    cli_print_sanitized(stderr, word[0] != '\0' ? word : "''");
    fprintf(stderr, ": must be %s\n", want);
    print_usage(stderr);
    return CLI_EXIT_BIDE_FAILED;
}

/* Reports a command line that cannot be interpreted. */
static int report_misuse(int count, char **words)
{
    if (count <= 1) {
        print_help(stderr);
        return CLI_EXIT_BIDE_FAILED;
    }
    if (word_is_help(words[1]))
        return report_bad_word(words[count - 1], count > 3 ? "one command or topic" : "a command or a topic");
    if (strcmp(words[1], "--version") == 0)
        return report_bad_word(words[2], "absent (--version takes no argument)");
    return report_bad_word(words[1], "a command, help or --version");
}

int main(int count, char **words)
{
    if (count >= 2 && is_subcommand_name(words[1]) && !word_is_help(words[1]))
        return run_command(words + 1, false);
    if (count >= 2 && count <= 3 && word_is_help(words[1]) && word_is_help(words[count - 1])) {
        print_help(stdout);
        return flush_stdout();
    }
    if (count == 3 && word_is_help(words[1]) && is_subcommand_name(words[2]))
        return print_help_about(words[2]);
    if (count == 2 && strcmp(words[1], "--version") == 0) {
        printf("bide %s\n", bide_version());
        return flush_stdout();
    }
    return report_misuse(count, words);
}
