/* scenario.c - reads a scenario step by step, and its accessors.
 *
 * The text is split into sections (scenario_file.c), its policies are read (policies.c), its sections interpreted
 * (scenario_sections.c), and its rows made and checked (scenario_rows.c). Then the overrides of the command line are
 * applied and the rows are made again: so a file is valid or not by itself, independent of the command line. */
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario_internal.h"

/* ---- accessors ---- */

const char *sim_scenario_name(const struct sim_scenario *scenario)
{
    return scenario->name;
}

const char *sim_scenario_title(const struct sim_scenario *scenario)
{
    return scenario->head.title[0] != '\0' ? scenario->head.title : scenario->name;
}

const char *sim_scenario_question(const struct sim_scenario *scenario)
{
    return scenario->head.question;
}

uint64_t sim_scenario_seed(const struct sim_scenario *scenario)
{
    return scenario->head.seed;
}

const char *const *sim_scenario_columns(const struct sim_scenario *scenario, size_t *count)
{
    *count = scenario->columns;
    return scenario->column;
}

enum sim_picture sim_scenario_picture(const struct sim_scenario *scenario)
{
    return scenario->head.picture;
}

const char *sim_scenario_plot(const struct sim_scenario *scenario)
{
    return scenario->head.plot;
}

size_t sim_scenario_rows(const struct sim_scenario *scenario)
{
    return scenario->rows;
}

const struct sim_row *sim_scenario_row(const struct sim_scenario *scenario, size_t row)
{
    return row < scenario->rows ? &scenario->row[row] : NULL;
}

bool sim_scenario_setting(const struct sim_scenario *scenario, size_t row, size_t i, const char **key, char value[256])
{
    for (size_t j = 0; j < scenario->reported_count; j++)
        if (scenario->reported[j].row == row && i-- == 0) {
            *key = scenario->reported[j].key;
            memcpy(value, scenario->reported[j].value, SIM_VALUE_MAX);
            return true;
        }
    return false;
}

void sim_scenario_free(struct sim_scenario *scenario)
{
    if (scenario == NULL)
        return;
    sim_policies_free(&scenario->policies);
    free(scenario->row);
    free(scenario->reported);
    free(scenario);
}

/* ---- settings for reports ---- */

static struct sim_reported_setting *add_reported(struct sim_builder *b, size_t row)
{
    struct sim_scenario *scenario = b->scenario;
    struct sim_reported_setting *more = realloc(scenario->reported, (scenario->reported_count + 1) * sizeof *more);
    if (more == NULL) {
        b->no_memory = true;
        return NULL;
    }
    scenario->reported = more;
    more[scenario->reported_count] = (struct sim_reported_setting){.row = row};
    return &more[scenario->reported_count++];
}

/* The value of a field as text. */
struct field_text {
    char value[SIM_VALUE_MAX];
};

static struct field_text world_field_text(const struct sim_world *world, const struct sim_field *field,
                                          uint32_t element)
{
    struct field_text text;
    sim_field_text(text.value, field, sim_part_in(world, field->part, element), world);
    return text;
}

static void report_value(struct sim_builder *b, size_t row, const struct sim_field *field, uint32_t element,
                         const struct field_text *text)
{
    const char *standard = field->form == SIM_FORM_SERVICE ? b->base.service[0].name : field->key.standard;
    struct sim_reported_setting *reported = NULL;
    if (row != SIM_ALL_ROWS || strcmp(text->value, standard) != 0)
        reported = add_reported(b, row);
    if (reported == NULL)
        return;
    sim_key_path(reported->key, field, sim_part_name(&b->base, field->part, element));
    memcpy(reported->value, text->value, sizeof text->value);
}

/* Adds a single entry if the value is the same in all rows, in the file's own form if that gives the same value (the
 * rows hold derived values); else an entry per row. */
static void report_field(struct sim_builder *b, const struct sim_field *field, uint32_t element)
{
    const struct sim_scenario *scenario = b->scenario;
    struct sim_world ready = b->base;
    sim_world_prepare(&ready);
    struct field_text base = world_field_text(&b->base, field, element),
                      derived = world_field_text(&ready, field, element);
    struct field_text first = world_field_text(&scenario->row[0].world, field, element);
    bool agree = true;
    for (size_t i = 1; i < scenario->rows && agree; i++)
        agree = strcmp(first.value, world_field_text(&scenario->row[i].world, field, element).value) == 0;
    if (agree)
        report_value(b, SIM_ALL_ROWS, field, element, strcmp(first.value, derived.value) == 0 ? &base : &first);
    for (size_t i = 0; i < scenario->rows && !agree; i++) {
        struct field_text text = world_field_text(&scenario->row[i].world, field, element);
        report_value(b, i, field, element, &text);
    }
}

static void report_part(struct sim_builder *b, enum sim_part part)
{
    const struct sim_field *field;
    for (uint32_t element = 0; element < sim_part_count(&b->base, part); element++)
        for (size_t i = 0; (field = sim_field(i)) != NULL; i++)
            if (field->part == part)
                report_field(b, field, element);
}

/* Collects the settings of all worlds, and the policy keys that --set changes. */
static void report_settings(struct sim_builder *b)
{
    for (enum sim_part part = SIM_PART_WORLD; part < SIM_PARTS; part++)
        report_part(b, part);
    for (size_t i = b->set_span.first; i < b->set_span.end; i++) {
        const struct sim_setting *setting = &b->setting[i];
        bool last = setting->field == NULL;
        for (size_t j = i + 1; j < b->set_span.end && last; j++)
            last = !sim_setting_covers(&b->setting[j], setting);
        struct sim_reported_setting *reported = last ? add_reported(b, SIM_ALL_ROWS) : NULL;
        if (reported == NULL)
            continue;
        snprintf(reported->key, sizeof reported->key, "policy.%s", conf_key_name(&setting->policy_key));
        snprintf(reported->value, sizeof reported->value, "%.*s", (int)sizeof reported->value - 1, setting->value);
    }
}

/* ---- reading ---- */

/* Sets the name: "my" for some/where/my.ini. */
static void scenario_set_name(struct sim_scenario *scenario, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file;
    size_t length = strlen(base), max = sizeof scenario->name - 1;
    if (length > 4 && strcmp(base + length - 4, ".ini") == 0)
        length -= 4;
    snprintf(scenario->name, sizeof scenario->name, "%.*s", (int)(length < max ? length : max), base);
}

/* Splits the list of columns; the names were checked when they were read. */
static void scenario_set_columns(struct sim_builder *b)
{
    struct sim_scenario *scenario = b->scenario;
    char *at = scenario->columns_text;
    snprintf(at, sizeof scenario->columns_text, "%s", scenario->head.columns);
    while (*(at += strspn(at, " \t,")) != '\0') {
        if (scenario->columns == SIM_COLUMNS_MAX) {
            conf_diagnostics_add(b->diagnostics, b->line[SIM_PART_WORLD][0],
                                 "[scenario] columns: at most %u are allowed", SIM_COLUMNS_MAX);
            return;
        }
        scenario->column[scenario->columns++] = at;
        at += strcspn(at, " \t,");
        if (*at != '\0')
            *at++ = '\0';
    }
}

/* Runs the steps in order, each only if no mistake was found before. */
static void scenario_build(struct sim_builder *b, struct bide_text text)
{
    static const struct sim_overrides no_overrides;
    const struct sim_overrides *overrides = b->overrides;
    b->no_memory = !sim_file_read(&b->file, text, b->diagnostics);
    if (b->no_memory)
        return;
    if (b->file.policies > 0)
        sim_policies_read(&b->scenario->policies, &b->file.ini, b->diagnostics);
    b->overrides = &no_overrides;
    sim_build_sections(b);
    if (b->diagnostics->count == 0 && !b->no_memory)
        sim_build_rows(b, SIM_CHECK_FILE);
    b->overrides = overrides;
    if (b->diagnostics->count == 0 && !b->no_memory && (overrides->set != NULL || overrides->policy != NULL)) {
        sim_build_overrides(b);
        if (b->diagnostics->count == 0 && !b->no_memory)
            sim_build_rows(b, SIM_CHECK_OVERRIDES);
    }
    if (b->diagnostics->count == 0 && !b->no_memory) {
        scenario_set_columns(b);
        report_settings(b);
    }
    if (b->no_memory && b->diagnostics->count == 0)
        conf_diagnostics_add(b->diagnostics, 0, "no memory");
}

static void builder_free(struct sim_builder *b)
{
    sim_file_free(&b->file);
    for (size_t i = 0; i < b->settings; i++)
        free(b->setting[i].value);
    free(b->setting);
    free(b);
}

struct sim_scenario *sim_scenario_read_text(const char *name, struct bide_text text,
                                            const struct sim_overrides *overrides, char errors[CONF_ERROR_MAX])
{
    static const struct sim_overrides no_overrides;
    struct conf_diagnostics diagnostics;
    struct sim_builder *b = calloc(1, sizeof *b);
    struct sim_scenario *scenario = calloc(1, sizeof *scenario);
    conf_diagnostics_begin(&diagnostics, errors, name);
    if (b == NULL || scenario == NULL) {
        conf_diagnostics_add(&diagnostics, 0, "no memory");
        goto out;
    }
    b->scenario = scenario;
    b->overrides = overrides != NULL ? overrides : &no_overrides;
    b->diagnostics = &diagnostics;
    scenario->policies.config = b->overrides->config;
    scenario_set_name(scenario, name);
    sim_world_init(&b->base);
    sim_element_init(SIM_PART_HEAD, &scenario->head);
    if (text.length > CONF_FILE_MAX)
        conf_diagnostics_add(&diagnostics, 0, "must be a scenario file: larger than %u bytes", CONF_FILE_MAX);
    else
        scenario_build(b, text);
    builder_free(b);
    b = NULL;
out:
    free(b);
    if (conf_diagnostics_finish(&diagnostics))
        return scenario;
    sim_scenario_free(scenario);
    return NULL;
}
