/* options.h - a subcommand is one table: from it come its parser, --help, man page, completions and docs page.
 *
 * Options stand in groups, so that those which mean the same everywhere (policy.h) are written once. A group's read
 * functions get the part of the settings that belongs to the group. Long options are --name VALUE or --name=VALUE,
 * short ones -n VALUE or -nVALUE; "--" ends them. What is wrong is said with what would be right, on stderr, and exits
 * 125. --help and --version are in every table by themselves.
 *
 * Prose (about, more, sections) is plain text of at most 78 columns: paragraphs with an empty line between them, lines
 * that begin with two spaces are kept as they are, `backticks` around what is typed. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CLI_EXIT_BIDE_FAILED 125 /* bide itself failed: bad option, bad policy */

enum cli_completion {
    CLI_COMPLETE_NOTHING,
    CLI_COMPLETE_FILE,
    CLI_COMPLETE_DIRECTORY,
    CLI_COMPLETE_COMMAND,
    CLI_COMPLETE_POLICY
};

struct cli_option {
    const char *name;  /* "attempts" */
    char letter;       /* 'n' for -n; 0: none */
    const char *value; /* "N", as it is shown; NULL: it takes none */
    const char *help;  /* one sentence, lower case, no full stop */
    const char *(*read)(void *settings,
                        const char *value); /* NULL, or what would be right; value NULL if it has none */
    const char *details;                    /* further prose for man page and docs, or NULL */
    const char *const *choices;             /* NULL-terminated, for completions; or NULL */
    enum cli_completion completion;
    bool may_be_empty; /* '' is a value like others */
};

struct cli_group {
    const char *title; /* "Policy"; NULL: the command's own */
    const struct cli_option *option;
    size_t count;
    size_t offset; /* of the group's part in the settings */
};

struct cli_section {
    const char *title; /* "Exit status"; "Examples" comes last wherever it stands */
    const char *text;
    const char *(*generate)(void); /* instead of text: prints it from a table that is elsewhere */
};

struct cli_command {
    const char *name;     /* "run" */
    const char *summary;  /* "run a command, and again if it fails": for lists and the man page's NAME */
    const char *synopsis; /* "[options] [--] COMMAND [ARGUMENT...]"; several lines possible */
    const char *about;
    const struct cli_group *groups;
    size_t group_count;
    const struct cli_section *sections; /* examples among them */
    size_t section_count;
    bool options_first;             /* the first operand ends the options: what follows belongs to another command */
    enum cli_completion completion; /* its operands */
    const char *(*operand_word)(
        size_t i); /* and words that an operand may be, for completions; NULL past the last; or NULL */
    size_t settings_size;
    void (*init)(void *settings);                /* sets defaults in zeroed settings; may be NULL */
    int (*run)(void *settings, char **operands); /* NULL-terminated; returns the exit status */
};

/* Parses, runs, and returns the exit status: the whole of a program's main. argv begins after the program's name. */
int cli_main(const struct cli_command *command, char **argv);

/* "bide run: TEXT\n" to stderr. Control characters become '?': a terminal must not obey what a word or file says. */
void cli_report(const struct cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A message for each line of the text. */
void cli_report_lines(const struct cli_command *command, const char *lines);

/* As cli_report, and returns CLI_EXIT_BIDE_FAILED. */
int cli_fail(const struct cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Flushes stdout; complains and returns false if it could not all be written (EPIPE is told by the status alone). */
bool cli_flush(const struct cli_command *command);

/* ---- what every table has by itself, for those who print tables (help.c, tools/cli-docs.c) ---- */

extern const struct cli_group
    cli_builtin_group; /* --help (with -h, unless the table gives that letter away), --version */

/* The option of that name or letter, its group in `group`; NULL: there is none. */
const struct cli_option *cli_option_find(const struct cli_command *command, const char *name, size_t length,
                                         const struct cli_group **group);
const struct cli_option *cli_option_find_letter(const struct cli_command *command, char letter,
                                                const struct cli_group **group);

const char *cli_section_text(const struct cli_section *section);
bool cli_section_is_examples(const struct cli_section *section);

/* What --help prints, as wide as the terminal, at most 100 columns. */
void cli_print_help(const struct cli_command *command, FILE *out);

/* Prose as a terminal shows it: paragraphs filled to so many columns, indented ones kept, backticks dropped. */
struct cli_margins {
    unsigned left, right;
};
void cli_print_prose(FILE *out, const char *text, struct cli_margins margins);

/* One paragraph as the right one of two columns, beside what was printed up to the column `at`. */
void cli_print_column(FILE *out, const char *text, unsigned at, struct cli_margins margins);

#endif
