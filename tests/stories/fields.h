/* fields.h - the keys of `policy`, `target` and `configure` lines: the keys of a policy file, assigned to one
 * struct. */
#ifndef STORY_FIELDS_H
#define STORY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The struct that a line assigns to. */
struct story_fields {
    const char *of; /* "policy" */
    bool of_target;
};

extern const struct story_fields story_policy_fields;
extern const struct story_fields story_target_fields;

/* Assigns one word, "base=200ms" or a bare flag, to the struct. On failure writes a text to `reason` that states
 * what would be right. */
bool story_assign(const struct story_fields *fields, void *object, const char *word, char *reason, size_t size);

/* "budget,breaker" -> bits of enum bide_gate; "none" -> 0. */
bool story_gates(const char *text, uint32_t *bits);

/* The reverse, for mismatch texts. */
void story_print_gates(char *text, size_t size, uint32_t bits);

#endif
