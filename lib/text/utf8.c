/* utf8.c - the table of RFC 3629 section 4. */
#include "utf8.h"

#include <stdint.h>

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
    return n;
}
