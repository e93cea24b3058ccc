/* key.h - idempotency keys: one per logical call, the same on every attempt.
 *
 * A server that remembers keys runs a repeated request once. The header's draft wants a structured-field string, in
 * quotes; many deployed servers take the raw token and would see other bytes if it were quoted. So the form is
 * a choice. */
#ifndef BIDE_KEY_H
#define BIDE_KEY_H

#include <bide/base.h>
#include <bide/hint.h>

#define BIDE_KEY_HEADER     "Idempotency-Key"
#define BIDE_KEY_MAX        255u /* longest key, in bytes, before quoting */
#define BIDE_KEY_TEXT_SIZE  37u  /* a generated key and its NUL */
#define BIDE_KEY_VALUE_SIZE 513u /* longest value bide_key_format writes, NUL included: quotes, each byte escaped */

BIDE_BEGIN_DECLS

enum bide_key_form {
    BIDE_KEY_QUOTED = 0, /* "8e03978e-..." as the draft wants */
    BIDE_KEY_RAW,        /* 8e03978e-... */
};

/* Writes a new random key (a version 4 UUID, from getrandom) and its NUL. BIDE_ERR_SYSTEM and an empty text: no
 * randomness is to be had (yet: early in boot it is not waited for). */
BIDE_API enum bide_err bide_key_make(char text[BIDE_KEY_TEXT_SIZE]);

/* What is wrong with a key: it must have 1 to 255 bytes, printable ASCII only, and in the raw form no space at either
 * end, no comma, semicolon or quote. The problem's value is the offending byte, or the length. NULL is as empty. */
BIDE_API enum bide_err bide_key_check(const char *key, enum bide_key_form form, struct bide_problem *problem);

/* Writes the field value, quoted and escaped as the form wants, and its NUL. Returns its length; 0 and an empty text if
 * the key is not right or size is too small. */
BIDE_API size_t bide_key_format(char *text, size_t size, const char *key, enum bide_key_form form);

/* Server side: reads a field value of that form into `key` (unescaped, with its NUL); BIDE_KEY_MAX + 1 bytes always
 * suffice. False and an empty text if it is not of that form, if bide_key_check would refuse the key, or if size is too
 * small. In the quoted form parameters are skipped; in the raw form there are none. */
BIDE_API bool bide_key_parse(struct bide_text value, enum bide_key_form form, char *key, size_t size);

BIDE_END_DECLS
#endif
