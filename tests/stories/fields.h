/* fields.h - the keys of `policy`, `target` and `configure` lines: those of a policy file, each for its own struct. */
#ifndef STORY_FIELDS_H
#define STORY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which of the two structs a line is about. */
struct story_fields {
    const char *of; /* "policy" */
    bool of_target;
};

extern const struct story_fields story_policy_fields;
extern const struct story_fields story_target_fields;

/* Assigns one word, "base=200ms" or a bare flag, to the struct. On failure `why` says what would be right. */
bool story_assign(const struct story_fields *fields, void *object, const char *word, char *reason, size_t size);

/* "budget,breaker" -> bits of enum bide_gate; "none" -> 0. */
bool story_gates(const char *text, uint32_t *bits);

/* The reverse, for messages. */
void story_print_gates(char *text, size_t size, uint32_t bits);

#endif
