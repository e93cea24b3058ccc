/* text.c - reading and writing short texts without libc. */
#include "text.h"

#include "saturate.h"

bool core_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t';
}

bool core_same(struct bide_text text, const char *word)
{
    size_t i = 0;
    while (i < text.length && word[i] != '\0' && text.at[i] == word[i])
        i++;
    return i == text.length && word[i] == '\0';
}

int core_peek(const struct core_cursor *cursor)
{
    return cursor->left > 0 ? (unsigned char)*cursor->at : -1;
}

bool core_at_end(const struct core_cursor *cursor)
{
    return cursor->left == 0;
}

void core_skip(struct core_cursor *cursor)
{
    cursor->at++;
    cursor->left--;
}

bool core_take(struct core_cursor *cursor, char c)
{
    if (core_peek(cursor) != (unsigned char)c)
        return false;
    core_skip(cursor);
    return true;
}

bool core_take_word(struct core_cursor *cursor, const char *word)
{
    while (*word != '\0')
        if (!core_take(cursor, *word++))
            return false;
    return true;
}

void core_take_blanks(struct core_cursor *cursor)
{
    while (is_blank(core_peek(cursor)))
        core_skip(cursor);
}

int core_take_one_of(struct core_cursor *cursor, const char *const *words, int count)
{
    for (int i = 0; i < count; i++) {
        struct core_cursor ahead = *cursor;
        if (core_take_word(&ahead, words[i])) {
            *cursor = ahead;
            return i;
        }
    }
    return -1;
}

size_t core_take_digits(struct core_cursor *cursor, int64_t *number)
{
    size_t count = 0;
    *number = 0;
    for (; core_is_digit(core_peek(cursor)); core_skip(cursor), count++)
        *number = core_sum(core_product(*number, 10), core_peek(cursor) - '0');
    return count;
}

bool core_take_fraction(struct core_cursor *cursor, int64_t *up)
{
    *up = 0;
    if (!core_take(cursor, '.'))
        return true;
    size_t digits = core_take_digits(cursor, up);
    *up = *up > 0;
    return digits > 0;
}

struct core_cursor core_read(struct bide_text text)
{
    struct core_cursor cursor = {text.at, text.at == NULL ? 0 : text.length};
    core_take_blanks(&cursor);
    while (cursor.left > 0 && is_blank(cursor.at[cursor.left - 1]))
        cursor.left--;
    return cursor;
}

static void put_char(struct core_pen *pen, char c)
{
    if (pen->length < pen->size) /* the last place too: core_put_end ends the text there */
        pen->text[pen->length] = c;
    pen->length++;
}

void core_put(struct core_pen *pen, const char *words)
{
    while (*words != '\0')
        put_char(pen, *words++);
}

void core_put_number(struct core_pen *pen, int64_t number)
{
    char digits[20];
    size_t count = 0;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    if (number < 0)
        put_char(pen, '-');
    do
        digits[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    while (count > 0)
        put_char(pen, digits[--count]);
}

size_t core_put_end(struct core_pen *pen)
{
    if (pen->size > 0)
        pen->text[pen->length < pen->size ? pen->length : pen->size - 1] = '\0';
    return pen->length;
}
