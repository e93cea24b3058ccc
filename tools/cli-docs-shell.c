/* cli-docs-shell.c - prints completions for bash, zsh and fish.
 *
 * Each is a single file for all of bide; the only command it executes at run time is `bide help policies`. After the
 * options of a command that runs another command (options_first), the completion of that command takes over. */
#include <string.h>

#include "cli-docs.h"

/* Prints text inside single quotes of a shell, with a backslash before the characters in `special`. */
static void put_quoted(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '`')
            continue;
        if (*text == '\'')
            printf("'\\''");
        else if (strchr(special, *text) != NULL)
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void put_choices(const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", words[i]);
}

/* Prints the words that an operand may be, in addition to files and the like. */
static void put_operand_words(const struct cli_command *command)
{
    for (size_t i = 0; command->operand_word(i) != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", command->operand_word(i));
}

static void put_command_names(void)
{
    for (size_t i = 0; docs_command(i) != NULL; i++)
        printf("%s ", docs_command(i)->name);
}

static void put_topic_names(void)
{
    for (size_t i = 0; cli_topic(i) != NULL; i++)
        printf(" %s", cli_topic(i)->name);
}

static void bash_value(const struct cli_option *option)
{
    switch (option->completion) {
    case CLI_COMPLETE_FILE: printf("compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))"); break;
    case CLI_COMPLETE_DIRECTORY:
        printf("compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -d -- \"$cur\"))");
        break;
    case CLI_COMPLETE_COMMAND: printf("COMPREPLY=($(compgen -c -- \"$cur\"))"); break;
    case CLI_COMPLETE_POLICY: printf("_bide_words \"$(bide help policies 2> /dev/null)\""); break;
    case CLI_COMPLETE_NOTHING:
    default:
        if (option->choices == NULL)
            printf(":");
        printf(option->choices != NULL ? "_bide_words '" : "");
        if (option->choices != NULL)
            put_choices(option->choices);
        printf(option->choices != NULL ? "'" : "");
    }
}

/* Prints the cases "NAME:--option | NAME:-o) ...;;" of _bide_value for options with values. */
static void bash_values(const struct cli_command *command)
{
    struct docs_walk walk = {.command = command};
    const struct cli_option *option;
    while ((option = docs_walk_next(&walk, NULL)) != NULL) {
        if (option->value == NULL)
            continue;
        printf("        %s:--%s", command->name, option->name);
        if (docs_option_letter(command, option) != 0)
            printf(" | %s:-%c", command->name, docs_option_letter(command, option));
        printf(") ");
        bash_value(option);
        printf(" ;;\n");
    }
}

static void bash_operands(const struct cli_command *command)
{
    struct docs_walk walk = {.command = command};
    const struct cli_option *option;
    printf("        %s)\n            options='", command->name);
    while ((option = docs_walk_next(&walk, NULL)) != NULL)
        printf("--%s%s ", option->name, option->value != NULL ? "=" : "");
    printf("'\n            ");
    bash_value(&(struct cli_option){.completion = command->completion});
    if (command->operand_word != NULL) {
        printf("; COMPREPLY+=($(compgen -W '");
        put_operand_words(command);
        printf("' -- \"$cur\"))");
    }
    printf("\n            ;;\n");
}

static void put_commands_with_options_first(void)
{
    const char *separator = "";
    for (size_t i = 0; docs_command(i) != NULL; i++)
        if (docs_command(i)->options_first) {
            printf("%s%s", separator, docs_command(i)->name);
            separator = " | ";
        }
    printf(separator[0] == '\0' ? "''" : "");
}

/* Prints the shell functions that know options, values and operands. */
static void bash_tables(void)
{
    printf("_bide_words() {\n    COMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n}\n\n# Completes the value of an "
           "option; returns 1 if it takes none.\n_bide_value() {\n    case $1:$2 in\n");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        bash_values(docs_command(i));
    printf("        *) return 1 ;;\n    esac\n}\n\n# Completes options and operands of a command.\n_bide_arguments() "
           "{\n    local options=\n    case $1 in\n");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        bash_operands(docs_command(i));
    printf("        help) _bide_words '");
    put_command_names();
    put_topic_names();
    printf("' ;;\n    esac\n    if [[ $cur == -* ]]; then\n        _bide_words \"$options\"\n        [[ ${COMPREPLY-} "
           "== *= ]] && compopt -o nospace 2> /dev/null\n    fi\n}\n\n# Prints the position of the command after the "
           "options; 0: not there yet.\n_bide_command_at() {\n    local i cur= COMPREPLY\n    for ((i = 2; i < "
           "COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n            --) echo $((i + 1)) && return ;;\n    "
           "        -*) if [[ ${COMP_WORDS[i + 1]} == = ]]; then ((i += 2))\n                elif _bide_value \"$1\" "
           "\"${COMP_WORDS[i]}\" 2> /dev/null; then ((i++)); fi ;;\n            *) echo $i && return ;;\n        "
           "esac\n    done\n    echo 0\n}\n\n");
}

void docs_bash(void)
{
    printf("# bash completion of bide, generated by cli-docs from the option tables.\n\n");
    bash_tables();
    printf("_bide() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} at\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        _bide_words \"");
    put_command_names();
    printf("help --help --version $(compgen -c bide- | sed -E 's/^bide-//; /^(");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        printf("%s%s", i > 0 ? "|" : "", docs_command(i)->name);
    printf(")$/d')\"\n" /* programs of third parties; the built-in names are listed already */
           "        return\n"
           "    fi\n"
           "    case $command in\n"
           "        ");
    put_commands_with_options_first();
    printf(")\n"
           "            at=$(_bide_command_at \"$command\")\n"
           "            if ((at > 0)); then\n"
           "                if declare -F _command_offset > /dev/null; then _command_offset \"$at\"\n"
           "                else compopt -o default 2> /dev/null; fi\n"
           "                return\n"
           "            fi\n"
           "            ;;\n"
           "    esac\n"
           "    if [[ $cur == = ]]; then # --name=value comes as three words\n"
           "        cur=\n"
           "    elif [[ $prev == = ]] && ((COMP_CWORD > 3)); then\n"
           "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n"
           "    [[ $prev == -* ]] && _bide_value \"$command\" \"$prev\" && return\n"
           "    _bide_arguments \"$command\"\n"
           "}\n\n"
           "complete -F _bide bide\n");
}

static void zsh_action(const struct cli_option *option)
{
    switch (option->completion) {
    case CLI_COMPLETE_FILE: printf("_files"); break;
    case CLI_COMPLETE_DIRECTORY: printf("_files -/"); break;
    case CLI_COMPLETE_COMMAND:
        printf(" _command_names -e");
        break; /* without the blank, -e would not be a word of its own */
    case CLI_COMPLETE_POLICY: printf("_bide_policies"); break;
    case CLI_COMPLETE_NOTHING:
    default:
        putchar(option->choices != NULL ? '(' : ' ');
        if (option->choices != NULL)
            put_choices(option->choices);
        printf(option->choices != NULL ? ")" : "");
    }
}

static void zsh_option(const struct cli_command *command, const struct cli_option *option)
{
    char names[2][64] = {{0}};
    snprintf(names[0], sizeof names[0], "--%s%s", option->name, option->value != NULL ? "=" : "");
    if (docs_option_letter(command, option) != 0)
        snprintf(names[1], sizeof names[1], "-%c%s", docs_option_letter(command, option),
                 option->value != NULL ? "+" : "");
    for (size_t i = 0; i < 2 && names[i][0] != '\0'; i++) {
        printf(" \\\n                '*%s[", names[i]);
        put_quoted(option->help, "[]:\\");
        printf("]");
        if (option->value != NULL) {
            printf(":");
            put_quoted(option->value, "[]:\\");
            printf(":");
            zsh_action(option);
        }
        printf("'");
    }
}

static void zsh_command(const struct cli_command *command)
{
    struct docs_walk walk = {.command = command};
    const struct cli_option *option;
    printf("            %s)\n                _arguments -s -S", command->name);
    while ((option = docs_walk_next(&walk, NULL)) != NULL)
        zsh_option(command, option);
    if (command->options_first)
        printf(" \\\n                '(-)1:command: _command_names -e' '*::argument:_normal'");
    else if (command->operand_word != NULL) {
        printf(" \\\n                '*:argument:_bide_%s_operands'", command->name);
    } else if (command->completion != CLI_COMPLETE_NOTHING) {
        printf(" \\\n                '*:argument:");
        zsh_action(&(struct cli_option){.completion = command->completion});
        printf("'");
    }
    printf(" ;;\n");
}

/* Prints a function that offers words in addition to files and the like. */
static void zsh_operands(const struct cli_command *command)
{
    if (command->operand_word == NULL)
        return;
    printf("_bide_%s_operands() {\n    _alternative 'words:word:(", command->name);
    put_operand_words(command);
    printf(")' 'others:other:");
    zsh_action(&(struct cli_option){.completion = command->completion});
    printf("'\n}\n\n");
}

static void zsh_described(const char *name, const char *summary)
{
    printf("                '%s:", name);
    put_quoted(summary, ":\\");
    printf("'\n");
}

void docs_zsh(void)
{
    printf(
        "#compdef bide\n# zsh completion of bide, generated by cli-docs from the option tables.\n\n_bide_policies() "
        "{\n    local -a names\n    names=(${(f)\"$(bide help policies 2> /dev/null)\"})\n    compadd -a names\n}\n\n");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        zsh_operands(docs_command(i));
    printf("_bide() {\n"
           "    local curcontext=$curcontext state line\n"
           "    local -a subcommands topics\n" /* not `commands`, which _command_names uses */
           "    subcommands=(\n");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        zsh_described(docs_command(i)->name, docs_command(i)->summary);
    zsh_described("help", "help of a command or about a topic");
    printf("    )\n    topics=(\n");
    for (size_t i = 0; cli_topic(i) != NULL; i++)
        zsh_described(cli_topic(i)->name, cli_topic(i)->summary);
    printf("    )\n"
           "    _arguments -C '(- *)--help[show help]' '(- *)--version[show the version]' '1:command:->command' "
           "'*::argument:->argument'\n"
           "    case $state in\n"
           "    command) _describe command subcommands ;;\n"
           "    argument)\n"
           "        case $words[1] in\n");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        zsh_command(docs_command(i));
    printf("            help) _describe command subcommands -- topics ;;\n"
           "            *) _files ;;\n"
           "        esac ;;\n"
           "    esac\n"
           "}\n\n"
           "_bide \"$@\"\n");
}

static void fish_name(const struct cli_command *command, const struct cli_option *option)
{
    printf("complete -c bide -n '%s %s' -l %s", command->options_first ? "__bide_before" : "__bide_in", command->name,
           option->name);
    if (docs_option_letter(command, option) != 0)
        printf(" -s %c", docs_option_letter(command, option));
    printf(option->value == NULL                                                                     ? ""
           : option->completion == CLI_COMPLETE_FILE || option->completion == CLI_COMPLETE_DIRECTORY ? " -rF"
                                                                                                     : " -x");
}

static void fish_values(const struct cli_option *option)
{
    if (option->choices != NULL) {
        printf(" -a '");
        put_choices(option->choices);
        printf("'\n");
    } else if (option->completion == CLI_COMPLETE_POLICY) {
        printf(" -a '(bide help policies 2> /dev/null)'\n");
    } else {
        printf(" -a '(__fish_complete_command)'\n");
    }
}

/* fish would repeat the description of an option for each of its values, so the values have a line of their own,
 * without a description. The later line describes the option. */
static void fish_option(const struct cli_command *command, const struct cli_option *option)
{
    if (option->choices != NULL || option->completion == CLI_COMPLETE_POLICY ||
        option->completion == CLI_COMPLETE_COMMAND) {
        fish_name(command, option);
        fish_values(option);
    }
    fish_name(command, option);
    printf(" -d '");
    put_quoted(option->help, "\\");
    printf("'\n");
}

/* Prints the options that take the next word as value: another command may begin after it. */
static void fish_options_with_values(const struct cli_command *command)
{
    struct docs_walk walk = {.command = command};
    const struct cli_option *option;
    printf("set -g __bide_%s_takes", command->name);
    while ((option = docs_walk_next(&walk, NULL)) != NULL) {
        if (option->value != NULL)
            printf(" --%s", option->name);
        if (option->value != NULL && docs_option_letter(command, option) != 0)
            printf(" -%c", docs_option_letter(command, option));
    }
    printf("\n");
}

static void fish_operands(const struct cli_command *command)
{
    if (command->options_first) {
        fish_options_with_values(command);
        printf(
            "complete -c bide -n '__bide_in %s' -x -a '(__fish_complete_subcommand --fcs-skip=2 $__bide_%s_takes)'\n",
            command->name, command->name);
    } else if (command->completion == CLI_COMPLETE_FILE) {
        printf("complete -c bide -n '__bide_in %s' -F\n", command->name);
    } else if (command->completion == CLI_COMPLETE_POLICY) {
        printf("complete -c bide -n '__bide_in %s' -a '(bide help policies 2> /dev/null)'\n", command->name);
    }
    if (command->operand_word != NULL) {
        printf("complete -c bide -n '__bide_in %s' -a '", command->name);
        put_operand_words(command);
        printf("'\n");
    }
}

void docs_fish(void)
{
    printf("# fish completion of bide, generated by cli-docs from the option tables.\n\nfunction __bide_in "
           "--description 'is this the subcommand?'\n    set -l words (commandline -opc)\n    test \"$words[2]\" = "
           "$argv[1]\nend\n\nfunction __bide_before --description 'is this the subcommand, before the command that it "
           "runs?'\n    set -l words (commandline -opc)\n    set -l takes __bide_$argv[1]_takes\n    test "
           "\"$words[2]\" = $argv[1]; or return 1\n    set -e words[1..2]\n    while set -q words[1]\n        string "
           "match -qr '^-.' -- $words[1]; or return 1\n        test $words[1] = --; and return 1\n        contains -- "
           "$words[1] $$takes; and set -q words[2]; and set -e words[1]\n        set -e words[1]\n    "
           "end\nend\n\ncomplete -c bide -f\ncomplete -c bide -n __fish_use_subcommand -l version -d 'show the "
           "version'\ncomplete -c bide -n __fish_use_subcommand -l help -d 'show help'\ncomplete -c bide -n "
           "__fish_use_subcommand -a help -d 'help of a command or about a topic'\n");
    for (size_t i = 0; docs_command(i) != NULL; i++) {
        printf("complete -c bide -n __fish_use_subcommand -a %s -d '", docs_command(i)->name);
        put_quoted(docs_command(i)->summary, "\\");
        printf("'\ncomplete -c bide -n '__bide_in help' -a %s -d '", docs_command(i)->name);
        put_quoted(docs_command(i)->summary, "\\");
        printf("'\n");
    }
    for (size_t i = 0; cli_topic(i) != NULL; i++) {
        printf("complete -c bide -n '__bide_in help' -a %s -d '", cli_topic(i)->name);
        put_quoted(cli_topic(i)->summary, "\\");
        printf("'\n");
    }
    for (size_t i = 0; docs_command(i) != NULL; i++) {
        struct docs_walk walk = {.command = docs_command(i)};
        const struct cli_option *option;
        while ((option = docs_walk_next(&walk, NULL)) != NULL)
            fish_option(docs_command(i), option);
        fish_operands(docs_command(i));
    }
}
