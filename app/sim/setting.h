/* setting.h - one key = value of a scenario, understood: which key of which elements, and whether it can be so.
 *
 * In a section the key stands alone. In [case ...], in [sweep] and for --set it says its section too: "clients.rate",
 * or "clients.background.rate" for one of several groups; the short form means all of them. "policy.attempts" is the
 * key of a policy file, for every policy that is used. */
#ifndef SIM_SETTING_H
#define SIM_SETTING_H

#include "key.h"
#include "policies.h"

/* Where it was said, for messages. */
struct sim_origin {
    unsigned line;    /* 0: --set */
    const char *head; /* "clients background"; of --set, the whole word */
    const char *key;  /* as it was written */
};

struct sim_setting {
    struct sim_origin origin;
    const struct sim_field *field; /* NULL: a key of policies */
    struct conf_key policy_key;
    uint32_t first, end; /* elements */
    char *value;         /* owned */
    unsigned applied;    /* rows in which it is what holds */
    unsigned ignored;    /* of them, those in which it is of no consequence */
    char reason[192];    /* that is so */
};

/* What it is said about, and to whom mistakes are told. */
struct sim_setting_context {
    struct sim_world *world;
    struct sim_head *head;
    struct sim_policies *policies;
    struct conf_diagnostics *diagnostics;
};

/* Finds the key of a section, or by its whole name; false: told. */
bool sim_setting_find_in_section(struct sim_setting *setting, const struct sim_setting_context *context,
                                 const char *section, uint32_t element);
bool sim_setting_find_by_path(struct sim_setting *setting, const struct sim_setting_context *context);

/* True if the value can be read, and names something that is there; else it is told. */
bool sim_setting_check(const struct sim_setting *setting, const struct sim_setting_context *context);

/* Assigns a value that was checked. Not for keys of policies. */
void sim_setting_apply(const struct sim_setting *setting, struct sim_world *world, struct sim_head *head);

/* Does the one say all that the other does? */
bool sim_setting_covers(const struct sim_setting *one, const struct sim_setting *other);

/* "[clients] rate = 280/s: ...", with the right place in front. */
void sim_setting_report(const struct sim_setting *setting, struct conf_diagnostics *diagnostics, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));

#endif
