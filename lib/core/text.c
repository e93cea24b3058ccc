/* text.c - parsing and writing short texts without libc. */
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

bool core_text_equals(struct bide_text text, const char *word)
{
    size_t i = 0;
    while (i < text.length && word[i] != '\0' && text.at[i] == word[i])
        i++;
    return i == text.length && word[i] == '\0';
}

int core_cursor_peek(const struct core_cursor *cursor)
{
    return cursor->left > 0 ? (unsigned char)*cursor->at : -1;
}

bool core_cursor_at_end(const struct core_cursor *cursor)
{
    return cursor->left == 0;
}

void core_cursor_skip(struct core_cursor *cursor)
{
    cursor->at++;
    cursor->left--;
}

bool core_parse_char(struct core_cursor *cursor, char c)
{
    if (core_cursor_peek(cursor) != (unsigned char)c)
        return false;
    core_cursor_skip(cursor);
    return true;
}

bool core_parse_word(struct core_cursor *cursor, const char *word)
{
    while (*word != '\0')
        if (!core_parse_char(cursor, *word++))
            return false;
    return true;
}

void core_parse_blanks(struct core_cursor *cursor)
{
    while (is_blank(core_cursor_peek(cursor)))
        core_cursor_skip(cursor);
}

int core_parse_one_of(struct core_cursor *cursor, const char *const *words, int count)
{
    for (int i = 0; i < count; i++) {
        struct core_cursor ahead = *cursor;
        if (core_parse_word(&ahead, words[i])) {
            *cursor = ahead;
            return i;
        }
    }
    return -1;
}

size_t core_parse_digits(struct core_cursor *cursor, int64_t *number)
{
    size_t count = 0;
    *number = 0;
    for (; core_is_digit(core_cursor_peek(cursor)); core_cursor_skip(cursor), count++)
        *number = core_sum(core_product(*number, 10), core_cursor_peek(cursor) - '0');
    return count;
}

bool core_parse_fraction(struct core_cursor *cursor, int64_t *up)
{
    *up = 0;
    if (!core_parse_char(cursor, '.'))
        return true;
    size_t digits = core_parse_digits(cursor, up);
    *up = *up > 0;
    return digits > 0;
}

struct core_cursor core_cursor_over(struct bide_text text)
{
    struct core_cursor cursor = {text.at, text.at == NULL ? 0 : text.length};
    core_parse_blanks(&cursor);
    while (cursor.left > 0 && is_blank(cursor.at[cursor.left - 1]))
        cursor.left--;
    return cursor;
}

static void write_char(struct core_writer *writer, char c)
{
    if (writer->length < writer->size) /* the last byte too: core_write_end puts the NUL there */
        writer->text[writer->length] = c;
    writer->length++;
}

void core_write_text(struct core_writer *writer, const char *words)
{
    while (*words != '\0')
        write_char(writer, *words++);
}

void core_write_number(struct core_writer *writer, int64_t number)
{
    char digits[20];
    size_t count = 0;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    if (number < 0)
        write_char(writer, '-');
    do
        digits[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    while (count > 0)
        write_char(writer, digits[--count]);
}

size_t core_write_end(struct core_writer *writer)
{
    if (writer->size > 0)
        writer->text[writer->length < writer->size ? writer->length : writer->size - 1] = '\0';
    return writer->length;
}
