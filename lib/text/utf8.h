/* utf8.h - well-formed UTF-8 (RFC 3629 section 4). Pure. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H

#include <stddef.h>

/* Returns the length in bytes, 1 to 4, of the character at the front of the text, or 0 if the text is empty or does not
 * begin with a well-formed character. Overlong forms, surrogates, code points above U+10FFFF and characters cut off by
 * the end of the text are not well-formed. */
size_t text_utf8_length(const char *text, size_t length);

#endif
