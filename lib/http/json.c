/* json.c - a strict JSON (RFC 8259) parser that works in place: see json.h.
 *
 * Each json_take_ function consumes an element at the front of the remaining text. It returns false if the element is
 * not there; where the grammar requires the element, the text is then rejected. Values are validated and skipped, not
 * stored, so a nested value costs nothing but stack, bounded by HTTP_JSON_DEPTH.
 *
 * Why not jansson's parser (2.14): it loses characters or reads beyond its buffer when memory runs out
 * (akheron/jansson#362), needs eighty times the length of a body in memory, and knows numbers only as doubles.
 *
 * Known weakness: a duplicate member is not detected here; the caller must count the members it needs. */
#include "json.h"

#include "core/saturate.h"
#include "text/utf8.h"
#include "value.h"

#include <assert.h>
#include <string.h>

/* ---- bytes ---- */

/* Returns the next byte, 0 to 255, or -1 at the end. */
static int json_next_byte(const struct bide_text *rest)
{
    return rest->length > 0 ? (unsigned char)rest->at[0] : -1;
}

static void json_skip_byte(struct bide_text *rest)
{
    *rest = http_text_from(*rest, 1);
}

static bool json_take_byte(struct bide_text *rest, char c)
{
    if (json_next_byte(rest) != (unsigned char)c)
        return false;
    json_skip_byte(rest);
    return true;
}

static bool json_take_literal(struct bide_text *rest, const char *word)
{
    while (*word != '\0')
        if (!json_take_byte(rest, *word++))
            return false;
    return true;
}

static void json_take_whitespace(struct bide_text *rest)
{
    while (json_take_byte(rest, ' ') || json_take_byte(rest, '\t') || json_take_byte(rest, '\n') ||
           json_take_byte(rest, '\r'))
        continue;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static size_t json_take_digits(struct bide_text *rest)
{
    size_t before = rest->length;
    while (is_digit(json_next_byte(rest)))
        json_skip_byte(rest);
    return before - rest->length;
}

/* Returns the text that was consumed between two positions. */
static struct bide_text text_between(struct bide_text before, struct bide_text now)
{
    assert(now.length <= before.length && now.at == before.at + (before.length - now.length));
    return (struct bide_text){before.at, before.length - now.length};
}

/* ---- strings ---- */

/* Takes an unescaped character. */
static bool json_take_character(struct bide_text *rest)
{
    size_t length = text_utf8_length(rest->at, rest->length);
    if (length == 0 || json_next_byte(rest) < 0x20 || json_next_byte(rest) == '\\')
        return false;
    *rest = http_text_from(*rest, length);
    return true;
}

static bool json_take_four_hex_digits(struct bide_text *rest, uint32_t *code)
{
    static const char digits[] = "0123456789abcdef";
    *code = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = json_next_byte(rest) > 0 ? strchr(digits, http_lower((char)json_next_byte(rest))) : NULL;
        if (digit == NULL)
            return false;
        *code = *code << 4 | (uint32_t)(digit - digits);
        json_skip_byte(rest);
    }
    return true;
}

/* Takes the digits after \u: a code point, or the two halves of a surrogate pair (RFC 8259 section 7). */
static bool json_take_code_point(struct bide_text *rest, uint32_t *code)
{
    uint32_t low;
    if (!json_take_four_hex_digits(rest, code) || (*code >= 0xdc00 && *code <= 0xdfff))
        return false;
    if (*code < 0xd800 || *code > 0xdbff)
        return true;
    if (!json_take_literal(rest, "\\u") || !json_take_four_hex_digits(rest, &low) || low < 0xdc00 || low > 0xdfff)
        return false;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static bool json_take_escape(struct bide_text *rest, uint32_t *code)
{
    static const char escape_letters[] = "\"\\/bfnrt", decoded[] = "\"\\/\b\f\n\r\t";
    if (!json_take_byte(rest, '\\'))
        return false;
    if (json_take_byte(rest, 'u'))
        return json_take_code_point(rest, code);
    const char *letter = json_next_byte(rest) > 0 ? strchr(escape_letters, json_next_byte(rest)) : NULL;
    if (letter == NULL)
        return false;
    *code = (unsigned char)decoded[letter - escape_letters];
    json_skip_byte(rest);
    return true;
}

static bool json_take_string(struct bide_text *rest)
{
    uint32_t code;
    if (!json_take_byte(rest, '"'))
        return false;
    while (!json_take_byte(rest, '"'))
        if (!(json_next_byte(rest) == '\\' ? json_take_escape(rest, &code) : json_take_character(rest)))
            return false;
    return true;
}

static size_t encode_utf_8(uint32_t code, char bytes[4])
{
    static const unsigned char lead_marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    assert(code <= 0x10ffff && (code < 0xd800 || code > 0xdfff));
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = count - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(lead_marks[count] | code);
    return count;
}

/* The string was validated when its member was read, so its closing quote is found. */
bool http_json_string(struct bide_text quoted, char *text, size_t size, size_t *length)
{
    assert(size > 0);
    *length = 0;
    if (!json_take_byte(&quoted, '"'))
        return false;
    while (!json_take_byte(&quoted, '"')) {
        assert(quoted.length > 0);
        char bytes[4] = {quoted.at[0]};
        size_t count = 1;
        uint32_t code;
        if (json_take_escape(&quoted, &code))
            count = encode_utf_8(code, bytes);
        else
            json_skip_byte(&quoted);
        if (size - *length <= count) /* leave room for the NUL */
            return false;
        memcpy(text + *length, bytes, count);
        *length += count;
    }
    text[*length] = '\0';
    return true;
}

/* ---- numbers ---- */

struct json_number {
    bool negative;
    struct bide_text integer;  /* the digits before the decimal point */
    struct bide_text fraction; /* the digits after it */
    int64_t exponent;
};

#define EXPONENT_MAX INT64_C(1000000000) /* beyond it every number is 0 or too large, because a body has fewer digits */

static bool json_take_exponent(struct bide_text *rest, int64_t *exponent)
{
    *exponent = 0;
    if (!json_take_byte(rest, 'e') && !json_take_byte(rest, 'E'))
        return true;
    bool negative = json_take_byte(rest, '-');
    if (!negative)
        (void)json_take_byte(rest, '+');
    if (!is_digit(json_next_byte(rest)))
        return false;
    for (; is_digit(json_next_byte(rest)); json_skip_byte(rest))
        *exponent = core_min(*exponent * 10 + json_next_byte(rest) - '0', EXPONENT_MAX);
    *exponent = negative ? -*exponent : *exponent;
    return true;
}

/* RFC 8259 section 6. */
static bool json_take_number(struct bide_text *rest, struct json_number *number)
{
    number->negative = json_take_byte(rest, '-');
    struct bide_text before = *rest;
    if (!json_take_byte(rest, '0') && json_take_digits(rest) == 0)
        return false;
    number->integer = text_between(before, *rest);
    bool point = json_take_byte(rest, '.');
    before = *rest;
    if (point && json_take_digits(rest) == 0)
        return false;
    number->fraction = text_between(before, *rest);
    return json_take_exponent(rest, &number->exponent);
}

/* Appends the first *places digits to *number; a non-zero digit after them clears *exact. */
static void scale_digits(struct bide_text digits, int64_t *places, int64_t *number, bool *exact)
{
    for (size_t i = 0; i < digits.length; i++, (*places)--) {
        if (*places > 0)
            *number = core_sum(core_product(*number, 10), digits.at[i] - '0');
        else if (digits.at[i] != '0')
            *exact = false;
    }
}

bool http_json_scaled(struct bide_text value, int places, int64_t *number, bool *exact)
{
    struct json_number n;
    *number = 0;
    *exact = true;
    if (!json_take_number(&value, &n))
        return false;
    /* The number of digits before the decimal point after scaling. */
    int64_t integer_digits = (int64_t)n.integer.length + n.exponent + places;
    scale_digits(n.integer, &integer_digits, number, exact);
    scale_digits(n.fraction, &integer_digits, number, exact);
    for (; integer_digits > 0 && *number > 0 && *number < BIDE_NEVER; integer_digits--)
        *number = core_product(*number, 10);
    assert(*number >= 0);
    bool zero = *number == 0 && *exact;
    *number = core_sum(*number, !*exact);
    return !n.negative || zero;
}

/* ---- values ---- */

static bool json_take_value(struct bide_text *rest, unsigned depth);

/* "name": value */
static bool json_take_member(struct bide_text *rest, unsigned depth, struct http_json_member *member)
{
    struct bide_text before = *rest;
    if (!json_take_string(rest))
        return false;
    member->name = text_between(before, *rest);
    json_take_whitespace(rest);
    if (!json_take_byte(rest, ':'))
        return false;
    json_take_whitespace(rest);
    before = *rest;
    if (!json_take_value(rest, depth))
        return false;
    member->value = text_between(before, *rest);
    return true;
}

/* Takes the inside of an object or array, and its closing bracket. */
static bool json_take_contents(struct bide_text *rest, unsigned depth, char close)
{
    struct http_json_member member;
    assert(depth <= HTTP_JSON_DEPTH);
    json_take_whitespace(rest);
    if (json_take_byte(rest, close))
        return true;
    do {
        json_take_whitespace(rest);
        if (!(close == '}' ? json_take_member(rest, depth, &member) : json_take_value(rest, depth)))
            return false;
        json_take_whitespace(rest);
    } while (json_take_byte(rest, ','));
    return json_take_byte(rest, close);
}

/* depth: the number of enclosing objects and arrays. */
static bool json_take_value(struct bide_text *rest, unsigned depth)
{
    struct json_number number;
    switch (json_next_byte(rest)) {
    case '"': return json_take_string(rest);
    case 't': return json_take_literal(rest, "true");
    case 'f': return json_take_literal(rest, "false");
    case 'n': return json_take_literal(rest, "null");
    case '{': json_skip_byte(rest); return depth < HTTP_JSON_DEPTH && json_take_contents(rest, depth + 1, '}');
    case '[': json_skip_byte(rest); return depth < HTTP_JSON_DEPTH && json_take_contents(rest, depth + 1, ']');
    default: return json_take_number(rest, &number);
    }
}

/* ---- members ---- */

static struct http_json json_open(struct bide_text text, char open, char close)
{
    struct http_json json = {.rest = text.at != NULL ? text : (struct bide_text){"", 0}, .close = close};
    json_take_whitespace(&json.rest);
    json.open = json_take_byte(&json.rest, open);
    return json;
}

struct http_json http_json_open(struct bide_text text)
{
    return json_open(text, '{', '}');
}

struct http_json http_json_open_array(struct bide_text text)
{
    return json_open(text, '[', ']');
}

/* Takes the end of the object or array and checks that only whitespace follows. */
static bool json_take_end(struct http_json *json)
{
    if (!json_take_byte(&json->rest, json->close))
        return false;
    json_take_whitespace(&json->rest);
    json->complete = json->rest.length == 0;
    return true;
}

static bool json_take_element(struct bide_text *rest, struct http_json_member *element)
{
    struct bide_text before = *rest;
    *element = (struct http_json_member){.name = {NULL, 0}};
    if (!json_take_value(rest, 1))
        return false;
    element->value = text_between(before, *rest);
    return true;
}

bool http_json_next(struct http_json *json, struct http_json_member *member)
{
    json_take_whitespace(&json->rest);
    if (!json->open || json_take_end(json) || (json->has_member && !json_take_byte(&json->rest, ','))) {
        json->open = false;
        return false;
    }
    json_take_whitespace(&json->rest);
    json->has_member = true;
    json->open = json->close == '}' ? json_take_member(&json->rest, 1, member) : json_take_element(&json->rest, member);
    return json->open;
}

bool http_json_is_complete(const struct http_json *json)
{
    return json->complete;
}
