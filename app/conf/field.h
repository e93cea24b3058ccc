/* field.h - every key of a policy file as one table over struct bide_policy and struct bide_target_config.
 *
 * A key is the field's own name without its unit; the value carries the unit instead. The policy file, `--set`, the
 * short options of the command, the stories of the tests, `bide explain --format` and the reference in the docs all
 * read and write through this table, so a field that is in it works everywhere, and one that is not, nowhere.
 *
 * One key sets two fields: `observe` names gates of the policy and of the target, and each struct gets its own. */
#ifndef CONF_FIELD_H
#define CONF_FIELD_H

#include <bide/policy.h>
#include <bide/target.h>

#include "unit.h"

enum conf_form {
    CONF_TIME,     /* 200ms, never */
    CONF_COUNT,    /* 3 */
    CONF_TOKENS,   /* 0.1, full */
    CONF_RATE,     /* 5/s, 1/min, 6/h; a bare number is per minute. Kept in thousandths per minute, exactly */
    CONF_FACTOR,   /* 2x; the x may be left out */
    CONF_PERMILLE, /* 80% */
    CONF_PPM,      /* 10% */
    CONF_FLAG,     /* yes, no (true, false, on, off) */
    CONF_BITS,     /* budget,breaker; or none */
    CONF_WORD,     /* one of the words; - and _ are the same, and so are capitals */
};

struct conf_field {
    const char *key;   /* "budget.capacity" */
    const char *about; /* one line for the reference */
    bool of_target;    /* in struct bide_target_config; else in struct bide_policy */
    enum conf_form form;
    size_t offset;
    const char *const *words; /* CONF_WORD, numbered as the words are, and CONF_BITS, bit by bit; NULL-terminated */
    const char *want;         /* what a value must look like, for messages: "a duration such as 200ms, or never" */
    const char *member;       /* of the struct: "budget.capacity_milli" */
};

/* What a section describes: one call's policy and one target's gates. */
struct conf_pair {
    struct bide_policy policy;
    struct bide_target_config target;
};

/* The i-th field; NULL past the last. They stand in the order in which a reader wants them. */
const struct conf_field *conf_field(size_t i);

const struct conf_field *conf_field_find(const char *key, size_t length);

/* The key nearest to a misspelt one, or NULL if none is near enough to be meant. */
const char *conf_field_suggest(const char *key, size_t length);

/* Assigns a value. NULL, or what would be right ("a duration such as 200ms, or never"); nothing is then changed.
 * The strings are static. The pair as a whole is checked by conf_pair_check. */
const char *conf_field_assign(const struct conf_field *field, struct conf_pair *pair, const char *value);

/* The value as it would be written in a file. Returns text. */
const char *conf_field_format(char text[256], const struct conf_field *field, const struct conf_pair *pair);

bool conf_field_equal(const struct conf_field *field, const struct conf_pair *one, const struct conf_pair *other);

/* False if another field makes this one of no consequence: breaker.ratio while breaker.kind is off. */
bool conf_field_has_effect(const struct conf_field *field, const struct conf_pair *pair);

/* Both from the same preset. */
void conf_pair_init(struct conf_pair *pair, enum bide_preset preset);

/* The value becomes the other pair's. */
void conf_field_copy(const struct conf_field *field, struct conf_pair *to, const struct conf_pair *from);

/* bide_policy_check and bide_target_config_check, in the words of a file: false if something is wrong, and then which
 * field, and what would be right: "base (200ms) or more". `wrong` may be NULL. */
struct conf_problem {
    const struct conf_field *field; /* NULL: it is none of the table's */
    char want[192];
};
bool conf_pair_check(const struct conf_pair *pair, struct conf_problem *problem);

/* The nearest of several words by edit distance, or NULL if none is near enough: for messages. */
const char *conf_suggest(const char *word, size_t length, const char *const *words);

#endif
