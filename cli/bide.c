/* bide.c - the command `bide`: finds the program bide-NAME and becomes it.
 *
 * Every subcommand is a program of its own, as in git, so that each loads only the libraries it needs and this one
 * starts at once. `bide NAME ...` looks for bide-NAME in three places: beside itself, in ../libexec/bide seen from
 * there, and in PATH. "There" is where the kernel says this program lies, whatever it was called as: a build directory,
 * an installed tree and a moved one all find their own programs first. Anybody's bide-NAME in PATH is a subcommand. */
#include <bide/base.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX       "bide-"
#define LIBEXEC      "../libexec/bide"
#define COMMANDS_MAX 100u /* that help lists; more can be started all the same */
#define NAME_SIZE    32u  /* of a subcommand, with its NUL */

#define EXIT_OWN 125 /* bide itself failed: nothing was started. Other statuses are those of what was */

static const char usage[] = "usage: bide NAME [ARGUMENT...]   runs the program bide-NAME\n"
                            "       bide help [NAME]          this text, or the help of bide-NAME\n"
                            "       bide --version\n";

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

/* arguments[0] is the subcommand's name and becomes its program's. Returns the exit status if nothing was started. */
static int start(char **arguments)
{
    char directory[PATH_MAX];
    static char program[sizeof PREFIX + NAME_SIZE];
    own_directory(directory);
    snprintf(program, sizeof program, PREFIX "%s", arguments[0]);
    arguments[0] = program;
    become(directory, "", arguments);
    if (errno == ENOENT)
        become(directory, LIBEXEC "/", arguments);
    if (errno == ENOENT)
        execvp(program, arguments);
    if (errno == ENOENT) {
        fprintf(stderr, "bide: there is no program %s; bide help lists the subcommands there are\n", program);
        return EXIT_OWN;
    }
    fprintf(stderr, "bide: %s: %s\n", program, strerror(errno));
    return EXIT_OWN;
}

/* ---- listing ---- */

struct names {
    char name[COMMANDS_MAX][NAME_SIZE];
    size_t count;
};

static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

static void add(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return;
    if (names->count < COMMANDS_MAX && is_name(name))
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

static void look_everywhere(struct names *names)
{
    char path[PATH_MAX + sizeof LIBEXEC];
    own_directory(path);
    if (path[0] != '\0') {
        look(names, path);
        size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, LIBEXEC);
        look(names, path);
    }
    const char *next = getenv("PATH");
    while (next != NULL && *next != '\0') {
        size_t length = strcspn(next, ":");
        snprintf(path, sizeof path, "%.*s", length < PATH_MAX ? (int)length : 0, next);
        look(names, path);
        next += length + (next[length] == ':');
    }
}

static int help(void)
{
    static struct names names;
    look_everywhere(&names);
    qsort(names.name, names.count, NAME_SIZE, compare);
    fputs(usage, stdout);
    fputs(names.count > 0 ? "\nsubcommands found:\n" : "\nno subcommands found\n", stdout);
    for (size_t i = 0; i < names.count; i++)
        printf("  %s\n", names.name[i]);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the command line ---- */

static bool asks_for_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int main(int count, char **words)
{
    if (count == 2 && asks_for_help(words[1]))
        return help();
    if (count == 3 && asks_for_help(words[1]) && is_name(words[2])) {
        char option[] = "--help";
        char *arguments[] = {words[2], option, NULL};
        return start(arguments);
    }
    if (count == 2 && strcmp(words[1], "--version") == 0)
        return printf("bide %s\n", bide_version()) > 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    if (count >= 2 && is_name(words[1]) && !asks_for_help(words[1]))
        return start(words + 1);
    fputs(usage, stderr);
    return EXIT_OWN;
}
