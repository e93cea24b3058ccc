/* cli-docs.h - what the parts of cli-docs share: all tables, and a walk over one. */
#ifndef TOOLS_CLI_DOCS_H
#define TOOLS_CLI_DOCS_H

#include "common/commands.h"
#include "common/topics.h"

/* The i-th command; NULL past the last. */
const struct cli_command *docs_command(size_t i);

/* Every option, in the order of --help: untitled groups, titled groups, what every table has. */
struct docs_walk {
    const struct cli_command *command;
    int round;       /* 0: untitled, 1: titled, 2: own */
    size_t group, i; /* the next */
};

/* NULL at the end. `title`, if wanted, is set when the option is the first of a group that has one, else to NULL. */
const struct cli_option *docs_walk_next(struct docs_walk *walk, const char **title);

/* The option's letter; 0 if it has none, or if the table gives it to another. */
char docs_option_letter(const struct cli_command *command, const struct cli_option *option);

/* scdoc source of a page: "bide", "bide.conf" or a command. False: there is no such page. */
bool docs_man(const char *name);

void docs_bash(void);
void docs_zsh(void);
void docs_fish(void);

#endif
