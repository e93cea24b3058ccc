/* key.h - idempotency keys: one per logical call, the same on every attempt.
 *
 * A server that stores keys runs a repeated request only once. The draft of the header wants a structured-field string,
 * in quotes; many deployed servers expect the raw token and would read the quotes as part of the key. So the form is a
 * choice.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_KEY_H
#define BIDE_KEY_H

#include <bide/base.h>
#include <bide/hint.h>

#define BIDE_KEY_HEADER     "Idempotency-Key"
#define BIDE_KEY_MAX        255u /* longest key, in bytes, before quoting */
#define BIDE_KEY_TEXT_SIZE  37u  /* a generated key and its NUL */
#define BIDE_KEY_VALUE_SIZE 513u /* longest value of bide_key_format with its NUL: quotes, each byte escaped */

BIDE_BEGIN_DECLS

enum bide_key_form {
    BIDE_KEY_QUOTED = 0, /* "8e03978e-..." as in the draft */
    BIDE_KEY_RAW,        /* 8e03978e-... */
};

/* Writes a new random key (a version 4 UUID, from getrandom) and its NUL. BIDE_ERR_SYSTEM and an empty text if no
 * randomness is available (early in boot it does not wait for it). */
BIDE_API enum bide_err bide_key_make(char text[BIDE_KEY_TEXT_SIZE]);

/* Checks a key: 1 to 255 bytes of printable ASCII; in the raw form no space at either end, no comma, semicolon or
 * quote. The value of the problem is the offending byte, or the length. A NULL key is empty, and invalid. */
BIDE_API enum bide_err bide_key_check(const char *key, enum bide_key_form form, struct bide_problem *problem);

/* Writes the field value, quoted and escaped as the form requires, and its NUL. Returns its length; 0 and an empty text
 * if the key is invalid or size is too small. */
BIDE_API size_t bide_key_format(char *text, size_t size, const char *key, enum bide_key_form form);

/* For a server: parses a field value of that form into `key` (unescaped, with its NUL); BIDE_KEY_MAX + 1 bytes always
 * suffice. Returns false and writes an empty text if the value is not of that form, bide_key_check would refuse the
 * key, or size is too small. In the quoted form parameters are skipped; the raw form has none. */
BIDE_API bool bide_key_parse(struct bide_text value, enum bide_key_form form, char *key, size_t size);

BIDE_END_DECLS
#endif
