/* expect.c - see expect.h. Read before anything is run, so that a slip of the finger costs no waiting. */
#include "expect.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bide/base.h>

#include "conf/unit.h"
#include "number.h"

#define SAID_MAX   256u
#define WANT_MAX   256u
#define NUMBER_MAX 64u
#define MICRO      INT64_C(1000000) /* numbers are read in millionths */
#define IN_QUOTES  "in quotes: < and > mean something to the shell"

/* ---- reading ---- */

static struct bide_text trimmed(const char *at, size_t length)
{
    while (length > 0 && (*at == ' ' || *at == '\t')) {
        at++;
        length--;
    }
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    return (struct bide_text){at, length};
}

static bool is(struct bide_text text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.at, word, text.length) == 0;
}

/* Longer ones first. */
static const struct sign {
    const char *text;
    enum sim_question how;
} signs[] = {
    {"<=", SIM_LESS_EQUAL}, {">=", SIM_MORE_EQUAL}, {"!=", SIM_UNEQUAL}, {"==", SIM_EQUAL},
    {"<", SIM_LESS},        {">", SIM_MORE},        {"=", SIM_EQUAL},
};

/* The one that a text begins with; NULL: none of them. */
static const struct sign *sign_at(const char *text)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strncmp(text, signs[i].text, strlen(signs[i].text)) == 0)
            return &signs[i];
    return NULL;
}

static const char *sign_of(enum sim_question how)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (signs[i].how == how && strcmp(signs[i].text, "==") != 0)
            return signs[i].text;
    return "";
}

/* Figures from 0 to 1. */
static bool is_share(const struct sim_metric *metric)
{
    static const char *const shares[] = {"success", "error", "users_success"};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (strcmp(metric->name, shares[i]) == 0)
            return true;
    return false;
}

/* "99 %" is "99%". */
static struct bide_text joined(char space[NUMBER_MAX], struct bide_text text)
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

/* A number with one letter behind it, which stands for `times`. */
static bool read_scaled(struct bide_text text, char letter, double times, double *number)
{
    int64_t whole;
    if (text.length < 2 || text.at[text.length - 1] != letter ||
        !conf_decimal_parse(text.at, text.length - 1, MICRO, &whole))
        return false;
    *number = (double)whole / (double)MICRO * times;
    return true;
}

/* In the metric's own unit. */
static bool read_number(struct bide_text text, const struct sim_metric *metric, double *number)
{
    size_t unit = strlen(metric->unit);
    bool ms = strcmp(metric->unit, "ms") == 0, s = strcmp(metric->unit, "s") == 0;
    char space[NUMBER_MAX];
    int64_t whole;
    text = joined(space, text);
    if (conf_decimal_parse(text.at, text.length, MICRO, &whole)) {
        *number = (double)whole / (double)MICRO;
        return true;
    }
    if ((ms || s) && conf_duration_parse(text.at, text.length, &whole) && whole != BIDE_NEVER) {
        *number = (double)whole / (double)(ms ? BIDE_MS : BIDE_S);
        return true;
    }
    if (unit > 0 && text.length > unit && memcmp(text.at + text.length - unit, metric->unit, unit) == 0 &&
        conf_decimal_parse(text.at, text.length - unit, MICRO, &whole)) {
        *number = (double)whole / (double)MICRO;
        return true;
    }
    if (unit > 0)
        return false;
    if (text.length > 1 && text.at[text.length - 1] == '%' &&
        conf_decimal_parse(text.at, text.length - 1, MICRO, &whole)) {
        *number = (double)whole / (double)MICRO / 100;
        return true;
    }
    return read_scaled(text, 'k', 1e3, number) || read_scaled(text, 'M', 1e6, number);
}

static char want[WANT_MAX];

/* One call of ours at a time: it is the command line that is read. */
__attribute__((format(printf, 1, 2))) static const char *wanted(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(want, sizeof want, format, arguments);
    va_end(arguments);
    return want;
}

static const char *read_metric(struct sim_expect *expect, struct bide_text name)
{
    const char *near = sim_metric_near(name.at, name.length);
    if (name.length == 0)
        return wanted("a metric first, such as 'recovers' or 'amplification<1.2'");
    expect->metric = sim_metric_find(name.at, name.length);
    if (expect->metric != SIZE_MAX)
        return NULL;
    if (near != NULL)
        return wanted("%s: there is no %.*s; bide sim metrics lists all", near, (int)name.length, name.at);
    return wanted("a metric of bide sim metrics, such as 'recovers' or 'amplification<1.2'; there is no %.*s",
                  (int)name.length, name.at);
}

/* "recovers", "recovers=yes"; `value` is empty without an operator. */
static const char *read_flag(struct sim_expect *expect, const struct sign *op, struct bide_text value)
{
    const char *name = sim_metric(expect->metric)->name;
    bool yes = is(value, "yes") || is(value, "true") || is(value, "1");
    bool no = is(value, "no") || is(value, "false") || is(value, "0");
    if (op == NULL)
        return NULL;
    if ((op->how != SIM_EQUAL && op->how != SIM_UNEQUAL) || (!yes && !no))
        return wanted("'%s' or '!%s': it is yes or no", name, name);
    expect->how = yes == (op->how == SIM_EQUAL) ? SIM_IS : SIM_IS_NOT;
    return NULL;
}

static const char *read_comparison(struct sim_expect *expect, const struct sign *op, struct bide_text value)
{
    const struct sim_metric *metric = sim_metric(expect->metric);
    if (op == NULL)
        return wanted("what it should be, such as '%s<1.2', " IN_QUOTES, metric->name);
    expect->how = op->how;
    if (value.length == 0)
        return wanted("a number behind %s, all of it " IN_QUOTES, op->text);
    bool read = read_number(value, metric, &expect->number);
    if (is_share(metric) && (!read || expect->number > 1))
        return wanted("a share behind %s, from 0 to 1 or in per cent: '%s%s99%%'", op->text, metric->name, op->text);
    if (!read)
        return wanted("a number%s%s behind %s, such as '%s%s1.2%s'", metric->unit[0] != '\0' ? " of " : "",
                      metric->unit, op->text, metric->name, op->text, metric->unit);
    return NULL;
}

/* A name may contain a colon, a metric and a number do not: the last one counts. */
static const char *read_row(struct sim_expect *expect, const char **text)
{
    const char *colon = strrchr(*text, ':');
    if (colon == NULL)
        return NULL;
    struct bide_text row = trimmed(*text, (size_t)(colon - *text));
    if (row.length == 0)
        return wanted("the name of a row before the colon");
    if (row.length >= sizeof expect->row)
        return wanted("a shorter name of a row");
    memcpy(expect->row, row.at, row.length);
    *text = colon + 1;
    return NULL;
}

const char *sim_expect_read(struct sim_expect *expect, const char *text)
{
    *expect = (struct sim_expect){.how = SIM_IS};
    const char *wrong = read_row(expect, &text);
    if (wrong != NULL)
        return wrong;
    struct bide_text all = trimmed(text, strlen(text));
    bool negated = all.length > 0 && all.at[0] == '!';
    all = trimmed(all.at + negated, all.length - negated);
    size_t length = 0;
    while (length < all.length && sign_at(all.at + length) == NULL)
        length++;
    const struct sign *op = length < all.length ? sign_at(all.at + length) : NULL;
    size_t behind = op != NULL ? length + strlen(op->text) : length;
    struct bide_text value = trimmed(all.at + behind, all.length - behind);
    wrong = read_metric(expect, trimmed(all.at, length));
    if (wrong != NULL)
        return wrong;
    bool flag = sim_metric(expect->metric)->flag;
    if (negated && (op != NULL || !flag))
        return wanted("! only before a flag, such as '!recovers'; numbers have !=, < and >=");
    if (negated)
        expect->how = SIM_IS_NOT;
    return flag ? read_flag(expect, op, value) : read_comparison(expect, op, value);
}

/* ---- which rows ---- */

static bool is_named(const struct sim_expect *expect, const struct sim_row *row)
{
    return expect->row[0] == '\0' || strcmp(row->name, expect->row) == 0 || strcmp(row->label, expect->row) == 0;
}

static bool any_is_named(const struct sim_expect *expect, const struct sim_scenario *scenario)
{
    for (size_t r = 0; r < sim_scenario_rows(scenario); r++)
        if (is_named(expect, sim_scenario_row(scenario, r)))
            return true;
    return false;
}

/* `exactly`: some row has that very name. */
static bool is_asked(const struct sim_expect *expect, const struct sim_row *row, bool exactly)
{
    return exactly ? is_named(expect, row) : strncmp(row->label, expect->row, strlen(expect->row)) == 0;
}

size_t sim_expect_rows(const struct sim_expect *expect, const struct sim_scenario *scenario)
{
    bool exactly = any_is_named(expect, scenario);
    size_t count = 0;
    for (size_t r = 0; r < sim_scenario_rows(scenario); r++)
        count += is_asked(expect, sim_scenario_row(scenario, r), exactly);
    return count;
}

/* ---- asking ---- */

/* The value that decides, and how far it is on the right side of the limit: below 0 it does not hold; 0 holds if the
 * limit itself does. */
struct answer {
    bool holds;
    double value, room;
};

static struct answer ask(const struct sim_expect *expect, const struct sim_figure *f, uint32_t seeds)
{
    double n = expect->number;
    if (f->count < seeds)
        return (struct answer){false, NAN, -INFINITY};
    switch (expect->how) {
    case SIM_IS: return (struct answer){f->least > 0, f->least, f->least};
    case SIM_IS_NOT: return (struct answer){f->most <= 0, f->most, -f->most};
    case SIM_LESS: return (struct answer){f->most < n, f->most, n - f->most};
    case SIM_LESS_EQUAL: return (struct answer){f->most <= n, f->most, n - f->most};
    case SIM_MORE: return (struct answer){f->least > n, f->least, f->least - n};
    case SIM_MORE_EQUAL: return (struct answer){f->least >= n, f->least, f->least - n};
    case SIM_EQUAL: return (struct answer){f->least == n && f->most == n, f->least == n ? f->most : f->least, 0};
    case SIM_UNEQUAL:
    default: return (struct answer){n < f->least || n > f->most, n < f->least ? f->least : f->most, 0};
    }
}

/* Appends; what does not fit is left out. */
__attribute__((format(printf, 3, 4))) static size_t say(char said[SAID_MAX], size_t used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(said + used, SAID_MAX - used, format, arguments);
    va_end(arguments);
    size_t more = length > 0 ? (size_t)length : 0;
    return used + more < SAID_MAX ? used + more : SAID_MAX - 1;
}

/* "is no with 3 of 10 seeds; expected yes" */
static size_t say_flag(char said[SAID_MAX], size_t used, bool yes, const struct answer *a, const struct sim_figure *f)
{
    double of = yes == a->holds ? f->mean * f->count : (1 - f->mean) * f->count;
    used = say(said, used, " is %s", yes == a->holds ? "yes" : "no");
    if (f->count > 1)
        used = say(said, used, " with %.0f of %" PRIu32 " seeds", of, f->count);
    return say(said, used, "; expected %s", yes ? "yes" : "no");
}

/* "is 2.01; expected < 1.2" */
static size_t say_number(char said[SAID_MAX], size_t used, const struct sim_expect *expect, const struct answer *a,
                         const struct sim_figure *f)
{
    const char *unit = sim_metric(expect->metric)->unit;
    const char *gap = unit[0] != '\0' && unit[0] != '/' ? " " : "";
    char value[SIM_NUMBER_SIZE], mean[SIM_NUMBER_SIZE];
    used = say(said, used, " is %s%s%s", sim_number(value, a->value), gap, unit);
    if (f->count > 1)
        used = say(said, used, " at worst, %s on average of %" PRIu32 " seeds", sim_number(mean, f->mean), f->count);
    return say(said, used, "; expected %s %.10g", sign_of(expect->how), expect->number);
}

static size_t describe(char said[SAID_MAX], const struct sim_expect *expect, const struct sim_batch *batch, size_t row,
                       const struct answer *a)
{
    const struct sim_figure *f = &batch->row[row].figure[expect->metric];
    bool flag = expect->how == SIM_IS || expect->how == SIM_IS_NOT;
    size_t used =
        say(said, 0, "%.*s: %s", 120, sim_scenario_row(batch->scenario, row)->label, sim_metric(expect->metric)->name);
    if (f->count == 0)
        return say(said, used, " has no value");
    if (f->count < batch->plan.seeds)
        return say(said, used, " has no value with %" PRIu32 " of %" PRIu32 " seeds", batch->plan.seeds - f->count,
                   batch->plan.seeds);
    return flag ? say_flag(said, used, expect->how == SIM_IS, a, f) : say_number(said, used, expect, a, f);
}

bool sim_expect_holds(const struct sim_expect *expect, const struct sim_batch *batch, char said[256])
{
    bool exactly = any_is_named(expect, batch->scenario);
    struct answer told = {.holds = true, .room = INFINITY};
    size_t row = batch->rows, failed = 0;
    for (size_t r = 0; r < batch->rows; r++) {
        if (!is_asked(expect, sim_scenario_row(batch->scenario, r), exactly))
            continue;
        struct answer a = ask(expect, &batch->row[r].figure[expect->metric], batch->plan.seeds);
        failed += !a.holds;
        if ((!a.holds && told.holds) || (a.holds && told.holds && (row == batch->rows || a.room < told.room))) {
            told = a;
            row = r;
        }
    }
    if (row == batch->rows) {
        say(said, 0, "there is no row %.*s", 160, expect->row);
        return false;
    }
    size_t used = describe(said, expect, batch, row, &told);
    if (failed > 1)
        say(said, used, "; and %zu more row%s", failed - 1, failed > 2 ? "s" : "");
    return failed == 0;
}
