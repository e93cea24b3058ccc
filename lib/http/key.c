/* key.c - idempotency keys: generated, checked, written and parsed.
 *
 * A key becomes part of a header field, so it is checked before anything is sent: a line break in it would start a
 * header field of an attacker's choice (header injection). Both forms carry the same keys, except for a few characters
 * that the raw form cannot protect. Parsing is strict in both: a server that parses a different key than the client
 * meant runs a request twice, or not at all.
 *
 * Known weakness: values of parameters, which no known key has, are only checked for valid characters. */
#include <bide/key.h>

#include "core/problem.h"
#include "os/entropy.h"
#include "text/slice.h"
#include "value.h"

#include <assert.h>
#include <string.h>

#define QUOTE     '"'
#define BACKSLASH '\\'

/* ---- generating ---- */

/* RFC 9562 section 5.4: 122 random bits, the version and the variant. */
enum bide_err bide_key_make(char text[BIDE_KEY_TEXT_SIZE])
{
    unsigned char b[16];
    text[0] = '\0';
    if (!os_fill_random(b, sizeof b))
        return BIDE_ERR_SYSTEM;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    char *at = text;
    for (size_t i = 0; i < sizeof b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at = http_write_hex(at, b[i], 2);
    }
    assert(at == text + BIDE_KEY_TEXT_SIZE - 1);
    *at = '\0';
    return BIDE_OK;
}

/* ---- checking ---- */

#define WANT_LENGTH "1 to 255 bytes long"
#define WANT_ASCII  "printable ASCII"
#define WANT_BARE   "a raw key without comma, semicolon or quote, and without a space at either end"

static bool is_printable(char c)
{
    return c >= 0x20 && c <= 0x7e;
}

static bool is_first_or_last(struct bide_text key, size_t i)
{
    return i == 0 || i == key.length - 1;
}

/* Characters that the raw form cannot tell from its context: surrounding whitespace, lists, parameters, the quoted
 * form. */
static bool is_unfit_raw(struct bide_text key, size_t i)
{
    char c = key.at[i];
    return c == ',' || c == ';' || c == QUOTE || (c == ' ' && is_first_or_last(key, i));
}

static enum bide_err key_check(struct bide_text key, enum bide_key_form form, struct bide_problem *problem)
{
    if (form != BIDE_KEY_QUOTED && form != BIDE_KEY_RAW)
        return core_problem_set(problem, "form", (int64_t)form, "0 (quoted) or 1 (raw)");
    if (key.length < 1 || key.length > BIDE_KEY_MAX)
        return core_problem_set(problem, "key", (int64_t)key.length, WANT_LENGTH);
    for (size_t i = 0; i < key.length; i++) {
        if (!is_printable(key.at[i]))
            return core_problem_set(problem, "key", (unsigned char)key.at[i], WANT_ASCII);
        if (form == BIDE_KEY_RAW && is_unfit_raw(key, i))
            return core_problem_set(problem, "key", (unsigned char)key.at[i], WANT_BARE);
    }
    return BIDE_OK;
}

static bool key_is_valid(struct bide_text key, enum bide_key_form form)
{
    return key_check(key, form, NULL) == BIDE_OK;
}

enum bide_err bide_key_check(const char *key, enum bide_key_form form, struct bide_problem *problem)
{
    return key_check(text_from(key), form, problem);
}

/* ---- writing ---- */

/* Like snprintf, counts the characters that did not fit. */
struct key_writer {
    char *text;
    size_t size;
    size_t length;
};

static void key_put(struct key_writer *writer, char c)
{
    if (writer->length < writer->size)
        writer->text[writer->length] = c;
    writer->length++;
}

/* Returns the length if the text and its NUL fit; otherwise returns 0 and leaves an empty text. */
static size_t key_finish(struct key_writer *writer, bool is_valid)
{
    bool fits = is_valid && writer->length < writer->size;
    if (writer->size > 0)
        writer->text[fits ? writer->length : 0] = '\0';
    return fits ? writer->length : 0;
}

/* RFC 9651 section 4.1.6: only quote and backslash are escaped. */
static void key_put_quoted(struct key_writer *writer, struct bide_text key)
{
    key_put(writer, QUOTE);
    for (size_t i = 0; i < key.length; i++) {
        if (key.at[i] == QUOTE || key.at[i] == BACKSLASH)
            key_put(writer, BACKSLASH);
        key_put(writer, key.at[i]);
    }
    key_put(writer, QUOTE);
}

static void key_put_raw(struct key_writer *writer, struct bide_text key)
{
    for (size_t i = 0; i < key.length; i++)
        key_put(writer, key.at[i]);
}

size_t bide_key_format(char *text, size_t size, const char *key, enum bide_key_form form)
{
    struct key_writer writer = {text, size, 0};
    struct bide_text whole_key = text_from(key);
    bool is_valid = key_is_valid(whole_key, form);
    if (is_valid && form == BIDE_KEY_QUOTED)
        key_put_quoted(&writer, whole_key);
    else if (is_valid)
        key_put_raw(&writer, whole_key);
    return key_finish(&writer, is_valid);
}

/* ---- parsing ---- */

static bool value_take_byte(struct bide_text *rest, char c)
{
    if (rest->length == 0 || rest->at[0] != c)
        return false;
    *rest = http_text_from(*rest, 1);
    return true;
}

/* RFC 9651 section 4.2.5. Writes the unescaped characters. */
static bool value_take_string(struct bide_text *rest, struct key_writer *writer)
{
    if (!value_take_byte(rest, QUOTE))
        return false;
    while (!value_take_byte(rest, QUOTE)) {
        bool escaped = value_take_byte(rest, BACKSLASH);
        if (rest->length == 0 || !is_printable(rest->at[0]))
            return false;
        if (escaped && rest->at[0] != QUOTE && rest->at[0] != BACKSLASH)
            return false;
        key_put(writer, rest->at[0]);
        *rest = http_text_from(*rest, 1);
    }
    return true;
}

/* Takes leading characters of the set and returns their number. */
static size_t value_take_set(struct bide_text *rest, const char *set)
{
    size_t count = 0;
    while (count < rest->length && rest->at[count] != '\0' && strchr(set, rest->at[count]) != NULL)
        count++;
    *rest = http_text_from(*rest, count);
    return count;
}

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Skips a bare item. All types but strings are runs of these characters; a display string is a % and a string. */
static bool value_skip_item(struct bide_text *rest)
{
    struct key_writer discarded = {NULL, 0, 0};
    size_t run = value_take_set(rest, LOWER UPPER DIGITS "!#$%&'*+-.^_`|~:/=?@");
    bool display = run == 1 && rest->at[-1] == '%';
    return run > 0 && !display ? true : value_take_string(rest, &discarded);
}

/* RFC 9651 section 4.2.3.2. */
static bool value_skip_parameters(struct bide_text *rest)
{
    while (value_take_byte(rest, ';')) {
        value_take_set(rest, " ");
        if (rest->length == 0 || strchr(LOWER "*", rest->at[0]) == NULL ||
            value_take_set(rest, LOWER DIGITS "_-.*") == 0)
            return false;
        if (value_take_byte(rest, '=') && !value_skip_item(rest))
            return false;
    }
    return true;
}

static bool value_take_quoted_key(struct bide_text value, struct key_writer *writer)
{
    return value_take_string(&value, writer) && value_skip_parameters(&value) && value.length == 0;
}

bool bide_key_parse(struct bide_text value, enum bide_key_form form, char *key, size_t size)
{
    char parsed_key[BIDE_KEY_MAX + 1];
    struct key_writer parsed = {parsed_key, sizeof parsed_key, 0}, writer = {key, size, 0};
    struct bide_text trimmed = text_trim(value, TEXT_OWS);
    bool is_valid = true;
    if (form == BIDE_KEY_QUOTED)
        is_valid = value_take_quoted_key(trimmed, &parsed);
    else
        key_put_raw(&parsed, trimmed);
    struct bide_text whole_key = {parsed_key, parsed.length};
    /* key_is_valid rejects a length beyond the buffer before it reads a byte. */
    is_valid = is_valid && key_is_valid(whole_key, form);
    assert(!is_valid || parsed.length <= BIDE_KEY_MAX);
    if (is_valid)
        key_put_raw(&writer, whole_key);
    return key_finish(&writer, is_valid) > 0;
}
