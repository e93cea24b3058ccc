/* rules.h - the six lists of a policy file that override the tables of classify.h: keys, parsing, formatting. */
#ifndef CONF_RULES_H
#define CONF_RULES_H

#include "conf.h"

#define CONF_LIST_SIZE 2048u /* enough for any list: 64 ranges, or 17 names */

struct conf_list {
    const char *retry;     /* "retry_status" */
    const char *permanent; /* "permanent_status" */
    struct conf_span allowed;
    struct bide_outcome (*classify)(int number, const struct bide_rules *rules);
    size_t offset; /* of its struct conf_rules in struct conf_policy */
    const char *want;
};

#define CONF_LISTS 3u
extern const struct conf_list conf_lists[CONF_LISTS];

/* Like conf_rules_read, but drops the rules of the same kind first (those of the section that is extended). */
const char *conf_rules_replace(struct conf_rules *rules, struct conf_span allowed, enum bide_kind kind,
                               const char *list);

/* Returns true if the key has a value to be written. */
bool conf_rules_has_list(const struct conf_rules *rules, bool permanent);

/* Formats the value of the retry_ or permanent_ key. Returns text. */
const char *conf_rules_format(char text[CONF_LIST_SIZE], const struct conf_list *list, const struct conf_rules *rules,
                              bool permanent);

#define CONF_GRPC_COUNT 17 /* status codes of gRPC, from 0 */

/* 14 -> "UNAVAILABLE"; "?" for an invalid code. */
const char *conf_grpc_name(int32_t code);
bool conf_grpc_code(const char *name, size_t length, int32_t *code); /* ignores case */

#endif
