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

static void put_words(const char *(*word)(size_t i), const char *suffix)
{
    for (size_t i = 0; word(i) != NULL; i++)
        printf("%s%s%s", i > 0 ? " " : "", word(i), suffix);
}

/* Prints the words that the value of an option may be, or begin with. */
static void put_value_words(const struct cli_option *option)
{
    if (option->choices != NULL)
        put_choices(option->choices);
    else
        put_words(option->value_key, "=");
}

static bool option_has_words(const struct cli_option *option)
{
    return option->choices != NULL || option->value_key != NULL;
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
    case CLI_COMPLETE_FILE: printf("_bide_files -f"); break;
    case CLI_COMPLETE_DIRECTORY: printf("_bide_files -d"); break;
    case CLI_COMPLETE_COMMAND: printf("COMPREPLY=($(compgen -c -- \"$cur\"))"); break;
    case CLI_COMPLETE_POLICY: printf("_bide_words \"$(bide help policies 2> /dev/null)\""); break;
    case CLI_COMPLETE_NOTHING:
    default:
        printf(option_has_words(option) ? "_bide_words '" : ":");
        if (option_has_words(option)) {
            put_value_words(option);
            printf("'");
        }
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

/* Prints the cases of the operands by the first operand; "*" must be the last. */
static void bash_operand_table(const struct cli_command *command, bool after_a_word)
{
    for (size_t i = 0; i < command->operands_count; i++) {
        const struct cli_operands *row = &command->operands[i];
        if ((row->after != NULL) != after_a_word)
            continue;
        printf("                %s) ", row->after != NULL ? row->after : "*");
        bash_value(&(struct cli_option){.completion = row->completion});
        if (row->word != NULL) {
            printf("; _bide_words '");
            put_words(row->word, "");
            printf("'");
        }
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
    printf("'\n            case $verb in\n");
    bash_operand_table(command, true);
    bash_operand_table(command, false);
    if (command->operands_count == 0) {
        printf("                *) ");
        bash_value(&(struct cli_option){.completion = command->completion});
        printf(" ;;\n");
    }
    printf("            esac\n            ;;\n");
}

/* Prints "A | B" of the commands for which the question is answered with yes; '' if there is none. */
static void put_commands_that(bool (*question)(const struct cli_command *command))
{
    const char *separator = "";
    for (size_t i = 0; docs_command(i) != NULL; i++)
        if (question(docs_command(i))) {
            printf("%s%s", separator, docs_command(i)->name);
            separator = " | ";
        }
    printf(separator[0] == '\0' ? "''" : "");
}

static bool command_has_options_first(const struct cli_command *command)
{
    return command->options_first;
}

static bool command_keeps_separator(const struct cli_command *command)
{
    return command->keeps_separator;
}

static const char bash_helpers[] =
    "# Joins the words that bash has separated at = and :. Sets words, and starts, their positions in COMP_WORDS.\n"
    "_bide_split() {\n"
    "    local line=$COMP_LINE i\n"
    "    words=() starts=()\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        if ((i > 0)) && [[ $line != [[:space:]]* ]]; then\n"
    "            words[${#words[@]} - 1]+=${COMP_WORDS[i]}\n"
    "        else\n"
    "            words+=(\"${COMP_WORDS[i]}\") starts+=(\"$i\")\n"
    "        fi\n"
    "        line=${line#*\"${COMP_WORDS[i]}\"}\n"
    "    done\n"
    "}\n\n"
    "_bide_words() {\n"
    "    COMPREPLY+=($(compgen -W \"$1\" -- \"$cur\"))\n"
    "    if [[ ${COMPREPLY-} == *[=:/] ]]; then compopt -o nospace 2> /dev/null; fi\n"
    "    return 0\n"
    "}\n\n"
    "_bide_files() {\n"
    "    local IFS=$'\\n'\n"
    "    compopt -o filenames 2> /dev/null\n"
    "    COMPREPLY+=($(compgen \"$1\" -- \"$cur\"))\n"
    "}\n\n"
    "# Prints the position of the first operand, in words; 0: not there yet.\n"
    "_bide_operand_at() {\n"
    "    local i cur= COMPREPLY\n"
    "    for ((i = 2; i < ${#words[@]} - 1; i++)); do\n"
    "        case ${words[i]} in\n"
    "            --) echo $((i + 1)) && return ;;\n"
    "            --*=*) ;;\n"
    "            -*) if _bide_value \"$1\" \"${words[i]}\" 2> /dev/null; then ((i++)); fi ;;\n"
    "            *) echo $i && return ;;\n"
    "        esac\n"
    "    done\n"
    "    echo 0\n"
    "}\n\n"
    "# Prints the position of the word after --; 0: there is no --.\n"
    "_bide_separated_at() {\n"
    "    local i\n"
    "    for ((i = 2; i < ${#words[@]} - 1; i++)); do\n"
    "        [[ ${words[i]} == -- ]] && echo $((i + 1)) && return\n"
    "    done\n"
    "    echo 0\n"
    "}\n\n"
    "# Completes another command, which begins at this word.\n"
    "_bide_command() {\n"
    "    if declare -F _command_offset > /dev/null; then\n"
    "        _command_offset \"${starts[$1]}\"\n"
    "    elif (($1 == ${#words[@]} - 1)); then\n"
    "        COMPREPLY=($(compgen -c -- \"$cur\"))\n"
    "    else\n"
    "        compopt -o default 2> /dev/null\n"
    "    fi\n"
    "}\n\n";

/* Prints the shell functions that know options, values and operands. */
static void bash_tables(void)
{
    printf("# Completes the value of an option; returns 1 if it takes none.\n_bide_value() {\n    case $1:$2 in\n");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        bash_values(docs_command(i));
    printf(
        "        *) return 1 ;;\n    esac\n}\n\n# Completes options and operands of a command.\n_bide_arguments() "
        "{\n    local options= verb=\n    ((at > 0 && at < ${#words[@]} - 1)) && verb=${words[at]}\n    case $1 in\n");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        bash_operands(docs_command(i));
    printf("        help) _bide_words '");
    put_command_names();
    put_topic_names();
    printf("' ;;\n    esac\n    if [[ $cur == -* ]]; then\n        COMPREPLY=()\n        _bide_words \"$options\"\n    "
           "fi\n}\n\n");
}

/* Prints the names of the subcommands, and of programs of third parties. */
static void bash_first_word(void)
{
    printf("        _bide_words \"");
    put_command_names();
    printf("help --help --version $(compgen -c bide- | sed -E 's/^bide-//; /^(");
    for (size_t i = 0; docs_command(i) != NULL; i++)
        printf("%s%s", i > 0 ? "|" : "", docs_command(i)->name);
    printf(")$/d')\"\n"); /* the built-in names are listed already */
}

void docs_bash(void)
{
    printf("# bash completion of bide, generated by cli-docs from the option tables.\n\n%s", bash_helpers);
    bash_tables();
    printf("_bide() {\n"
           "    local words starts cur prev command at=0 separated=0\n"
           "    _bide_split\n"
           "    cur=${words[${#words[@]} - 1]} prev=${words[${#words[@]} - 2]} command=${words[1]}\n"
           "    COMPREPLY=()\n"
           "    if ((${#words[@]} == 2)); then\n");
    bash_first_word();
    printf("        return\n"
           "    fi\n"
           "    at=$(_bide_operand_at \"$command\")\n"
           "    case $command in\n"
           "        ");
    put_commands_that(command_has_options_first);
    printf(") separated=$at ;;\n        ");
    put_commands_that(command_keeps_separator);
    printf(") separated=$(_bide_separated_at) ;;\n"
           "    esac\n"
           "    if ((separated > 0)); then\n"
           "        _bide_command \"$separated\"\n"
           "        return\n"
           "    fi\n"
           "    if [[ $cur == --*=* ]]; then\n"
           "        prev=${cur%%%%=*} cur=${cur#*=}\n"
           "    fi\n"
           "    if [[ $prev != -* ]] || ! _bide_value \"$command\" \"$prev\"; then\n"
           "        _bide_arguments \"$command\"\n"
           "    fi\n"
           "    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then # bash replaces only what follows the colon\n"
           "        COMPREPLY=(\"${COMPREPLY[@]#\"${cur%%\"${cur##*:}\"}\"}\")\n"
           "    fi\n"
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
        printf(option->choices != NULL ? "(" : option->value_key != NULL ? " _bide_offer " : " ");
        if (option_has_words(option))
            put_value_words(option);
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
        printf(" \\\n                '(-)1:command: _command_names -e' '*::argument:_bide_command'");
    else if (command->operands_count > 0) {
        printf(" \\\n                '*:argument:_bide_%s_operands'", command->name);
    } else if (command->completion != CLI_COMPLETE_NOTHING) {
        printf(" \\\n                '*:argument:");
        zsh_action(&(struct cli_option){.completion = command->completion});
        printf("'");
    }
    printf(" ;;\n");
}

/* Prints the cases of the operands by the first operand; "*" must be the last. */
static void zsh_operand_table(const struct cli_command *command, bool after_a_word)
{
    for (size_t i = 0; i < command->operands_count; i++) {
        const struct cli_operands *row = &command->operands[i];
        if ((row->after != NULL) != after_a_word)
            continue;
        printf("        %s)\n", row->after != NULL ? row->after : "*");
        if (row->completion != CLI_COMPLETE_NOTHING) {
            printf("            ");
            zsh_action(&(struct cli_option){.completion = row->completion});
            printf(" && found=0\n");
        }
        if (row->word != NULL) {
            printf("            _bide_offer ");
            put_words(row->word, "");
            printf(" && found=0\n");
        }
        printf("            ;;\n");
    }
}

/* Prints a function that completes the operands of a command with a table of them. */
static void zsh_operands(const struct cli_command *command)
{
    if (command->operands_count == 0)
        return;
    printf("_bide_%s_operands() {\n    local found=1\n", command->name);
    if (command->keeps_separator)
        printf("    local before=$(( $words[(ie)--] - 1 ))\n    if (( before + 1 < CURRENT )); then\n        shift "
               "$before words\n        (( CURRENT -= before ))\n        _bide_command\n        return\n    fi\n");
    printf("    case $line[1] in\n");
    zsh_operand_table(command, true);
    zsh_operand_table(command, false);
    printf("    esac\n    return found\n}\n\n");
}

static const char zsh_helpers[] = "_bide_policies() {\n"
                                  "    local -a names\n"
                                  "    names=(${(f)\"$(bide help policies 2> /dev/null)\"})\n"
                                  "    compadd -a names\n"
                                  "}\n\n"
                                  "# Offers words; after one that ends with = : or / a value follows, and no blank.\n"
                                  "_bide_offer() {\n"
                                  "    local -a open complete\n"
                                  "    local found=1\n"
                                  "    open=(${(M)@:#*[=:/]}) complete=(${@:#*[=:/]})\n"
                                  "    compadd -S '' -a open && found=0\n"
                                  "    compadd -a complete && found=0\n"
                                  "    return found\n"
                                  "}\n\n"
                                  "# Completes another command. The first word may be the -- before it.\n"
                                  "_bide_command() {\n"
                                  "    if [[ $words[1] == -- ]]; then\n"
                                  "        shift words\n"
                                  "        (( CURRENT-- ))\n"
                                  "    fi\n"
                                  "    _normal\n"
                                  "}\n\n";

static void zsh_described(const char *name, const char *summary)
{
    printf("                '%s:", name);
    put_quoted(summary, ":\\");
    printf("'\n");
}

void docs_zsh(void)
{
    printf("#compdef bide\n# zsh completion of bide, generated by cli-docs from the option tables.\n\n%s", zsh_helpers);
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
    printf("complete -c bide -n '%s %s%s' -l %s", command->options_first ? "__bide_before" : "__bide_in", command->name,
           command->keeps_separator ? "; and not __bide_separated" : "", option->name);
    if (docs_option_letter(command, option) != 0)
        printf(" -s %c", docs_option_letter(command, option));
    printf(option->value == NULL                                                                     ? ""
           : option->completion == CLI_COMPLETE_FILE || option->completion == CLI_COMPLETE_DIRECTORY ? " -rF"
                                                                                                     : " -x");
}

static void fish_values(const struct cli_option *option)
{
    if (option_has_words(option)) {
        printf(" -a '");
        put_value_words(option);
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
    if (option_has_words(option) || option->completion == CLI_COMPLETE_POLICY ||
        option->completion == CLI_COMPLETE_COMMAND) {
        fish_name(command, option);
        fish_values(option);
    }
    fish_name(command, option);
    printf(" -d '");
    put_quoted(option->help, "\\");
    printf("'\n");
}

/* Prints the options that take the next word as value: the first operand may follow it. */
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

/* Prints lines for files, policies and the like, under a condition. */
static void fish_completion(enum cli_completion completion, const char *condition)
{
    if (completion == CLI_COMPLETE_FILE)
        printf("complete -c bide -n '%s' -F\n", condition);
    else if (completion == CLI_COMPLETE_POLICY)
        printf("complete -c bide -n '%s' -a '(bide help policies 2> /dev/null)'\n", condition);
}

static void fish_operand_row(const struct cli_command *command, const struct cli_operands *row)
{
    char condition[192];
    int used = snprintf(condition, sizeof condition, "__bide_in %s; and %s__bide_verb %s", command->name,
                        row->after == NULL ? "not " : "", command->name);
    if (row->after != NULL) {
        snprintf(condition + used, sizeof condition - (size_t)used, " %s", row->after);
    } else {
        for (size_t i = 0; i < command->operands_count && (size_t)used < sizeof condition; i++)
            if (command->operands[i].after != NULL)
                used += snprintf(condition + used, sizeof condition - (size_t)used, " %s", command->operands[i].after);
    }
    fish_completion(row->completion, condition);
    if (row->word != NULL) {
        printf("complete -c bide -n '%s%s' -a '", condition,
               command->keeps_separator ? "; and not __bide_separated" : "");
        put_words(row->word, "");
        printf("'\n");
    }
}

static void fish_operands(const struct cli_command *command)
{
    char condition[64];
    snprintf(condition, sizeof condition, "__bide_in %s", command->name);
    if (command->options_first || command->operands_count > 0)
        fish_options_with_values(command);
    if (command->options_first)
        printf("complete -c bide -n '%s' -x -a '(__fish_complete_subcommand --fcs-skip=2 $__bide_%s_takes)'\n",
               condition, command->name);
    else if (command->operands_count == 0)
        fish_completion(command->completion, condition);
    for (size_t i = 0; i < command->operands_count; i++)
        fish_operand_row(command, &command->operands[i]);
    if (command->keeps_separator)
        printf("complete -c bide -n '%s; and __bide_separated' -x -a '(__bide_separated_command)'\n", condition);
}

static const char fish_helpers[] =
    "function __bide_in --description 'is this the subcommand?'\n"
    "    set -l words (commandline -opc)\n"
    "    test \"$words[2]\" = $argv[1]\n"
    "end\n\n"
    "function __bide_operand --description 'prints the first operand, or the -- before it'\n"
    "    set -l words (commandline -opc)\n"
    "    set -l takes __bide_$argv[1]_takes\n"
    "    set -e words[1..2]\n"
    "    while set -q words[1]\n"
    "        if not string match -qr '^-.' -- $words[1]; or test $words[1] = --\n"
    "            echo $words[1]\n"
    "            return\n"
    "        end\n"
    "        contains -- $words[1] $$takes; and set -q words[2]; and set -e words[1]\n"
    "        set -e words[1]\n"
    "    end\n"
    "end\n\n"
    "function __bide_before --description 'is this the subcommand, before the command that it runs?'\n"
    "    __bide_in $argv[1]; and test -z \"$(__bide_operand $argv[1])\"\n"
    "end\n\n"
    "function __bide_verb --description 'is the first operand one of these words?'\n"
    "    contains -- \"$(__bide_operand $argv[1])\" $argv[2..]\n"
    "end\n\n"
    "function __bide_separated --description 'is there a -- before the cursor?'\n"
    "    contains -- -- (commandline -opc)\n"
    "end\n\n"
    "function __bide_separated_command --description 'completes the command after --'\n"
    "    set -l words (commandline -opc)\n"
    "    set -l at (contains -i -- -- $words)\n"
    "    set -l command $words[(math $at + 1)..] (commandline -ct)\n"
    "    complete -C \"$command\"\n"
    "end\n\n";

void docs_fish(void)
{
    printf("# fish completion of bide, generated by cli-docs from the option tables.\n\n%s", fish_helpers);
    printf("complete -c bide -f\ncomplete -c bide -n __fish_use_subcommand -l version -d 'show the "
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
