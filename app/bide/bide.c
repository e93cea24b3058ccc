/* bide.c - the command `bide`: run, budget and explain are inside; for all else it becomes the program bide-NAME.
 *
 * What needs libcurl is a program of its own, as in git, so that this one starts at once. `bide NAME ...` looks for
 * bide-NAME in three places: beside itself, in ../libexec/bide seen from there, and in PATH. "There" is where the
 * kernel says this program lies, whatever it was called as: a build directory, an installed tree and a moved one all
 * find their own programs first. Anybody's bide-NAME in PATH is a subcommand.
 *
 * run and budget have a twin, bide-run and bide-budget: the same command with libbide-fleet inside, for --fleet. When
 * that turns up among the options, `bide` becomes the twin, which reads the same words once more. */
#include <bide/base.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/commands.h"
#include "common/fleet.h"
#include "common/term.h"
#include "common/topics.h"
#include "conf/field.h"

#define PREFIX     "bide-"
#define LIBEXEC    "../libexec/bide"
#define NAMES_MAX  100u /* that help lists; more can be started all the same */
#define NAME_SIZE  32u  /* of a subcommand, with its NUL */
#define HELP_WIDTH 79u

static const struct cli_command *const inside[] = {&cli_run, &cli_budget, &cli_explain};

static const struct {
    const char *name, *summary;
} known[] = {
#define KNOWN(name, summary) {#name, summary},
    CLI_COMMAND_LIST(KNOWN)
#undef KNOWN
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct cli_command *find_inside(const char *name)
{
    for (size_t i = 0; i < COUNT(inside); i++)
        if (strcmp(inside[i]->name, name) == 0)
            return inside[i];
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

/* The directory of this program; empty if the kernel does not say. */
static void own_directory(char directory[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", directory, PATH_MAX - 1);
    directory[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(directory, '/');
    if (slash != NULL)
        slash[1] = '\0';
}

/* Letters, digits and hyphens: what cannot lead out of a directory. */
static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t length = strspn(name, allowed);
    return length > 0 && length < NAME_SIZE && name[length] == '\0' && name[0] != '-';
}

/* ---- all names there are ---- */

struct names {
    char name[NAMES_MAX][NAME_SIZE];
    size_t count;
};

static bool has(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return true;
    return false;
}

static void add(struct names *names, const char *name)
{
    if (names->count < NAMES_MAX && is_name(name) && !has(names, name))
        snprintf(names->name[names->count++], NAME_SIZE, "%s", name);
}

/* Adds the subcommands in a directory, if it is one. */
static void look(struct names *names, const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL)
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
            faccessat(dirfd(directory), entry->d_name, X_OK, 0) == 0)
            add(names, entry->d_name + strlen(PREFIX));
    closedir(directory);
}

static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

/* What is inside, and every program bide-NAME that can be found, in alphabetical order. */
static const struct names *look_everywhere(void)
{
    static struct names names;
    char path[PATH_MAX + sizeof LIBEXEC];
    for (size_t i = 0; i < COUNT(inside); i++)
        add(&names, inside[i]->name);
    own_directory(path);
    if (path[0] != '\0') {
        look(&names, path);
        size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, LIBEXEC);
        look(&names, path);
    }
    const char *next = getenv("PATH");
    while (next != NULL && *next != '\0') {
        size_t length = strcspn(next, ":");
        snprintf(path, sizeof path, "%.*s", length < PATH_MAX ? (int)length : 0, next);
        look(&names, path);
        next += length + (next[length] == ':');
    }
    qsort(names.name, names.count, NAME_SIZE, compare);
    return &names;
}

/* The subcommand or, if they are asked for, the topic that was probably meant; NULL: none is near. */
static const char *nearest(const char *name, bool topics)
{
    const char *words[NAMES_MAX + 32] = {NULL};
    const struct names *names = look_everywhere();
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++)
        words[count++] = names->name[i];
    for (size_t i = 0; topics && cli_topic(i) != NULL && count + 2 < COUNT(words); i++)
        words[count++] = cli_topic(i)->name;
    words[count] = "help";
    return conf_suggest(name, strlen(name), words);
}

/* ---- starting ---- */

/* Becomes the program, or leaves errno. Where there is none, ENOENT. */
static void become(const char *directory, const char *between, char **arguments)
{
    char path[2 * PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s%s", directory, between, arguments[0]);
    if (directory[0] == '\0' || length < 0 || (size_t)length >= sizeof path)
        errno = ENOENT;
    else
        execv(path, arguments);
    errno = errno == ENOTDIR ? ENOENT : errno;
}

/* Becomes the program bide-NAME; arguments[0] is the name. Or leaves errno: ENOENT, if it is nowhere. */
static void become_program(char **arguments)
{
    static char program[sizeof PREFIX + NAME_SIZE];
    char directory[PATH_MAX];
    own_directory(directory);
    snprintf(program, sizeof program, PREFIX "%s", arguments[0]);
    arguments[0] = program;
    become(directory, "", arguments);
    if (errno == ENOENT)
        become(directory, LIBEXEC "/", arguments);
    if (errno == ENOENT)
        execvp(program, arguments);
}

static int complain_of(const char *name, bool topics)
{
    const char *near = nearest(name, topics);
    if (near != NULL)
        fprintf(stderr, "bide: %s: there is no program bide-%s; did you mean %s?\n", name, name, near);
    else
        fprintf(stderr, "bide: %s: there is no program bide-%s; bide help lists the subcommands there are\n", name,
                name);
    return CLI_EXIT_BIDE_FAILED;
}

static char **given; /* the words of a command that is inside, its name first, as they were before they were read */

/* Runs a command that is inside. Reading options moves the words about: their order is kept for a twin. */
static int start_inside(const struct cli_command *command, char **arguments)
{
    size_t count = 0;
    while (arguments[count] != NULL)
        count++;
    given = malloc((count + 1) * sizeof *given);
    if (given == NULL)
        return cli_fail(command, "no memory");
    memcpy(given, arguments, (count + 1) * sizeof *given);
    int status = cli_main(command, arguments + 1);
    free(given);
    return status;
}

/* arguments[0] is the subcommand's name. Returns the exit status if it is inside or cannot be started. */
static int start(char **arguments, bool topics)
{
    char *name = arguments[0];
    const struct cli_command *command = find_inside(name);
    if (command != NULL)
        return start_inside(command, arguments);
    become_program(arguments);
    if (errno == ENOENT)
        return complain_of(name, topics);
    fprintf(stderr, "bide: %s: %s\n", arguments[0], strerror(errno));
    return CLI_EXIT_BIDE_FAILED;
}

/* ---- a fleet ---- */

/* Becomes the twin, if there is a fleet. */
bool cli_fleet_ensure_linked(const struct cli_fleet_context *fleeting)
{
    const struct cli_command *command = fleeting->command;
    if (!cli_fleet_resolve_url(fleeting))
        return false;
    if (fleeting->fleet->url == NULL)
        return true;
    const char *said = cli_fleet_source(fleeting->fleet);
    fflush(NULL);
    cli_fleet_unmask_argv(fleeting->fleet);
    become_program(given);
    cli_fleet_mask_argv(fleeting->fleet);
    if (errno == ENOENT)
        cli_fail(command,
                 "%s: there is no program " PREFIX "%s here: this bide was built or installed without fleets, "
                 "which need hiredis and OpenSSL; want one that has it, or --no-fleet",
                 said, command->name);
    else
        cli_fail(command, "%s: %s: %s", said, given[0], strerror(errno));
    return false;
}

/* ---- help ---- */

static void put_usage(FILE *out)
{
    fputs("usage: bide COMMAND [ARGUMENT...]\n"
          "       bide help [COMMAND|TOPIC]\n"
          "       bide --version\n",
          out);
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return true;
    return false;
}

static void put_help(FILE *out)
{
    const struct names *names = look_everywhere();
    bool others = false;
    put_usage(out);
    fputs("\nRetries that do not make the failure worse.\n\nCommands:\n", out);
    for (size_t i = 0; i < COUNT(known); i++)
        if (has(names, known[i].name))
            fprintf(out, "  %-12s  %s\n", known[i].name, known[i].summary);
    for (size_t i = 0; i < names->count; i++)
        if (!is_known(names->name[i])) {
            fprintf(out, "%s  %s\n", others ? "" : "\nPrograms bide-NAME of others:\n", names->name[i]);
            others = true;
        }
    fputs("\nTopics:\n", out);
    for (size_t i = 0; cli_topic(i) != NULL; i++)
        fprintf(out, "  %-12s  %s\n", cli_topic(i)->name, cli_topic(i)->summary);
    fputs("\nbide help COMMAND and bide COMMAND --help tell its options.\n"
          "Try bide run -- false, or bide demo.\n",
          out);
}

/* A topic, the help of a command, or what was probably meant. */
static int help_about(char *name)
{
    const struct cli_topic *topic = find_topic(name);
    char option[] = "--help";
    char *arguments[] = {name, option, NULL};
    if (topic == NULL)
        return start(arguments, true);
    topic->print(&(struct cli_page){stdout, HELP_WIDTH});
    return EXIT_SUCCESS;
}

/* ---- the command line ---- */

/* What was printed must have arrived. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno != EPIPE)
        fprintf(stderr, "bide: standard output: %s\n", strerror(errno));
    return CLI_EXIT_BIDE_FAILED;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int complain(const char *word, const char *want)
{
    fputs("bide: ", stderr);
    cli_print_sanitized(stderr, word[0] != '\0' ? word : "''");
    fprintf(stderr, ": want %s\n", want);
    put_usage(stderr);
    return CLI_EXIT_BIDE_FAILED;
}

/* A command line of which nothing can be made. */
static int misused(int count, char **words)
{
    if (count <= 1) {
        put_help(stderr);
        return CLI_EXIT_BIDE_FAILED;
    }
    if (asks_for_help(words[1]))
        return complain(words[count - 1], count > 3 ? "one command or topic" : "a command or a topic");
    if (strcmp(words[1], "--version") == 0)
        return complain(words[2], "nothing after --version");
    return complain(words[1], "a command, help or --version");
}

int main(int count, char **words)
{
    if (count >= 2 && is_name(words[1]) && !asks_for_help(words[1]))
        return start(words + 1, false);
    if (count >= 2 && count <= 3 && asks_for_help(words[1]) && asks_for_help(words[count - 1])) {
        put_help(stdout);
        return finish(EXIT_SUCCESS);
    }
    if (count == 3 && asks_for_help(words[1]) && is_name(words[2]))
        return finish(help_about(words[2]));
    if (count == 2 && strcmp(words[1], "--version") == 0) {
        printf("bide %s\n", bide_version());
        return finish(EXIT_SUCCESS);
    }
    return misused(count, words);
}
