/* options.h - the command table: the parser, --help, man page, completions and docs page of a subcommand all come from
 * it.
 *
 * Options are in groups, so that groups used by several commands (policy.h) are defined once. A row says which member
 * of the group's settings its option sets, and how the value is parsed:
 *
 *     {.name = "grace", .value = "DURATION", .help = "...", .kind = CLI_DURATION, CLI_AT(struct settings, grace_ns)}
 *
 * Only a row of kind CLI_READ has a function of its own. Long options are --name VALUE or --name=VALUE, short options
 * -n VALUE or -nVALUE; "--" ends the options. An error is reported on stderr together with the valid form, and the
 * status is 125. --help and --version are added to every table. The report of an unknown option contains the advice of
 * the tables (struct cli_advice), else the options that begin with it, else advice for words that begin with it, else
 * the option of nearest spelling.
 *
 * Prose (about, details, sections) is plain text: paragraphs are separated by an empty line, lines that begin with two
 * blanks are printed verbatim (at most 78 columns), and `backticks` mark literal input. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CLI_EXIT_BIDE_FAILED 125 /* exit status when bide itself failed: bad option, bad policy */

enum cli_completion {
    CLI_COMPLETE_NOTHING,
    CLI_COMPLETE_FILE,
    CLI_COMPLETE_DIRECTORY,
    CLI_COMPLETE_COMMAND,
    CLI_COMPLETE_POLICY
};

enum cli_kind {
    CLI_READ,     /* read() parses and stores the value */
    CLI_FLAG,     /* bool: true. Takes no value */
    CLI_CONSTANT, /* integer or bool: `min`. Takes no value */
    CLI_STRING,   /* const char *: the value; it stays valid */
    CLI_WORD,     /* const char *: one of `choices` */
    CLI_CHOICE,   /* unsigned or enum: index into `choices` */
    CLI_COUNT,    /* integer: from `min` to `max`; max 0: that of an unsigned integer of its size */
    CLI_DURATION, /* int64_t: nanoseconds from `min` to `max`; max 0: BIDE_DURATION_MAX */
};

struct cli_option {
    const char *name;  /* "attempts" */
    char letter;       /* 'n' for -n; 0: none */
    const char *value; /* "N", as shown in the help; NULL: takes no value */
    const char *help;  /* a phrase in lower case, without full stop */
    enum cli_kind kind;
    size_t offset, size; /* of the member in the group's settings: CLI_AT */
    size_t given;        /* of a bool that is set, too: CLI_GIVEN. 0: none */
    uint64_t min, max;
    bool or_never; /* CLI_DURATION: "never" is valid, too */
    /* CLI_READ: gets the member at `offset`; the value is NULL if the option takes none. Returns NULL, or the valid
     * form, which completes "--name VALUE: must be ...", or "no such ...". */
    const char *(*read)(void *at, const char *value);
    /* CLI_READ instead of read(): a function that several rows share gets the row, too. */
    const char *(*read_row)(void *at, const char *value, const struct cli_option *option);
    const char *details;        /* more prose for man page and docs, or NULL */
    const char *const *choices; /* NULL-terminated: the valid words, or for CLI_READ words to complete; or NULL */
    enum cli_completion completion;
    const char *(*value_key)(size_t i); /* of a value KEY=VALUE: the i-th key, for completions; or NULL */
    bool may_be_empty;                  /* '' is a valid value */
};

#define CLI_AT(type, member)    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define CLI_GIVEN(type, member) .given = 1 + offsetof(type, member)

/* What to use instead of an option that does not exist, but that other programs have. */
struct cli_advice {
    const char *word; /* as typed: "--retry" or "-m"; "-n N": a number after -n, which is a flag here */
    const char *text; /* completes "no such option: ...": "use --attempts N: it counts the first attempt, too" */
};

struct cli_group {
    const char *title; /* "Policy"; NULL: options of the command itself */
    const struct cli_option *option;
    size_t count;
    size_t offset; /* of the group's settings in the command's settings */
    size_t given;  /* of a bool in the command's settings that each option of the group sets: CLI_GIVEN. 0: none */
    const struct cli_advice *advice; /* for commands that have this group */
    size_t advice_count;
};

/* The advice of a command: CLI_ADVICE(advice) among the members of its struct cli_command. */
#define CLI_ADVICE(table) .advice = (table), .advice_count = sizeof(table) / sizeof *(table)

/* The options of a command itself; further members may follow: CLI_GROUP("Output", options), CLI_GIVEN(...). */
#define CLI_GROUP(heading, options)                                                                                    \
    .title = (heading), .option = (options), .count = sizeof(options) / sizeof *(options)

/* What an operand may be, for completions. A word that ends with = : or / is the beginning of an operand. */
struct cli_operands {
    const char *after; /* for operands after this first operand; NULL: for the first and after any other word */
    const char *(*word)(size_t i);  /* the i-th word, NULL after the last; or no function */
    enum cli_completion completion; /* in addition to the words */
};

struct cli_section {
    const char *title; /* "Exit status"; the section "Examples" is always printed last */
    const char *text;
    const char *(*generate)(void); /* instead of text: returns text generated from another table */
};

struct cli_command {
    const char *name;     /* "run" */
    const char *summary;  /* "run a command, and retry it if it fails": for command lists and the man page */
    const char *synopsis; /* "[options] [--] COMMAND [ARGUMENT...]"; may have several lines */
    const char *about;
    const struct cli_group *groups;
    size_t group_count;
    const struct cli_advice *advice; /* precedes the advice of the groups */
    size_t advice_count;
    const struct cli_section *sections; /* including the examples */
    size_t section_count;
    bool options_first;             /* the first operand ends the options: the rest belongs to another command */
    bool keeps_separator;           /* "--" is an operand: the words behind it are a command */
    enum cli_completion completion; /* of the operands, if there is no table of them */
    const struct cli_operands *operands;
    size_t operands_count;
    size_t settings_size;
    void (*init)(void *settings);                /* sets defaults in zeroed settings; may be NULL */
    int (*run)(void *settings, char **operands); /* NULL-terminated; returns the exit status */
};

/* Parses argv, runs the command and returns the exit status. argv begins after the program's name. */
int cli_main(const struct cli_command *command, char **argv);

/* Prints "bide run: TEXT\n" to stderr. Control characters are replaced by '?', since TEXT may quote untrusted input. */
void cli_report(const struct cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints one message per line of the text. */
void cli_report_lines(const struct cli_command *command, const char *lines);

/* Like cli_report; returns CLI_EXIT_BIDE_FAILED. */
int cli_fail(const struct cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Flushes stdout. Returns false after reporting that not all could be written; EPIPE is not reported. */
bool cli_flush(const struct cli_command *command);

/* Parses a value and stores it in the group's settings. Returns NULL, or an error text as `read` does, valid until the
 * next call. */
const char *cli_option_assign(const struct cli_option *option, void *group_settings, const char *value);

/* ---- for code that prints tables (help.c, tools/cli-docs.c) ---- */

extern const struct cli_group cli_builtin_group; /* --help (with -h, unless the table uses that letter) and --version */

/* Returns the option of that name or letter and sets its group; NULL if there is none. */
const struct cli_option *cli_option_find(const struct cli_command *command, const char *name, size_t length,
                                         const struct cli_group **group);
const struct cli_option *cli_option_find_letter(const struct cli_command *command, char letter,
                                                const struct cli_group **group);

const char *cli_section_text(const struct cli_section *section);
bool cli_section_is_examples(const struct cli_section *section);

/* Prints the help text, as wide as the terminal but at most 100 columns. */
void cli_print_help(const struct cli_command *command, FILE *out);

/* Prints prose: paragraphs are filled between the margins, indented lines kept, backticks dropped. */
struct cli_margins {
    unsigned left, right;
};
void cli_print_prose(FILE *out, const char *text, struct cli_margins margins);

/* Prints one paragraph as the right of two columns. The cursor is at column `at` of the left column. */
void cli_print_column(FILE *out, const char *text, unsigned at, struct cli_margins margins);

#endif
