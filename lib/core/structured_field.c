/* structured_field.c - structured fields of HTTP (RFC 9651): bare items and parameters, parsed strictly.
 *
 * The first character of an item determines its type (4.2.3.1), and one function parses each type. Strict means that
 * anything outside the grammar makes the whole field malformed: a guess about a damaged field is worse than no value.
 *
 * Known weakness: the bytes of a display string are not checked to be UTF-8, because bide never uses them. */
#include "structured_field.h"

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool char_is_in(const char *set, int c)
{
    while (*set != '\0' && *set != c)
        set++;
    return *set != '\0';
}

static bool parse_char_in(struct core_cursor *cursor, const char *set)
{
    if (!char_is_in(set, core_cursor_peek(cursor)))
        return false;
    core_cursor_skip(cursor);
    return true;
}

/* Skips characters of the set; returns how many there were. */
static size_t parse_chars_in(struct core_cursor *cursor, const char *set)
{
    size_t before = cursor->left;
    while (parse_char_in(cursor, set))
        continue;
    return before - cursor->left;
}

/* RFC 9651 4.2.4: at most 15 digits, or 12 before the point and 1 to 3 after it. */
static bool parse_number(struct core_cursor *cursor, struct core_item *item)
{
    int64_t sign = core_parse_char(cursor, '-') ? -1 : 1;
    size_t digits = core_parse_digits(cursor, &item->number);
    item->number *= sign;
    if (!core_parse_char(cursor, '.'))
        return digits >= 1 && digits <= 15;
    item->type = CORE_ITEM_DECIMAL;
    size_t places = parse_chars_in(cursor, DIGITS);
    return digits >= 1 && digits <= 12 && places >= 1 && places <= 3;
}

/* RFC 9651 4.2.5: printable ASCII; only the quote and the backslash may be escaped, and must be. */
static bool parse_string(struct core_cursor *cursor, struct core_item *item)
{
    (void)item;
    core_cursor_skip(cursor);
    while (!core_parse_char(cursor, '"')) {
        int c = core_cursor_peek(cursor);
        if (c < 0x20 || c > 0x7e)
            return false;
        core_cursor_skip(cursor);
        if (c == '\\' && !parse_char_in(cursor, "\"\\"))
            return false;
    }
    return true;
}

/* RFC 9651 4.2.6. */
static bool parse_token(struct core_cursor *cursor, struct core_item *item)
{
    (void)item;
    parse_chars_in(cursor, LOWER UPPER DIGITS "!#$%&'*+-.^_`|~:/");
    return true;
}

/* RFC 9651 4.2.7: base64. Missing padding and non-zero pad bits are accepted, as the RFC says parsers should; padding
 * that is present must be correct. */
static bool parse_bytes(struct core_cursor *cursor, struct core_item *item)
{
    (void)item;
    core_cursor_skip(cursor);
    size_t digits = parse_chars_in(cursor, LOWER UPPER DIGITS "+/");
    size_t padding = parse_chars_in(cursor, "=");
    return digits % 4 != 1 && (padding == 0 || padding == (0 - digits) % 4) && core_parse_char(cursor, ':');
}

/* RFC 9651 4.2.8. */
static bool parse_boolean(struct core_cursor *cursor, struct core_item *item)
{
    core_cursor_skip(cursor);
    item->number = core_cursor_peek(cursor) == '1';
    return parse_char_in(cursor, "01");
}

/* RFC 9651 4.2.9: an integer after the @, not a decimal. */
static bool parse_date(struct core_cursor *cursor, struct core_item *item)
{
    struct core_item number = {CORE_ITEM_INTEGER, 0};
    (void)item;
    core_cursor_skip(cursor);
    return parse_number(cursor, &number) && number.type == CORE_ITEM_INTEGER;
}

static bool parse_hex_pair(struct core_cursor *cursor)
{
    return parse_char_in(cursor, DIGITS "abcdef") && parse_char_in(cursor, DIGITS "abcdef");
}

/* RFC 9651 4.2.10: a quoted string in which % and two lower-case hex digits stand for a byte. */
static bool parse_display(struct core_cursor *cursor, struct core_item *item)
{
    (void)item;
    if (!core_parse_word(cursor, "%\""))
        return false;
    while (!core_parse_char(cursor, '"')) {
        int c = core_cursor_peek(cursor);
        if (c < 0x20 || c > 0x7e)
            return false;
        core_cursor_skip(cursor);
        if (c == '%' && !parse_hex_pair(cursor))
            return false;
    }
    return true;
}

/* RFC 9651 4.2.3.1: the characters that begin an item of each type. Its parser starts at that character. */
static const struct {
    enum core_item_type type;
    const char *first_chars;
    bool (*parse)(struct core_cursor *cursor, struct core_item *item);
} types[] = {
    {CORE_ITEM_INTEGER, DIGITS "-", parse_number},   {CORE_ITEM_STRING, "\"", parse_string},
    {CORE_ITEM_TOKEN, LOWER UPPER "*", parse_token}, {CORE_ITEM_BYTES, ":", parse_bytes},
    {CORE_ITEM_BOOLEAN, "?", parse_boolean},         {CORE_ITEM_DATE, "@", parse_date},
    {CORE_ITEM_DISPLAY, "%", parse_display},
};

bool core_parse_item(struct core_cursor *cursor, struct core_item *item)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!char_is_in(types[i].first_chars, core_cursor_peek(cursor)))
            continue;
        *item = (struct core_item){types[i].type, 0};
        return types[i].parse(cursor, item);
    }
    return false;
}

/* RFC 9651 4.2.3.3. */
static bool parse_key(struct core_cursor *cursor, struct bide_text *key)
{
    key->at = cursor->at;
    if (!parse_char_in(cursor, LOWER "*"))
        return false;
    key->length = 1 + parse_chars_in(cursor, LOWER DIGITS "_-.*");
    return true;
}

/* RFC 9651 4.2.3.2. A key without a value is true. */
bool core_parse_parameters(struct core_cursor *cursor, const char *const *keys, size_t count, struct core_item *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (struct core_item){CORE_ITEM_ABSENT, 0};
    while (core_parse_char(cursor, ';')) {
        struct bide_text key;
        struct core_item value = {CORE_ITEM_BOOLEAN, 1};
        parse_chars_in(cursor, " ");
        if (!parse_key(cursor, &key) || (core_parse_char(cursor, '=') && !core_parse_item(cursor, &value)))
            return false;
        for (size_t i = 0; i < count; i++)
            if (core_text_equals(key, keys[i]))
                values[i] = value;
    }
    return true;
}

bool core_item_is_count(const struct core_item *item, int64_t least)
{
    return item->type == CORE_ITEM_INTEGER && item->number >= least;
}

bool core_item_is_optional_count(const struct core_item *item, int64_t least)
{
    return item->type == CORE_ITEM_ABSENT || core_item_is_count(item, least);
}

bool core_item_is_optional(const struct core_item *item, enum core_item_type type)
{
    return item->type == CORE_ITEM_ABSENT || item->type == type;
}
