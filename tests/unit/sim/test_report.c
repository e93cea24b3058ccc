/* test_report.c - reports of a batch in all formats. Batch and scenario are fakes: every metric is known, and texts are
 * as hostile as a file may be. */
#define _GNU_SOURCE
#include "sim/report.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "xml_text.h"

/* ---- fake scenario ---- */

#define ROWS_MAX   40u
#define POINTS     50u
#define METRIC_MAX 200u

static struct {
    const char *title, *question, *plot;
    const char *columns[8];
    enum sim_picture picture;
    struct sim_row row[ROWS_MAX];
} scenario;

static struct sim_row_result row_result[ROWS_MAX];
static struct sim_figure figures[ROWS_MAX][METRIC_MAX];
static struct sim_point points[ROWS_MAX][POINTS];
static struct sim_batch batch;

const char *sim_scenario_name(const struct sim_scenario *s)
{
    return "made_up";
}
const char *sim_scenario_title(const struct sim_scenario *s)
{
    return scenario.title;
}
const char *sim_scenario_question(const struct sim_scenario *s)
{
    return scenario.question;
}
const char *const *sim_scenario_columns(const struct sim_scenario *s, size_t *count)
{
    for (*count = 0; scenario.columns[*count] != NULL;)
        ++*count;
    return scenario.columns;
}
enum sim_picture sim_scenario_picture(const struct sim_scenario *s)
{
    return scenario.picture;
}
const char *sim_scenario_plot(const struct sim_scenario *s)
{
    return scenario.plot;
}
const struct sim_row *sim_scenario_row(const struct sim_scenario *s, size_t row)
{
    return &scenario.row[row];
}
bool sim_scenario_setting(const struct sim_scenario *s, size_t row, size_t i, const char **key, char value[256])
{
    static const char *const keys[] = {"duration", "clients.rate", "policy.one.attempts"};
    static const char *const values[] = {"50s", "280/s", "2 \"<&"};
    if (i >= (row == SIM_ALL_ROWS ? 3 : 1))
        return false;
    *key = keys[i];
    snprintf(value, 256, "%s", values[i]);
    return true;
}

/* ---- fake batch ---- */

static size_t metric(const char *name)
{
    size_t i = sim_metric_find(name, strlen(name));
    if (i == SIZE_MAX)
        fail_msg("no metric is called %s", name);
    return i;
}

static void set_figure(size_t row, const char *name, double mean, double half)
{
    figures[row][metric(name)] = (struct sim_figure){mean, half, mean, mean, isnan(mean) ? 0 : batch.plan.seeds};
}

static void add_row(const char *name, const char *swept, double value)
{
    size_t row = batch.rows++;
    struct sim_row *r = &scenario.row[row];
    *r = (struct sim_row){.swept_value = value, .world = {.groups = 1, .clients[0].arrival = SIM_POISSON}};
    r->world.outages = 1;
    r->world.outage[0] = (struct sim_outage){.kind = SIM_OUTAGE_HOLD, .from_ns = 10 * BIDE_S, .until_ns = 20 * BIDE_S};
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(r->swept, sizeof r->swept, "%s", swept);
    snprintf(r->label, sizeof r->label, "%s%s%s", name, name[0] != '\0' && swept[0] != '\0' ? ", " : "", swept);
    row_result[row].result = (struct sim_result){.bin_ns = BIDE_S, .point = points[row], .points = POINTS};
    row_result[row].figure = figures[row];
    for (size_t i = 0; i < POINTS; i++)
        points[row][i] = (struct sim_point){.calls = 280,
                                            .attempts = 300,
                                            .arrivals = i == 20 ? 2800 : 290 + row,
                                            .retries = 20,
                                            .served = 270,
                                            .queue = (uint32_t)i,
                                            .budget_milli = row == 0 ? -1 : 2500};
    for (size_t i = 0; sim_metric(i) != NULL; i++)
        figures[row][i] = (struct sim_figure){.count = 1};
    set_figure(row, "calls", 14000, 0);
    set_figure(row, "arrivals", 17010 + (double)row, 0);
    set_figure(row, "served", 13500, 0);
    set_figure(row, "amplification", 1.215 + (double)row, 0);
    set_figure(row, "recovers", row > 0, 0);
    set_figure(row, "recover_s", row > 0 ? 12.345 : NAN, 0);
    set_figure(row, "gave_up_attempts_spent", row == 0 ? 123 : 0, 0);
    set_figure(row, "gave_up_budget_empty", row == 0 ? 45 : 0, 0);
    set_figure(row, "budget_low", row == 0 ? NAN : 2.5, 0);
}

static int setup(void **state)
{
    (void)state;
    batch = (struct sim_batch){.plan = {.seed = 7, .seeds = 1}, .row = row_result};
    scenario.title = "A title";
    scenario.question = "How much can it stand?";
    scenario.plot = "amplification";
    scenario.picture = SIM_PICTURE_SERIES;
    memset(scenario.columns, 0, sizeof scenario.columns);
    scenario.columns[0] = "recovers";
    scenario.columns[1] = "recover_s";
    scenario.columns[2] = "amplification";
    add_row("fifo", "", 0);
    add_row("lifo", "", 0);
    return 0;
}

/* Makes 3 cases at 4 values of a key. */
static void sweep(void)
{
    static const char *const names[] = {"none", "one", "three"};
    static const double rates[] = {100, 140, 150, 280};
    batch.rows = 0;
    for (size_t i = 0; i < 12; i++) {
        char swept[64];
        snprintf(swept, sizeof swept, "clients.rate=%.0f/s", rates[i % 4]);
        add_row(names[i / 4], swept, rates[i % 4]);
    }
}

static void several_seeds(void)
{
    batch.plan.seeds = 20;
    for (size_t i = 0; i < batch.rows; i++) {
        set_figure(i, "amplification", 1.215, 0.0213);
        set_figure(i, "recovers", 0.95, 0.1);
        set_figure(i, "arrivals", 17010.55, 120.25);
    }
}

/* ---- output ---- */

enum form { TABLE, CSV, SERIES, JSON, SVG, HTML };
static struct cli_term term;

static char *written(enum form form)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    switch (form) {
    case TABLE:
        term.out = out;
        sim_report_table(&term, &batch);
        break;
    case CSV: sim_report_csv(out, &batch); break;
    case SERIES: sim_report_csv_series(out, &batch); break;
    case JSON: sim_report_json(out, &batch); break;
    case SVG: assert_true(sim_report_svg(out, &batch)); break;
    case HTML: assert_true(sim_report_html(out, &batch)); break;
    }
    fclose(out);
    assert_int_equal(strlen(text), length);
    return text;
}

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("not found: %s\nin:\n%.2000s", part, text);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        count++;
    }
    return count;
}

/* Returns the width of the widest line, in characters. */
static size_t width_of(const char *text)
{
    size_t max = 0, width = 0;
    for (; *text != '\0'; text++) {
        width = *text == '\n' ? 0 : width + (((unsigned char)*text & 0xc0) != 0x80);
        max = width > max ? width : max;
    }
    return max;
}

static char *table_of(unsigned columns, bool utf8)
{
    term = (struct cli_term){.width = columns, .utf8 = utf8};
    return written(TABLE);
}

/* ---- the table ---- */

static void table_describes_the_run(void **state)
{
    char *text = table_of(80, true);
    expect_in(text, "made_up: A title\nHow much can it stand?\n");
    expect_in(text, "Simulated: open loop; seed 7; bins of 1s.");
    expect_in(text, "arrivals over time, 0 to 50s; the highest are 2800 per 1s");
    free(text);
}

static void table_always_has_arrivals_and_served(void **state)
{
    for (unsigned columns = 40; columns < 160; columns += 7) {
        char *text = table_of(columns, true);
        expect_in(text, "arrivals");
        expect_in(text, "served");
        expect_in(text, "17011");
        expect_in(text, "13500");
        free(text);
    }
}

static void table_fits_the_terminal(void **state)
{
    sweep();
    snprintf(scenario.row[3].label, SIM_LABEL_MAX, "%0120d", 7);
    snprintf(scenario.row[3].name, SIM_NAME_MAX, "%060d", 7);
    scenario.question =
        "why-is-this-word-so-long-that-no-terminal-which-is-a-hundred-columns-wide-could-ever-have-it-whole";
    for (unsigned several = 0; several < 2; several++) {
        for (unsigned columns = 40; columns <= 160; columns++) {
            char *text = table_of(columns, columns % 2 == 0);
            if (width_of(text) > columns)
                fail_msg("%zu columns of %u:\n%s", width_of(text), columns, text);
            free(text);
        }
        several_seeds();
    }
}

static void long_names_are_visibly_truncated_and_numbers_never(void **state)
{
    snprintf(scenario.row[0].label, SIM_LABEL_MAX, "a name that is much too long for a terminal of sixty columns");
    set_figure(0, "arrivals", 123456789012345.0, 0);
    char *text = table_of(60, true);
    expect_in(text, "a name that is much…");
    expect_in(text, " 123456789012345");
    free(text);
    text = table_of(60, false);
    expect_in(text, "a name that is mu...");
    free(text);
}

static void swept_values_stand_below_their_key(void **state)
{
    sweep();
    char *text = table_of(80, true);
    expect_in(text, "clients.rate");
    expect_in(text, "three  280/s ");
    assert_null(strstr(text, "three  clients.rate"));
    free(text);
}

static void several_seeds_show_mean_and_interval(void **state)
{
    several_seeds();
    char *text = table_of(80, true);
    expect_in(text, "seeds 7 to 26 (mean ± half of the 95 % interval)");
    expect_in(text, "1.215 ±0.021");
    expect_in(text, "19 of 20");
    expect_in(text, "17011 ±120");
    free(text);
}

static void table_lists_give_ups_by_reason(void **state)
{
    set_figure(1, "unfinished", 6, 0);
    char *text = table_of(80, true);
    expect_in(text, "Gave up, by reason:\n\n"
                    "      attempts  budget\n"
                    "         spent   empty  unfinished\n"
                    "fifo       123      45           0\n"
                    "lifo         0       0           6\n");
    free(text);
    add_row("patient", "", 0); /* a row without give-ups has no line */
    set_figure(1, "unfinished", 0, 0);
    text = table_of(80, true);
    assert_null(strstr(strstr(text, "Gave up"), "lifo"));
    batch.rows--;
    free(text);
    set_figure(0, "gave_up_attempts_spent", 0, 0);
    set_figure(0, "gave_up_budget_empty", 0, 0);
    set_figure(1, "unfinished", 0, 0);
    text = table_of(80, true);
    expect_in(text, "No call gave up.");
    free(text);
}

static void metrics_equal_in_all_rows_are_printed_once(void **state)
{
    for (size_t i = 0; i < batch.rows; i++) {
        set_figure(i, "success", 0.75, 0);
        set_figure(i, "goodput", 500, 0);
        set_figure(i, "latency_p99_ms", 100 + (double)i, 0);
    }
    char *text = table_of(80, true);
    expect_in(text, "\nIn all rows: success 0.750, goodput 500/s, latency_p50_ms 0\n");
    assert_true(strstr(text, "p99 ms\n") < strstr(text, "In all rows"));
    free(text);
    batch.rows = 1; /* a single row has nothing to compare with */
    text = table_of(80, true);
    assert_null(strstr(text, "In all rows"));
    free(text);
}

/* fifo has a wave in one of 50 bins, which would leave a tenth of the height for the rest. */
static void single_wave_is_cut_in_the_pictures(void **state)
{
    points[1][20].arrivals = 300;
    char *text = table_of(120, true), *svg = NULL;
    expect_in(text, "the highest are 2800 per 1s, drawn no higher than 300."); /* 300 is not far from the rest */
    char *first = strstr(text, "fifo ");
    *strchr(first, '\n') = '\0';
    assert_true(occurrences(first, "█") > 5);
    free(text);
    svg = written(SVG);
    assert_int_equal(occurrences(svg, ">↑ 2800</text>"), 1);
    assert_int_equal(occurrences(svg, "; higher values are cut: ↑</text>"), 1); /* not printed where nothing is cut */
    free(svg);
    for (size_t i = 18; i < 23; i++) /* a wave that lasts is not an outlier */
        points[0][i].arrivals = 2800;
    svg = written(SVG);
    assert_null(strstr(svg, "↑"));
    free(svg);
}

static void table_caption_counts_arrivals_only(void **state)
{
    points[1][20].arrivals = 300;
    for (size_t i = 20; i < 30; i++) { /* as after an outage: more is served than arrives */
        points[0][i].arrivals = 400;
        points[0][i].served = 700;
    }
    char *text = table_of(120, true);
    expect_in(text, "the highest are 400 per 1s.");
    free(text);
}

static void very_different_rows_use_a_square_root_scale(void **state)
{
    for (size_t i = 0; i < POINTS; i++)
        points[0][i].arrivals = 100 * points[1][i].arrivals;
    char *svg = written(SVG), *text = table_of(80, true);
    assert_int_equal(occurrences(svg, "arrivals and served per 1s, square-root scale"), 2);
    expect_in(text, "(square-root scale).");
    free(svg);
    free(text);
    sweep();
    scenario.picture = SIM_PICTURE_CURVE;
    set_figure(11, "amplification", 243, 0);
    svg = written(SVG);
    expect_in(svg, "; square-root scale</text>");
    free(svg);
}

static void missing_value_is_a_dash(void **state)
{
    char *text = table_of(80, true);
    const char *row = strstr(text, "fifo ");
    assert_non_null(row);
    assert_true(strstr(row, " no        -") < strchr(row, '\n'));
    free(text);
}

static void largest_value_has_the_longest_bar(void **state)
{
    scenario.picture = SIM_PICTURE_BARS;
    char *text = table_of(80, true);
    char *first = strstr(text, "fifo "), *second = strstr(text, "lifo ");
    expect_in(text, "Right: amplification, 0 to 2.215.");
    *strchr(first, '\n') = '\0';
    *strchr(second, '\n') = '\0';
    assert_true(occurrences(first, "█") > 0);
    assert_true(occurrences(second, "█") > occurrences(first, "█"));
    free(text);
}

static void table_lists_loops_if_rows_differ(void **state)
{
    scenario.row[1].world.clients[0].arrival = SIM_CLOSED;
    char *text = table_of(80, true);
    expect_in(text, "  fifo: open loop\n  lifo: closed loop\n");
    free(text);
    scenario.row[1].world = scenario.row[0].world;
    for (size_t i = 0; i < 2; i++) {
        scenario.row[i].world.groups = 2;
        snprintf(scenario.row[i].world.clients[0].name, SIM_NAME_MAX, "herd");
        snprintf(scenario.row[i].world.clients[1].name, SIM_NAME_MAX, "users");
        scenario.row[i].world.clients[1].arrival = SIM_CLOSED;
    }
    text = table_of(80, true);
    expect_in(text, "herd: open loop, users: closed loop");
    free(text);
}

static void ascii_terminal_gets_ascii_only(void **state)
{
    scenario.title = "caf\xc3\xa9 \x1b[31mred\x07 \xff";
    char *text = table_of(80, false);
    for (const char *c = text; *c != '\0'; c++)
        assert_true(*c == '\n' || (*c >= 0x20 && *c < 0x7f));
    expect_in(text, "caf? ?[31mred? ?");
    free(text);
    text = table_of(80, true);
    expect_in(text, "caf\xc3\xa9 ?[31mred? ?");
    free(text);
}

static void colours_are_used_only_on_request(void **state)
{
    char *text = table_of(80, true);
    assert_null(strchr(text, '\033'));
    free(text);
    term.colour = true;
    text = written(TABLE);
    assert_non_null(strstr(text, "\033[1m"));
    assert_int_equal(occurrences(text, "\033[") % 2, 0);
    free(text);
}

/* ---- CSV ---- */

/* Splits a line into fields and moves to the next line. */
static size_t take_fields(char **at, char *field[], size_t max)
{
    size_t count = 0;
    char *to = *at;
    bool quoted = false;
    field[count++] = to;
    for (;; (*at)++) {
        char c = **at;
        assert_true(c != '\0');
        if (c == '"' && quoted && (*at)[1] == '"')
            *to++ = *++*at;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == ',' || c == '\n')) {
            *to++ = '\0';
            if (c == '\n')
                break;
            assert_true(count < max);
            field[count++] = to;
        } else
            *to++ = c;
    }
    (*at)++;
    return count;
}

static size_t column(char *head[], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(head[i], name) == 0)
            return i;
    fail_msg("no column %s", name);
    return 0;
}

static void csv_has_a_line_per_row_and_a_column_per_metric(void **state)
{
    char *head[3 * METRIC_MAX], *field[3 * METRIC_MAX];
    snprintf(scenario.row[0].label, SIM_LABEL_MAX, "says \"a, b\"");
    char *text = written(CSV), *at = text;
    size_t count = take_fields(&at, head, 3 * METRIC_MAX);
    for (size_t i = 0; sim_metric(i) != NULL; i++)
        column(head, count, sim_metric(i)->name);
    assert_int_equal(take_fields(&at, field, 3 * METRIC_MAX), count);
    assert_string_equal(field[column(head, count, "label")], "says \"a, b\"");
    assert_string_equal(field[column(head, count, "seed")], "7");
    assert_string_equal(field[column(head, count, "arrivals")], "17010");
    assert_string_equal(field[column(head, count, "amplification")], "1.215");
    assert_string_equal(field[column(head, count, "recover_s")], "");
    assert_string_equal(field[column(head, count, "recovers")], "0");
    assert_int_equal(take_fields(&at, field, 3 * METRIC_MAX), count);
    assert_string_equal(field[column(head, count, "recover_s")], "12.345");
    assert_string_equal(at, "");
    free(text);
}

static void csv_of_several_seeds_has_half_intervals(void **state)
{
    char *head[3 * METRIC_MAX], *field[3 * METRIC_MAX];
    several_seeds();
    char *text = written(CSV), *at = text;
    size_t count = take_fields(&at, head, 3 * METRIC_MAX);
    assert_int_equal(take_fields(&at, field, 3 * METRIC_MAX), count);
    assert_string_equal(field[column(head, count, "amplification_half")], "0.0213");
    assert_string_equal(field[column(head, count, "arrivals")], "17010.6");
    assert_string_equal(field[column(head, count, "recover_s_half")], "");
    free(text);
}

static void series_has_a_line_per_bin(void **state)
{
    char *text = written(SERIES);
    row_result[1].result.bin_ns = 10 * BIDE_MS;
    expect_in(text,
              "label,from_s,width_s,calls,attempts,arrivals,retries,served,succeeded,gave_up,queue,open,budget\n");
    expect_in(text, "\nfifo,20,1,280,300,2800,20,270,0,0,20,0,\n");
    expect_in(text, "\nlifo,49,1,280,300,291,20,270,0,0,49,0,2.5\n");
    assert_int_equal(occurrences(text, "\n"), 1 + 2 * POINTS);
    free(text);
    text = written(SERIES);
    expect_in(text, "\nlifo,0.49,0.01,280,");
    free(text);
}

/* ---- JSON ---- */

static json_t *parsed(void)
{
    json_error_t error;
    char *text = written(JSON);
    json_t *tree = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (tree == NULL)
        fail_msg("%s at %d:%d", error.text, error.line, error.column);
    free(text);
    return tree;
}

static void json_has_scenario_seed_settings_and_rows(void **state)
{
    json_t *tree = parsed(), *rows = json_object_get(tree, "rows"), *row = json_array_get(rows, 0);
    assert_string_equal(json_string_value(json_object_get(tree, "scenario")), "made_up");
    assert_int_equal(json_integer_value(json_object_get(tree, "seed")), 7);
    assert_int_equal(json_integer_value(json_object_get(tree, "seeds")), 1);
    assert_int_equal(json_integer_value(json_object_get(tree, "bin_s")), 1);
    json_t *settings = json_object_get(tree, "settings");
    assert_string_equal(json_string_value(json_object_get(settings, "clients.rate")), "280/s");
    assert_string_equal(json_string_value(json_object_get(settings, "policy.one.attempts")), "2 \"<&");
    assert_int_equal(json_array_size(rows), 2);
    assert_string_equal(json_string_value(json_object_get(row, "name")), "fifo");
    for (size_t i = 0; sim_metric(i) != NULL; i++)
        assert_non_null(json_object_get(row, sim_metric(i)->name));
    assert_int_equal(json_integer_value(json_object_get(row, "arrivals")), 17010);
    assert_true(json_is_null(json_object_get(row, "recover_s")));
    assert_true(json_is_false(json_object_get(row, "recovers")));
    assert_true(json_is_true(json_object_get(json_array_get(rows, 1), "recovers")));
    assert_null(json_object_get(row, "half"));
    json_decref(tree);
}

static void json_has_the_series_of_each_row(void **state)
{
    static const char *const names[] = {"calls",     "attempts", "arrivals", "retries", "served",
                                        "succeeded", "gave_up",  "queue",    "open",    "budget"};
    json_t *tree = parsed(), *rows = json_object_get(tree, "rows");
    for (size_t i = 0; i < 2; i++) {
        json_t *series = json_object_get(json_array_get(rows, i), "series");
        assert_int_equal(json_object_size(series), 10);
        for (size_t j = 0; j < 10; j++)
            assert_int_equal(json_array_size(json_object_get(series, names[j])), POINTS);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(series, "arrivals"), 20)), 2800);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(series, "queue"), 49)), 49);
        assert_int_equal(json_is_null(json_array_get(json_object_get(series, "budget"), 0)), i == 0);
    }
    json_decref(tree);
}

static void json_of_several_seeds_has_means_and_half_intervals(void **state)
{
    several_seeds();
    json_t *tree = parsed(), *row = json_array_get(json_object_get(tree, "rows"), 0);
    json_t *half = json_object_get(row, "half");
    assert_true(fabs(json_number_value(json_object_get(row, "amplification")) - 1.215) < 1e-9);
    assert_true(fabs(json_number_value(json_object_get(half, "amplification")) - 0.0213) < 1e-9);
    assert_true(json_is_false(json_object_get(row, "recovers"))); /* not true for each seed */
    assert_true(fabs(json_number_value(json_object_get(row, "recovers_share")) - 0.95) < 1e-9);
    assert_true(json_is_null(json_object_get(half, "recover_s")));
    json_decref(tree);
}

static void json_is_valid_for_hostile_texts(void **state)
{
    scenario.title = "\"\\\n\t\x01\xff\xc3(\xed\xa0\x80 caf\xc3\xa9";
    json_t *tree = parsed();
    expect_in(json_string_value(json_object_get(tree, "title")), "\"\\\n\t\x01");
    expect_in(json_string_value(json_object_get(tree, "title")), "caf\xc3\xa9");
    assert_int_equal(occurrences(json_string_value(json_object_get(tree, "title")), "\xef\xbf\xbd"), 5);
    json_decref(tree);
}

/* ---- pictures ---- */

/* Returns the output, to be freed, after checking that it is well-formed, has only numbers and refers to no other
 * file. */
static char *drawn(enum form form)
{
    char *text = written(form);
    const char *wrong = xml_wrong(text);
    if (wrong != NULL)
        fail_msg("not well-formed: %.120s", wrong);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "\"inf"));
    assert_null(strstr(text, "<script"));
    assert_int_equal(occurrences(text, "://"), occurrences(text, "xmlns=\"http://www.w3.org/2000/svg\""));
    assert_null(strstr(text, "@import"));
    assert_null(strstr(text, "url("));
    expect_in(text, "prefers-color-scheme:dark");
    return text;
}

static void series_has_a_panel_per_row_with_a_common_scale(void **state)
{
    for (size_t i = 20; i < 24; i++) { /* its own scale would end at 400 */
        points[0][i].arrivals = 2800;
        points[1][i].arrivals = 400;
    }
    char *svg = drawn(SVG);
    assert_int_equal(occurrences(svg, "id=\"series-"), 4); /* a title and a description for each panel */
    assert_int_equal(occurrences(svg, "arrivals and served per 1s</text>"), 2);
    assert_int_equal(occurrences(svg, ">2000</text>"), 2);
    assert_int_equal(occurrences(svg, "class=\"band\""), 2);
    assert_int_equal(occurrences(svg, ">cut</text>"), 2);
    expect_in(svg, "seed 7; bins of 1s.");
    free(svg);
}

static void wasted_work_adds_succeeded_calls_to_the_chart(void **state)
{
    char *svg = drawn(SVG);
    assert_null(strstr(svg, "succeeded"));
    free(svg);
    row_result[1].result.served = 1000;
    row_result[1].result.wasted = 900;
    svg = drawn(SVG);
    assert_int_equal(occurrences(svg, ">succeeded</text>"), 2); /* in all panels, if in any */
    assert_int_equal(occurrences(svg, "arrivals, served, and calls that succeeded, per 1s"), 2);
    free(svg);
}

static void omitted_panels_are_counted(void **state)
{
    while (batch.rows < 11)
        add_row("more", "", 0);
    char *svg = drawn(SVG);
    assert_int_equal(occurrences(svg, "<title id=\"series-"), 8);
    expect_in(svg, "3 more are not shown here.");
    free(svg);
}

static void long_series_is_drawn_by_its_peaks(void **state)
{
    static struct sim_point many[20000];
    points[0][0] = points[1][0] = (struct sim_point){0};
    for (size_t i = 1; i < POINTS; i++)
        points[1][i].arrivals = 2800;
    many[13333].arrivals = 5000;
    row_result[0].result.point = many;
    row_result[0].result.points = 20000;
    char *svg = drawn(SVG);
    expect_in(svg, "arrivals and served per 1s, the highest of every 28");
    assert_true(strlen(svg) < 100000);
    expect_in(svg, ">4000</text>"); /* the scale includes the peak */
    char *path = strstr(svg, "class=\"area c0\"");
    assert_non_null(path);
    *strchr(path, '>') = '\0';
    assert_int_equal(occurrences(path, " 70.72L"), 2);
    free(svg);
}

static void bars_have_a_bar_for_each_row(void **state)
{
    scenario.picture = SIM_PICTURE_BARS;
    set_figure(0, "amplification", NAN, 0);
    char *svg = drawn(SVG);
    assert_int_equal(occurrences(svg, "<rect class=\"bar "), 1);
    expect_in(svg, ">none</text>");
    expect_in(svg, ">2.215</text>");
    expect_in(svg, ">amplification: arrivals at the last service per call of the clients; below 1 where breakers "
                   "refuse calls</text>");
    expect_in(svg, ">arrivals</text>"); /* both are always shown */
    expect_in(svg, ">served</text>");
    expect_in(svg, ">17011</text>");
    expect_in(svg, ">13500</text>");
    free(svg);
}

static void curves_have_a_line_for_each_case_and_a_dot_for_each_value(void **state)
{
    sweep();
    scenario.picture = SIM_PICTURE_CURVE;
    set_figure(1, "amplification", NAN, 0);
    char *svg = drawn(SVG);
    assert_int_equal(occurrences(svg, "<path class=\"line "), 3);
    assert_int_equal(occurrences(svg, "class=\"dot "), 11);
    assert_int_equal(occurrences(svg, "<circle class=\"dot "), 3); /* each curve has its own marker */
    expect_in(svg, ">three</text>");
    expect_in(svg, ">140/s</text>");
    expect_in(svg, ">clients.rate</text>");
    free(svg);
}

static void curve_without_a_sweep_becomes_bars(void **state)
{
    scenario.picture = SIM_PICTURE_CURVE;
    char *svg = drawn(SVG);
    assert_int_equal(occurrences(svg, "<rect class=\"bar "), 2);
    free(svg);
}

static void second_swept_key_makes_more_curves(void **state)
{
    batch.rows = 0;
    scenario.picture = SIM_PICTURE_CURVE;
    add_row("", "clients.rate=100/s, service.order=fifo", 100);
    add_row("", "clients.rate=100/s, service.order=lifo", 100);
    add_row("", "clients.rate=200/s, service.order=fifo", 200);
    add_row("", "clients.rate=200/s, service.order=lifo", 200);
    char *svg = drawn(SVG);
    assert_int_equal(occurrences(svg, "<path class=\"line "), 2);
    expect_in(svg, ">service.order=lifo</text>");
    free(svg);
    char *text = table_of(80, true);
    expect_in(text, "\nclients.rate ");
    expect_in(text, "\nservice.order ");
    expect_in(text, "200/s, lifo");
    free(text);
}

static void words_on_the_axis_are_equally_spaced(void **state)
{
    batch.rows = 0;
    scenario.picture = SIM_PICTURE_CURVE;
    add_row("a", "service.order=fifo", 0);
    add_row("a", "service.order=lifo", 0);
    add_row("a", "service.order=none", 0);
    char *svg = drawn(SVG);
    expect_in(svg, ">fifo</text>");
    expect_in(svg, ">none</text>");
    free(svg);
}

static void page_has_all_parts(void **state)
{
    char *page = drawn(HTML);
    static const char *const parts[] = {
        "<h1>A title</h1>", "How much can it stand?",    "open loop; seed 7; bins of 1s",  ">arrivals</th>",
        ">served</th>",     ">amplification</th>",       ">attempts spent</th>",           "<td>123</td>",
        "Retry budget",     "<code>clients.rate</code>", "bide sim made_up --seed 7</pre>"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        expect_in(page, parts[i]);
    free(page);
    several_seeds();
    batch.plan.command_line = "./made_up.ini --set 'clients.rate=300/s'";
    page = drawn(HTML);
    expect_in(page, "bide sim ./made_up.ini --set &#39;clients.rate=300/s&#39; --seed 7 --seeds 20</pre>");
    expect_in(page, "±0.021");
    free(page);
}

static void hostile_texts_leave_pictures_well_formed(void **state)
{
    scenario.title = "</title><script>alert(1)</script>";
    scenario.question = "]]> & \"' \x01\xff <b>";
    snprintf(scenario.row[0].label, SIM_LABEL_MAX, "<script>&\"'\xfe");
    for (int picture = SIM_PICTURE_SERIES; picture <= SIM_PICTURE_CURVE; picture++) {
        scenario.picture = (enum sim_picture)picture;
        free(drawn(SVG));
        free(drawn(HTML));
    }
}

static void empty_run_can_be_reported(void **state)
{
    for (size_t i = 0; i < batch.rows; i++) {
        row_result[i].result.points = 0;
        for (size_t j = 0; sim_metric(j) != NULL; j++)
            figures[i][j] = (struct sim_figure){.mean = NAN};
    }
    for (int picture = SIM_PICTURE_SERIES; picture <= SIM_PICTURE_CURVE; picture++) {
        scenario.picture = (enum sim_picture)picture;
        free(drawn(SVG));
        free(drawn(HTML));
        free(table_of(80, true));
        json_decref(parsed());
        free(written(CSV));
        free(written(SERIES));
    }
}

static void same_batch_gives_the_same_bytes(void **state)
{
    sweep();
    term = (struct cli_term){.width = 80, .colour = true, .utf8 = true};
    for (enum form form = TABLE; form <= HTML; form++) {
        char *first = written(form), *second = written(form);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(table_describes_the_run, setup),
        cmocka_unit_test_setup(table_always_has_arrivals_and_served, setup),
        cmocka_unit_test_setup(table_fits_the_terminal, setup),
        cmocka_unit_test_setup(long_names_are_visibly_truncated_and_numbers_never, setup),
        cmocka_unit_test_setup(swept_values_stand_below_their_key, setup),
        cmocka_unit_test_setup(several_seeds_show_mean_and_interval, setup),
        cmocka_unit_test_setup(table_lists_give_ups_by_reason, setup),
        cmocka_unit_test_setup(metrics_equal_in_all_rows_are_printed_once, setup),
        cmocka_unit_test_setup(single_wave_is_cut_in_the_pictures, setup),
        cmocka_unit_test_setup(table_caption_counts_arrivals_only, setup),
        cmocka_unit_test_setup(very_different_rows_use_a_square_root_scale, setup),
        cmocka_unit_test_setup(missing_value_is_a_dash, setup),
        cmocka_unit_test_setup(largest_value_has_the_longest_bar, setup),
        cmocka_unit_test_setup(table_lists_loops_if_rows_differ, setup),
        cmocka_unit_test_setup(ascii_terminal_gets_ascii_only, setup),
        cmocka_unit_test_setup(colours_are_used_only_on_request, setup),
        cmocka_unit_test_setup(csv_has_a_line_per_row_and_a_column_per_metric, setup),
        cmocka_unit_test_setup(csv_of_several_seeds_has_half_intervals, setup),
        cmocka_unit_test_setup(series_has_a_line_per_bin, setup),
        cmocka_unit_test_setup(json_has_scenario_seed_settings_and_rows, setup),
        cmocka_unit_test_setup(json_has_the_series_of_each_row, setup),
        cmocka_unit_test_setup(json_of_several_seeds_has_means_and_half_intervals, setup),
        cmocka_unit_test_setup(json_is_valid_for_hostile_texts, setup),
        cmocka_unit_test_setup(series_has_a_panel_per_row_with_a_common_scale, setup),
        cmocka_unit_test_setup(wasted_work_adds_succeeded_calls_to_the_chart, setup),
        cmocka_unit_test_setup(omitted_panels_are_counted, setup),
        cmocka_unit_test_setup(long_series_is_drawn_by_its_peaks, setup),
        cmocka_unit_test_setup(bars_have_a_bar_for_each_row, setup),
        cmocka_unit_test_setup(curves_have_a_line_for_each_case_and_a_dot_for_each_value, setup),
        cmocka_unit_test_setup(curve_without_a_sweep_becomes_bars, setup),
        cmocka_unit_test_setup(second_swept_key_makes_more_curves, setup),
        cmocka_unit_test_setup(words_on_the_axis_are_equally_spaced, setup),
        cmocka_unit_test_setup(page_has_all_parts, setup),
        cmocka_unit_test_setup(hostile_texts_leave_pictures_well_formed, setup),
        cmocka_unit_test_setup(empty_run_can_be_reported, setup),
        cmocka_unit_test_setup(same_batch_gives_the_same_bytes, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
