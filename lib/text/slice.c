/* slice.c - see slice.h. */
#include "slice.h"

#include <assert.h>
#include <string.h>

struct bide_text text_from(const char *string)
{
    return (struct bide_text){string, string == NULL ? 0 : strlen(string)};
}

bool text_is_one_of(char byte, const char *characters)
{
    return byte != '\0' && strchr(characters, byte) != NULL;
}

struct bide_text text_trim(struct bide_text text, const char *blanks)
{
    if (text.at == NULL)
        return (struct bide_text){"", 0};
    for (; text.length > 0 && text_is_one_of(text.at[0], blanks); text.length--)
        text.at++;
    while (text.length > 0 && text_is_one_of(text.at[text.length - 1], blanks))
        text.length--;
    return text;
}

bool text_equals(struct bide_text text, const char *word)
{
    return text.at != NULL && strlen(word) == text.length && memcmp(text.at, word, text.length) == 0;
}

static char word_letter(char c)
{
    if (c == '-')
        return '_';
    if (c < 'A' || c > 'Z')
        return c;
    return (char)(c | 0x20);
}

bool text_equals_word(struct bide_text text, const char *word)
{
    size_t i = 0;
    while (i < text.length && word[i] != '\0' && word_letter(text.at[i]) == word_letter(word[i]))
        i++;
    return text.at != NULL && i == text.length && word[i] == '\0';
}

struct bide_text text_take_item(struct bide_text *rest, char separator, const char *blanks)
{
    assert(rest->at != NULL);
    const char *found = memchr(rest->at, separator, rest->length);
    struct bide_text item = *rest;
    if (found == NULL) {
        *rest = (struct bide_text){0};
        return text_trim(item, blanks);
    }
    item.length = (size_t)(found - item.at);
    *rest = (struct bide_text){found + 1, rest->length - item.length - 1};
    return text_trim(item, blanks);
}
