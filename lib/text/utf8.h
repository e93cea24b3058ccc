/* utf8.h - well-formed UTF-8 (RFC 3629 section 4). Pure. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H

#include <bide/hint.h>

/* Returns the length in bytes, 1 to 4, of the character at the front of the text, or 0 if the text is empty or does not
 * begin with a well-formed character. Overlong forms, surrogates, code points above U+10FFFF and characters cut off by
 * the end of the text are not well-formed. */
size_t text_utf8_length(const char *text, size_t length);

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
