/* gates.c - see gates.h. */
#include "gates.h"

#include <stdlib.h>
#include <string.h>

static bool field_is_of_target(const struct conf_field *field)
{
    return field->of_target || strcmp(field->key, "observe") == 0;
}

static bool field_is_overridden(const struct cli_policy *options, const struct conf_field *field)
{
    for (size_t i = 0; i < options->sets; i++)
        if (options->set[i].field == field)
            return true;
    return false;
}

bool cli_gates_policy_unnamed(const struct cli_policy *options, const struct conf_policy *policy)
{
    const char *variable = getenv("BIDE_POLICY");
    return options->name == NULL && policy->file[0] == '\0' && !(variable != NULL && variable[0] != '\0');
}

bool cli_gates_overridden(const struct cli_policy *options)
{
    for (size_t i = 0; i < options->sets; i++)
        if (field_is_of_target(options->set[i].field))
            return true;
    return false;
}

void cli_gates_use_service(const struct cli_policy *options, struct conf_policy *policy)
{
    struct conf_pair service;
    const struct conf_field *field;
    conf_pair_init(&service, BIDE_PRESET_SERVICE);
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++)
        if (field->of_target && !field_is_overridden(options, field))
            conf_field_copy(field, &policy->pair, &service);
}
