/* term.c - see term.h. The locale is read from its variables, because setlocale would open files at every start. */
#include "term.h"

#include "text/slice.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHORTENED_MIN 4u /* a character, and an ellipsis in ASCII */
#define SHORTENED_MAX 256u
#define WIDTH_UNKNOWN 80u
#define ROWS_UNKNOWN  24u
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
    struct cli_term term = {.out = out, .utf8 = locale_is_utf8(), .width = WIDTH_UNKNOWN, .rows = ROWS_UNKNOWN};
    struct winsize size;
    const char *name = getenv("TERM");
    if (!isatty(fileno(out)))
        return term;
    term.is_terminal = true;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0) {
        term.width = size.ws_col > 0 ? size.ws_col : WIDTH_UNKNOWN;
        term.rows = size.ws_row > 0 ? size.ws_row : ROWS_UNKNOWN;
    }
    term.live = name != NULL && name[0] != '\0' && strcmp(name, "dumb") != 0;
    term.colour = term.live && !env_is_set("NO_COLOR");
    return term;
}

const char *cli_colour(const struct cli_term *term, enum cli_colour colour)
{
    static const char *const sequence[] = {
        [CLI_PLAIN] = "\033[0m",  [CLI_DIM] = "\033[2m",     [CLI_BOLD] = "\033[1m",  [CLI_RED] = "\033[31m",
        [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m", [CLI_BLUE] = "\033[34m", [CLI_CYAN] = "\033[36m",
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

size_t cli_text_columns(const char *text)
{
    return text_utf8_count(text, strlen(text));
}

size_t cli_print_character(FILE *out, const char *text, size_t left, bool utf8)
{
    size_t length = text_utf8_printable(text, left);
    if (length == 0 || (length > 1 && !utf8))
        fputc('?', out);
    else
        fwrite(text, 1, length, out);
    return text_utf8_prefix(text, left, 1);
}

void cli_print_sanitized(FILE *out, const char *text)
{
    bool utf8 = locale_is_utf8();
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length)
        length = cli_print_character(out, text, left, utf8);
}

/* Appends the first characters of a text, '?' for those that must not reach a terminal. */
static char *append_sanitized(char *end, const char *from, size_t characters, bool utf8)
{
    for (size_t left = strlen(from); left > 0 && characters > 0; characters--) {
        size_t printable = text_utf8_printable(from, left), length = text_utf8_prefix(from, left, 1);
        if (printable == 0 || (printable > 1 && !utf8))
            *end++ = '?';
        else
            end = (char *)memcpy(end, from, printable) + printable;
        from += length;
        left -= length;
    }
    *end = '\0';
    return end;
}

const char *cli_text_shorten(char *text, const char *from, size_t columns)
{
    bool utf8 = locale_is_utf8();
    const char *dots = utf8 ? "…" : "...";
    size_t length = strlen(from), count = text_utf8_count(from, length);
    if (count <= columns) {
        append_sanitized(text, from, columns, utf8);
        return text;
    }
    size_t kept = columns - cli_text_columns(dots), tail = kept / 2;
    char *end = append_sanitized(text, from, kept - tail, utf8);
    end = append_text(end, dots);
    append_sanitized(end, from + text_utf8_prefix(from, length, count - tail), tail, utf8);
    return text;
}

unsigned cli_print_shortened(const struct cli_term *term, const char *text, unsigned columns)
{
    char shortened[CLI_SHORT_SIZE(SHORTENED_MAX)];
    columns = columns < SHORTENED_MIN ? SHORTENED_MIN : columns > SHORTENED_MAX ? SHORTENED_MAX : columns;
    fputs(cli_text_shorten(shortened, text, columns), term->out);
    return (unsigned)cli_text_columns(shortened);
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

/* ---- paragraphs ---- */

static bool is_hidden(const struct cli_paragraph *p, char c)
{
    return c == '`' && p->hides_backticks;
}

static unsigned word_columns(const struct cli_paragraph *p, struct bide_text word)
{
    size_t count = text_utf8_count(word.at, word.length);
    for (size_t i = 0; i < word.length; i++)
        count -= is_hidden(p, word.at[i]);
    return (unsigned)count;
}

static unsigned paragraph_break_line(const struct cli_paragraph *p)
{
    fprintf(p->out, "\n%*s", (int)p->left, "");
    return p->left;
}

/* Prints a word from the column `at` on. Returns the column after it. */
static unsigned word_print(const struct cli_paragraph *p, struct bide_text word, unsigned at)
{
    while (word.length > 0) {
        size_t length = 1;
        if (!is_hidden(p, word.at[0])) {
            if (at >= p->right && p->breaks_words)
                at = paragraph_break_line(p);
            length = cli_print_character(p->out, word.at, word.length, p->utf8);
            at++;
        }
        word = (struct bide_text){word.at + length, word.length - length};
    }
    return at;
}

void cli_print_paragraph(const struct cli_paragraph *p, const char *text, size_t length)
{
    struct bide_text rest = text_trim((struct bide_text){text, length}, TEXT_BLANKS), word;
    unsigned at = p->at;
    for (bool first = !p->after_word; rest.length > 0; first = false) {
        word = (struct bide_text){rest.at, 0};
        while (word.length < rest.length && !text_is_one_of(word.at[word.length], TEXT_BLANKS))
            word.length++;
        if (!first && at + 1 + word_columns(p, word) > p->right)
            at = paragraph_break_line(p);
        else if (!first)
            at += fputc(' ', p->out) == ' ';
        at = word_print(p, word, at);
        rest = text_trim((struct bide_text){rest.at + word.length, rest.length - word.length}, TEXT_BLANKS);
    }
    fputc('\n', p->out);
}

/* ---- rewritten lines ---- */

/* Returns how many bytes of the text fit into `width` columns. Escape sequences have no width. */
static size_t fitting_bytes(const char *text, unsigned width)
{
    size_t i = 0, length = strlen(text);
    for (unsigned used = 0; i < length;) {
        bool escape = text[i] == '\033';
        if (!escape && used++ == width)
            break;
        i += escape ? strcspn(text + i, "m") + 1 : text_utf8_prefix(text + i, length - i, 1);
    }
    return i < length ? i : length;
}

void cli_rewrite_line(const struct cli_term *term, const char *text)
{
    if (!term->live)
        return;
    size_t length = fitting_bytes(text, term->width - 1); /* some terminals wrap after the last column */
    fprintf(term->out, "\r%.*s%s" CLI_CLEAR_LINE, (int)length, text,
            text[length] != '\0' ? cli_colour(term, CLI_PLAIN) : "");
    fflush(term->out);
}

void cli_move_up(const struct cli_term *term, unsigned lines)
{
    if (term->live && lines > 0)
        fprintf(term->out, "\033[%uA\r", lines);
}

void cli_screen_end_line(const struct cli_term *term)
{
    fputs(CLI_CLEAR_LINE "\r\n", term->out);
}
