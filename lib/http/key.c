/* key.c - idempotency keys: made, checked, written and read.
 *
 * A key ends up in a header field, so what is wrong with it is found before anything is sent: a line end in it would
 * begin a field of the attacker's choice. Both forms carry the same keys but for a few characters that the raw form has
 * no way to protect; reading is strict in either, since a server that reads a key otherwise than it was meant runs a
 * request twice, or not at all.
 *
 * Known weakness: the values of parameters, which no key is known to have, are only checked to be made of the right
 * characters. */
#include <bide/key.h>

#include "value.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define QUOTE     '"'
#define BACKSLASH '\\'

/* ---- making ---- */

/* Never waits: a call has a deadline, and the beginning of a boot may be long. */
static bool fill(unsigned char *bytes, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = getrandom(bytes + got, size - got, GRND_NONBLOCK);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return false;
    }
    return true;
}

/* RFC 9562 5.4: 122 random bits, the version and the variant. */
enum bide_err bide_key_make(char text[BIDE_KEY_TEXT_SIZE])
{
    unsigned char b[16];
    text[0] = '\0';
    if (!fill(b, sizeof b))
        return BIDE_ERR_SYSTEM;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    char *at = text;
    for (size_t i = 0; i < sizeof b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at = http_put_hex(at, b[i], 2);
    }
    *at = '\0';
    return BIDE_OK;
}

/* ---- checking ---- */

#define WANT_LENGTH "a length of 1 to 255 bytes"
#define WANT_ASCII  "printable ASCII only"
#define WANT_BARE   "no comma, semicolon or quote in the raw form, and no space at either end"

static bool is_printable(char c)
{
    return c >= 0x20 && c <= 0x7e;
}

static bool is_end(struct bide_text key, size_t i)
{
    return i == 0 || i == key.length - 1;
}

/* What the raw form cannot tell from its own surroundings: blanks, lists, parameters, the quoted form. */
static bool is_unfit_raw(struct bide_text key, size_t i)
{
    char c = key.at[i];
    return c == ',' || c == ';' || c == QUOTE || (c == ' ' && is_end(key, i));
}

static struct bide_problem wrong(int64_t value, const char *want)
{
    return (struct bide_problem){.field = "key", .want = want, .value = value};
}

/* The first thing wrong, or a problem without a field. */
static struct bide_problem look(struct bide_text key, enum bide_key_form form)
{
    if (form != BIDE_KEY_QUOTED && form != BIDE_KEY_RAW)
        return (struct bide_problem){.field = "form", .want = "0 (quoted) or 1 (raw)", .value = (int64_t)form};
    if (key.length < 1 || key.length > BIDE_KEY_MAX)
        return wrong((int64_t)key.length, WANT_LENGTH);
    for (size_t i = 0; i < key.length; i++) {
        if (!is_printable(key.at[i]))
            return wrong((unsigned char)key.at[i], WANT_ASCII);
        if (form == BIDE_KEY_RAW && is_unfit_raw(key, i))
            return wrong((unsigned char)key.at[i], WANT_BARE);
    }
    return (struct bide_problem){0};
}

static bool is_fine(struct bide_text key, enum bide_key_form form)
{
    return look(key, form).field == NULL;
}

static struct bide_text text_of(const char *key)
{
    return (struct bide_text){key, key == NULL ? 0 : strlen(key)};
}

enum bide_err bide_key_check(const char *key, enum bide_key_form form, struct bide_problem *problem)
{
    struct bide_problem found = look(text_of(key), form);
    if (found.field == NULL)
        return BIDE_OK;
    if (problem != NULL)
        *problem = found;
    return BIDE_ERR_INVALID;
}

/* ---- writing ---- */

/* Writes like snprintf: counts what it could not write. */
struct pen {
    char *text;
    size_t size;
    size_t length;
};

static void put(struct pen *pen, char c)
{
    if (pen->length < pen->size)
        pen->text[pen->length] = c;
    pen->length++;
}

/* The length, if all of it and the NUL are within the size; else 0 and an empty text. */
static size_t finish(struct pen *pen, bool good)
{
    bool fits = good && pen->length < pen->size;
    if (pen->size > 0)
        pen->text[fits ? pen->length : 0] = '\0';
    return fits ? pen->length : 0;
}

/* RFC 9651 4.1.6: the quote and the backslash are escaped, nothing else is. */
static void put_quoted(struct pen *pen, struct bide_text key)
{
    put(pen, QUOTE);
    for (size_t i = 0; i < key.length; i++) {
        if (key.at[i] == QUOTE || key.at[i] == BACKSLASH)
            put(pen, BACKSLASH);
        put(pen, key.at[i]);
    }
    put(pen, QUOTE);
}

static void put_raw(struct pen *pen, struct bide_text key)
{
    for (size_t i = 0; i < key.length; i++)
        put(pen, key.at[i]);
}

size_t bide_key_format(char *text, size_t size, const char *key, enum bide_key_form form)
{
    struct pen pen = {text, size, 0};
    struct bide_text all = text_of(key);
    bool good = is_fine(all, form);
    if (good && form == BIDE_KEY_QUOTED)
        put_quoted(&pen, all);
    else if (good)
        put_raw(&pen, all);
    return finish(&pen, good);
}

/* ---- reading ---- */

static bool take(struct bide_text *rest, char c)
{
    if (rest->length == 0 || rest->at[0] != c)
        return false;
    *rest = http_from(*rest, 1);
    return true;
}

/* RFC 9651 4.2.5. What it says goes to the pen. */
static bool take_string(struct bide_text *rest, struct pen *pen)
{
    if (!take(rest, QUOTE))
        return false;
    while (!take(rest, QUOTE)) {
        bool escaped = take(rest, BACKSLASH);
        if (rest->length == 0 || !is_printable(rest->at[0]))
            return false;
        if (escaped && rest->at[0] != QUOTE && rest->at[0] != BACKSLASH)
            return false;
        put(pen, rest->at[0]);
        *rest = http_from(*rest, 1);
    }
    return true;
}

/* How many characters of the set stood here. */
static size_t take_all(struct bide_text *rest, const char *set)
{
    size_t count = 0;
    while (count < rest->length && rest->at[count] != '\0' && strchr(set, rest->at[count]) != NULL)
        count++;
    *rest = http_from(*rest, count);
    return count;
}

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Of the other types of bare items each is a run of these; a display string is a % and a string. */
static bool skip_value(struct bide_text *rest)
{
    struct pen nowhere = {NULL, 0, 0};
    size_t run = take_all(rest, LOWER UPPER DIGITS "!#$%&'*+-.^_`|~:/=?@");
    bool display = run == 1 && rest->at[-1] == '%';
    return run > 0 && !display ? true : take_string(rest, &nowhere);
}

/* RFC 9651 4.2.3.2. */
static bool skip_parameters(struct bide_text *rest)
{
    while (take(rest, ';')) {
        take_all(rest, " ");
        if (rest->length == 0 || strchr(LOWER "*", rest->at[0]) == NULL || take_all(rest, LOWER DIGITS "_-.*") == 0)
            return false;
        if (take(rest, '=') && !skip_value(rest))
            return false;
    }
    return true;
}

static bool read_quoted(struct bide_text value, struct pen *pen)
{
    return take_string(&value, pen) && skip_parameters(&value) && value.length == 0;
}

bool bide_key_parse(struct bide_text value, enum bide_key_form form, char *key, size_t size)
{
    char read[BIDE_KEY_MAX + 1];
    struct pen whole = {read, sizeof read, 0}, pen = {key, size, 0};
    struct bide_text trimmed = http_trim(value);
    bool good = true;
    if (form == BIDE_KEY_QUOTED)
        good = read_quoted(trimmed, &whole);
    else
        put_raw(&whole, trimmed);
    struct bide_text all = {read, whole.length}; /* a length beyond the buffer is refused before a byte is looked at */
    good = good && is_fine(all, form);
    if (good)
        put_raw(&pen, all);
    return finish(&pen, good) > 0;
}
