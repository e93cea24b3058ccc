/* conf.h - named policies from a file: bide.conf (INI) or a gRPC service config (JSON).
 *
 *     [payments]                 # one section per target
 *     extends  = payment         # a preset, or another section of this file; default: service
 *     attempts = 3
 *     budget.capacity = 20
 *     retry_status = 408, 429, 500-504
 *
 * A file is checked as a whole when it is read, sections that are not used included. A file with a mistake is rejected,
 * and every mistake is reported with file, line, key, value and the valid form. A name that is no section but a
 * preset's name means the preset; a section with a preset's name shadows the preset in its file, and in that section
 * `extends = NAME` means the preset.
 *
 * A file whose first character is { is a gRPC service config: its methodConfig entries become policies named
 * "service/method", "service" or "*" (the default entry), mapped as docs/policy-file.md describes.
 *
 * Section names consist of letters, digits and . _ - / * : @ + ~ */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <bide/classify.h>
#include <bide/hint.h>

#include "field.h"

#define CONF_NAME_MAX     128u
#define CONF_RULES_MAX    64u
#define CONF_ERROR_MAX    4096u
#define CONF_PATH_MAX     4096u
#define CONF_FILE_MAX     1048576u /* bytes */
#define CONF_POLICIES_MAX 1024u    /* sections in a file */

/* Lists that override the tables of classify.h: retry_status, permanent_status, retry_exit, permanent_exit, retry_grpc,
 * permanent_grpc. With a retry_ list the rules are `only`: a number in neither list is permanent. A number in both
 * lists is permanent. */
struct conf_rules {
    struct bide_rule rule[CONF_RULES_MAX];
    size_t count;
    bool only;
};

struct conf_policy {
    char name[CONF_NAME_MAX];
    char file[256];          /* path of its file, cut at the front if too long; empty: a preset */
    unsigned line;           /* of its section, 1 in a service config; 0: a preset */
    enum bide_preset preset; /* the preset at the end of its chain of extends */
    struct conf_pair pair;
    struct conf_rules status, exits, grpc;
    bool wait_for_ready; /* waitForReady of a gRPC service config, which bide has no setting for */
};

/* Parses a list such as "1,75,100-110" and adds a rule of that kind (TRANSIENT or PERMANENT) for each number or range.
 * "none" adds no rule, but still makes a retry list `only`. Returns NULL, or the valid form without changing the rules.
 * `allowed` is the range of valid numbers and selects the table (CONF_STATUSES ...); gRPC codes may be names. A number
 * that the table classifies as retryable keeps its classification: a 429 in retry_status stays throttled. */
struct conf_span {
    int32_t first, last;
};
#define CONF_STATUSES                                                                                                  \
    {                                                                                                                  \
        100, 599                                                                                                       \
    }
#define CONF_EXITS                                                                                                     \
    {                                                                                                                  \
        1, 255                                                                                                         \
    }
#define CONF_GRPC_CODES                                                                                                \
    {                                                                                                                  \
        0, 16                                                                                                          \
    }
const char *conf_rules_read(struct conf_rules *rules, struct conf_span allowed, enum bide_kind kind, const char *list);

/* Returns the rules in the form the engine takes, built in `into`; NULL if there are none. */
const struct bide_rules *conf_rules_for_engine(const struct conf_rules *rules, struct bide_rules *into);

/* A key of a section other than `extends`: a field of the table, or one of the six lists. */
struct conf_key {
    const struct conf_field *field; /* NULL: a list */
    const struct conf_list *list;
    bool permanent; /* permanent_status rather than retry_status */
};
bool conf_key_find(struct conf_key *key, const char *name, size_t length);
bool conf_key_equal(const struct conf_key *one, const struct conf_key *other);
const char *conf_key_name(const struct conf_key *key);

/* Returns the name of the i-th key, fields before lists; NULL after the last. */
const char *conf_key_name_at(size_t i);

/* Assigns a value; a list replaces the previous value of the same key. Returns NULL, or the valid form without a
 * change. */
const char *conf_key_assign(const struct conf_key *key, struct conf_policy *policy, const char *value);

/* Returns the keys that an unknown key may mean, `extends` included and each with the prefix ("attempts or
 * attempt_timeout"), or NULL. Valid until the next call. */
const char *conf_key_suggest(const char *name, size_t length, const char *prefix);

/* The policies of a file. */
struct conf {
    struct conf_policy *policy; /* owned */
    size_t count;
};

/* Reads a file, or stdin for "-". Each mistake is one line of `errors`: "bide.conf:12: [payments] attemps = 3: no such
 * key; did you mean attempts?". The last line has no line end; if the buffer is full, it is the number of further
 * mistakes. Returns false, with `conf` empty, if there is a mistake or the file cannot be read. */
bool conf_read(struct conf *conf, const char *path, char errors[CONF_ERROR_MAX]);

/* Like conf_read, for text in memory; `name` is the file name in messages. */
bool conf_read_text(struct conf *conf, const char *name, struct bide_text text, char errors[CONF_ERROR_MAX]);
void conf_free(struct conf *conf); /* accepts NULL and an empty struct */

/* Looks up a policy by "name", "file#name" or the name of a preset. `config` is the file to read (--config); if NULL,
 * the first that exists of ./bide.conf, $XDG_CONFIG_HOME/bide/bide.conf (~/.config if unset) and /etc/bide/bide.conf.
 * An unknown name is reported with the nearest name and the file that was read, and policy->name becomes empty; if the
 * name is that of a file, the policies in that file are listed instead. Returns false after setting `errors`. */
bool conf_find(struct conf_policy *policy, const char *config, const char *name, char errors[CONF_ERROR_MAX]);

/* Sets the file that conf_find reads by default. Returns false if none of the three exists. */
bool conf_default_path(char path[CONF_PATH_MAX]);

/* Initialises a policy as a section that extends this preset and has its name. */
void conf_policy_init(struct conf_policy *policy, enum bide_preset preset);

/* ---- writing ---- */

enum conf_format { CONF_INI, CONF_JSON, CONF_GRPC, CONF_ENVOY };

/* Returns the policy as text in that format, to be freed; NULL if out of memory. Each setting that the format cannot
 * express is a line of `losses`. INI and JSON lose nothing but waitForReady, and INI reads back as the same policy. */
char *conf_write(const struct conf_policy *policy, enum conf_format format, char losses[CONF_ERROR_MAX]);

#endif
