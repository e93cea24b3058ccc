/* fuzz_options.c - any command line is parsed into a table's settings, or refused with status 125 and a message.
 *
 * The input is the arguments, each ended by a NUL. Invariants: the command runs at most once; then every setting is in
 * its range and every operand is one of the arguments.
 *
 * The table is one of its own: some options of the commands open files while they are read (`bide chaos --journal`),
 * and others own memory that only the command releases. */
#include <bide/base.h>

#include <stdlib.h>
#include <string.h>

#include "common/options.h"

#define ARGUMENTS_MAX 64

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct settings {
    bool quiet, count_given;
    const char *text, *word;
    unsigned choice;
    uint16_t count;
    int64_t wait_ns;
};

static int runs;
static char *given[ARGUMENTS_MAX + 1];

static const char *const words[] = {"always", "never", "auto", NULL};

static const struct cli_option options[] = {
    {.name = "quiet", .letter = 'q', .help = "print nothing", .kind = CLI_FLAG, CLI_AT(struct settings, quiet)},
    {.name = "text",
     .letter = 't',
     .value = "TEXT",
     .help = "any text",
     .kind = CLI_STRING,
     CLI_AT(struct settings, text)},
    {.name = "word",
     .value = "WORD",
     .help = "a word",
     .kind = CLI_WORD,
     CLI_AT(struct settings, word),
     .choices = words},
    {.name = "when",
     .value = "WHEN",
     .help = "a choice",
     .kind = CLI_CHOICE,
     CLI_AT(struct settings, choice),
     .choices = words},
    {.name = "count",
     .letter = 'n',
     .value = "N",
     .help = "a number",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, count),
     CLI_GIVEN(struct settings, count_given),
     .min = 1,
     .max = 500},
    {.name = "wait",
     .letter = 'w',
     .value = "DURATION",
     .help = "a time",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, wait_ns),
     .min = 1,
     .or_never = true},
};
static const struct cli_group groups[] = {{CLI_GROUP(NULL, options)}};

static bool is_argument(const char *operand)
{
    for (size_t i = 0; given[i] != NULL; i++)
        if (operand >= given[i] && operand <= given[i] + strlen(given[i]))
            return true;
    return false;
}

static int run(void *settings, char **operands)
{
    const struct settings *s = settings;
    runs++;
    CHECK(s->count <= 500 && (s->count > 0) == s->count_given && s->choice < 3);
    CHECK(s->wait_ns == 0 || s->wait_ns == BIDE_NEVER || (s->wait_ns > 0 && s->wait_ns <= BIDE_DURATION_MAX));
    CHECK(s->word == NULL || strcmp(s->word, "always") == 0 || strcmp(s->word, "never") == 0 ||
          strcmp(s->word, "auto") == 0);
    CHECK(s->text == NULL || is_argument(s->text));
    for (; *operands != NULL; operands++)
        CHECK(is_argument(*operands));
    return 7;
}

static const struct cli_command command = {.name = "fuzz",
                                           .summary = "any command line",
                                           .synopsis = "[options] [OPERAND...]",
                                           .about = "Any command line.",
                                           .groups = groups,
                                           .group_count = 1,
                                           .settings_size = sizeof(struct settings),
                                           .run = run};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[ARGUMENTS_MAX + 1], *bytes = malloc(size + 1);
    size_t count = 0;
    CHECK(bytes != NULL);
    memcpy(bytes, data, size);
    bytes[size] = '\0';
    for (char *at = bytes; at < bytes + size && count < ARGUMENTS_MAX; at += strlen(at) + 1)
        argv[count++] = at;
    argv[count] = NULL;
    memcpy(given, argv, (count + 1) * sizeof *argv);
    runs = 0;
    int status = cli_main(&command, argv);
    CHECK(runs == (status == 7) && (status == 7 || status == 0 || status == CLI_EXIT_BIDE_FAILED));
    free(bytes);
    return 0;
}
