/* term.c - see term.h. The locale is read from its variables, because setlocale would open files at every start. */
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_UNKNOWN 80u
#define EIGHTHS       8u

static bool env_is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

/* Reads LC_ALL, else LC_CTYPE, else LANG: the order of setlocale. */
static bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

struct cli_term cli_term_detect(FILE *out)
{
    struct cli_term term = {.out = out, .utf8 = locale_is_utf8(), .width = WIDTH_UNKNOWN};
    struct winsize size;
    const char *name = getenv("TERM");
    if (!isatty(fileno(out)))
        return term;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        term.width = size.ws_col;
    term.live = name != NULL && name[0] != '\0' && strcmp(name, "dumb") != 0;
    term.colour = term.live && !env_is_set("NO_COLOR");
    return term;
}

const char *cli_colour(const struct cli_term *term, enum cli_colour colour)
{
    static const char *const sequence[] = {
        [CLI_PLAIN] = "\033[0m",  [CLI_DIM] = "\033[2m",     [CLI_BOLD] = "\033[1m",  [CLI_RED] = "\033[31m",
        [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m", [CLI_BLUE] = "\033[34m",
    };
    return term->colour ? sequence[colour] : "";
}

/* ---- bars ---- */

/* Returns how many of `steps` represent the value: at least 1 for a positive value. */
static size_t scaled_steps(double value, double most, size_t steps)
{
    if (!(value > 0) || !(most > 0))
        return 0;
    if (value >= most)
        return steps;
    size_t count = (size_t)(value / most * (double)steps + 0.5);
    return count > 0 ? count : 1;
}

static char *append_text(char *end, const char *cell)
{
    size_t length = strlen(cell);
    memcpy(end, cell, length + 1);
    return end + length;
}

const char *cli_bar(const struct cli_term *term, char *text, size_t cells, double value, double most)
{
    static const char *const part[EIGHTHS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    size_t per_cell = term->utf8 ? EIGHTHS : 1;
    size_t count = scaled_steps(value, most, cells * per_cell);
    char *end = text;
    *end = '\0';
    for (size_t i = 0; i < count / per_cell; i++)
        end = append_text(end, term->utf8 ? "█" : "#");
    append_text(end, part[count % per_cell]);
    return text;
}

const char *cli_spark(const struct cli_term *term, char *text, const double *value, size_t count, double most)
{
    static const char *const block[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
    char *end = text;
    *end = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t level = scaled_steps(value[i], most, EIGHTHS);
        end = append_text(end, term->utf8 ? block[level] : plain[level]);
    }
    return text;
}

/* ---- untrusted text ---- */

/* Returns the length of the UTF-8 character; 0 if the bytes are malformed or a C1 control character. Weakness: overlong
 * three- and four-byte forms and surrogates pass. */
static size_t utf8_length(const unsigned char *at)
{
    size_t length = at[0] < 0xc2 || at[0] > 0xf4 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0u) != 0x80u)
            return 0;
    return at[0] == 0xc2 && at[1] < 0xa0 ? 0 : length;
}

void cli_print_sanitized(FILE *out, const char *text)
{
    bool utf8 = locale_is_utf8();
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        size_t length = *at >= ' ' && *at <= '~' ? 1 : utf8 ? utf8_length(at) : 0;
        if (length > 0)
            fwrite(at, 1, length, out);
        else
            fputc('?', out);
        at += length > 0 ? length : 1;
    }
}

void cli_print_shell_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@+%,=#";
    if (word[0] != '\0' && word[0] != '#' && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word != '\0'; word++)
        fputs(*word == '\'' ? "'\\''" : (const char[2]){*word}, out);
    fputc('\'', out);
}

/* ---- rewritten line ---- */

/* Returns how many bytes of the text fit into `width` columns. Escape sequences have no width. */
static size_t fitting_bytes(const char *text, unsigned width)
{
    size_t i = 0;
    for (unsigned used = 0; text[i] != '\0'; i++) {
        if (text[i] == '\033') {
            i += strcspn(text + i, "m");
            if (text[i] == '\0')
                break;
            continue;
        }
        used += ((unsigned char)text[i] & 0xc0u) != 0x80u;
        if (used > width)
            break;
    }
    return i;
}

void cli_rewrite_line(const struct cli_term *term, const char *text)
{
    if (!term->live)
        return;
    size_t length = fitting_bytes(text, term->width - 1); /* some terminals wrap after the last column */
    fprintf(term->out, "\r%.*s%s\033[K", (int)length, text, text[length] != '\0' ? cli_colour(term, CLI_PLAIN) : "");
    fflush(term->out);
}
