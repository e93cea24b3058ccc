/* fields.h - the keys of `policy`, `target` and `configure` lines, as tables over the public structs. */
#ifndef STORY_FIELDS_H
#define STORY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct story_field;

struct story_fields {
    const char *of; /* "policy" */
    const struct story_field *field;
    size_t count;
};

extern const struct story_fields story_policy_fields;
extern const struct story_fields story_target_fields;

/* Assigns one word, "base=200ms" or a bare flag, to the struct the table describes. On failure `why` says what would
 * be right. */
bool story_assign(const struct story_fields *fields, void *object, const char *word, char *why, size_t size);

/* "budget,breaker" -> bits of enum bide_gate; "none" -> 0. */
bool story_gates(const char *text, uint32_t *bits);

/* The reverse, for messages. */
void story_print_gates(char *text, size_t size, uint32_t bits);

#endif
