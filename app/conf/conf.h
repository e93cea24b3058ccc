/* conf.h - policies by name, from a file: bide.conf (INI) or a gRPC service config (JSON).
 *
 *     [payments]                 # one section per target
 *     extends  = payment         # a preset, or another section of this file; without it, service
 *     attempts = 3
 *     budget.capacity = 20
 *     retry_status = 408, 429, 500-504
 *
 * Everything in a file is checked when it is read, also what nobody asked for: a file with a mistake in it is refused
 * whole, and every mistake is told with file, line, key, value and what would be right. A name that no file has and
 * that is a preset's means the preset; a section of that name hides the preset in its file, and inside it
 * `extends = NAME` means the preset.
 *
 * A file whose first character is { is a gRPC service config: its methodConfig entries are named
 * "service/method", "service" or "*" (the default entry), and mapped as docs/policy-file.md says.
 *
 * A section's name has letters, digits and any of . _ - / * : @ + ~ */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <bide/classify.h>
#include <bide/hint.h>

#include "field.h"

#define CONF_NAME_MAX     128u
#define CONF_RULES_MAX    64u
#define CONF_ERROR_MAX    4096u
#define CONF_PATH_MAX     4096u
#define CONF_FILE_MAX     1048576u /* bytes of a file */
#define CONF_POLICIES_MAX 1024u    /* sections of a file */

/* Lists that override the tables of classify.h: retry_status, permanent_status, retry_exit, permanent_exit,
 * retry_grpc, permanent_grpc. A retry_ list makes the rules `only`: what is in neither list is permanent. What is in
 * both is permanent. */
struct conf_rules {
    struct bide_rule rule[CONF_RULES_MAX];
    size_t count;
    bool only;
};

struct conf_policy {
    char name[CONF_NAME_MAX];
    char file[256];          /* where it came from, a long path cut in front; empty: a preset */
    unsigned line;           /* of its section, 1 in a service config; 0: a preset */
    enum bide_preset preset; /* what it goes back to in the end */
    struct conf_pair pair;
    struct conf_rules status, exits, grpc;
};

/* "1,75,100-110": adds a rule of that kind (TRANSIENT or PERMANENT) for each number or range; "none" adds none, and
 * still makes a retry list `only`. NULL, or what would be right, and then nothing is changed. `allowed` says which
 * numbers these are; gRPC codes may be named. A number that may be retried anyway keeps what is known of it: a 429 in
 * a list of statuses stays throttled. */
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

/* The rules as the engine wants them; NULL when there are none. */
const struct bide_rules *conf_rules_for_engine(const struct conf_rules *rules, struct bide_rules *into);

/* Any key of a section but `extends`: a field of the table, or one of the six lists. */
struct conf_key {
    const struct conf_field *field; /* NULL: it is a list */
    const struct conf_list *list;
    bool permanent; /* permanent_status, not retry_status */
};
bool conf_key_find(struct conf_key *key, const char *name, size_t length);
bool conf_key_equal(const struct conf_key *one, const struct conf_key *other);
const char *conf_key_name(const struct conf_key *key);

/* Assigns a value: a list takes the place of what the same key said before. NULL, or what would be right; nothing is
 * then changed. */
const char *conf_key_assign(const struct conf_key *key, struct conf_policy *policy, const char *value);

/* The key nearest to a misspelt one, `extends` included, or NULL. */
const char *conf_key_suggest(const char *name, size_t length);

/* A whole file. */
struct conf {
    struct conf_policy *policy; /* owned */
    size_t count;
};

/* Each mistake is one line of `errors`: "bide.conf:12: [payments] attemps = 3: no such key; did you mean attempts?".
 * The last has no line end. When there is no more room, the last line says how many more there are. False if there was
 * any, or if the file cannot be read; `conf` is then empty. "-" reads stdin. */
bool conf_read(struct conf *conf, const char *path, char errors[CONF_ERROR_MAX]);

/* The same for text that is already here; `name` stands for the file in messages. */
bool conf_read_text(struct conf *conf, const char *name, struct bide_text text, char errors[CONF_ERROR_MAX]);
void conf_free(struct conf *conf); /* accepts NULL and an empty one */

/* "name", "file#name" or a preset's name. `config` is the file to use (--config), or NULL: then ./bide.conf,
 * $XDG_CONFIG_HOME/bide/bide.conf (~/.config if unset) and /etc/bide/bide.conf are tried, the first that exists. A name
 * that is in no file and is no preset is an error that names the nearest one and the file that was read, and empties
 * policy->name; if there is a file of that name, its policies are told instead. */
bool conf_find(struct conf_policy *policy, const char *config, const char *name, char errors[CONF_ERROR_MAX]);

/* The file that conf_find reads when none is named: the first of the three that exists. False: none does. */
bool conf_default_path(char path[CONF_PATH_MAX]);

/* A preset as if it were a section of its own. */
void conf_policy_init(struct conf_policy *policy, enum bide_preset preset);

/* ---- writing ---- */

enum conf_format { CONF_INI, CONF_JSON, CONF_GRPC, CONF_ENVOY };

/* The policy in that format, as text to be freed; NULL: no memory. `losses` gets a line for each thing the format
 * cannot say: nothing is lost silently. INI and JSON lose nothing, and INI reads back as the same policy. */
char *conf_write(const struct conf_policy *policy, enum conf_format format, char losses[CONF_ERROR_MAX]);

#endif
