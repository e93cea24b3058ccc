/* expect.c - see expect.h. Expectations are read before anything runs, so that a typing mistake costs no time. */
#include "expect.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bide/base.h>

#include "number.h"
#include "text/slice.h"
#include "text/unit.h"

#define TEXT_MAX   256u
#define WANT_MAX   256u
#define NUMBER_MAX 64u
#define MICRO      INT64_C(1000000) /* numbers are read as integers, in millionths */
#define IN_QUOTES  "in quotes: < and > are special to the shell"

/* ---- reading ---- */

/* Longer signs first. */
static const struct sign {
    const char *text;
    enum sim_operator op;
} signs[] = {
    {"<=", SIM_OP_LESS_EQUAL}, {">=", SIM_OP_MORE_EQUAL}, {"!=", SIM_OP_UNEQUAL}, {"==", SIM_OP_EQUAL},
    {"<", SIM_OP_LESS},        {">", SIM_OP_MORE},        {"=", SIM_OP_EQUAL},
};

/* Returns the sign that a text begins with; NULL: none. */
static const struct sign *sign_at(const char *text)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strncmp(text, signs[i].text, strlen(signs[i].text)) == 0)
            return &signs[i];
    return NULL;
}

static const char *sign_of(enum sim_operator op)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (signs[i].op == op && strcmp(signs[i].text, "==") != 0)
            return signs[i].text;
    return "";
}

/* Returns true for metrics with values from 0 to 1. */
static bool metric_is_share(const struct sim_metric *metric)
{
    static const char *const shares[] = {"success", "error", "users_success"};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (strcmp(metric->name, shares[i]) == 0)
            return true;
    return false;
}

/* Removes blanks before the unit: "99 %" becomes "99%". */
static struct bide_text number_joined(char space[NUMBER_MAX], struct bide_text text)
{
    size_t digits = 0, unit;
    while (digits < text.length && strchr("0123456789.", text.at[digits]) != NULL)
        digits++;
    for (unit = digits; unit < text.length && (text.at[unit] == ' ' || text.at[unit] == '\t'); unit++)
        continue;
    if (text.length >= NUMBER_MAX || (unit < text.length && strchr("0123456789.", text.at[unit]) != NULL))
        return text;
    memcpy(space, text.at, digits);
    memcpy(space + digits, text.at + unit, text.length - unit);
    return (struct bide_text){space, digits + text.length - unit};
}

/* Reads a number, in the metric's own unit. */
static bool number_read(struct bide_text text, const struct sim_metric *metric, double *number)
{
    size_t unit = strlen(metric->unit);
    bool ms = strcmp(metric->unit, "ms") == 0, s = strcmp(metric->unit, "s") == 0;
    char space[NUMBER_MAX];
    int64_t value;
    text = number_joined(space, text);
    if (text_decimal_parse(text.at, text.length, MICRO, &value)) {
        *number = (double)value / (double)MICRO;
        return true;
    }
    if ((ms || s) && text_duration_parse(text.at, text.length, &value) && value != BIDE_NEVER) {
        *number = (double)value / (double)(ms ? BIDE_MS : BIDE_S);
        return true;
    }
    if (unit > 0 && text.length > unit && memcmp(text.at + text.length - unit, metric->unit, unit) == 0 &&
        text_decimal_parse(text.at, text.length - unit, MICRO, &value)) {
        *number = (double)value / (double)MICRO;
        return true;
    }
    if (unit > 0)
        return false;
    int64_t whole = 100 * MICRO;
    bool share = text_share_parse(text.at, text.length, whole, &value);
    if (!share && !text_multiple_parse(text.at, text.length, MICRO, &value))
        return false;
    *number = (double)value / (double)(share ? whole : MICRO);
    return true;
}

static char want[WANT_MAX];

/* Not thread-safe: only the command line is read with it. */
__attribute__((format(printf, 1, 2))) static const char *want_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(want, sizeof want, format, arguments);
    va_end(arguments);
    return want;
}

static const char *expect_read_metric(struct sim_expect *expect, struct bide_text name)
{
    const char *suggestion = sim_metric_suggest(name.at, name.length);
    if (name.length == 0)
        return want_format("a metric, such as 'recovers', or a comparison, such as 'amplification<1.2'");
    expect->metric = sim_metric_find(name.at, name.length);
    if (expect->metric != SIZE_MAX)
        return NULL;
    if (suggestion != NULL)
        return want_format("%s: there is no metric %.*s; bide sim metrics lists all", suggestion, (int)name.length,
                           name.at);
    return want_format("a metric of bide sim metrics, such as 'recovers' or 'amplification<1.2'; there is no %.*s",
                       (int)name.length, name.at);
}

/* Reads "recovers" or "recovers=yes"; without an operator `sign` is NULL. */
static const char *expect_read_flag(struct sim_expect *expect, const struct sign *sign, struct bide_text value)
{
    const char *name = sim_metric(expect->metric)->name;
    bool yes = text_equals(value, "yes") || text_equals(value, "true") || text_equals(value, "1");
    bool no = text_equals(value, "no") || text_equals(value, "false") || text_equals(value, "0");
    if (sign == NULL)
        return NULL;
    if ((sign->op != SIM_OP_EQUAL && sign->op != SIM_OP_UNEQUAL) || (!yes && !no))
        return want_format("'%s' or '!%s': the metric is yes or no", name, name);
    expect->op = yes == (sign->op == SIM_OP_EQUAL) ? SIM_OP_IS_YES : SIM_OP_IS_NO;
    return NULL;
}

static const char *expect_read_comparison(struct sim_expect *expect, const struct sign *sign, struct bide_text value)
{
    const struct sim_metric *metric = sim_metric(expect->metric);
    if (sign == NULL)
        return want_format("a comparison such as '%s<1.2', " IN_QUOTES, metric->name);
    expect->op = sign->op;
    if (value.length == 0)
        return want_format("a comparison with a number after %s, " IN_QUOTES, sign->text);
    bool read = number_read(value, metric, &expect->number);
    if (metric_is_share(metric) && (!read || expect->number > 1))
        return want_format("a comparison with a share after %s, from 0 to 1 or in per cent: '%s%s99%%'", sign->text,
                           metric->name, sign->text);
    if (!read)
        return want_format("a comparison with a number%s%s after %s, such as '%s%s1.2%s'",
                           metric->unit[0] != '\0' ? " of " : "", metric->unit, sign->text, metric->name, sign->text,
                           metric->unit);
    return NULL;
}

/* The last colon separates row and metric: a row name may contain colons, metrics and numbers do not. */
static const char *expect_read_row(struct sim_expect *expect, const char **text)
{
    const char *colon = strrchr(*text, ':');
    if (colon == NULL)
        return NULL;
    struct bide_text row = text_trim((struct bide_text){*text, (size_t)(colon - *text)}, TEXT_OWS);
    if (row.length == 0)
        return want_format("an expectation with the name of a row before the colon");
    if (row.length >= sizeof expect->row)
        return want_format("an expectation with a shorter name of a row");
    memcpy(expect->row, row.at, row.length);
    *text = colon + 1;
    return NULL;
}

const char *sim_expect_read(struct sim_expect *expect, const char *text)
{
    *expect = (struct sim_expect){.op = SIM_OP_IS_YES};
    const char *problem = expect_read_row(expect, &text);
    if (problem != NULL)
        return problem;
    struct bide_text all = text_trim(text_from(text), TEXT_OWS);
    bool negated = all.length > 0 && all.at[0] == '!';
    all = text_trim((struct bide_text){all.at + negated, all.length - negated}, TEXT_OWS);
    size_t length = 0;
    while (length < all.length && sign_at(all.at + length) == NULL)
        length++;
    const struct sign *sign = length < all.length ? sign_at(all.at + length) : NULL;
    size_t behind = sign != NULL ? length + strlen(sign->text) : length;
    struct bide_text value = text_trim((struct bide_text){all.at + behind, all.length - behind}, TEXT_OWS);
    problem = expect_read_metric(expect, text_trim((struct bide_text){all.at, length}, TEXT_OWS));
    if (problem != NULL)
        return problem;
    bool flag = sim_metric(expect->metric)->flag;
    if (negated && (sign != NULL || !flag))
        return want_format("an expectation with ! only before a flag, such as '!recovers'; numbers have !=, < and >=");
    if (negated)
        expect->op = SIM_OP_IS_NO;
    return flag ? expect_read_flag(expect, sign, value) : expect_read_comparison(expect, sign, value);
}

/* ---- rows ---- */

static bool row_has_name(const struct sim_expect *expect, const struct sim_row *row)
{
    return expect->row[0] == '\0' || strcmp(row->name, expect->row) == 0 || strcmp(row->label, expect->row) == 0;
}

static bool any_row_has_name(const struct sim_expect *expect, const struct sim_scenario *scenario)
{
    for (size_t r = 0; r < sim_scenario_rows(scenario); r++)
        if (row_has_name(expect, sim_scenario_row(scenario, r)))
            return true;
    return false;
}

/* by_name: at least one row has exactly this name; else labels are compared by prefix. */
static bool row_is_checked(const struct sim_expect *expect, const struct sim_row *row, bool by_name)
{
    return by_name ? row_has_name(expect, row) : strncmp(row->label, expect->row, strlen(expect->row)) == 0;
}

size_t sim_expect_rows(const struct sim_expect *expect, const struct sim_scenario *scenario)
{
    bool by_name = any_row_has_name(expect, scenario);
    size_t count = 0;
    for (size_t r = 0; r < sim_scenario_rows(scenario); r++)
        count += row_is_checked(expect, sim_scenario_row(scenario, r), by_name);
    return count;
}

/* ---- checking ---- */

/* The deciding value, and its distance to the limit: negative if the expectation fails; at 0 it depends on the
 * operator. */
struct check {
    bool holds;
    double value, margin;
};

static struct check figure_check(const struct sim_expect *expect, const struct sim_figure *f, uint32_t seeds)
{
    double n = expect->number;
    if (f->count < seeds)
        return (struct check){false, NAN, -INFINITY};
    switch (expect->op) {
    case SIM_OP_IS_YES: return (struct check){f->min > 0, f->min, f->min};
    case SIM_OP_IS_NO: return (struct check){f->max <= 0, f->max, -f->max};
    case SIM_OP_LESS: return (struct check){f->max < n, f->max, n - f->max};
    case SIM_OP_LESS_EQUAL: return (struct check){f->max <= n, f->max, n - f->max};
    case SIM_OP_MORE: return (struct check){f->min > n, f->min, f->min - n};
    case SIM_OP_MORE_EQUAL: return (struct check){f->min >= n, f->min, f->min - n};
    case SIM_OP_EQUAL: return (struct check){f->min == n && f->max == n, f->min == n ? f->max : f->min, 0};
    case SIM_OP_UNEQUAL:
    default: return (struct check){n < f->min || n > f->max, n < f->min ? f->min : f->max, 0};
    }
}

/* Appends formatted text, truncated to the buffer. Returns the new length. */
__attribute__((format(printf, 3, 4))) static size_t append_text(char text[TEXT_MAX], size_t used, const char *format,
                                                                ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text + used, TEXT_MAX - used, format, arguments);
    va_end(arguments);
    size_t more = length > 0 ? (size_t)length : 0;
    return used + more < TEXT_MAX ? used + more : TEXT_MAX - 1;
}

/* "is no with 3 of 10 seeds; expected yes" */
static size_t append_flag(char text[TEXT_MAX], size_t used, bool yes, const struct check *a, const struct sim_figure *f)
{
    double of = yes == a->holds ? f->mean * f->count : (1 - f->mean) * f->count;
    used = append_text(text, used, " is %s", yes == a->holds ? "yes" : "no");
    if (f->count > 1)
        used = append_text(text, used, " with %.0f of %" PRIu32 " seeds", of, f->count);
    return append_text(text, used, "; expected %s", yes ? "yes" : "no");
}

/* "is 2.01; expected < 1.2" */
static size_t append_number(char text[TEXT_MAX], size_t used, const struct sim_expect *expect, const struct check *a,
                            const struct sim_figure *f)
{
    const char *unit = sim_metric(expect->metric)->unit;
    const char *gap = unit[0] != '\0' && unit[0] != '/' ? " " : "";
    char value[SIM_NUMBER_SIZE], mean[SIM_NUMBER_SIZE];
    used = append_text(text, used, " is %s%s%s", sim_number(value, a->value), gap, unit);
    if (f->count > 1)
        used = append_text(text, used, " at worst, %s on average of %" PRIu32 " seeds", sim_number(mean, f->mean),
                           f->count);
    return append_text(text, used, "; expected %s %.10g", sign_of(expect->op), expect->number);
}

static size_t append_check(char text[TEXT_MAX], const struct sim_expect *expect, const struct sim_batch *batch,
                           size_t row, const struct check *a)
{
    const struct sim_figure *f = &batch->row[row].figure[expect->metric];
    bool flag = expect->op == SIM_OP_IS_YES || expect->op == SIM_OP_IS_NO;
    size_t used = append_text(text, 0, "%.*s: %s", 120, sim_scenario_row(batch->scenario, row)->label,
                              sim_metric(expect->metric)->name);
    if (f->count == 0)
        return append_text(text, used, " has no value");
    if (f->count < batch->plan.seeds)
        return append_text(text, used, " has no value with %" PRIu32 " of %" PRIu32 " seeds",
                           batch->plan.seeds - f->count, batch->plan.seeds);
    return flag ? append_flag(text, used, expect->op == SIM_OP_IS_YES, a, f) : append_number(text, used, expect, a, f);
}

bool sim_expect_holds(const struct sim_expect *expect, const struct sim_batch *batch, char text[256])
{
    bool by_name = any_row_has_name(expect, batch->scenario);
    struct check reported = {.holds = true, .margin = INFINITY};
    size_t row = batch->rows, failed = 0;
    for (size_t r = 0; r < batch->rows; r++) {
        if (!row_is_checked(expect, sim_scenario_row(batch->scenario, r), by_name))
            continue;
        struct check a = figure_check(expect, &batch->row[r].figure[expect->metric], batch->plan.seeds);
        failed += !a.holds;
        if ((!a.holds && reported.holds) ||
            (a.holds && reported.holds && (row == batch->rows || a.margin < reported.margin))) {
            reported = a;
            row = r;
        }
    }
    if (row == batch->rows) {
        append_text(text, 0, "there is no row %.*s", 160, expect->row);
        return false;
    }
    size_t used = append_check(text, expect, batch, row, &reported);
    if (failed > 1)
        append_text(text, used, "; and %zu more row%s", failed - 1, failed > 2 ? "s" : "");
    return failed == 0;
}
