/* options.c - the command-line parser: one pass over argv, driven by a command table.
 *
 * Words are read from left to right. An option parses its value at once; an operand moves to the front of argv, which
 * ends up as the list of operands. Option names are never abbreviated: a script that uses --att would break when
 * another option with that prefix is added. The last of several occurrences of an option applies, unless its read
 * function collects values (--set). The first error ends the parsing. */
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <bide/base.h>

#include "conf/suggest.h"
#include "term.h"

struct reader {
    bool after_separator; /* the words are those of a command */
    const struct cli_command *command;
    char *settings;
    char **next;     /* next word to parse */
    char **operands; /* destination of the next operand; never after `next` */
    bool done;       /* --help or --version was printed: do not run the command */
    bool failed;
};

/* ---- messages ---- */

/* Prints one line to stderr, after the output so far. Messages repeat user input, so control characters are
 * replaced. */
__attribute__((format(printf, 2, 0))) static void message_print(const struct cli_command *command, const char *format,
                                                                va_list arguments)
{
    char *text = NULL;
    fflush(stdout);
    fprintf(stderr, "bide %s: ", command->name);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    cli_print_sanitized(stderr, text != NULL ? text : "out of memory while formatting a message");
    fputc('\n', stderr);
    free(text);
}

void cli_report(const struct cli_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message_print(command, format, arguments);
    va_end(arguments);
}

int cli_fail(const struct cli_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message_print(command, format, arguments);
    va_end(arguments);
    return CLI_EXIT_BIDE_FAILED;
}

void cli_report_lines(const struct cli_command *command, const char *lines)
{
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        cli_report(command, "%.*s", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

bool cli_flush(const struct cli_command *command)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    if (errno != EPIPE)
        cli_fail(command, "standard output: %s", errno != 0 ? strerror(errno) : "not all output could be written");
    return false;
}

/* ---- the table ---- */

static const struct cli_option builtin_options[] = {
    {.name = "help", .letter = 'h', .help = "show this help"},
    {.name = "version", .help = "show the version"},
};

const struct cli_group cli_builtin_group = {
    .title = "Help", .option = builtin_options, .count = sizeof builtin_options / sizeof *builtin_options};

/* Returns the i-th group of the command; the built-in group follows the last; NULL after that. */
static const struct cli_group *group_at(const struct cli_command *command, size_t i)
{
    if (i == command->group_count)
        return &cli_builtin_group;
    return i < command->group_count ? &command->groups[i] : NULL;
}

const struct cli_option *cli_option_find(const struct cli_command *command, const char *name, size_t length,
                                         const struct cli_group **group)
{
    for (size_t g = 0; (*group = group_at(command, g)) != NULL; g++)
        for (const struct cli_option *option = (*group)->option; option < (*group)->option + (*group)->count; option++)
            if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
                return option;
    return NULL;
}

const struct cli_option *cli_option_find_letter(const struct cli_command *command, char letter,
                                                const struct cli_group **group)
{
    for (size_t g = 0; (*group = group_at(command, g)) != NULL; g++)
        for (const struct cli_option *option = (*group)->option; option < (*group)->option + (*group)->count; option++)
            if (option->letter == letter)
                return option;
    return NULL;
}

static void options_consider(const struct cli_command *command, struct conf_suggestion *suggestion)
{
    const struct cli_group *group;
    for (size_t g = 0; (group = group_at(command, g)) != NULL; g++)
        for (size_t i = 0; i < group->count; i++)
            conf_suggestion_consider(suggestion, group->option[i].name, group->option[i].name);
}

/* ---- advice ---- */

/* An option as typed: hyphens and name, without a value. */
struct typed {
    const char *dashes, *name;
    size_t length;
};

static bool advice_matches(const struct cli_advice *advice, const struct typed *typed)
{
    size_t dashes = strlen(typed->dashes);
    return strncmp(advice->word, typed->dashes, dashes) == 0 && strlen(advice->word) == dashes + typed->length &&
           memcmp(advice->word + dashes, typed->name, typed->length) == 0;
}

static const char *advice_find(const struct cli_advice *advice, size_t count, const struct typed *typed)
{
    for (size_t i = 0; i < count; i++)
        if (advice_matches(&advice[i], typed))
            return advice[i].text;
    return NULL;
}

static const char *command_advice(const struct cli_command *command, const struct typed *typed)
{
    const char *text = advice_find(command->advice, command->advice_count, typed);
    for (size_t g = 0; g < command->group_count && text == NULL; g++)
        text = advice_find(command->groups[g].advice, command->groups[g].advice_count, typed);
    return text;
}

/* Returns false if no word of the table begins with the typed one. Otherwise sets the advice for those that do: NULL if
 * they differ in it. */
static bool advice_complete(const struct cli_advice *advice, size_t count, const struct typed *typed, const char **text)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(advice[i].word, "--", 2) != 0 || strncmp(advice[i].word + 2, typed->name, typed->length) != 0)
            continue;
        if (!found)
            *text = advice[i].text;
        else if (*text != NULL && strcmp(*text, advice[i].text) != 0)
            *text = NULL;
        found = true;
    }
    return found;
}

/* As command_advice, for words that begin with the typed one. */
static const char *command_advice_completion(const struct cli_command *command, const struct typed *typed)
{
    const char *text = NULL;
    bool found = advice_complete(command->advice, command->advice_count, typed, &text);
    for (size_t g = 0; g < command->group_count && !found; g++)
        found = advice_complete(command->groups[g].advice, command->groups[g].advice_count, typed, &text);
    return text;
}

/* ---- errors ---- */

/* Returns false if the tables have no advice for the word. */
static bool report_advice(const struct reader *reader, const struct typed *typed)
{
    const char *advice = command_advice(reader->command, typed);
    if (advice != NULL)
        cli_fail(reader->command, "%s%.*s: no such option: %s", typed->dashes, (int)typed->length, typed->name, advice);
    return advice != NULL;
}

static void report_unknown_option(struct reader *reader, const char *name, size_t length)
{
    char text[CONF_SUGGESTION_SIZE];
    const char *advice = NULL;
    struct typed typed = {"--", name, length};
    struct conf_suggestion suggestion = {.word = name, .length = length};
    reader->failed = true;
    if (report_advice(reader, &typed))
        return;
    options_consider(reader->command, &suggestion);
    if (suggestion.completions == 0) /* a beginning has priority over a similar word: --int is no mistyped --hint */
        advice = command_advice_completion(reader->command, &typed);
    if (advice != NULL)
        cli_fail(reader->command, "--%.*s: no such option: %s", (int)length, name, advice);
    else if (conf_suggestion_format(text, &suggestion, "--") != NULL)
        cli_fail(reader->command, "--%.*s: no such option; did you mean %s?", (int)length, name, text);
    else
        cli_fail(reader->command, "--%.*s: no such option; bide %s --help lists the options", (int)length, name,
                 reader->command->name);
}

/* `word` is the whole argument: -attempts probably lacks a hyphen, and -q=1 gives a value to an option without one. */
static void report_unknown_letter(struct reader *reader, const char *word, size_t i)
{
    const struct cli_group *group;
    size_t length = strcspn(word + 1, "=");
    const struct cli_option *long_option = cli_option_find(reader->command, word + 1, length, &group);
    reader->failed = true;
    if (long_option != NULL)
        cli_fail(reader->command, "%s: no such option; did you mean --%s?", word, long_option->name);
    else if (word[i] == '=' && i > 1)
        cli_fail(reader->command, "%s: -%c takes no value", word, word[i - 1]);
    else if (!report_advice(reader, &(struct typed){"-", word + i, 1}) &&
             (length < 2 || !report_advice(reader, &(struct typed){"--", word + 1, length})))
        cli_fail(reader->command, "-%c: no such option; bide %s --help lists the options", word[i],
                 reader->command->name);
}

/* ---- parsing ---- */

/* An option as written in argv. `value` is NULL if the option takes none. */
struct parsed {
    const struct cli_option *option;
    const struct cli_group *group;
    const char *dashes, *name;
    const char *value;
};

static void print_builtin(struct reader *reader, const struct cli_option *option)
{
    reader->done = true;
    if (option == &builtin_options[0])
        cli_print_help(reader->command, stdout);
    else
        printf("bide %s\n", bide_version());
    reader->failed = !cli_flush(reader->command);
}

static void option_apply(struct reader *reader, const struct parsed *parsed)
{
    const char *value = parsed->value;
    if (parsed->group == &cli_builtin_group) {
        print_builtin(reader, parsed->option);
        return;
    }
    if (value != NULL && value[0] == '\0' && !parsed->option->may_be_empty) {
        reader->failed = true;
        cli_fail(reader->command, "%s%s: must not be empty; needs a value: %s", parsed->dashes, parsed->name,
                 parsed->option->value);
        return;
    }
    const char *want = cli_option_assign(parsed->option, reader->settings + parsed->group->offset, value);
    reader->failed = want != NULL;
    if (want == NULL && parsed->group->given > 0)
        *(bool *)(void *)(reader->settings + parsed->group->given - 1) = true;
    if (want != NULL)
        cli_fail(reader->command, "%s%s%s%s: %s%s", parsed->dashes, parsed->name, value != NULL ? " " : "",
                 value != NULL ? value : "", strncmp(want, "no such ", 8) == 0 ? "" : "must be ", want);
}

/* Takes the next word as the value of an option that has none attached. Returns false after reporting that it is
 * missing. */
static bool reader_take_value(struct reader *reader, struct parsed *parsed)
{
    parsed->value = *reader->next;
    if (parsed->value != NULL) {
        reader->next++;
        return true;
    }
    reader->failed = true;
    cli_fail(reader->command, "%s%s: needs a value: %s", parsed->dashes, parsed->name, parsed->option->value);
    return false;
}

/* Parses --name, --name VALUE or --name=VALUE; `word` begins after the hyphens. */
static void reader_parse_long(struct reader *reader, char *word)
{
    struct parsed parsed = {.dashes = "--", .name = word};
    size_t length = strcspn(word, "=");
    bool attached = word[length] == '=';
    parsed.option = cli_option_find(reader->command, word, length, &parsed.group);
    if (parsed.option == NULL) {
        report_unknown_option(reader, word, length);
        return;
    }
    parsed.name = parsed.option->name;
    if (attached && parsed.option->value == NULL) {
        reader->failed = true;
        cli_fail(reader->command, "--%s: --%s takes no value", word, parsed.name);
        return;
    }
    if (attached)
        parsed.value = word + length + 1;
    else if (parsed.option->value != NULL && !reader_take_value(reader, &parsed))
        return;
    option_apply(reader, &parsed);
}

/* A number after a letter that takes none is probably the value of that letter in another program: -n 3 as the number
 * of attempts, for a command whose -n is a flag. Returns false, or true after reporting it with the advice for "-n N".
 */
static bool report_number_of_flag(struct reader *reader, char letter)
{
    const char *value = *reader->next;
    const char name[] = {letter, ' ', 'N'};
    const char *advice = command_advice(reader->command, &(struct typed){"-", name, sizeof name});
    if (advice == NULL || value == NULL || value[0] == '\0' || value[strspn(value, "0123456789")] != '\0')
        return false;
    reader->failed = true;
    cli_fail(reader->command, "-%c %s: -%c takes no number: %s", letter, value, letter, advice);
    return true;
}

/* Parses -n VALUE, -nVALUE, or several letters in one word, of which only the last may have a value. */
static void reader_parse_letters(struct reader *reader, const char *word)
{
    for (size_t i = 1; word[i] != '\0' && !reader->done && !reader->failed; i++) {
        char name[] = {word[i], '\0'};
        struct parsed parsed = {.dashes = "-", .name = name};
        parsed.option = cli_option_find_letter(reader->command, word[i], &parsed.group);
        if (parsed.option == NULL) {
            report_unknown_letter(reader, word, i);
            return;
        }
        bool attached = parsed.option->value != NULL && word[i + 1] != '\0';
        if (attached)
            parsed.value = word + i + 1;
        else if ((parsed.option->value != NULL && !reader_take_value(reader, &parsed)) ||
                 (word[i + 1] == '\0' && parsed.value == NULL && report_number_of_flag(reader, word[i])))
            return;
        option_apply(reader, &parsed);
        if (attached)
            return;
    }
}

/* An empty operand is probably an unset variable of a script; only a command that bide runs may have it. */
static void reader_take_operand(struct reader *reader, char *word)
{
    *reader->operands++ = word;
    if (word[0] != '\0' || reader->command->options_first || reader->after_separator || reader->failed)
        return;
    reader->failed = true;
    cli_fail(reader->command, "'': an argument must not be empty; bide %s --help describes the arguments",
             reader->command->name);
}

static void reader_take_operands(struct reader *reader)
{
    while (*reader->next != NULL)
        reader_take_operand(reader, *reader->next++);
}

static void reader_parse_word(struct reader *reader)
{
    char *word = *reader->next++;
    if (strcmp(word, "--") == 0) {
        if (reader->command->keeps_separator)
            reader_take_operand(reader, word);
        reader->after_separator = reader->command->keeps_separator;
        reader_take_operands(reader);
    } else if (strncmp(word, "--", 2) == 0) {
        reader_parse_long(reader, word + 2);
    } else if (word[0] == '-' && word[1] != '\0') {
        reader_parse_letters(reader, word);
    } else {
        reader_take_operand(reader, word);
        if (reader->command->options_first)
            reader_take_operands(reader);
    }
}

/* ---- entry point ---- */

int cli_main(const struct cli_command *command, char **argv)
{
    struct reader reader = {.command = command, .next = argv, .operands = argv};
    int status = CLI_EXIT_BIDE_FAILED;
    reader.settings = calloc(1, command->settings_size + 1);
    if (reader.settings == NULL)
        return cli_fail(command, "out of memory");
    if (command->init != NULL)
        command->init(reader.settings);
    while (*reader.next != NULL && !reader.done && !reader.failed)
        reader_parse_word(&reader);
    if (reader.failed)
        goto out;
    status = EXIT_SUCCESS;
    if (reader.done)
        goto out;
    *reader.operands = NULL;
    status = command->run(reader.settings, argv);
out:
    free(reader.settings);
    return status;
}
