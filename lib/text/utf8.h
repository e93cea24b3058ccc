/* utf8.h - well-formed UTF-8 (RFC 3629 section 4). Pure. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H

#include <bide/hint.h>

#include <assert.h>
#include <stdint.h>

/* Returns the length of a character by its first two bytes. The second byte's range depends on the first: that is what
 * excludes overlong forms (e0, f0), surrogates (ed) and code points above U+10FFFF (f4). */
static inline size_t text_utf8_length_by_form(const uint8_t *byte, size_t length)
{
    static const struct {
        uint8_t first_min, first_max;
        uint8_t second_min, second_max;
        uint8_t length;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (byte[0] >= forms[i].first_min && byte[0] <= forms[i].first_max)
            return length >= forms[i].length && byte[1] >= forms[i].second_min && byte[1] <= forms[i].second_max
                       ? forms[i].length
                       : 0;
    return 0;
}

/* Returns the length in bytes, 1 to 4, of the character at the front of the text, or 0 if the text is empty or does not
 * begin with a well-formed character. Overlong forms, surrogates, code points above U+10FFFF and characters cut off by
 * the end of the text are not well-formed. Inline, so that the other libraries can use it. */
static inline size_t text_utf8_length(const char *text, size_t length)
{
    const uint8_t *byte = (const uint8_t *)text;
    if (length == 0)
        return 0;
    if (byte[0] < 0x80)
        return 1;
    size_t n = text_utf8_length_by_form(byte, length);
    for (size_t i = 2; i < n; i++)
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    assert(n <= 4 && n <= length);
    return n;
}

/* Returns whether the whole text is well-formed. */
bool text_utf8_is_valid(const char *text, size_t length);

/* The same, and 0 for what must not reach a terminal: C0 and C1 control characters and DEL. */
size_t text_utf8_printable(const char *text, size_t length);

/* Returns the number of characters. Each byte that begins none counts as one. */
size_t text_utf8_count(const char *text, size_t length);

/* Returns the length in bytes of the first `most` characters, counted in the same way. */
size_t text_utf8_prefix(const char *text, size_t length, size_t most);

/* Returns the text without the byte order mark at its front, if it has one. */
struct bide_text text_utf8_skip_mark(struct bide_text text);

#endif
