/* cli-docs.h - shared by the files of cli-docs: the command tables, and a walk over the options of a table. */
#ifndef TOOLS_CLI_DOCS_H
#define TOOLS_CLI_DOCS_H

#include "common/commands.h"
#include "common/topics.h"

/* Returns the i-th command; NULL after the last. */
const struct cli_command *docs_command(size_t i);

/* A walk over all options in the order of --help: untitled groups, titled groups, built-in group. */
struct docs_walk {
    const struct cli_command *command;
    int round;       /* 0: untitled, 1: titled, 2: built-in */
    size_t group, i; /* position of the next option */
};

/* Returns the next option; NULL at the end. If `title` is not NULL, sets it to the title of the group before its first
 * option, else to NULL. */
const struct cli_option *docs_walk_next(struct docs_walk *walk, const char **title);

/* Returns the option's letter; 0 if it has none, or if another option of the table has it. */
char docs_option_letter(const struct cli_command *command, const struct cli_option *option);

/* Prints the scdoc source of a page: "bide", "bide.conf" or a command. Returns false if there is no such page. */
bool docs_man(const char *name);

void docs_bash(void);
void docs_zsh(void);
void docs_fish(void);

#endif
