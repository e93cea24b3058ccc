/* cli-docs-man.c - prints man pages as scdoc source. */
#include <stdlib.h>
#include <string.h>

#include <bide/base.h>

#include "cli-docs.h"
#include "conf/conf.h"

#define LITERAL_WIDTH 70u /* of 80 columns: man indents by 7 and scdoc by 4 more; the two leading blanks are dropped */

/* ---- scdoc ---- */

/* Prints text of one line, with `literals` in bold. Escapes the characters that are special in scdoc, which escapes
 * those of roff. */
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

static void put_text(const char *text)
{
    put_scdoc(text, strlen(text));
}

/* Returns the length of the verbatim lines at the start of the text. */
static size_t verbatim_length(const char *text)
{
    size_t length = 0;
    while (strncmp(text + length, "  ", 2) == 0) {
        length += strcspn(text + length, "\n");
        length += text[length] == '\n';
    }
    return length;
}

/* Returns the verbatim lines, to be freed, with two-column rows folded to the width of a man page. */
static char *verbatim_fold(const char *text, size_t length)
{
    char *lines = strndup(text, length), *result = NULL;
    size_t size;
    FILE *memory = open_memstream(&result, &size);
    if (lines == NULL || memory == NULL)
        abort();
    cli_print_prose(memory, lines, (struct cli_margins){.left = 0, .right = LITERAL_WIDTH});
    fclose(memory);
    free(lines);
    return result;
}

/* Prints verbatim lines between fences. Returns the text after them. */
static const char *put_verbatim(const char *text, const char *indent)
{
    size_t all = verbatim_length(text);
    char *lines = verbatim_fold(text, all);
    printf("%s```\n", indent);
    for (const char *line = lines; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        fputs(indent, stdout);
        for (size_t i = 2; i < length; i++)
            printf(line[i] == '\\' ? "\\\\" : "%c", line[i]);
        putchar('\n');
        line += length + (line[length] == '\n');
    }
    printf("%s```\n", indent);
    free(lines);
    return text + all;
}

/* Prints prose in the format of options.h. */
static void put_prose(const char *text, const char *indent)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (strncmp(text, "  ", 2) == 0) {
            putchar('\n');
            text = put_verbatim(text, indent);
            continue;
        }
        fputs(length > 0 ? indent : "", stdout);
        put_scdoc(text, length);
        text += length + (text[length] == '\n');
        putchar(*text == '.' ? ' ' : '\n'); /* scdoc drops a full stop at the start of a line */
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
    char letter = docs_option_letter(command, option);
    if (letter != 0)
        printf("*\\-%c*, ", letter);
    printf("*\\-\\-");
    put_text(option->name);
    putchar('*');
    if (option->value != NULL) {
        printf(" _");
        put_text(option->value);
        putchar('_');
    }
    printf("\n\t");
    putchar(option->help[0] >= 'a' && option->help[0] <= 'z' ? option->help[0] - 'a' + 'A' : option->help[0]);
    put_text(option->help + 1);
    printf(".\n\n");
    if (option->details == NULL)
        return;
    put_prose(option->details, "\t");
    printf("\n\n");
}

static void man_options(const struct cli_command *command)
{
    struct docs_walk walk = {.command = command};
    const struct cli_option *option;
    const char *title;
    put_heading("Options");
    while ((option = docs_walk_next(&walk, &title)) != NULL) {
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
    const char *separator = "";
    put_heading("See also");
    if (strcmp(self, "bide") != 0) {
        printf("*bide*(1)");
        separator = ", ";
    }
    for (size_t i = 0; docs_command(i) != NULL; i++)
        if (strcmp(docs_command(i)->name, self) != 0) {
            printf("%s*bide\\-%s*(1)", separator, docs_command(i)->name);
            separator = ", ";
        }
    printf(strcmp(self, "bide.conf") != 0 ? ", *bide.conf*(5)\n" : "\n");
}

static void man_command(const struct cli_command *command)
{
    printf("bide-%s(1) \"bide %s\"\n", command->name, bide_version());
    put_heading("Name");
    printf("bide\\-%s - ", command->name);
    put_text(command->summary);
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

/* Prints a topic of `bide help` verbatim. */
static void man_topic(const char *title, const char *name)
{
    char *text = NULL;
    size_t size, i = 0;
    FILE *memory = open_memstream(&text, &size);
    while (cli_topic(i) != NULL && strcmp(cli_topic(i)->name, name) != 0)
        i++;
    if (memory == NULL || cli_topic(i) == NULL)
        abort();
    cli_topic(i)->print(&(struct cli_page){memory, LITERAL_WIDTH});
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
    printf("*bide* retries operations that failed, and gives up when a retry would do harm: waits have jitter, retry "
           "budgets and circuit breakers keep retries from becoming a second outage, and a request that must not run "
           "twice is not repeated.\n\n");
    printf("*bide* _NAME_ runs one of the commands below, or the program *bide\\-NAME*, searched beside the "
           "executable, in ../libexec/bide relative to it, and in PATH.\n");
    put_heading("Commands");
    for (size_t i = 0; docs_command(i) != NULL; i++) {
        printf("*bide\\-%s*(1)\n\t", docs_command(i)->name);
        put_text(docs_command(i)->summary);
        printf("\n\n");
    }
    put_heading("Topics");
    for (size_t i = 0; cli_topic(i) != NULL; i++) {
        printf("*bide help ");
        put_text(cli_topic(i)->name);
        printf("*\n\t");
        put_text(cli_topic(i)->summary);
        printf("\n\n");
    }
    man_topic("Exit status", "exit-codes");
    man_topic("Environment", "environment");
    put_heading("Files");
    printf("bide.conf, $XDG\\_CONFIG\\_HOME/bide/bide.conf, /etc/bide/bide.conf\n\tPolicies, see *bide.conf*(5). The "
           "first that exists is read, if a policy is requested.\n");
    man_see_also("bide");
}

static void man_key(const struct conf_field *field, const struct conf_pair *pair)
{
    char text[256];
    putchar('*');
    put_text(field->key);
    printf("*\n\t");
    put_text(field->about);
    printf(". In service: ");
    put_text(conf_field_format(text, field, pair));
    printf(".");
    for (size_t i = 0; field->words != NULL && field->words[i] != NULL; i++) {
        printf(i == 0 ? " One of " : ", ");
        put_text(field->words[i]);
    }
    printf(field->words != NULL ? ".\n\n" : "\n\n");
}

static void man_conf(void)
{
    struct conf_pair pair;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    printf("bide.conf(5) \"bide %s\"\n", bide_version());
    put_heading("Name");
    printf("bide.conf - named policies of bide\n");
    put_heading("Description");
    put_prose(
        "An INI file with a section for each target. The first of ./bide.conf, $XDG_CONFIG_HOME/bide/bide.conf "
        "(~/.config without that variable) and /etc/bide/bide.conf is read, or the file given by `--config`; only if "
        "`--policy` or `--target` requests a policy. A file that begins with { is read as a gRPC service config.\n\nA "
        "section inherits all keys of the preset or section that it `extends`; the default is the preset service. The "
        "whole file is checked when it is read, including sections that are not used. Comments begin with # or ;.\n",
        "");
    put_heading("Example");
    put_prose("  [payments]\n  extends = payment\n  attempts = 3\n  deadline = 2s\n  budget.capacity = 20\n\n  "
              "[payments-batch]\n  extends = payments\n  deadline = never    # a background job\n",
              "");
    put_heading("Keys");
    for (size_t i = 0; conf_field(i) != NULL; i++)
        man_key(conf_field(i), &pair);
    put_heading("Lists");
    put_prose(
        "`retry_status`, `permanent_status`, `retry_exit`, `permanent_exit`, `retry_grpc` and `permanent_grpc` are "
        "lists of numbers and ranges, such as 408, 429, 500-504. They take precedence over the built-in classification "
        "of a status, exit code or gRPC code. With a retry_ list, a number in neither list is permanent.\n",
        "");
    man_topic("Values", "units");
    man_see_also("bide.conf");
}

bool docs_man(const char *name)
{
    size_t i = 0;
    while (docs_command(i) != NULL && strcmp(docs_command(i)->name, name) != 0)
        i++;
    if (docs_command(i) != NULL)
        man_command(docs_command(i));
    else if (strcmp(name, "bide") == 0)
        man_bide();
    else if (strcmp(name, "bide.conf") == 0)
        man_conf();
    else
        return false;
    return true;
}
