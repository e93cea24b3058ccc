/* help.c - a table as a terminal shows it: usage, prose, options in two columns, examples last. */
#include "options.h"

#include <string.h>

#include "term.h"

#define WIDTH_MAX  100u
#define WIDTH_MIN  40u
#define DEEP       8u
#define COLUMN_MAX 30u /* where descriptions begin at the latest; longer options have theirs on the next line */

/* ---- prose ---- */

/* Columns of a word: characters, without the backticks. */
static unsigned columns(const char *word, size_t length)
{
    unsigned count = 0;
    for (size_t i = 0; i < length; i++)
        count += word[i] != '`' && ((unsigned char)word[i] & 0xc0u) != 0x80u;
    return count;
}

static void put(FILE *out, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (word[i] != '`')
            fputc(word[i], out);
}

/* How long a paragraph is: up to an empty line, or one that is kept. */
static size_t paragraph(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0' && strncmp(text + length, "\n\n", 2) != 0 && strncmp(text + length, "\n  ", 3) != 0)
        length++;
    return length;
}

/* Words, filled; the left margin is already there. */
static void fill(FILE *out, const char *text, size_t length, struct cli_margins margins)
{
    const char *end = text + length;
    unsigned at = margins.left;
    while ((text += strspn(text, " \n")) < end) {
        size_t word = strcspn(text, " \n");
        unsigned width = columns(text, word);
        if (at > margins.left && at + 1 + width > margins.right) {
            fprintf(out, "\n%*s", (int)margins.left, "");
            at = margins.left;
        } else if (at > margins.left) {
            fputc(' ', out);
            at++;
        }
        put(out, text, word);
        at += width;
        text += word;
    }
    fputc('\n', out);
}

/* Where the second column of a kept line begins: behind the first gap of two blanks or more, or at once in a line so
 * deep that it must go on with the row above. 0: there is none. */
static size_t second_column(const char *line, size_t length)
{
    size_t i = strspn(line, " ");
    if (i >= DEEP)
        return i < length ? i : 0;
    while (i + 1 < length && strncmp(line + i, "  ", 2) != 0)
        i++;
    return i + 1 < length ? i + strspn(line + i, " ") : 0;
}

/* A line that is kept as it is; but if it is a row of two columns and too long, the second is folded under itself.
 * Returns what follows. */
static const char *put_line(FILE *out, const char *text, struct cli_margins margins)
{
    size_t length = strcspn(text, "\n"), column = second_column(text, length);
    const char *rest = text + length + (text[length] == '\n');
    if (margins.left + columns(text, length) <= margins.right || column == 0 || column > COLUMN_MAX) {
        fprintf(out, "%*s%.*s\n", length > 0 ? (int)margins.left : 0, "", (int)length, text);
        return rest;
    }
    fprintf(out, "%*s%.*s", (int)margins.left, "", (int)column, text);
    margins.left += columns(text, column);
    fill(out, text + column, length - column, margins);
    return rest;
}

void cli_print_prose(FILE *out, const char *text, struct cli_margins margins)
{
    while (*text != '\0') {
        if (*text == '\n' || strncmp(text, "  ", 2) == 0) {
            text = put_line(out, text, margins);
            continue;
        }
        size_t length = paragraph(text);
        fprintf(out, "%*s", (int)margins.left, "");
        fill(out, text, length, margins);
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
    fill(out, text, strlen(text), margins);
}

/* ---- options ---- */

/* "-n, --attempts N"; -h only where nobody else has that letter. Returns the columns it takes, and prints if `out`. */
static unsigned put_option(FILE *out, const struct cli_command *command, const struct cli_option *option)
{
    const struct cli_group *group;
    char letter[] = "    ", text[128];
    if (option->letter != 0 && cli_option_find_letter(command, option->letter, &group) == option)
        memcpy(letter, (char[]){'-', option->letter, ','}, 3);
    int length = snprintf(text, sizeof text, "  %s--%s%s%s", letter, option->name, option->value != NULL ? " " : "",
                          option->value != NULL ? option->value : "");
    if (out != NULL)
        fputs(text, out);
    return columns(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

/* Where descriptions begin, for all groups alike. */
static unsigned description_column(const struct cli_command *command)
{
    unsigned column = 0;
    for (size_t g = 0; g < command->group_count; g++)
        for (size_t i = 0; i < command->groups[g].count; i++) {
            unsigned width = put_option(NULL, command, &command->groups[g].option[i]) + 2;
            if (width <= COLUMN_MAX && width > column)
                column = width;
        }
    return column > 0 ? column : 20;
}

static void put_group(FILE *out, const struct cli_command *command, const struct cli_group *group,
                      struct cli_margins margins)
{
    for (size_t i = 0; i < group->count; i++) {
        unsigned at = put_option(out, command, &group->option[i]);
        cli_print_column(out, group->option[i].help, at, margins);
    }
}

/* ---- the whole ---- */

static void put_title(const struct cli_term *term, const char *title)
{
    fprintf(term->out, "\n%s%s:%s\n", cli_colour(term, CLI_BOLD), title, cli_colour(term, CLI_PLAIN));
}

static void put_usage(FILE *out, const struct cli_command *command)
{
    const char *line = command->synopsis, *word = "usage:";
    do {
        size_t length = strcspn(line, "\n");
        fprintf(out, "%s bide %s %.*s\n", word, command->name, (int)length, line);
        word = "      ";
        line += length + (line[length] == '\n');
    } while (*line != '\0');
}

static void put_groups(const struct cli_term *term, const struct cli_command *command, struct cli_margins margins)
{
    bool own = false;
    margins.left = description_column(command);
    for (size_t g = 0; g < command->group_count; g++)
        if (command->groups[g].title == NULL) {
            if (!own)
                put_title(term, "Options");
            put_group(term->out, command, &command->groups[g], margins);
            own = true;
        }
    for (size_t g = 0; g < command->group_count; g++)
        if (command->groups[g].title != NULL) {
            put_title(term, command->groups[g].title);
            put_group(term->out, command, &command->groups[g], margins);
        }
    put_title(term, cli_builtin_group.title);
    put_group(term->out, command, &cli_builtin_group, margins);
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
    put_usage(out, command);
    if (command->about != NULL) {
        fputc('\n', out);
        cli_print_prose(out, command->about, margins);
    }
    put_groups(&term, command, margins);
    for (int last = 0; last <= 1; last++)
        for (size_t i = 0; i < command->section_count; i++)
            if (cli_section_is_examples(&command->sections[i]) == (last == 1)) {
                put_title(&term, command->sections[i].title);
                cli_print_prose(out, cli_section_text(&command->sections[i]), margins);
            }
}
