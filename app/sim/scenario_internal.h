/* scenario_internal.h - a scenario in the making: what its file and the command line say, understood but not yet put together.
 *
 *     sections.c   from the file and the command line to settings, cases and sweeps
 *     rows.c       from those to the worlds that are to be run
 *     scenario.c   all of it in order, and what others ask of a scenario */
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

/* Settings one behind the other: first to end. */
struct sim_span {
    size_t first, end;
};

/* What is compared: a case, or a policy of the command line. */
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
    unsigned line[SIM_PARTS][SIM_ELEMENTS_MAX]; /* of sections */
    struct sim_setting *setting;
    size_t settings, setting_room;
    struct sim_span base_span, set_span;
    struct sim_variation variation[SIM_CASES_MAX];
    size_t variations;
    struct sim_span sweep[SIM_SWEEPS_MAX]; /* the values of one key */
    size_t sweeps;
    unsigned sweep_line;
    bool no_memory;
};

/* ---- sections.c: what is wrong is told; no memory is not ---- */

void sim_build_sections(struct sim_builder *b);

/* After the file was judged by its own rows. */
void sim_build_overrides(struct sim_builder *b);

/* ---- rows.c ---- */

/* Makes and checks all rows, in place of those that were there. The first time the file itself is judged; the second,
 * with the command line in it, only that. */
enum sim_check { SIM_CHECK_FILE, SIM_CHECK_OVERRIDES };
void sim_build_rows(struct sim_builder *b, enum sim_check check);

#endif
