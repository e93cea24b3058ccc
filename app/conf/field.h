/* field.h - the table of all keys of a policy file, over struct bide_policy and struct bide_target_config.
 *
 * A key is the name of the struct field without its unit; the value carries the unit. The policy file, --set, the short
 * options of the command, the stories of the tests, `bide explain --format` and the reference in the docs all use this
 * table: a field that is in it works everywhere, a field that is not works nowhere.
 *
 * The key `observe` sets two fields: it names gates of the policy and of the target, and each struct gets its own. */
#ifndef CONF_FIELD_H
#define CONF_FIELD_H

#include <bide/policy.h>
#include <bide/target.h>

#include "text/unit.h"

enum conf_form {
    CONF_TIME,     /* 200ms, never */
    CONF_COUNT,    /* 3 */
    CONF_TOKENS,   /* 0.1, full */
    CONF_RATE,     /* 5/s, 1/min or /m, 6/h, 1440/d; without unit: per minute. Stored in thousandths per minute */
    CONF_FACTOR,   /* 2x; the x may be left out */
    CONF_PERMILLE, /* 80% */
    CONF_PPM,      /* 10% */
    CONF_FLAG,     /* yes, no (true, false, on, off) */
    CONF_BITS,     /* budget,breaker; or none */
    CONF_WORD,     /* one of the words, without regard to case and with - equal to _ */
};

struct conf_field {
    const char *key;   /* "budget.capacity" */
    const char *about; /* one line for the reference */
    bool of_target;    /* in struct bide_target_config; else in struct bide_policy */
    enum conf_form form;
    size_t offset;
    const char *const *words; /* CONF_WORD: the index is the enum value; CONF_BITS: the bit number; NULL-terminated */
    const char *want;         /* form of a valid value, completes "must be ...": "a duration such as 200ms, or never" */
    const char *member;       /* name in the struct: "budget.capacity_milli" */
};

/* The content of a section: the policy of a call and the gates of its target. */
struct conf_pair {
    struct bide_policy policy;
    struct bide_target_config target;
};

/* Returns the i-th field, in the order of the reference; NULL after the last. */
const struct conf_field *conf_field(size_t i);

const struct conf_field *conf_field_find(const char *key, size_t length);

/* Considers all keys, and the names that other libraries have for them. */
struct conf_suggestion;
void conf_field_consider(struct conf_suggestion *suggestion);

/* Parses and assigns a value. Returns NULL, or the valid form, a static string ("a duration such as 200ms, or never"),
 * without a change. The combination of fields is checked by conf_pair_check. */
const char *conf_field_assign(const struct conf_field *field, struct conf_pair *pair, const char *value);

/* Formats the value as in a file. Returns text. */
const char *conf_field_format(char text[256], const struct conf_field *field, const struct conf_pair *pair);

bool conf_field_equal(const struct conf_field *field, const struct conf_pair *one, const struct conf_pair *other);

/* Returns false if another field makes this field irrelevant: breaker.ratio while breaker.kind is off. */
bool conf_field_has_effect(const struct conf_field *field, const struct conf_pair *pair);

/* Returns the other field whose value makes this field irrelevant; NULL: this field has an effect. */
const struct conf_field *conf_field_obstacle(const struct conf_field *field, const struct conf_pair *pair);

/* Initialises both structs from a preset. */
void conf_pair_init(struct conf_pair *pair, enum bide_preset preset);

/* Copies the value from another pair. */
void conf_field_copy(const struct conf_field *field, struct conf_pair *to, const struct conf_pair *from);

/* Checks the pair with bide_policy_check and bide_target_config_check. Returns false and sets the problem, which may be
 * NULL, in the terms of a file: the field, and its valid values ("base (200ms) or more"). */
struct conf_problem {
    const struct conf_field *field; /* NULL: not a field of the table */
    char want[192];
};
bool conf_pair_check(const struct conf_pair *pair, struct conf_problem *problem);

/* Returns which of several words were meant by an unknown word ("search", "list or lists"), for messages, or NULL.
 * Valid until the next call. */
const char *conf_suggest(const char *word, size_t length, const char *const *words);

#endif
