/* fields.c - the keys of `policy`, `target` and `configure` lines: the keys of a policy file, assigned to one struct.
 *
 * The table is that of app/conf. A story may do three things that a policy file may not: write a flag without a
 * value, give a policy the struct size of another version, and keep policy and target apart. */
#include "fields.h"

#include <stdio.h>
#include <string.h>

#include "conf/field.h"

const struct story_fields story_policy_fields = {"policy", false};
const struct story_fields story_target_fields = {"target", true};

static const struct conf_field *observe(void)
{
    return conf_field_find("observe", strlen("observe"));
}

/* `observe` exists in both structs; each line lists only the gates of its own. */
static bool field_belongs_to(const struct story_fields *fields, const struct conf_field *field)
{
    return field->of_target == fields->of_target || field == observe();
}

static void list_keys(const struct story_fields *fields, const char *word, char *reason, size_t size)
{
    size_t used = (size_t)snprintf(reason, size, "unknown %s key in '%s'; the keys are", fields->of, word);
    const struct conf_field *field;
    for (size_t i = 0; (field = conf_field(i)) != NULL && used < size; i++)
        if (field_belongs_to(fields, field))
            used += (size_t)snprintf(reason + used, size - used, " %s", field->key);
}

/* False if the value names gates of the other struct, which would be lost. */
static bool gates_are_ours(const struct story_fields *fields, const struct conf_pair *pair)
{
    return (fields->of_target ? pair->policy.observe : pair->target.observe) == 0;
}

static bool assign(const struct story_fields *fields, void *object, const struct conf_field *field, const char *value)
{
    struct conf_pair pair;
    void *part = fields->of_target ? (void *)&pair.target : (void *)&pair.policy;
    size_t size = fields->of_target ? sizeof pair.target : sizeof pair.policy;
    memset(&pair, 0, sizeof pair);
    memcpy(part, object, size);
    if (conf_field_assign(field, &pair, value) != NULL || !gates_are_ours(fields, &pair))
        return false;
    memcpy(object, part, size);
    return true;
}

bool story_assign(const struct story_fields *fields, void *object, const char *word, char *reason, size_t size)
{
    size_t length = strcspn(word, "=");
    const struct conf_field *field = conf_field_find(word, length);
    if (field == NULL || !field_belongs_to(fields, field)) {
        list_keys(fields, word, reason, size);
        return false;
    }
    const char *value = word[length] == '=' ? word + length + 1 : field->form == CONF_FLAG ? "yes" : "";
    if (!assign(fields, object, field, value)) {
        snprintf(reason, size, "bad value in '%s'; want %s", word, field->want);
        return false;
    }
    return true;
}

bool story_gates(const char *text, uint32_t *bits)
{
    struct conf_pair pair = {0};
    bool ok = conf_field_assign(observe(), &pair, text) == NULL;
    *bits = pair.policy.observe | pair.target.observe;
    return ok;
}

void story_print_gates(char *text, size_t size, uint32_t bits)
{
    struct conf_pair pair = {.policy.observe = bits & BIDE_POLICY_GATES, .target.observe = bits & BIDE_TARGET_GATES};
    char gates[256];
    snprintf(text, size, "%s", conf_field_format(gates, observe(), &pair));
}
