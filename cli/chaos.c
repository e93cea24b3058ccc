/* chaos.c - bide-chaos: an HTTP server on 127.0.0.1 that fails on purpose, by a script.
 *
 * Options are a table: how each is written, what it does, and the function that reads its value. What is wrong is said
 * together with what would be right, and ends the program with 125, which no server that ran ever does. Without a
 * script every path answers 200. It binds to loopback only, by design: a server that lies has no place on a network. */
#include "chaos/chaos.h"
#include "chaos/script.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bide/clock.h>
#include <bide/wait.h>

#define EXIT_USAGE 125

struct settings {
    struct chaos_config config;
    int64_t for_ns; /* 0: until a signal */
    char *script;   /* owned, if it was read from a file */
    bool has_script;
    bool done; /* the option did all there was to do */
};

struct option {
    const char *name;
    const char *value; /* as it is shown; NULL: it has none */
    const char *does;
    const char *(*read)(struct settings *settings, const char *value); /* returns NULL, or what would be right */
};

static struct chaos *served; /* for the signal handler */

/* ---- values ---- */

static bool read_number(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *number = value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value <= most;
}

static const char *read_port(struct settings *settings, const char *value)
{
    uint64_t port;
    if (!read_number(value, UINT16_MAX, &port))
        return "a port from 0 (a free one) to 65535";
    settings->config.port = (uint16_t)port;
    return NULL;
}

static const char *read_seed(struct settings *settings, const char *value)
{
    return read_number(value, UINT64_MAX, &settings->config.seed) ? NULL : "a number from 0 to 2^64 - 1";
}

static const char *read_for(struct settings *settings, const char *value)
{
    return chaos_duration((struct bide_text){value, strlen(value)}, &settings->for_ns) && settings->for_ns > 0
               ? NULL
               : "a duration such as 500ms, 10s or 5m";
}

static const char *read_idle(struct settings *settings, const char *value)
{
    return chaos_duration((struct bide_text){value, strlen(value)}, &settings->config.idle_ns) &&
                   settings->config.idle_ns > 0
               ? NULL
               : "a duration such as 500ms, 60s or 5m";
}

static const char *set_script(struct settings *settings, const char *value)
{
    if (settings->has_script)
        return "one script: as text, as a file or from stdin (-)";
    settings->has_script = true;
    settings->config.script = value;
    return NULL;
}

static const char *open_journal(struct settings *settings, const char *value)
{
    bool to_stderr = strcmp(value, "-") == 0;
    settings->config.journal_fd =
        to_stderr ? STDERR_FILENO : open(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return settings->config.journal_fd >= 0 ? NULL : "a file that can be written to, or - for stderr";
}

static const char *show_version(struct settings *settings, const char *value)
{
    (void)value;
    settings->done = true;
    printf("bide-chaos %s\n", bide_version());
    return NULL;
}

static const char *show_help(struct settings *settings, const char *value);

static const struct option options[] = {
    {"--port", "N", "the port; 0, the default: a free one", read_port},
    {"--script", "TEXT", "the script itself, instead of a file", set_script},
    {"--journal", "FILE", "a JSON line for each request; -: to stderr", open_journal},
    {"--seed", "N", "what fail= and delay= draw from; default 0", read_seed},
    {"--for", "DURATION", "stops by itself", read_for},
    {"--idle", "DURATION", "cuts a client that does nothing for so long; default 60s", read_idle},
    {"--help", NULL, "shows this", show_help},
    {"--version", NULL, "shows the version", show_version},
};

static const char *show_help(struct settings *settings, const char *value)
{
    (void)value;
    settings->done = true;
    puts("bide-chaos [options] [SCRIPT-FILE|-]\n\n"
         "An HTTP/1.1 server on 127.0.0.1 that fails on purpose. Without a script: 200 on every path.\n");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        printf("  %-10s%-10s%s\n", options[i].name, options[i].value != NULL ? options[i].value : "", options[i].does);
    puts("\nA script is a line per path: the path (with * at its end a prefix; * alone: every other path), then steps\n"
         "with | between them. Each request takes the next step; the last repeats, unless the line ends in loop.\n"
         "A step is a status, xN (so many times) and these words, in any order:\n");
    for (size_t i = 0; chaos_word_help(i) != NULL; i++)
        printf("  %-24s%s\n", chaos_word_help(i)->form, chaos_word_help(i)->does);
    puts("\nThe last five are about the whole line, and stand in its first step. Example:\n\n"
         "  /flaky   503 retry-after=2 | reset=request x2 | 200 body=\"hello\"\n"
         "  /api*    fail=30%:503 200 delay=10ms..80ms");
    return NULL;
}

/* ---- options ---- */

/* All of a file, as text. One byte more than a script may have is read: then the script's reader says that. */
static const char *read_text(struct settings *settings, FILE *file)
{
    size_t room = CHAOS_SCRIPT_MAX + 1;
    if ((settings->script = calloc(1, room + 1)) == NULL)
        return "more memory";
    size_t length = fread(settings->script, 1, room, file);
    if (ferror(file) || strlen(settings->script) != length)
        return "a script: text that can be read, without NUL";
    return set_script(settings, settings->script);
}

static const char *read_file(struct settings *settings, const char *name)
{
    if (settings->has_script)
        return set_script(settings, NULL);
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    const char *want = file != NULL ? read_text(settings, file) : "a script file that can be read, or - for stdin";
    if (file != NULL && file != stdin)
        fclose(file);
    return want;
}

static const struct option *find_option(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

/* One argument, with its value if that is the next: --port 80 or --port=80. Returns how many were used; 0: wrong. */
static int read_argument(struct settings *settings, char **argument)
{
    const char *want, *equals = strchr(argument[0], '=');
    size_t length = equals != NULL ? (size_t)(equals - argument[0]) : strlen(argument[0]);
    const struct option *option = find_option(argument[0], length);
    if (argument[0][0] != '-' || strcmp(argument[0], "-") == 0)
        want = read_file(settings, argument[0]);
    else if (option == NULL)
        want = "an option of --help, or a script file";
    else if (option->value == NULL)
        want = equals != NULL ? "no value" : option->read(settings, NULL);
    else if (equals != NULL)
        want = option->read(settings, equals + 1);
    else if (argument[1] == NULL)
        want = "a value after it";
    else
        want = option->read(settings, argument[1]);
    bool two = option != NULL && option->value != NULL && equals == NULL && argument[1] != NULL;
    if (want != NULL)
        fprintf(stderr, "bide-chaos: %s%s%s: want %s\n", argument[0], two ? " " : "", two ? argument[1] : "", want);
    return want != NULL ? 0 : 1 + two;
}

static bool read_arguments(struct settings *settings, char **argv)
{
    for (char **argument = argv + 1; *argument != NULL && !settings->done;) {
        int used = read_argument(settings, argument);
        if (used == 0)
            return false;
        argument += used;
    }
    return true;
}

/* ---- serving ---- */

static void on_signal(int number)
{
    (void)number;
    chaos_stop(served);
}

static void catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL); /* a journal into a pipe that nobody reads any more */
}

/* Before the server goes: a second signal now ends the program. */
static void release_signals(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(SIGINT, &usual, NULL);
    sigaction(SIGTERM, &usual, NULL);
}

struct bell {
    int64_t at_ns;
    struct bide_cancel cancel;
};

static void *ring(void *context)
{
    struct bell *bell = context;
    if (bide_wait_until(bell->at_ns, &bell->cancel))
        chaos_stop(served);
    return NULL;
}

/* Serves, for a time or until a signal. */
static enum bide_err serve(int64_t for_ns)
{
    struct bell bell = {.at_ns = bide_now() + for_ns};
    pthread_t thread;
    enum bide_err err = BIDE_ERR_SYSTEM;
    bool rings = for_ns > 0;
    if (rings && (bide_cancel_init(&bell.cancel) != BIDE_OK || pthread_create(&thread, NULL, ring, &bell) != 0))
        goto out;
    err = chaos_run(served);
    if (!rings)
        goto out;
    bide_cancel_now(&bell.cancel);
    pthread_join(thread, NULL);
out:
    bide_cancel_free(&bell.cancel);
    return err;
}

static int complain(enum bide_err err, const struct chaos_error *error)
{
    if (err == BIDE_ERR_INVALID)
        fprintf(stderr, "bide-chaos: script line %u: %s\n", error->line, error->text);
    else
        fprintf(stderr, "bide-chaos: cannot serve: %s\n", err == BIDE_ERR_NOMEM ? "no memory" : strerror(errno));
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct settings settings = {.config.journal_fd = -1};
    struct chaos_error error;
    int status = EXIT_USAGE;
    enum bide_err err;
    (void)argc;
    if (!read_arguments(&settings, argv))
        goto out;
    status = EXIT_SUCCESS;
    if (settings.done)
        goto out;
    if ((err = chaos_new(&served, &settings.config, &error)) != BIDE_OK) {
        status = complain(err, &error);
        goto out;
    }
    catch_signals();
    if (printf("listening on http://127.0.0.1:%u\n", (unsigned)chaos_port(served)) < 0 || fflush(stdout) != 0) {
        fprintf(stderr, "bide-chaos: the port cannot be told: standard output: %s\n", strerror(errno));
        status = EXIT_USAGE;
        goto out;
    }
    if (serve(settings.for_ns) != BIDE_OK)
        status = complain(BIDE_ERR_SYSTEM, &error);
    fprintf(stderr, "bide-chaos: %llu requests seen\n", (unsigned long long)chaos_requests(served));
    if (chaos_journal_error(served) != 0) {
        fprintf(stderr, "bide-chaos: the journal ends early: %s\n", strerror(chaos_journal_error(served)));
        status = EXIT_FAILURE;
    }
out:
    release_signals();
    chaos_free(served);
    free(settings.script);
    return status;
}
