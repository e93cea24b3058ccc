/* scenario_rows.c - from settings, cases and sweeps to the worlds to be run.
 *
 * A row is the base world with the settings of a case, a value of each swept key and the --set options applied, in this
 * order; then it is checked as a whole. Policy keys are set in copies of the policies that the row uses.
 *
 * A key without effect in some row may matter in another: the rate, which a herd ignores, is only reported if every row
 * ignores it. So each row records which setting is in effect for each key, and the settings count rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario_internal.h"

#define REPORTED_MAX 64u

/* The row that is being made. */
struct row_builder {
    struct sim_builder *b;
    struct sim_row *row;
    const struct sim_variation *variation;           /* NULL: no case */
    const struct sim_setting *swept[SIM_SWEEPS_MAX]; /* NULL: not swept, or past the last */
    struct sim_setting *effective[SIM_FIELDS_MAX][SIM_ELEMENTS_MAX];
};

/* Over all rows: the faults already reported, and the services that are called. */
struct row_checks {
    enum sim_check check;
    struct sim_fault reported[REPORTED_MAX];
    const struct sim_setting *blamed[REPORTED_MAX]; /* the setting at fault; NULL: a default */
    size_t reported_count;
    bool is_called[SIM_SERVICES_MAX];
};

/* ---- overrides ---- */

static bool setting_is_overridden(const struct sim_builder *b, const struct sim_setting *setting)
{
    bool policy = b->overrides->policy != NULL && setting->field != NULL && setting->field->form == SIM_FORM_POLICY;
    for (size_t i = b->set_span.first; i < b->set_span.end; i++)
        if (sim_setting_covers(&b->setting[i], setting))
            return true;
    return policy && b->variations > 0 && b->variation[0].policy_name != NULL;
}

/* Returns true if a case still has a setting that is not overridden; else its row would not differ as its name says. */
static bool variation_is_left(const struct sim_builder *b, const struct sim_variation *variation)
{
    bool any = variation->span.first == variation->span.end;
    for (size_t i = variation->span.first; i < variation->span.end; i++)
        any = any || !setting_is_overridden(b, &b->setting[i]);
    return any;
}

static void drop_overridden(struct sim_builder *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->variations; i++)
        if (variation_is_left(b, &b->variation[i]))
            b->variation[kept++] = b->variation[i];
    b->variations = kept;
    kept = 0;
    for (size_t i = 0; i < b->sweeps; i++)
        if (!setting_is_overridden(b, &b->setting[b->sweep[i].first]))
            b->sweep[kept++] = b->sweep[i];
    b->sweeps = kept;
}

/* ---- world ---- */

static void row_apply(struct row_builder *m, struct sim_setting *setting)
{
    if (setting->field == NULL || setting->field->part == SIM_PART_HEAD)
        return;
    sim_setting_apply(setting, &m->row->world, NULL);
    for (uint32_t i = setting->first; i < setting->end; i++)
        m->effective[sim_field_index(setting->field)][i] = setting;
}

static void row_apply_span(struct row_builder *m, struct sim_span span)
{
    for (size_t i = span.first; i < span.end; i++)
        row_apply(m, &m->b->setting[i]);
}

static void row_apply_all(struct row_builder *m)
{
    row_apply_span(m, m->b->base_span);
    if (m->variation != NULL)
        row_apply_span(m, m->variation->span);
    for (size_t i = 0; i < SIM_SWEEPS_MAX; i++)
        if (m->swept[i] != NULL)
            row_apply(m, &m->b->setting[m->swept[i] - m->b->setting]);
    row_apply_span(m, m->b->set_span);
}

/* ---- policies ---- */

static const struct conf_policy *row_find_policy(struct row_builder *m, char name[SIM_POLICY_MAX])
{
    char errors[CONF_ERROR_MAX];
    if (m->variation != NULL && m->variation->policy != NULL) {
        snprintf(name, SIM_POLICY_MAX, "%s", m->variation->policy_name);
        return m->variation->policy;
    }
    const struct conf_policy *policy = sim_policy_find(&m->b->scenario->policies, name, SIM_LOOKUP_BY_FILE, errors);
    if (policy == NULL) /* it existed when it was checked: only memory can be missing */
        m->b->no_memory = true;
    return policy;
}

/* A service without downstream calls has no policy. */
static void row_find_policies(struct row_builder *m)
{
    struct sim_world *world = &m->row->world;
    for (uint32_t i = 0; i < world->groups; i++)
        world->policy_of_clients[i] = row_find_policy(m, world->clients[i].policy);
    for (uint32_t i = 0; i < world->services; i++)
        world->policy_of_service[i] =
            world->service[i].calls >= 0 ? row_find_policy(m, world->service[i].policy) : NULL;
}

/* Returns the n-th setting of a policy key in this row, in order of application; NULL past the last. */
static const struct sim_setting *row_policy_setting(const struct row_builder *m, size_t n)
{
    const struct sim_builder *b = m->b;
    struct sim_span spans[2] = {m->variation != NULL ? m->variation->span : (struct sim_span){0, 0}, b->set_span};
    for (size_t part = 0; part < 2; part++) {
        for (size_t i = spans[part].first; i < spans[part].end; i++)
            if (b->setting[i].field == NULL && n-- == 0)
                return &b->setting[i];
        for (size_t i = 0; part == 0 && i < SIM_SWEEPS_MAX; i++)
            if (m->swept[i] != NULL && m->swept[i]->field == NULL && n-- == 0)
                return m->swept[i];
    }
    return NULL;
}

/* Returns the setting with the key that the engine rejects, or else the last: the file's own policies were valid. */
static const struct sim_setting *row_blamed_setting(const struct row_builder *m, const struct conf_field *field)
{
    const struct sim_setting *setting, *last = NULL;
    for (size_t i = 0; (setting = row_policy_setting(m, i)) != NULL; i++)
        if (last == NULL || last->policy_key.field != field || setting->policy_key.field == field)
            last = setting;
    return last;
}

static void row_check_policy(struct row_builder *m, const struct conf_policy *policy)
{
    struct conf_problem problem;
    char value[256];
    if (conf_pair_check(&policy->pair, &problem))
        return;
    const struct sim_setting *setting = row_blamed_setting(m, problem.field);
    if (problem.field == NULL || setting->policy_key.field == problem.field)
        sim_setting_report(setting, m->b->diagnostics, "must be %s (in policy %s)", problem.want, policy->name);
    else
        sim_setting_report(setting, m->b->diagnostics, "%s of policy %s would be %s: must be %s", problem.field->key,
                           policy->name, conf_field_format(value, problem.field, &policy->pair), problem.want);
}

/* Returns a copy of the policy with the row's policy settings applied; a policy used in two places is copied once. */
static const struct conf_policy *row_vary_policy(struct row_builder *m, const struct conf_policy *policy)
{
    const struct sim_setting *setting;
    struct conf_policy *copy = sim_policy_copy(&m->b->scenario->policies, policy);
    if (copy == NULL) {
        m->b->no_memory = true;
        return policy;
    }
    for (size_t i = 0; (setting = row_policy_setting(m, i)) != NULL; i++)
        conf_key_assign(&setting->policy_key, copy, setting->value);
    row_check_policy(m, copy);
    return copy;
}

static void row_vary_policies(struct row_builder *m)
{
    struct sim_world *world = &m->row->world;
    const struct conf_policy **use[SIM_GROUPS_MAX + SIM_SERVICES_MAX];
    const struct conf_policy *before[SIM_GROUPS_MAX + SIM_SERVICES_MAX];
    size_t uses = 0;
    if (row_policy_setting(m, 0) == NULL)
        return;
    for (uint32_t i = 0; i < world->groups; i++)
        use[uses++] = &world->policy_of_clients[i];
    for (uint32_t i = 0; i < world->services; i++)
        if (world->policy_of_service[i] != NULL)
            use[uses++] = &world->policy_of_service[i];
    for (size_t i = 0; i < uses; i++) {
        before[i] = *use[i];
        size_t j = 0;
        while (j < i && before[j] != before[i])
            j++;
        *use[i] = j < i ? *use[j] : row_vary_policy(m, before[i]);
    }
}

/* ---- labels ---- */

static double policy_setting_number(const struct sim_setting *setting, bool *is_number)
{
    static const double scales[] = {[CONF_TIME] = 1e9,   [CONF_COUNT] = 1,      [CONF_TOKENS] = 1e3, [CONF_RATE] = 60e3,
                                    [CONF_FACTOR] = 1e3, [CONF_PERMILLE] = 1e3, [CONF_PPM] = 1e6,    [CONF_WORD] = 0};
    const struct conf_field *field = setting->policy_key.field;
    struct conf_policy policy;
    uint32_t narrow = 0;
    int64_t wide = 0;
    *is_number = field != NULL && scales[field->form] > 0;
    if (!*is_number)
        return 0;
    conf_policy_init(&policy, BIDE_PRESET_SERVICE);
    conf_key_assign(&setting->policy_key, &policy, setting->value);
    const char *base = field->of_target ? (const char *)&policy.pair.target : (const char *)&policy.pair.policy;
    if (field->form == CONF_TIME)
        memcpy(&wide, base + field->offset, sizeof wide);
    else
        memcpy(&narrow, base + field->offset, sizeof narrow);
    return (field->form == CONF_TIME ? (double)wide : (double)narrow) / scales[field->form];
}

static double setting_number(const struct row_builder *m, const struct sim_setting *setting, bool *is_number)
{
    double number = 0;
    if (setting->field == NULL)
        return policy_setting_number(setting, is_number);
    const void *element = sim_part_in(&m->row->world, setting->field->part, setting->first);
    *is_number = sim_field_number(setting->field, element, &number);
    return *is_number ? number : 0;
}

/* Sets the label: "lifo, clients.rate=140/s". */
static void row_set_label(struct row_builder *m)
{
    struct sim_row *row = m->row;
    char swept[2 * SIM_LABEL_MAX + 600] = "";
    size_t used = 0;
    for (size_t i = 0; i < SIM_SWEEPS_MAX && m->swept[i] != NULL; i++)
        used += (size_t)snprintf(swept + used, sizeof swept - used, "%s%s=%.255s", i > 0 ? ", " : "",
                                 m->swept[i]->origin.key, m->swept[i]->value);
    const char *name = m->variation != NULL ? m->variation->name : row->world.clients[0].policy;
    size_t length = strlen(name), max = sizeof row->name - 1;
    snprintf(row->name, sizeof row->name, "%s", name + (length > max ? length - max : 0));
    bool both = m->variation != NULL && used > 0;
    int label_length =
        snprintf(row->label, sizeof row->label, "%s%s%s", both || used == 0 ? row->name : "", both ? ", " : "", swept);
    snprintf(row->swept, sizeof row->swept, "%.*s", (int)sizeof row->swept - 1, swept);
    if ((size_t)label_length >= sizeof row->label)
        sim_setting_report(m->swept[0], m->b->diagnostics, "the row label would be too long: use shorter values");
}

/* ---- checks ---- */

/* Records the fault as reported. Returns true if the same fault was already reported for the same element, or for the
 * same setting (--set clients.count=0 is wrong for all groups, and reported once), or if no more faults can be
 * recorded. */
static bool fault_was_reported(struct row_checks *row_checks, const struct row_builder *m,
                               const struct sim_fault *fault)
{
    const struct sim_setting *blamed = m->effective[sim_field_index(fault->field)][fault->element];
    for (size_t i = 0; i < row_checks->reported_count; i++) {
        bool same =
            row_checks->reported[i].element == fault->element || (blamed != NULL && row_checks->blamed[i] == blamed);
        if (same && row_checks->reported[i].field == fault->field &&
            strcmp(row_checks->reported[i].reason, fault->reason) == 0)
            return true;
    }
    if (row_checks->reported_count == REPORTED_MAX)
        return true;
    row_checks->blamed[row_checks->reported_count] = blamed;
    row_checks->reported[row_checks->reported_count++] = *fault;
    return false;
}

/* Reports a fault; with several rows, names the first row that has it. */
static void fault_report(struct row_builder *m, const struct sim_fault *fault)
{
    struct sim_builder *b = m->b;
    const struct sim_field *field = fault->field;
    const struct sim_setting *setting = m->effective[sim_field_index(field)][fault->element];
    const char *name = sim_part_name(&m->row->world, field->part, fault->element);
    char in[SIM_LABEL_MAX + 16] = "", value[SIM_VALUE_MAX];
    if (b->variations + b->sweeps > 0)
        snprintf(in, sizeof in, " (in row %s)", m->row->label);
    if (setting != NULL) {
        sim_setting_report(setting, b->diagnostics, "%s%s", fault->reason, in);
        return;
    }
    sim_field_text(value, field, sim_part_in(&m->row->world, field->part, fault->element), &m->row->world);
    conf_diagnostics_add(b->diagnostics, b->line[field->part][fault->element], "[%s%s%s] %s = %s, by default: %s%s",
                         field->key.section, name[0] != '\0' ? " " : "", name, field->key.key, value, fault->reason,
                         in);
}

static void fault_count_ignored(struct row_builder *m, const struct sim_fault *fault)
{
    struct sim_setting *setting = m->effective[sim_field_index(fault->field)][fault->element];
    if (setting == NULL)
        return;
    setting->ignored++;
    snprintf(setting->reason, sizeof setting->reason, "%s", fault->reason);
}

static void mark_called_services(struct row_checks *row_checks, const struct sim_world *world)
{
    for (uint32_t i = 0; i < world->groups; i++) {
        int32_t s = (int32_t)world->clients[i].service;
        for (uint32_t depth = 0; s >= 0 && depth < world->services; depth++) {
            row_checks->is_called[s] = true;
            s = world->service[s].calls;
        }
    }
}

static void row_check(struct row_builder *m, struct row_checks *row_checks)
{
    struct sim_fault faults[SIM_FAULTS_MAX];
    size_t count = sim_world_faults(&m->row->world, faults);
    mark_called_services(row_checks, &m->row->world);
    for (size_t i = 0; i < SIM_FIELDS_MAX; i++)
        for (size_t j = 0; j < SIM_ELEMENTS_MAX; j++)
            if (m->effective[i][j] != NULL)
                m->effective[i][j]->applied++;
    for (size_t i = 0; i < count; i++)
        if (faults[i].ignored)
            fault_count_ignored(m, &faults[i]);
        else if (!fault_was_reported(row_checks, m, &faults[i]))
            fault_report(m, &faults[i]);
}

/* Reports the settings that have no effect in any row. */
static void report_ignored_settings(struct sim_builder *b, struct sim_span span)
{
    for (size_t i = span.first; i < span.end; i++) {
        const struct sim_setting *setting = &b->setting[i];
        if (setting->applied > 0 && setting->ignored == setting->applied)
            sim_setting_report(setting, b->diagnostics, "%s", setting->reason);
    }
}

static void rows_check(struct sim_builder *b, const struct row_checks *row_checks)
{
    if (row_checks->check == SIM_CHECK_OVERRIDES) {
        report_ignored_settings(b, b->set_span);
        return;
    }
    report_ignored_settings(b, (struct sim_span){0, b->settings});
    for (uint32_t i = 0; i < b->base.services; i++)
        if (!row_checks->is_called[i])
            conf_diagnostics_add(b->diagnostics, b->line[SIM_PART_SERVICE][i],
                                 "[service%s%s]: never called: set [clients] service = %s, or calls = %s in a service",
                                 b->base.service[i].name[0] != '\0' ? " " : "", b->base.service[i].name,
                                 b->base.service[i].name, b->base.service[i].name);
}

/* ---- rows ---- */

static struct sim_row *add_row(struct sim_builder *b)
{
    struct sim_scenario *scenario = b->scenario;
    if (scenario->rows == scenario->row_room) {
        size_t room = scenario->row_room == 0 ? 16 : 2 * scenario->row_room;
        struct sim_row *more = realloc(scenario->row, room * sizeof *more);
        if (more == NULL) {
            b->no_memory = true;
            return NULL;
        }
        scenario->row = more;
        scenario->row_room = room;
    }
    struct sim_row *row = &scenario->row[scenario->rows++];
    memset(row, 0, sizeof *row);
    row->world = b->base;
    return row;
}

static void row_make(struct row_builder *m, struct row_checks *row_checks)
{
    bool is_number;
    memset(m->effective, 0, sizeof m->effective);
    m->row = add_row(m->b);
    if (m->row == NULL)
        return;
    row_apply_all(m);
    row_find_policies(m);
    if (m->b->no_memory)
        return;
    row_vary_policies(m);
    row_set_label(m);
    m->row->swept_value = m->swept[0] != NULL ? setting_number(m, m->swept[0], &is_number) : 0;
    row_check(m, row_checks);
    sim_world_prepare(&m->row->world);
}

static void rows_make_swept(struct row_builder *m, struct row_checks *row_checks, size_t depth)
{
    const struct sim_builder *b = m->b;
    if (depth == b->sweeps) {
        row_make(m, row_checks);
        return;
    }
    for (size_t i = b->sweep[depth].first; i < b->sweep[depth].end && !b->no_memory; i++) {
        m->swept[depth] = &b->setting[i];
        rows_make_swept(m, row_checks, depth + 1);
    }
    m->swept[depth] = NULL;
}

static bool rows_exceed_limit(struct sim_builder *b)
{
    size_t rows = b->variations > 0 ? b->variations : 1;
    for (size_t i = 0; i < b->sweeps; i++)
        rows *= b->sweep[i].end - b->sweep[i].first;
    if (rows > SIM_ROWS_MAX)
        conf_diagnostics_add(b->diagnostics, b->sweep_line, "[sweep]: makes %zu rows: at most %u are allowed", rows,
                             SIM_ROWS_MAX);
    return rows > SIM_ROWS_MAX;
}

/* Checks that the first swept key of a curve is numeric. */
static void curve_check(struct sim_builder *b, const struct row_builder *m, enum sim_check check)
{
    enum sim_picture *picture = &b->scenario->head.picture;
    bool is_number = true;
    if (*picture != SIM_PICTURE_CURVE || b->scenario->rows == 0)
        return;
    if (b->sweeps == 0 && check == SIM_CHECK_OVERRIDES)
        *picture = SIM_PICTURE_BARS; /* --set has removed the swept key */
    else if (b->sweeps == 0)
        conf_diagnostics_add(b->diagnostics, b->line[SIM_PART_WORLD][0],
                             "[scenario] picture = curve: needs a [sweep] (or set picture = bars)");
    else {
        const struct sim_setting *first = &b->setting[b->sweep[0].first];
        setting_number(m, first, &is_number);
        if (!is_number)
            sim_setting_report(first, b->diagnostics, "must be a numeric key for a curve (or set picture = bars)");
    }
}

void sim_build_rows(struct sim_builder *b, enum sim_check check)
{
    struct row_checks row_checks = {.check = check};
    struct row_builder m = {.b = b};
    b->scenario->rows = 0;
    for (size_t i = 0; i < b->settings; i++)
        b->setting[i].applied = b->setting[i].ignored = 0;
    drop_overridden(b);
    if (rows_exceed_limit(b))
        return;
    for (size_t i = 0; i < b->variations || i == 0; i++) {
        m.variation = b->variations > 0 ? &b->variation[i] : NULL;
        rows_make_swept(&m, &row_checks, 0);
    }
    if (b->no_memory)
        return;
    rows_check(b, &row_checks);
    curve_check(b, &m, check);
}
