/* utf8.c - texts of many characters: see utf8.h. */
#include "utf8.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

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
