/* field.c - structured fields of HTTP (RFC 9651): bare items and parameters, read strictly.
 *
 * The first character of an item tells its type (4.2.3.1), and one function reads each type. Strict means that whatever
 * the grammar does not allow makes the whole field malformed: a guess about a damaged field is worse than none.
 *
 * Known weakness: the bytes of a display string are not checked to be UTF-8, for nobody here looks at them. */
#include "field.h"

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_in(const char *set, int c)
{
    while (*set != '\0' && *set != c)
        set++;
    return *set != '\0';
}

static bool take_in(struct core_cursor *cursor, const char *set)
{
    if (!is_in(set, core_peek(cursor)))
        return false;
    core_skip(cursor);
    return true;
}

/* How many characters of the set stood here. */
static size_t take_all(struct core_cursor *cursor, const char *set)
{
    size_t before = cursor->left;
    while (take_in(cursor, set))
        continue;
    return before - cursor->left;
}

/* RFC 9651 4.2.4: at most 15 digits, or 12 before the point and 1 to 3 after it. */
static bool take_number(struct core_cursor *cursor, struct core_bare *bare)
{
    int64_t sign = core_take(cursor, '-') ? -1 : 1;
    size_t digits = core_take_digits(cursor, &bare->number);
    bare->number *= sign;
    if (!core_take(cursor, '.'))
        return digits >= 1 && digits <= 15;
    bare->type = CORE_DECIMAL;
    size_t places = take_all(cursor, DIGITS);
    return digits >= 1 && digits <= 12 && places >= 1 && places <= 3;
}

/* RFC 9651 4.2.5: printable ASCII; only the quote and the backslash may be escaped, and must be. */
static bool take_string(struct core_cursor *cursor, struct core_bare *bare)
{
    (void)bare;
    core_skip(cursor);
    while (!core_take(cursor, '"')) {
        int c = core_peek(cursor);
        if (c < 0x20 || c > 0x7e)
            return false;
        core_skip(cursor);
        if (c == '\\' && !take_in(cursor, "\"\\"))
            return false;
    }
    return true;
}

/* RFC 9651 4.2.6. */
static bool take_token(struct core_cursor *cursor, struct core_bare *bare)
{
    (void)bare;
    take_all(cursor, LOWER UPPER DIGITS "!#$%&'*+-.^_`|~:/");
    return true;
}

/* RFC 9651 4.2.7: base64. Missing padding and non-zero pad bits are accepted, as it says parsers should; padding that
 * is there must be right. */
static bool take_bytes(struct core_cursor *cursor, struct core_bare *bare)
{
    (void)bare;
    core_skip(cursor);
    size_t digits = take_all(cursor, LOWER UPPER DIGITS "+/");
    size_t padding = take_all(cursor, "=");
    return digits % 4 != 1 && (padding == 0 || padding == (0 - digits) % 4) && core_take(cursor, ':');
}

/* RFC 9651 4.2.8. */
static bool take_boolean(struct core_cursor *cursor, struct core_bare *bare)
{
    core_skip(cursor);
    bare->number = core_peek(cursor) == '1';
    return take_in(cursor, "01");
}

/* RFC 9651 4.2.9: an integer after the @, not a decimal. */
static bool take_date(struct core_cursor *cursor, struct core_bare *bare)
{
    struct core_bare number = {CORE_INTEGER, 0};
    (void)bare;
    core_skip(cursor);
    return take_number(cursor, &number) && number.type == CORE_INTEGER;
}

/* RFC 9651 4.2.10: a quoted string in which % and two lower-case hex digits stand for a byte. */
static bool take_display(struct core_cursor *cursor, struct core_bare *bare)
{
    (void)bare;
    if (!core_take_word(cursor, "%\""))
        return false;
    while (!core_take(cursor, '"')) {
        int c = core_peek(cursor);
        if (c < 0x20 || c > 0x7e)
            return false;
        core_skip(cursor);
        if (c == '%' && !(take_in(cursor, DIGITS "abcdef") && take_in(cursor, DIGITS "abcdef")))
            return false;
    }
    return true;
}

/* RFC 9651 4.2.3.1: what an item of each type begins with. A reader starts at that character. */
static const struct {
    enum core_type type;
    const char *begins;
    bool (*take)(struct core_cursor *cursor, struct core_bare *bare);
} types[] = {
    {CORE_INTEGER, DIGITS "-", take_number},   {CORE_STRING, "\"", take_string},
    {CORE_TOKEN, LOWER UPPER "*", take_token}, {CORE_BYTES, ":", take_bytes},
    {CORE_BOOLEAN, "?", take_boolean},         {CORE_DATE, "@", take_date},
    {CORE_DISPLAY, "%", take_display},
};

bool core_take_bare(struct core_cursor *cursor, struct core_bare *bare)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!is_in(types[i].begins, core_peek(cursor)))
            continue;
        *bare = (struct core_bare){types[i].type, 0};
        return types[i].take(cursor, bare);
    }
    return false;
}

/* RFC 9651 4.2.3.3. */
static bool take_key(struct core_cursor *cursor, struct bide_text *key)
{
    key->at = cursor->at;
    if (!take_in(cursor, LOWER "*"))
        return false;
    key->length = 1 + take_all(cursor, LOWER DIGITS "_-.*");
    return true;
}

/* RFC 9651 4.2.3.2. A key without a value is true. */
bool core_take_parameters(struct core_cursor *cursor, const char *const *keys, size_t count, struct core_bare *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (struct core_bare){CORE_ABSENT, 0};
    while (core_take(cursor, ';')) {
        struct bide_text key;
        struct core_bare value = {CORE_BOOLEAN, 1};
        take_all(cursor, " ");
        if (!take_key(cursor, &key) || (core_take(cursor, '=') && !core_take_bare(cursor, &value)))
            return false;
        for (size_t i = 0; i < count; i++)
            if (core_same(key, keys[i]))
                values[i] = value;
    }
    return true;
}

bool core_is_count(const struct core_bare *bare, int64_t least)
{
    return bare->type == CORE_INTEGER && bare->number >= least;
}

bool core_may_be_count(const struct core_bare *bare, int64_t least)
{
    return bare->type == CORE_ABSENT || core_is_count(bare, least);
}

bool core_may_be(const struct core_bare *bare, enum core_type type)
{
    return bare->type == CORE_ABSENT || bare->type == type;
}
