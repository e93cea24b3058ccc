/* conf_internal.h - the readers of the two file formats, and the functions they share. */
#ifndef CONF_INTERNAL_H
#define CONF_INTERNAL_H

#include "conf.h"
#include "diagnostics.h"
#include "ini.h"

/* Each reader fills `conf` and adds its diagnostics; conf_read_text empties `conf` if there are any. */
void conf_policy_file_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *diagnostics);
void conf_grpc_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *diagnostics);

/* Reads the policies of an INI file: one per section, or, with a kind, one per section [KIND NAME] with a name. */
void conf_policies_read(struct conf *conf, const struct conf_ini *ini, const char *kind,
                        struct conf_diagnostics *diagnostics);

/* Returns the syntax of sections that are policies: the same for each. */
const struct conf_ini_syntax *conf_policy_syntax(const char *heading);

/* Returns the content of a file, or of stdin for "-", to be freed. The length is CONF_FILE_MAX + 1 if the file is too
 * large. Sets `name` to the file's name in messages. Returns NULL with the reason in `errors` if the file cannot be
 * read. */
char *conf_read_bytes(const char *path, char name[CONF_PATH_MAX], size_t *length, char errors[CONF_ERROR_MAX]);

/* Appends a policy of which only name, file and line are set. Returns NULL after adding a diagnostic (out of memory,
 * too many). */
struct conf_policy *conf_add_policy(struct conf *conf, struct bide_text name, unsigned line,
                                    struct conf_diagnostics *diagnostics);

/* Returns true if the text is a valid policy name. */
bool conf_name_is_valid(struct bide_text name);
#define CONF_NAME_WANT "must be a name of 1 to 127 letters, digits and any of . _ - / * : @ + ~"

/* Returns the policy of that name, or NULL. */
struct conf_policy *conf_policy_by_name(const struct conf *conf, struct bide_text name);

/* Sets the policy and its rules to those of the preset; name, file and line stay. */
void conf_policy_set_preset(struct conf_policy *policy, enum bide_preset preset);

#endif
