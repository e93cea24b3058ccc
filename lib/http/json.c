/* json.c - JSON (RFC 8259) read where it lies: see json.h.
 *
 * Each take_ function reads one thing from the front of what is left and says whether it was there; after a false the
 * reader gives up. Values are checked and stepped over, not stored, so the only cost of a nested one is the stack, and
 * that is bounded by HTTP_JSON_DEPTH.
 *
 * Why not jansson, which writes our bodies: its reader (2.14, akheron/jansson#362) loses characters or reads beyond its
 * buffer when memory runs out, takes eighty times the length of a body in memory, and knows numbers only as doubles.
 *
 * Known weakness: a member that is named twice is not noticed here; who cares for a name counts it. */
#include "json.h"

#include "core/saturate.h"
#include "text/utf8.h"
#include "value.h"

#include <string.h>

/* ---- pieces ---- */

/* The next byte, 0 to 255, or -1 at the end. */
static int peek(const struct bide_text *rest)
{
    return rest->length > 0 ? (unsigned char)rest->at[0] : -1;
}

static void skip(struct bide_text *rest)
{
    *rest = http_from(*rest, 1);
}

static bool take(struct bide_text *rest, char c)
{
    if (peek(rest) != (unsigned char)c)
        return false;
    skip(rest);
    return true;
}

static bool take_word(struct bide_text *rest, const char *word)
{
    while (*word != '\0')
        if (!take(rest, *word++))
            return false;
    return true;
}

static void take_blanks(struct bide_text *rest)
{
    while (take(rest, ' ') || take(rest, '\t') || take(rest, '\n') || take(rest, '\r'))
        continue;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static size_t take_digits(struct bide_text *rest)
{
    size_t before = rest->length;
    while (is_digit(peek(rest)))
        skip(rest);
    return before - rest->length;
}

/* From where it stood before to where it stands now. */
static struct bide_text between(struct bide_text before, struct bide_text now)
{
    return (struct bide_text){before.at, before.length - now.length};
}

/* ---- strings ---- */

/* A character that stands for itself. */
static bool take_plain(struct bide_text *rest)
{
    size_t length = text_utf8_length(rest->at, rest->length);
    if (length == 0 || peek(rest) < 0x20 || peek(rest) == '\\')
        return false;
    *rest = http_from(*rest, length);
    return true;
}

static bool take_hex(struct bide_text *rest, uint32_t *code)
{
    static const char digits[] = "0123456789abcdef";
    *code = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = peek(rest) > 0 ? strchr(digits, http_lower((char)peek(rest))) : NULL;
        if (digit == NULL)
            return false;
        *code = *code << 4 | (uint32_t)(digit - digits);
        skip(rest);
    }
    return true;
}

/* What follows \u: a code point, or the two halves of one (RFC 8259 7). */
static bool take_code(struct bide_text *rest, uint32_t *code)
{
    uint32_t low;
    if (!take_hex(rest, code) || (*code >= 0xdc00 && *code <= 0xdfff))
        return false;
    if (*code < 0xd800 || *code > 0xdbff)
        return true;
    if (!take_word(rest, "\\u") || !take_hex(rest, &low) || low < 0xdc00 || low > 0xdfff)
        return false;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static bool take_escape(struct bide_text *rest, uint32_t *code)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (!take(rest, '\\'))
        return false;
    if (take(rest, 'u'))
        return take_code(rest, code);
    const char *name = peek(rest) > 0 ? strchr(names, peek(rest)) : NULL;
    if (name == NULL)
        return false;
    *code = (unsigned char)meant[name - names];
    skip(rest);
    return true;
}

static bool take_string(struct bide_text *rest)
{
    uint32_t code;
    if (!take(rest, '"'))
        return false;
    while (!take(rest, '"'))
        if (!(peek(rest) == '\\' ? take_escape(rest, &code) : take_plain(rest)))
            return false;
    return true;
}

static size_t encode(uint32_t code, char bytes[4])
{
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = count - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(marks[count] | code);
    return count;
}

/* The string was checked when it was read. */
bool http_json_string(struct bide_text quoted, char *text, size_t size, size_t *length)
{
    *length = 0;
    if (!take(&quoted, '"'))
        return false;
    while (!take(&quoted, '"')) {
        char bytes[4] = {quoted.at[0]};
        size_t count = 1;
        uint32_t code;
        if (take_escape(&quoted, &code))
            count = encode(code, bytes);
        else
            skip(&quoted);
        if (size - *length <= count) /* the NUL needs a place too */
            return false;
        memcpy(text + *length, bytes, count);
        *length += count;
    }
    text[*length] = '\0';
    return true;
}

/* ---- numbers ---- */

struct number {
    bool negative;
    struct bide_text whole; /* digits before the point, */
    struct bide_text part;  /* and after it */
    int64_t exponent;
};

#define EXPONENT_MAX INT64_C(1000000000) /* beyond it every number is 0 or too large: a body has fewer digits */

static bool take_exponent(struct bide_text *rest, int64_t *exponent)
{
    *exponent = 0;
    if (!take(rest, 'e') && !take(rest, 'E'))
        return true;
    bool negative = take(rest, '-');
    if (!negative)
        (void)take(rest, '+');
    if (!is_digit(peek(rest)))
        return false;
    for (; is_digit(peek(rest)); skip(rest))
        *exponent = core_min(*exponent * 10 + peek(rest) - '0', EXPONENT_MAX);
    *exponent = negative ? -*exponent : *exponent;
    return true;
}

/* RFC 8259 6. */
static bool take_number(struct bide_text *rest, struct number *number)
{
    number->negative = take(rest, '-');
    struct bide_text before = *rest;
    if (!take(rest, '0') && take_digits(rest) == 0)
        return false;
    number->whole = between(before, *rest);
    bool point = take(rest, '.');
    before = *rest;
    if (point && take_digits(rest) == 0)
        return false;
    number->part = between(before, *rest);
    return take_exponent(rest, &number->exponent);
}

/* Reads digits into *number as long as *places of them count, and the others into *exact. */
static void scale(struct bide_text digits, int64_t *places, int64_t *number, bool *exact)
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
    struct number n;
    *number = 0;
    *exact = true;
    if (!take_number(&value, &n))
        return false;
    int64_t left = (int64_t)n.whole.length + n.exponent + places; /* digits that are before the point at last */
    scale(n.whole, &left, number, exact);
    scale(n.part, &left, number, exact);
    for (; left > 0 && *number > 0 && *number < BIDE_NEVER; left--)
        *number = core_product(*number, 10);
    bool zero = *number == 0 && *exact;
    *number = core_sum(*number, !*exact);
    return !n.negative || zero;
}

/* ---- values ---- */

static bool take_value(struct bide_text *rest, unsigned depth);

/* "name": value */
static bool take_member(struct bide_text *rest, unsigned depth, struct http_json_member *member)
{
    struct bide_text before = *rest;
    if (!take_string(rest))
        return false;
    member->name = between(before, *rest);
    take_blanks(rest);
    if (!take(rest, ':'))
        return false;
    take_blanks(rest);
    before = *rest;
    if (!take_value(rest, depth))
        return false;
    member->value = between(before, *rest);
    return true;
}

/* The inside of an object or array, up to its closing bracket. */
static bool take_inside(struct bide_text *rest, unsigned depth, char close)
{
    struct http_json_member member;
    take_blanks(rest);
    if (take(rest, close))
        return true;
    do {
        take_blanks(rest);
        if (!(close == '}' ? take_member(rest, depth, &member) : take_value(rest, depth)))
            return false;
        take_blanks(rest);
    } while (take(rest, ','));
    return take(rest, close);
}

/* Inside `depth` others. */
static bool take_value(struct bide_text *rest, unsigned depth)
{
    struct number number;
    switch (peek(rest)) {
    case '"': return take_string(rest);
    case 't': return take_word(rest, "true");
    case 'f': return take_word(rest, "false");
    case 'n': return take_word(rest, "null");
    case '{': skip(rest); return depth < HTTP_JSON_DEPTH && take_inside(rest, depth + 1, '}');
    case '[': skip(rest); return depth < HTTP_JSON_DEPTH && take_inside(rest, depth + 1, ']');
    default: return take_number(rest, &number);
    }
}

/* ---- members ---- */

struct http_json http_json_open(struct bide_text text)
{
    struct http_json json = {.rest = text.at != NULL ? text : (struct bide_text){"", 0}};
    take_blanks(&json.rest);
    json.open = take(&json.rest, '{');
    return json;
}

/* What stands here is the end of the object, and only blanks follow. */
static bool is_end(struct http_json *json)
{
    if (!take(&json->rest, '}'))
        return false;
    take_blanks(&json->rest);
    json->whole = json->rest.length == 0;
    return true;
}

bool http_json_next(struct http_json *json, struct http_json_member *member)
{
    take_blanks(&json->rest);
    if (!json->open || is_end(json) || (json->begun && !take(&json->rest, ','))) {
        json->open = false;
        return false;
    }
    take_blanks(&json->rest);
    json->begun = true;
    json->open = take_member(&json->rest, 1, member);
    return json->open;
}

bool http_json_is_whole(const struct http_json *json)
{
    return json->whole;
}
