/* slice.h - parts of a text: trimmed, compared, split at a separator. Pure.
 *
 * Two sets of blanks are in use. HTTP fields and values within a line have SP and HTAB (OWS, RFC 9110 section 5.6.3);
 * whole lines and lists may also end in CR or contain line ends. */
#ifndef TEXT_SLICE_H
#define TEXT_SLICE_H

#include <bide/hint.h>

#define TEXT_OWS    " \t"
#define TEXT_BLANKS " \t\r\n\v\f"

/* Returns the text of a string; NULL becomes an absent text. */
struct bide_text text_from(const char *string);

/* Returns whether the byte is one of these characters; NUL never is. */
bool text_is_one_of(char byte, const char *characters);

/* Returns the text without the blanks around it. An absent text becomes empty, never NULL. */
struct bide_text text_trim(struct bide_text text, const char *blanks);

/* Returns whether the text is this word; an absent text is no word. */
bool text_equals(struct bide_text text, const char *word);

/* Returns whether the text is this word, in lower case, without regard to case and with '-' equal to '_'. */
bool text_equals_word(struct bide_text text, const char *word);

/* Removes the part before the next separator, and the separator, from the front of `rest`, which becomes absent after
 * the last part. Returns that part, trimmed. `rest` must not be absent. */
struct bide_text text_take_item(struct bide_text *rest, char separator, const char *blanks);

#endif
