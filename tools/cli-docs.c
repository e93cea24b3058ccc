/* cli-docs.c - prints the option tables of the commands as man pages, completions and Markdown.
 *
 *     cli-docs                   lists the subcommands
 *     cli-docs check             reports tables that contradict themselves
 *     cli-docs man NAME          scdoc source of bide-NAME(1), of bide(1) for "bide", of bide.conf(5) for "bide.conf"
 *     cli-docs bash|zsh|fish     a completion file for bide
 *     cli-docs markdown NAME     the options of a subcommand, for its page in docs/
 *
 * The tables are linked in, so the output cannot differ from the parser or from --help. */
#include <stdlib.h>
#include <string.h>

#include "cli-docs.h"

static const struct cli_command *const commands[] = {CLI_TABLES}; /* defined by the build */

#define COUNT(array) (sizeof(array) / sizeof *(array))

const struct cli_command *docs_command(size_t i)
{
    return i < COUNT(commands) ? commands[i] : NULL;
}

static const struct cli_command *find_command(const char *name)
{
    size_t i = 0;
    while (docs_command(i) != NULL && strcmp(docs_command(i)->name, name) != 0)
        i++;
    return docs_command(i);
}

/* ---- walking a table ---- */

static const struct cli_group *walk_group(struct docs_walk *walk)
{
    if (walk->round == 2)
        return walk->group == 0 ? &cli_builtin_group : NULL;
    for (; walk->group < walk->command->group_count; walk->group++)
        if ((walk->command->groups[walk->group].title != NULL) == (walk->round == 1))
            return &walk->command->groups[walk->group];
    return NULL;
}

const struct cli_option *docs_walk_next(struct docs_walk *walk, const char **title)
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

char docs_option_letter(const struct cli_command *command, const struct cli_option *option)
{
    const struct cli_group *group;
    if (option->letter != 0 && cli_option_find_letter(command, option->letter, &group) == option)
        return option->letter;
    return '\0';
}

/* ---- checks ---- */

static int report_mistake(const struct cli_command *command, const char *name, const char *what)
{
    fprintf(stderr, "bide %s --%s: %s\n", command->name, name, what);
    return 1;
}

static int check_option(const struct cli_command *command, const struct cli_option *option)
{
    const struct cli_group *group;
    int wrong = 0;
    if (cli_option_find(command, option->name, strlen(option->name), &group) != option)
        wrong |= report_mistake(command, option->name, "is defined twice");
    if (option->letter != 0 && group != &cli_builtin_group && docs_option_letter(command, option) == 0)
        wrong |= report_mistake(command, option->name, "its letter belongs to another option");
    if (option->help == NULL || option->help[0] == '\0' || option->help[strlen(option->help) - 1] == '.')
        wrong |= report_mistake(command, option->name, "its help text must be a phrase without a full stop");
    if (option->kind == CLI_READ && option->read == NULL && option->read_row == NULL && group != &cli_builtin_group)
        wrong |= report_mistake(command, option->name, "has neither a kind nor a read function");
    if ((option->kind == CLI_FLAG || option->kind == CLI_CONSTANT) != (option->value == NULL) &&
        option->kind != CLI_READ)
        wrong |= report_mistake(command, option->name, "takes a value, but its kind does not, or the reverse");
    if ((option->kind == CLI_WORD || option->kind == CLI_CHOICE) && option->choices == NULL)
        wrong |= report_mistake(command, option->name, "has no choices");
    if (option->value == NULL && (option->choices != NULL || option->completion != CLI_COMPLETE_NOTHING))
        wrong |= report_mistake(command, option->name, "completes a value, but takes none");
    return wrong;
}

static int check_tables(void)
{
    static const char *const summaries[] = {
#define SUMMARY(name, summary) #name, summary,
        CLI_COMMAND_LIST(SUMMARY)
#undef SUMMARY
    };
    int wrong = 0;
    for (size_t c = 0; docs_command(c) != NULL; c++) {
        const struct cli_command *command = docs_command(c);
        struct docs_walk walk = {.command = command};
        const struct cli_option *option;
        while ((option = docs_walk_next(&walk, NULL)) != NULL)
            wrong |= check_option(command, option);
        for (size_t i = 0; i < COUNT(summaries); i += 2)
            if (strcmp(summaries[i], command->name) == 0 &&
                (command->summary == NULL || strcmp(summaries[i + 1], command->summary) != 0))
                wrong |= report_mistake(command, "help", "the summary differs from that of commands.h");
        if (command->synopsis == NULL || command->about == NULL || command->run == NULL)
            wrong |= report_mistake(command, "help", "the table lacks synopsis, about or run");
    }
    return wrong;
}

/* ---- markdown ---- */

#define PAGE_WIDTH 118u

/* Prints words filled to the width of a page, indented under the list item. */
static void fill_words(const char *text, size_t *at)
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
    char letter = docs_option_letter(command, option);
    int length = printf("- **`");
    if (letter != 0)
        length += printf("-%c`, `", letter);
    length += printf("--%s%s%s`**:", option->name, option->value != NULL ? " " : "",
                     option->value != NULL ? option->value : "");
    size_t at = (size_t)length;
    fill_words(option->help, &at);
    putchar('.');
    at++;
    fill_words(option->details != NULL ? option->details : "", &at);
    putchar('\n');
}

static bool markdown(const char *name)
{
    const struct cli_command *command = find_command(name);
    struct docs_walk walk = {.command = command};
    const struct cli_option *option;
    const char *title, *separator = "";
    if (command == NULL)
        return false;
    printf("```\n");
    for (const char *line = command->synopsis; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        printf("bide %s %.*s\n", command->name, (int)length, line);
        line += length + (line[length] == '\n');
    }
    printf("```\n\n");
    while ((option = docs_walk_next(&walk, &title)) != NULL) {
        if (title != NULL)
            printf("%s%s:\n\n", separator, title);
        markdown_option(command, option);
        separator = "\n";
    }
    return true;
}

/* ---- the command line ---- */

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", docs_bash}, {"zsh", docs_zsh}, {"fish", docs_fish}};
    bool known = false;
    if (argc == 1) {
        for (size_t i = 0; docs_command(i) != NULL; i++)
            puts(docs_command(i)->name);
        known = true;
    }
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        return check_tables();
    for (size_t i = 0; argc == 2 && i < COUNT(shells); i++)
        if (strcmp(argv[1], shells[i].name) == 0) {
            shells[i].print();
            known = true;
        }
    if (argc == 3 && strcmp(argv[1], "man") == 0)
        known = docs_man(argv[2]);
    if (argc == 3 && strcmp(argv[1], "markdown") == 0)
        known = markdown(argv[2]);
    if (!known)
        fprintf(stderr, "usage: cli-docs [check | man NAME | bash | zsh | fish | markdown NAME]\n");
    return known && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
