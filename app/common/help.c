/* help.c - prints the help text of a command table: usage, prose, options in two columns, examples last. */
#include "options.h"

#include <string.h>

#include "term.h"
#include "text/utf8.h"

#define WIDTH_MAX           100u
#define WIDTH_MIN           40u
#define CONTINUATION_INDENT 8u
#define COLUMN_MAX          30u /* latest column of a description; after a longer option it begins on the next line */

/* ---- prose ---- */

/* Returns the columns of a text, without backticks. */
static unsigned text_columns(const char *text, size_t length)
{
    size_t count = text_utf8_count(text, length);
    for (size_t i = 0; i < length; i++)
        count -= text[i] == '`';
    return (unsigned)count;
}

/* Returns the length of a paragraph, which ends at an empty line or at a line with two leading blanks (kept
 * verbatim). */
static size_t paragraph_length(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0' && strncmp(text + length, "\n\n", 2) != 0 && strncmp(text + length, "\n  ", 3) != 0)
        length++;
    return length;
}

/* Prints words filled between the margins. The cursor is at the left margin already. */
static void paragraph_print(FILE *out, const char *text, size_t length, struct cli_margins margins)
{
    const struct cli_paragraph paragraph = {.out = out,
                                            .utf8 = true,
                                            .at = margins.left,
                                            .left = margins.left,
                                            .right = margins.right,
                                            .hides_backticks = true};
    cli_print_paragraph(&paragraph, text, length);
}

/* Returns the offset of the second column of a verbatim line, or 0 if it has none. The column begins after the first
 * gap of two or more blanks, or at the first word if the line is indented so deeply that it continues the row above. */
static size_t line_second_column(const char *line, size_t length)
{
    size_t i = strspn(line, " ");
    if (i >= CONTINUATION_INDENT)
        return i < length ? i : 0;
    while (i + 1 < length && strncmp(line + i, "  ", 2) != 0)
        i++;
    return i + 1 < length ? i + strspn(line + i, " ") : 0;
}

/* Prints a verbatim line. A two-column row that is too long has its second column folded under itself. Returns the text
 * after the line. */
static const char *line_print(FILE *out, const char *text, struct cli_margins margins)
{
    size_t length = strcspn(text, "\n"), column = line_second_column(text, length);
    const char *rest = text + length + (text[length] == '\n');
    if (margins.left + text_columns(text, length) <= margins.right || column == 0 || column > COLUMN_MAX) {
        fprintf(out, "%*s%.*s\n", length > 0 ? (int)margins.left : 0, "", (int)length, text);
        return rest;
    }
    fprintf(out, "%*s%.*s", (int)margins.left, "", (int)column, text);
    margins.left += text_columns(text, column);
    paragraph_print(out, text + column, length - column, margins);
    return rest;
}

void cli_print_prose(FILE *out, const char *text, struct cli_margins margins)
{
    while (*text != '\0') {
        if (*text == '\n' || strncmp(text, "  ", 2) == 0) {
            text = line_print(out, text, margins);
            continue;
        }
        size_t length = paragraph_length(text);
        fprintf(out, "%*s", (int)margins.left, "");
        paragraph_print(out, text, length, margins);
        text += length + (text[length] == '\n');
    }
}

void cli_print_column(FILE *out, const char *text, unsigned at, struct cli_margins margins)
{
    if (at + 2 > margins.left) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", (int)(margins.left - at), "");
    paragraph_print(out, text, strlen(text), margins);
}

/* ---- options ---- */

/* Prints "-n, --attempts N" if `out` is not NULL, and returns its columns. The letter is left out if another option of
 * the command has it (as -h of --help may be). */
static unsigned option_print(FILE *out, const struct cli_command *command, const struct cli_option *option)
{
    const struct cli_group *group;
    char letter[] = "    ", text[128];
    if (option->letter != 0 && cli_option_find_letter(command, option->letter, &group) == option)
        memcpy(letter, (char[]){'-', option->letter, ','}, 3);
    int length = snprintf(text, sizeof text, "  %s--%s%s%s", letter, option->name, option->value != NULL ? " " : "",
                          option->value != NULL ? option->value : "");
    if (out != NULL)
        fputs(text, out);
    return text_columns(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

/* Returns the column of the descriptions, the same for all groups. */
static unsigned options_column(const struct cli_command *command)
{
    unsigned column = 0;
    for (size_t g = 0; g < command->group_count; g++)
        for (size_t i = 0; i < command->groups[g].count; i++) {
            unsigned width = option_print(NULL, command, &command->groups[g].option[i]) + 2;
            if (width <= COLUMN_MAX && width > column)
                column = width;
        }
    return column > 0 ? column : 20;
}

static void group_print(FILE *out, const struct cli_command *command, const struct cli_group *group,
                        struct cli_margins margins)
{
    for (size_t i = 0; i < group->count; i++) {
        unsigned at = option_print(out, command, &group->option[i]);
        cli_print_column(out, group->option[i].help, at, margins);
    }
}

/* ---- the whole ---- */

static void title_print(const struct cli_term *term, const char *title)
{
    fprintf(term->out, "\n%s%s:%s\n", cli_colour(term, CLI_BOLD), title, cli_colour(term, CLI_PLAIN));
}

static void usage_print(FILE *out, const struct cli_command *command)
{
    const char *line = command->synopsis, *word = "usage:";
    do {
        size_t length = strcspn(line, "\n");
        fprintf(out, "%s bide %s %.*s\n", word, command->name, (int)length, line);
        word = "      ";
        line += length + (line[length] == '\n');
    } while (*line != '\0');
}

static void groups_print(const struct cli_term *term, const struct cli_command *command, struct cli_margins margins)
{
    bool own = false;
    margins.left = options_column(command);
    for (size_t g = 0; g < command->group_count; g++)
        if (command->groups[g].title == NULL) {
            if (!own)
                title_print(term, "Options");
            group_print(term->out, command, &command->groups[g], margins);
            own = true;
        }
    for (size_t g = 0; g < command->group_count; g++)
        if (command->groups[g].title != NULL) {
            title_print(term, command->groups[g].title);
            group_print(term->out, command, &command->groups[g], margins);
        }
    title_print(term, cli_builtin_group.title);
    group_print(term->out, command, &cli_builtin_group, margins);
}

const char *cli_section_text(const struct cli_section *section)
{
    return section->generate != NULL ? section->generate() : section->text;
}

bool cli_section_is_examples(const struct cli_section *section)
{
    return strcmp(section->title, "Examples") == 0;
}

void cli_print_help(const struct cli_command *command, FILE *out)
{
    struct cli_term term = cli_term_detect(out);
    unsigned width = term.width > WIDTH_MAX ? WIDTH_MAX : term.width;
    struct cli_margins margins = {.left = 0, .right = width > WIDTH_MIN ? width - 1 : WIDTH_MIN};
    usage_print(out, command);
    if (command->about != NULL) {
        fputc('\n', out);
        cli_print_prose(out, command->about, margins);
    }
    groups_print(&term, command, margins);
    for (int last = 0; last <= 1; last++)
        for (size_t i = 0; i < command->section_count; i++)
            if (cli_section_is_examples(&command->sections[i]) == (last == 1)) {
                title_print(&term, command->sections[i].title);
                cli_print_prose(out, cli_section_text(&command->sections[i]), margins);
            }
}
