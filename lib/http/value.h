/* value.h - helpers for HTTP field values: compared without case, written in hexadecimal.
 *
 * Inline, because libbide-curl uses them too and the symbols of libbide's engine are hidden. */
#ifndef HTTP_VALUE_H
#define HTTP_VALUE_H

#include <bide/hint.h>

#include <assert.h>

/* Unlike tolower, independent of the locale. */
static inline char http_lower(char c)
{
    if (c < 'A' || c > 'Z')
        return c;
    return (char)(c | 0x20);
}

/* Returns the length of the prefix if the text begins with it, ignoring case; otherwise 0. The prefix must be in lower
 * case. */
static inline size_t http_prefix_length(struct bide_text text, const char *prefix)
{
    size_t i = 0;
    while (i < text.length && prefix[i] != '\0' && http_lower(text.at[i]) == prefix[i])
        i++;
    return prefix[i] == '\0' ? i : 0;
}

static inline struct bide_text http_text_from(struct bide_text text, size_t offset)
{
    assert(offset <= text.length);
    return (struct bide_text){text.at + offset, text.length - offset};
}

/* Writes the given number of hexadecimal digits. Returns the position after them. */
static inline char *http_write_hex(char *at, uint64_t number, int digits)
{
    assert(digits > 0 && digits <= 16);
    for (int i = digits - 1; i >= 0; i--, number >>= 4)
        at[i] = "0123456789abcdef"[number & 0xf];
    return at + digits;
}

#endif
