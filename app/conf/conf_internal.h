/* parts.h - what reads the two kinds of file, and what both need. */
#ifndef CONF_INTERNAL_H
#define CONF_INTERNAL_H

#include "conf.h"
#include "diagnostics.h"

/* Each fills `conf` and tells what is wrong; conf_read_text empties it again if anything is. */
void conf_ini_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *diagnostics);
void conf_grpc_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *diagnostics);

/* All of a file, or of stdin for "-", to be freed: up to one byte more than CONF_FILE_MAX, which tells that it is too
 * large. `name` gets what messages call it. NULL: it cannot be read, and that is told. */
char *conf_read_bytes(const char *path, char name[CONF_PATH_MAX], size_t *length, char errors[CONF_ERROR_MAX]);

/* One more policy, zeroed but for its name, file and line; NULL: told why not (no memory, too many). */
struct conf_policy *conf_add_policy(struct conf *conf, struct bide_text name, unsigned line,
                                    struct conf_diagnostics *diagnostics);

/* True if it may be a policy's name. */
bool conf_name_is_valid(struct bide_text name);
#define CONF_NAME_WANT "want a name of 1 to 127 letters, digits and any of . _ - / * : @ + ~"

/* The policy of that name; NULL: there is none. */
struct conf_policy *conf_policy_by_name(const struct conf *conf, struct bide_text name);

/* The preset's policy and rules, without a name. */
void conf_policy_set_preset(struct conf_policy *policy, enum bide_preset preset);

#endif
