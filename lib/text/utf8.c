/* utf8.c - the table of RFC 3629 section 4. */
#include "utf8.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* The second byte's range depends on the first: that is what excludes overlong forms (e0, f0), surrogates (ed) and code
 * points above U+10FFFF (f4). */
static const struct {
    uint8_t first_min, first_max;
    uint8_t second_min, second_max;
    uint8_t length;
} forms[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
    {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static size_t length_by_form(const uint8_t *byte, size_t length)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (byte[0] >= forms[i].first_min && byte[0] <= forms[i].first_max)
            return length >= forms[i].length && byte[1] >= forms[i].second_min && byte[1] <= forms[i].second_max
                       ? forms[i].length
                       : 0;
    return 0;
}

size_t text_utf8_length(const char *text, size_t length)
{
    const uint8_t *byte = (const uint8_t *)text;
    if (length == 0)
        return 0;
    if (byte[0] < 0x80)
        return 1;
    size_t n = length_by_form(byte, length);
    for (size_t i = 2; i < n; i++)
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    assert(n <= 4 && n <= length);
    return n;
}

bool text_utf8_is_valid(const char *text, size_t length)
{
    while (length > 0) {
        size_t n = text_utf8_length(text, length);
        if (n == 0)
            return false;
        text += n;
        length -= n;
    }
    return true;
}

size_t text_utf8_printable(const char *text, size_t length)
{
    size_t n = text_utf8_length(text, length);
    const uint8_t *byte = (const uint8_t *)text;
    bool control = (n == 1 && (byte[0] < ' ' || byte[0] == 0x7f)) || (n == 2 && byte[0] == 0xc2 && byte[1] < 0xa0);
    return control ? 0 : n;
}

size_t text_utf8_prefix(const char *text, size_t length, size_t most)
{
    size_t at = 0;
    for (; at < length && most > 0; most--) {
        size_t n = text_utf8_length(text + at, length - at);
        at += n > 0 ? n : 1;
    }
    assert(at <= length);
    return at;
}

size_t text_utf8_count(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t at = 0; at < length; count++)
        at += text_utf8_prefix(text + at, length - at, 1);
    return count;
}

struct bide_text text_utf8_skip_mark(struct bide_text text)
{
    if (text.length < 3 || memcmp(text.at, "\xef\xbb\xbf", 3) != 0)
        return text;
    return (struct bide_text){text.at + 3, text.length - 3};
}
