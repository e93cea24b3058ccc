/* cli-docs.c - prints what the option tables of cli/ say as man pages, completions and Markdown.
 *
 *     cli-docs                   the subcommands it knows
 *     cli-docs check             complains about tables that contradict themselves
 *     cli-docs man NAME          scdoc source: of bide-NAME(1), of bide(1) for "bide", of bide.conf(5) for "bide.conf"
 *     cli-docs bash|zsh|fish     a completion file for bide
 *     cli-docs markdown NAME     the options of a subcommand, for its page in docs/
 *
 * The tables are linked in, so nothing that is printed here can disagree with the parser or with --help. */
#include <stdlib.h>
#include <string.h>

#include <bide/base.h>

#include "common/commands.h"
#include "common/topics.h"
#include "conf/conf.h"

static const struct cli_command *const commands[] = {CLI_TABLES}; /* the build knows which there are */

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* ---- walking a table ---- */

/* Every option, in the order of --help: untitled groups, titled groups, what every table has. */
struct walk {
    const struct cli_command *command;
    int round;       /* 0: untitled, 1: titled, 2: own */
    size_t group, i; /* the next */
};

static const struct cli_group *walk_group(struct walk *walk)
{
    if (walk->round == 2)
        return walk->group == 0 ? &cli_own_group : NULL;
    for (; walk->group < walk->command->group_count; walk->group++)
        if ((walk->command->groups[walk->group].title != NULL) == (walk->round == 1))
            return &walk->command->groups[walk->group];
    return NULL;
}

/* NULL at the end. `title`, if wanted, is set when the option is the first of a group that has one. */
static const struct cli_option *walk_next(struct walk *walk, const char **title)
{
    const struct cli_group *group;
    while (walk->round < 3) {
        group = walk_group(walk);
        if (group != NULL && walk->i < group->count) {
            if (title != NULL)
                *title = walk->i == 0 ? group->title : NULL;
            return &group->option[walk->i++];
        }
        walk->i = 0;
        walk->round += group == NULL;
        walk->group = group == NULL ? 0 : walk->group + 1;
    }
    return NULL;
}

/* 0 if the table gives the letter to another. */
static char letter_of(const struct cli_command *command, const struct cli_option *option)
{
    const struct cli_group *group;
    return option->letter != 0 && cli_option_letter(command, option->letter, &group) == option ? option->letter : '\0';
}

/* ---- checks ---- */

static int complain(const struct cli_command *command, const char *name, const char *what)
{
    fprintf(stderr, "bide %s --%s: %s\n", command->name, name, what);
    return 1;
}

static int check_option(const struct cli_command *command, const struct cli_option *option)
{
    const struct cli_group *group;
    int wrong = 0;
    if (cli_option_find(command, option->name, strlen(option->name), &group) != option)
        wrong |= complain(command, option->name, "is there twice");
    if (option->letter != 0 && group != &cli_own_group && letter_of(command, option) == 0)
        wrong |= complain(command, option->name, "its letter is another's");
    if (option->does == NULL || option->does[0] == '\0' || option->does[strlen(option->does) - 1] == '.')
        wrong |= complain(command, option->name, "what it does is a phrase without a full stop");
    if (option->read == NULL && group != &cli_own_group)
        wrong |= complain(command, option->name, "nobody reads it");
    if (option->value == NULL && (option->choices != NULL || option->completes != CLI_NOTHING))
        wrong |= complain(command, option->name, "completes a value that it does not take");
    return wrong;
}

static int check(void)
{
    static const char *const summaries[] = {
#define SUMMARY(name, summary) #name, summary,
        CLI_COMMAND_LIST(SUMMARY)
#undef SUMMARY
    };
    int wrong = 0;
    for (size_t c = 0; c < COUNT(commands); c++) {
        const struct cli_command *command = commands[c];
        struct walk walk = {.command = command};
        const struct cli_option *option;
        while ((option = walk_next(&walk, NULL)) != NULL)
            wrong |= check_option(command, option);
        for (size_t i = 0; i < COUNT(summaries); i += 2)
            if (strcmp(summaries[i], command->name) == 0 &&
                (command->summary == NULL || strcmp(summaries[i + 1], command->summary) != 0))
                wrong |= complain(command, "help", "the summary is not the one of commands.h");
        if (command->synopsis == NULL || command->about == NULL || command->run == NULL)
            wrong |= complain(command, "help", "the table lacks synopsis, about or run");
    }
    return wrong;
}

/* ---- scdoc ---- */

/* Text of one line, `typed` words in bold. scdoc's own characters are escaped; those of roff are scdoc's business. */
static void put_scdoc(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '`')
            putchar('*');
        else if (strchr("\\*_#[]|+-", text[i]) != NULL)
            printf("\\%c", text[i]);
        else
            putchar(text[i]);
    }
}

static void put_all(const char *text)
{
    put_scdoc(text, strlen(text));
}

/* Lines that are kept: scdoc takes them literally between fences. Returns what follows them. */
static const char *put_literal(const char *text, const char *indent)
{
    printf("%s```\n", indent);
    while (strncmp(text, "  ", 2) == 0) {
        size_t length = strcspn(text, "\n");
        fputs(indent, stdout);
        for (size_t i = 2; i < length; i++)
            printf(text[i] == '\\' ? "\\\\" : "%c", text[i]);
        putchar('\n');
        text += length + (text[length] == '\n');
    }
    printf("%s```\n", indent);
    return text;
}

/* Prose as options.h describes it. */
static void put_prose(const char *text, const char *indent)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (strncmp(text, "  ", 2) == 0) {
            putchar('\n');
            text = put_literal(text, indent);
            continue;
        }
        fputs(length > 0 ? indent : "", stdout);
        put_scdoc(text, length);
        text += length + (text[length] == '\n');
        putchar(*text == '.' ? ' ' : '\n'); /* scdoc loses a full stop that begins a line */
    }
}

static void put_heading(const char *title)
{
    printf("\n# ");
    for (; *title != '\0'; title++)
        putchar(*title >= 'a' && *title <= 'z' ? *title - 'a' + 'A' : *title);
    printf("\n\n");
}

static void man_option(const struct cli_command *command, const struct cli_option *option)
{
    char letter = letter_of(command, option);
    if (letter != 0)
        printf("*\\-%c*, ", letter);
    printf("*\\-\\-");
    put_all(option->name);
    putchar('*');
    if (option->value != NULL) {
        printf(" _");
        put_all(option->value);
        putchar('_');
    }
    printf("\n\t");
    putchar(option->does[0] >= 'a' && option->does[0] <= 'z' ? option->does[0] - 'a' + 'A' : option->does[0]);
    put_all(option->does + 1);
    printf(".\n\n");
    if (option->more == NULL)
        return;
    put_prose(option->more, "\t");
    printf("\n\n");
}

static void man_options(const struct cli_command *command)
{
    struct walk walk = {.command = command};
    const struct cli_option *option;
    const char *title;
    put_heading("Options");
    while ((option = walk_next(&walk, &title)) != NULL) {
        if (title != NULL)
            printf("\n## %s\n\n", title);
        man_option(command, option);
    }
}

static void man_synopsis(const struct cli_command *command)
{
    put_heading("Synopsis");
    for (const char *line = command->synopsis; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        printf("*bide %s* ", command->name);
        put_scdoc(line, length);
        line += length + (line[length] == '\n');
        printf(*line != '\0' ? "++\n" : "\n");
    }
}

static void man_see_also(const char *self)
{
    const char *between = "";
    put_heading("See also");
    if (strcmp(self, "bide") != 0) {
        printf("*bide*(1)");
        between = ", ";
    }
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(commands[i]->name, self) != 0) {
            printf("%s*bide\\-%s*(1)", between, commands[i]->name);
            between = ", ";
        }
    printf(strcmp(self, "bide.conf") != 0 ? ", *bide.conf*(5)\n" : "\n");
}

static void man_command(const struct cli_command *command)
{
    printf("bide-%s(1) \"bide %s\"\n", command->name, bide_version());
    put_heading("Name");
    printf("bide\\-%s - ", command->name);
    put_all(command->summary);
    putchar('\n');
    man_synopsis(command);
    put_heading("Description");
    put_prose(command->about, "");
    man_options(command);
    for (int last = 0; last <= 1; last++)
        for (size_t i = 0; i < command->section_count; i++)
            if (cli_section_is_examples(&command->sections[i]) == (last == 1)) {
                put_heading(command->sections[i].title);
                put_prose(cli_section_text(&command->sections[i]), "");
            }
    man_see_also(command->name);
}

/* A topic of `bide help` as it stands, between fences. */
static void man_topic(const char *title, const char *name)
{
    char *text = NULL;
    size_t size, i = 0;
    FILE *memory = open_memstream(&text, &size);
    while (cli_topic(i) != NULL && strcmp(cli_topic(i)->name, name) != 0)
        i++;
    if (memory == NULL || cli_topic(i) == NULL)
        abort();
    cli_topic(i)->print(memory);
    fclose(memory);
    put_heading(title);
    put_prose(text, "");
    free(text);
}

static void man_bide(void)
{
    printf("bide(1) \"bide %s\"\n", bide_version());
    put_heading("Name");
    printf("bide - retries that do not make the failure worse\n");
    put_heading("Synopsis");
    printf("*bide* _COMMAND_ [_ARGUMENT_...]++\n*bide help* [_COMMAND_|_TOPIC_]++\n*bide \\-\\-version*\n");
    put_heading("Description");
    printf("*bide* repeats what failed, and knows when not to: waits are spread at random, budgets and breakers keep "
           "retries from becoming a second outage, and what must not run twice is not repeated.\n\n");
    printf("*bide* _NAME_ runs one of the commands below, or else the program *bide\\-NAME*: beside itself, in "
           "../libexec/bide seen from there, or in PATH.\n");
    put_heading("Commands");
    for (size_t i = 0; i < COUNT(commands); i++) {
        printf("*bide\\-%s*(1)\n\t", commands[i]->name);
        put_all(commands[i]->summary);
        printf("\n\n");
    }
    put_heading("Topics");
    for (size_t i = 0; cli_topic(i) != NULL; i++) {
        printf("*bide help ");
        put_all(cli_topic(i)->name);
        printf("*\n\t");
        put_all(cli_topic(i)->summary);
        printf("\n\n");
    }
    man_topic("Exit status", "exit-codes");
    man_topic("Environment", "environment");
    put_heading("Files");
    printf("bide.conf, $XDG\\_CONFIG\\_HOME/bide/bide.conf, /etc/bide/bide.conf\n"
           "\tPolicies, see *bide.conf*(5). The first that exists is read, when a policy is asked for.\n");
    man_see_also("bide");
}

static void man_key(const struct conf_field *field, const struct conf_pair *pair)
{
    char text[256];
    putchar('*');
    put_all(field->key);
    printf("*\n\t");
    put_all(field->about);
    printf(". In service: ");
    put_all(conf_field_text(text, field, pair));
    printf(".");
    for (size_t i = 0; field->words != NULL && field->words[i] != NULL; i++) {
        printf(i == 0 ? " One of " : ", ");
        put_all(field->words[i]);
    }
    printf(field->words != NULL ? ".\n\n" : "\n\n");
}

static void man_conf(void)
{
    struct conf_pair pair;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    printf("bide.conf(5) \"bide %s\"\n", bide_version());
    put_heading("Name");
    printf("bide.conf - policies of bide, by name\n");
    put_heading("Description");
    put_prose(
        "A file in INI form with a section for each target. The first of ./bide.conf, "
        "$XDG_CONFIG_HOME/bide/bide.conf (~/.config without that variable) and /etc/bide/bide.conf is read, or "
        "the one that `--config` names; only when a policy is asked for, by `--policy` or `--target`. A file that "
        "begins with { is taken as a gRPC service config.\n"
        "\n"
        "A section begins with everything of what it `extends`, a preset or another section of the file, and of "
        "the preset service if it extends nothing. Everything in a file is checked when it is read, also what "
        "nobody asked for. Comments begin with # or ;.\n",
        "");
    put_heading("Example");
    put_prose("  [payments]\n  extends = payment\n  attempts = 3\n  deadline = 2s\n  budget.capacity = 20\n\n"
              "  [payments-batch]\n  extends = payments\n  deadline = never    # nobody waits for it\n",
              "");
    put_heading("Keys");
    for (size_t i = 0; conf_field(i) != NULL; i++)
        man_key(conf_field(i), &pair);
    put_heading("Lists");
    put_prose(
        "`retry_status`, `permanent_status`, `retry_exit`, `permanent_exit`, `retry_grpc` and `permanent_grpc` are "
        "lists of numbers and ranges, such as 408, 429, 500-504. They go before what bide itself makes of a "
        "status, exit code or gRPC code. A retry_ list makes everything in neither list permanent.\n",
        "");
    man_topic("Values", "units");
    man_see_also("bide.conf");
}

static bool man(const char *name)
{
    const struct cli_command *command = find_command(name);
    if (command != NULL)
        man_command(command);
    else if (strcmp(name, "bide") == 0)
        man_bide();
    else if (strcmp(name, "bide.conf") == 0)
        man_conf();
    else
        return false;
    return true;
}

/* ---- markdown ---- */

#define PAGE_WIDTH 118u

/* Words filled to the width of a page, continued under the item. */
static void fill(const char *text, size_t *at)
{
    while (*text != '\0') {
        size_t gap = strspn(text, " \n"), length = strcspn(text + gap, " \n");
        if (length == 0)
            return;
        if (*at + 1 + length > PAGE_WIDTH) {
            printf("\n ");
            *at = 1;
        }
        printf(" %.*s", (int)length, text + gap);
        *at += 1 + length;
        text += gap + length;
    }
}

static void markdown_option(const struct cli_command *command, const struct cli_option *option)
{
    char letter = letter_of(command, option);
    int length = printf("- **`");
    if (letter != 0)
        length += printf("-%c`, `", letter);
    length += printf("--%s%s%s`**:", option->name, option->value != NULL ? " " : "",
                     option->value != NULL ? option->value : "");
    size_t at = (size_t)length;
    fill(option->does, &at);
    putchar('.');
    at++;
    fill(option->more != NULL ? option->more : "", &at);
    putchar('\n');
}

static bool markdown(const char *name)
{
    const struct cli_command *command = find_command(name);
    struct walk walk = {.command = command};
    const struct cli_option *option;
    const char *title, *between = "";
    if (command == NULL)
        return false;
    printf("```\n");
    for (const char *line = command->synopsis; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        printf("bide %s %.*s\n", command->name, (int)length, line);
        line += length + (line[length] == '\n');
    }
    printf("```\n\n");
    while ((option = walk_next(&walk, &title)) != NULL) {
        if (title != NULL)
            printf("%s%s:\n\n", between, title);
        markdown_option(command, option);
        between = "\n";
    }
    return true;
}

/* ---- completions ---- */

/* Inside '...' of a shell; what is in `special` gets a backslash. */
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

static void put_words(const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", words[i]);
}

static void put_names(void)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        printf("%s ", commands[i]->name);
}

static void put_topics(void)
{
    for (size_t i = 0; cli_topic(i) != NULL; i++)
        printf(" %s", cli_topic(i)->name);
}

static void bash_value(const struct cli_option *option)
{
    switch (option->completes) {
    case CLI_FILE: printf("compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))"); break;
    case CLI_DIRECTORY: printf("compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -d -- \"$cur\"))"); break;
    case CLI_COMMAND: printf("COMPREPLY=($(compgen -c -- \"$cur\"))"); break;
    case CLI_POLICY: printf("_bide_words \"$(bide help policies 2> /dev/null)\""); break;
    case CLI_NOTHING:
    default:
        if (option->choices == NULL)
            printf(":");
        printf(option->choices != NULL ? "_bide_words '" : "");
        if (option->choices != NULL)
            put_words(option->choices);
        printf(option->choices != NULL ? "'" : "");
    }
}

/* "--name | -n) ...;;" for options with values; in _bide_value. */
static void bash_values(const struct cli_command *command)
{
    struct walk walk = {.command = command};
    const struct cli_option *option;
    while ((option = walk_next(&walk, NULL)) != NULL) {
        if (option->value == NULL)
            continue;
        printf("        %s:--%s", command->name, option->name);
        if (letter_of(command, option) != 0)
            printf(" | %s:-%c", command->name, letter_of(command, option));
        printf(") ");
        bash_value(option);
        printf(" ;;\n");
    }
}

static void bash_operands(const struct cli_command *command)
{
    struct walk walk = {.command = command};
    const struct cli_option *option;
    printf("        %s)\n            options='", command->name);
    while ((option = walk_next(&walk, NULL)) != NULL)
        printf("--%s%s ", option->name, option->value != NULL ? "=" : "");
    printf("'\n            ");
    bash_value(&(struct cli_option){.completes = command->completes});
    printf("\n            ;;\n");
}

static void put_first_only(void)
{
    const char *between = "";
    for (size_t i = 0; i < COUNT(commands); i++)
        if (commands[i]->options_first) {
            printf("%s%s", between, commands[i]->name);
            between = " | ";
        }
    printf(between[0] == '\0' ? "''" : "");
}

static void bash(void)
{
    printf("# bash completion of bide; printed by cli-docs from the tables of options.\n\n"
           "_bide_words() {\n"
           "    COMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
           "}\n\n"
           "# What an option's value may be; 1: it takes none.\n"
           "_bide_value() {\n"
           "    case $1:$2 in\n");
    for (size_t i = 0; i < COUNT(commands); i++)
        bash_values(commands[i]);
    printf("        *) return 1 ;;\n"
           "    esac\n"
           "}\n\n"
           "# Options and operands of a command.\n"
           "_bide_arguments() {\n"
           "    local options=\n"
           "    case $1 in\n");
    for (size_t i = 0; i < COUNT(commands); i++)
        bash_operands(commands[i]);
    printf("        help) _bide_words '");
    put_names();
    put_topics();
    printf("' ;;\n"
           "    esac\n"
           "    if [[ $cur == -* ]]; then\n"
           "        _bide_words \"$options\"\n"
           "        [[ ${COMPREPLY-} == *= ]] && compopt -o nospace 2> /dev/null\n"
           "    fi\n"
           "}\n\n"
           "# Where another command begins behind our options; 0: nowhere yet.\n"
           "_bide_command_at() {\n"
           "    local i cur= COMPREPLY\n"
           "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
           "        case ${COMP_WORDS[i]} in\n"
           "            --) echo $((i + 1)) && return ;;\n"
           "            -*) if [[ ${COMP_WORDS[i + 1]} == = ]]; then ((i += 2))\n"
           "                elif _bide_value \"$1\" \"${COMP_WORDS[i]}\" 2> /dev/null; then ((i++)); fi ;;\n"
           "            *) echo $i && return ;;\n"
           "        esac\n"
           "    done\n"
           "    echo 0\n"
           "}\n\n"
           "_bide() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} at\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        _bide_words \"");
    put_names();
    printf("help --help --version $(compgen -c bide- | sed 's/^bide-//')\"\n"
           "        return\n"
           "    fi\n"
           "    case $command in\n"
           "        ");
    put_first_only();
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
    switch (option->completes) {
    case CLI_FILE: printf("_files"); break;
    case CLI_DIRECTORY: printf("_files -/"); break;
    case CLI_COMMAND: printf("_command_names -e"); break;
    case CLI_POLICY: printf("_bide_policies"); break;
    case CLI_NOTHING:
    default:
        putchar(option->choices != NULL ? '(' : ' ');
        if (option->choices != NULL)
            put_words(option->choices);
        printf(option->choices != NULL ? ")" : "");
    }
}

static void zsh_option(const struct cli_command *command, const struct cli_option *option)
{
    char names[2][64] = {{0}};
    snprintf(names[0], sizeof names[0], "--%s%s", option->name, option->value != NULL ? "=" : "");
    if (letter_of(command, option) != 0)
        snprintf(names[1], sizeof names[1], "-%c%s", letter_of(command, option), option->value != NULL ? "+" : "");
    for (size_t i = 0; i < 2 && names[i][0] != '\0'; i++) {
        printf(" \\\n                '*%s[", names[i]);
        put_quoted(option->does, "[]:\\");
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
    struct walk walk = {.command = command};
    const struct cli_option *option;
    printf("            %s)\n                _arguments -s -S", command->name);
    while ((option = walk_next(&walk, NULL)) != NULL)
        zsh_option(command, option);
    if (command->options_first)
        printf(" \\\n                '(-)1:command:_command_names -e' '*::argument:_normal'");
    else if (command->completes != CLI_NOTHING) {
        printf(" \\\n                '*:argument:");
        zsh_action(&(struct cli_option){.completes = command->completes});
        printf("'");
    }
    printf(" ;;\n");
}

static void zsh_described(const char *name, const char *summary)
{
    printf("                '%s:", name);
    put_quoted(summary, ":\\");
    printf("'\n");
}

static void zsh(void)
{
    printf("#compdef bide\n"
           "# zsh completion of bide; printed by cli-docs from the tables of options.\n\n"
           "_bide_policies() {\n"
           "    local -a names\n"
           "    names=(${(f)\"$(bide help policies 2> /dev/null)\"})\n"
           "    compadd -a names\n"
           "}\n\n"
           "_bide() {\n"
           "    local curcontext=$curcontext state line\n"
           "    local -a commands topics\n"
           "    commands=(\n");
    for (size_t i = 0; i < COUNT(commands); i++)
        zsh_described(commands[i]->name, commands[i]->summary);
    zsh_described("help", "help of a command or about a topic");
    printf("    )\n    topics=(\n");
    for (size_t i = 0; cli_topic(i) != NULL; i++)
        zsh_described(cli_topic(i)->name, cli_topic(i)->summary);
    printf("    )\n"
           "    _arguments -C '(- *)--help[show help]' '(- *)--version[show the version]' '1:command:->command' "
           "'*::argument:->argument'\n"
           "    case $state in\n"
           "    command) _describe command commands ;;\n"
           "    argument)\n"
           "        case $words[1] in\n");
    for (size_t i = 0; i < COUNT(commands); i++)
        zsh_command(commands[i]);
    printf("            help) _describe command commands -- topics ;;\n"
           "            *) _files ;;\n"
           "        esac ;;\n"
           "    esac\n"
           "}\n\n"
           "_bide \"$@\"\n");
}

static void fish_option(const struct cli_command *command, const struct cli_option *option)
{
    printf("complete -c bide -n '%s %s' -l %s", command->options_first ? "__bide_before" : "__bide_in", command->name,
           option->name);
    if (letter_of(command, option) != 0)
        printf(" -s %c", letter_of(command, option));
    printf(option->value == NULL                                                 ? ""
           : option->completes == CLI_FILE || option->completes == CLI_DIRECTORY ? " -rF"
                                                                                 : " -x");
    if (option->choices != NULL) {
        printf(" -a '");
        put_words(option->choices);
        printf("'");
    } else if (option->completes == CLI_POLICY) {
        printf(" -a '(bide help policies 2> /dev/null)'");
    } else if (option->completes == CLI_COMMAND) {
        printf(" -a '(__fish_complete_command)'");
    }
    printf(" -d '");
    put_quoted(option->does, "\\");
    printf("'\n");
}

/* The options whose next word is their value: behind them another command may begin. */
static void fish_takes(const struct cli_command *command)
{
    struct walk walk = {.command = command};
    const struct cli_option *option;
    printf("set -g __bide_%s_takes", command->name);
    while ((option = walk_next(&walk, NULL)) != NULL) {
        if (option->value != NULL)
            printf(" --%s", option->name);
        if (option->value != NULL && letter_of(command, option) != 0)
            printf(" -%c", letter_of(command, option));
    }
    printf("\n");
}

static void fish_operands(const struct cli_command *command)
{
    if (command->options_first) {
        fish_takes(command);
        printf(
            "complete -c bide -n '__bide_in %s' -x -a '(__fish_complete_subcommand --fcs-skip=2 $__bide_%s_takes)'\n",
            command->name, command->name);
    } else if (command->completes == CLI_FILE) {
        printf("complete -c bide -n '__bide_in %s' -F\n", command->name);
    } else if (command->completes == CLI_POLICY) {
        printf("complete -c bide -n '__bide_in %s' -a '(bide help policies 2> /dev/null)'\n", command->name);
    }
}

static void fish(void)
{
    printf("# fish completion of bide; printed by cli-docs from the tables of options.\n\n"
           "function __bide_in --description 'is this the subcommand?'\n"
           "    set -l words (commandline -opc)\n"
           "    test \"$words[2]\" = $argv[1]\n"
           "end\n\n"
           "function __bide_before --description 'is it, and the command behind it has not begun?'\n"
           "    set -l words (commandline -opc)\n"
           "    set -l takes __bide_$argv[1]_takes\n"
           "    test \"$words[2]\" = $argv[1]; or return 1\n"
           "    set -e words[1..2]\n"
           "    while set -q words[1]\n"
           "        string match -qr '^-.' -- $words[1]; or return 1\n"
           "        test $words[1] = --; and return 1\n"
           "        contains -- $words[1] $$takes; and set -q words[2]; and set -e words[1]\n"
           "        set -e words[1]\n"
           "    end\n"
           "end\n\n"
           "complete -c bide -f\n"
           "complete -c bide -n __fish_use_subcommand -l version -d 'show the version'\n"
           "complete -c bide -n __fish_use_subcommand -l help -d 'show help'\n"
           "complete -c bide -n __fish_use_subcommand -a help -d 'help of a command or about a topic'\n");
    for (size_t i = 0; i < COUNT(commands); i++) {
        printf("complete -c bide -n __fish_use_subcommand -a %s -d '", commands[i]->name);
        put_quoted(commands[i]->summary, "\\");
        printf("'\ncomplete -c bide -n '__bide_in help' -a %s -d '", commands[i]->name);
        put_quoted(commands[i]->summary, "\\");
        printf("'\n");
    }
    for (size_t i = 0; cli_topic(i) != NULL; i++) {
        printf("complete -c bide -n '__bide_in help' -a %s -d '", cli_topic(i)->name);
        put_quoted(cli_topic(i)->summary, "\\");
        printf("'\n");
    }
    for (size_t i = 0; i < COUNT(commands); i++) {
        struct walk walk = {.command = commands[i]};
        const struct cli_option *option;
        while ((option = walk_next(&walk, NULL)) != NULL)
            fish_option(commands[i], option);
        fish_operands(commands[i]);
    }
}

/* ---- the command line ---- */

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    bool known = false;
    if (argc == 1) {
        for (size_t i = 0; i < COUNT(commands); i++)
            puts(commands[i]->name);
        known = true;
    }
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        return check();
    for (size_t i = 0; argc == 2 && i < COUNT(shells); i++)
        if (strcmp(argv[1], shells[i].name) == 0) {
            shells[i].print();
            known = true;
        }
    if (argc == 3 && strcmp(argv[1], "man") == 0)
        known = man(argv[2]);
    if (argc == 3 && strcmp(argv[1], "markdown") == 0)
        known = markdown(argv[2]);
    if (!known)
        fprintf(stderr, "usage: cli-docs [check | man NAME | bash | zsh | fish | markdown NAME]\n");
    return known && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
