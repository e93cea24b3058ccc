/* setting.h - a key = value of a scenario, resolved: which key of which elements, and whether the value is valid.
 *
 * In a section the key stands alone. In [case ...], in [sweep] and for --set it includes its section: "clients.rate",
 * or "clients.background.rate" for one of several groups; the short form means all of them. "policy.attempts" is the
 * key of a policy file, applied to every policy in use. */
#ifndef SIM_SETTING_H
#define SIM_SETTING_H

#include "policies.h"
#include "scenario_key.h"

/* Where the setting was written, for messages. */
struct sim_origin {
    unsigned line;    /* 0: --set */
    const char *head; /* "clients background"; for --set, the whole argument */
    const char *key;  /* as written */
};

struct sim_setting {
    struct sim_origin origin;
    const struct sim_field *field; /* NULL: a policy key */
    struct conf_key policy_key;
    uint32_t first, end; /* range of elements */
    char *value;         /* owned */
    unsigned applied;    /* number of rows in which it is in effect */
    unsigned ignored;    /* number of those rows in which the key has no effect */
    char reason[192];    /* why it has no effect */
};

/* The objects that settings refer to, and where mistakes are reported. */
struct sim_setting_context {
    struct sim_world *world;
    struct sim_head *head;
    struct sim_policies *policies;
    struct conf_diagnostics *diagnostics;
};

/* Resolve the key, in a section or by its full path. Return false after reporting a mistake. */
bool sim_setting_find_in_section(struct sim_setting *setting, const struct sim_setting_context *context,
                                 const char *section, uint32_t element);
bool sim_setting_find_by_path(struct sim_setting *setting, const struct sim_setting_context *context);

/* Returns true if the value is valid and the policy, service or metric it names exists; else reports the mistake. */
bool sim_setting_check(const struct sim_setting *setting, const struct sim_setting_context *context);

/* Assigns a value that was checked. Not for policy keys. */
void sim_setting_apply(const struct sim_setting *setting, struct sim_world *world, struct sim_head *head);

/* Returns true if `one` sets everything that `other` sets. */
bool sim_setting_covers(const struct sim_setting *one, const struct sim_setting *other);

/* Reports a mistake as "[clients] rate = 280/s: ...", with file and line in front. */
void sim_setting_report(const struct sim_setting *setting, struct conf_diagnostics *diagnostics, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));

#endif
