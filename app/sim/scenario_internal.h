/* scenario_internal.h - a scenario while it is read: parsed sections and overrides, not yet combined into rows.
 *
 *     scenario_sections.c   from the file and the command line to settings, cases and sweeps
 *     scenario_rows.c       from settings, cases and sweeps to the worlds to be run
 *     scenario.c            the steps in order, and the accessors of a scenario */
#ifndef SIM_SCENARIO_INTERNAL_H
#define SIM_SCENARIO_INTERNAL_H

#include "scenario_file.h"
#include "setting.h"

#define SIM_ELEMENTS_MAX 8u /* of any part */
#define SIM_COLUMNS_MAX  32u

struct sim_reported_setting {
    size_t row; /* or SIM_ALL_ROWS */
    char key[SIM_KEY_MAX], value[SIM_VALUE_MAX];
};

struct sim_scenario {
    char name[SIM_NAME_MAX];
    struct sim_head head;
    char columns_text[sizeof((struct sim_head *)0)->columns];
    const char *column[SIM_COLUMNS_MAX]; /* into columns_text */
    size_t columns;
    struct sim_policies policies;
    struct sim_row *row;
    size_t rows, row_room;
    struct sim_reported_setting *reported;
    size_t reported_count;
};

/* A range of the settings array: first to end - 1. */
struct sim_span {
    size_t first, end;
};

/* One of the variations to be compared: a case, or a policy of the command line. */
struct sim_variation {
    char name[SIM_NAME_MAX];
    struct sim_span span;
    const char *policy_name; /* --policy; NULL: a case */
    const struct conf_policy *policy;
};

struct sim_builder {
    struct sim_scenario *scenario;
    const struct sim_overrides *overrides;
    struct conf_diagnostics *diagnostics;
    struct sim_file file;
    struct sim_world base;
    unsigned line[SIM_PARTS][SIM_ELEMENTS_MAX]; /* line numbers of the sections */
    struct sim_setting *setting;
    size_t settings, setting_room;
    struct sim_span base_span, set_span;
    struct sim_variation variation[SIM_CASES_MAX];
    size_t variations;
    struct sim_span sweep[SIM_SWEEPS_MAX]; /* the settings of a swept key, one per value */
    size_t sweeps;
    unsigned sweep_line;
    bool no_memory;
};

/* ---- scenario_sections.c: mistakes are reported, a lack of memory is not ---- */

void sim_build_sections(struct sim_builder *b);

/* Applies the overrides. Call it after the file was checked by its own rows. */
void sim_build_overrides(struct sim_builder *b);

/* ---- scenario_rows.c ---- */

/* Makes and checks all rows, replacing existing rows. CHECK_FILE reports the mistakes of the file; CHECK_OVERRIDES,
 * with the command line applied, only those of the command line. */
enum sim_check { SIM_CHECK_FILE, SIM_CHECK_OVERRIDES };
void sim_build_rows(struct sim_builder *b, enum sim_check check);

#endif
