/* doc-tables.c - prints the tables of docs/ from the library, so that the pages cannot differ from the code.
 *
 *     doc_tables          lists the names of all tables
 *     doc_tables NAME     prints that table as Markdown
 *
 * Only the public API is used, except for the names of CURLcodes, the keys of policy and scenario files, and metrics.
 * Defaults come from a preset. The valid values of a field come from the check: the field is set to an invalid value,
 * and the text of the error is printed. The gate behind a reason is found by a scenario in which that gate refuses,
 * from the counter that moved. tools/doc-tables inserts the tables into the pages.
 *
 * If a table does not come out as expected (an invalid value is accepted, a gate does not refuse, a line is too long
 * for a page), the program ends with a message and status 1. */
#define _GNU_SOURCE
#include <bide/bide.h>

#include "conf/conf.h"
#include "curl/classify_curl.h"
#include "sim/scenario_key.h"
#include "telemetry/metric.h"
#include "text/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(table) (sizeof(table) / sizeof *(table))
#define COLUMNS_MAX   120u

/* ---- lines and words ---- */

_Noreturn static void fail(const char *what, const char *which)
{
    fprintf(stderr, "doc_tables: %s: %s\n", what, which);
    exit(1);
}

/* Characters, not bytes: the pages are UTF-8. */
static size_t columns_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

__attribute__((format(printf, 1, 2))) static void print_line(const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (columns_of(text) > COLUMNS_MAX)
        fail("a line is too long for a page", text);
    puts(text);
}

/* A short text by value, so that several can be formatted in one expression. */
struct text {
    char text[256];
};

__attribute__((format(printf, 1, 2))) static struct text text(const char *format, ...)
{
    struct text w;
    va_list values;
    va_start(values, format);
    vsnprintf(w.text, sizeof w.text, format, values);
    va_end(values);
    return w;
}

#define LIST_MOST 64u /* columns; a longer list continues in another row */

/* Appends an item to a list. */
static void text_append(struct text *list, const char *separator, const char *item)
{
    size_t used = strlen(list->text), left = sizeof list->text - used;
    int n = snprintf(list->text + used, left, "%s%s", used > 0 ? separator : "", item);
    if (n < 0 || (size_t)n >= left)
        fail("a list is too long", list->text);
}

static struct text format_duration(int64_t ns)
{
    static const struct {
        int64_t unit_ns, from_ns;
        const char *name;
    } units[] = {{60 * BIDE_MINUTE, 120 * BIDE_MINUTE, "h"},
                 {BIDE_MINUTE, 2 * BIDE_MINUTE, "min"},
                 {BIDE_S, 1, "s"},
                 {BIDE_MS, 1, "ms"},
                 {BIDE_US, 1, "us"},
                 {1, 1, "ns"}};
    if (ns == BIDE_NEVER)
        return text("never");
    for (size_t i = 0; i < LENGTH(units); i++)
        if (ns >= units[i].from_ns && ns % units[i].unit_ns == 0)
            return text("%" PRId64 " %s", ns / units[i].unit_ns, units[i].name);
    return text("0");
}

/* Formats thousandths as a decimal number without trailing zeros. */
static struct text format_thousandths(int64_t milli)
{
    char number[TEXT_VALUE_SIZE];
    return text("%s", text_decimal_format(number, milli, 1000));
}

static struct text format_ppm(uint32_t ppm)
{
    return text("%s %%", format_thousandths((int64_t)ppm / 10).text);
}

/* ---- names without a label in the API ---- */

static const char *const backoffs[] = {"exponential", "linear", "fixed", "none"};
static const char *const jitters[] = {"full",         "equal",    "decorrelated", "decorrelated-aws",
                                      "proportional", "additive", "none"};
static const char *const hint_rules[] = {"floor", "exact", "pushback", "clamp", "ignore"};
static const char *const hint_longs[] = {"give up", "clamp", "ignore"};
static const char *const hint_steps[] = {"keep", "advance", "reset"};
static const char *const layers[] = {"outermost", "any", "never"};
static const char *const when_refuseds[] = {"give_up", "wait"};
static const char *const budgets[] = {"tokens", "window", "concurrency", "none"};
static const char *const on_empties[] = {"refuse", "open"};
static const char *const breakers[] = {"time window", "count window", "consecutive", "off"};
static const char *const safeties[] = {"unsafe", "idempotent", "safe", "keyed"};

static const char *yes_no(bool condition)
{
    return condition ? "yes" : "no";
}

/* ---- presets ---- */

static struct bide_policy policy_of(enum bide_preset preset)
{
    struct bide_policy p;
    if (bide_policy_init(&p, preset) != BIDE_OK || bide_policy_check(&p, NULL) != BIDE_OK)
        fail("a preset is not a valid policy", bide_preset_label(preset));
    return p;
}

static struct bide_target_config config_of(enum bide_preset preset)
{
    struct bide_target_config c;
    if (bide_target_config_init(&c, preset) != BIDE_OK || bide_target_config_check(&c, NULL) != BIDE_OK)
        fail("a preset is not a valid configuration", bide_preset_label(preset));
    return c;
}

static void preset_list(void)
{
    print_line("| name | enum | for |");
    print_line("|---|---|---|");
#define ROW(NAME, label, purpose) print_line("| `%s` | `BIDE_PRESET_%s` | %s |", label, #NAME, purpose);
    BIDE_PRESET_LIST(ROW)
#undef ROW
}

static void preset_waits(void)
{
    print_line("| preset | attempts | jitter | base | cap | floor | attempt | connect | deadline | waits |");
    print_line("|---|---|---|---|---|---|---|---|---|---|");
    for (unsigned i = 0; i < BIDE_PRESET_COUNT; i++) {
        struct bide_policy p = policy_of((enum bide_preset)i);
        print_line("| `%s` | %u | %s | %s | %s | %s | %s | %s | %s | %s |", bide_preset_label((enum bide_preset)i),
                   p.attempts_max, jitters[p.jitter], format_duration(p.base_ns).text, format_duration(p.cap_ns).text,
                   format_duration(p.floor_ns).text, format_duration(p.attempt_timeout_ns).text,
                   format_duration(p.connect_timeout_ns).text, format_duration(p.call_timeout_ns).text,
                   format_duration(p.waits_max_ns).text);
    }
}

/* Lists the presets from `first` on that have the same row, until the list is long enough, and marks them as done.
 * Returns false if there is none left. */
static bool presets_alike(struct text (*cells)(enum bide_preset), unsigned first, bool *done, struct text *list)
{
    struct text mine = cells((enum bide_preset)first);
    *list = text("%s", "");
    for (unsigned i = first; i < BIDE_PRESET_COUNT && strlen(list->text) < LIST_MOST; i++)
        if (!done[i] && strcmp(mine.text, cells((enum bide_preset)i).text) == 0) {
            text_append(list, " ", text("`%s`", bide_preset_label((enum bide_preset)i)).text);
            done[i] = true;
        }
    return list->text[0] != '\0';
}

/* Prints equal rows as one row with all their presets; leaves out empty rows. */
static void print_grouped(struct text (*cells)(enum bide_preset))
{
    bool done[BIDE_PRESET_COUNT] = {false};
    struct text list;
    for (unsigned i = 0; i < BIDE_PRESET_COUNT; i++)
        while (cells((enum bide_preset)i).text[0] != '\0' && presets_alike(cells, i, done, &list))
            print_line("| %s | %s |", list.text, cells((enum bide_preset)i).text);
}

static struct text hint_cells(enum bide_preset preset)
{
    struct bide_policy p = policy_of(preset);
    return text("%s | %s | %s | %s %% | %s | %s", hint_rules[p.hint_rule], hint_longs[p.hint_long],
                hint_steps[p.hint_step], format_thousandths((int64_t)p.hint_jitter_permille * 100).text,
                format_duration(p.hint_max_ns).text, format_duration(p.hint_over_ns).text);
}

static void preset_hints(void)
{
    print_line("| presets | rule | too long | step | jitter | max | over |");
    print_line("|---|---|---|---|---|---|---|");
    print_grouped(hint_cells);
}

static struct text rule_cells(enum bide_preset preset)
{
    struct bide_policy p = policy_of(preset);
    return text("%s | %s | %s | %s", layers[p.layer], yes_no(p.require_key), yes_no(p.conflict_at_once),
                p.throttled_base_ns > 0 ? format_duration(p.throttled_base_ns).text : "as base");
}

static void preset_rules(void)
{
    print_line("| presets | layer | key required | conflict at once | base after throttling |");
    print_line("|---|---|---|---|---|");
    print_grouped(rule_cells);
}

static struct text token_cells(enum bide_preset preset)
{
    struct bide_target_config c = config_of(preset);
    const struct bide_budget_config *b = &c.budget;
    if (b->kind != BIDE_BUDGET_TOKENS)
        return text("%s", "");
    return text("%s | %s / %s / %s | %s | %s | %s | %s | %s %%", format_thousandths(b->capacity_milli).text,
                format_thousandths(b->cost_milli).text, format_thousandths(b->cost_throttled_milli).text,
                format_thousandths(b->cost_timeout_milli).text, format_thousandths(b->cost_failure_milli).text,
                format_thousandths(b->threshold_milli).text, format_thousandths(b->earn_success_milli).text,
                format_thousandths(b->refill_per_minute_milli).text,
                format_thousandths((int64_t)b->refund_permille * 100).text);
}

static void preset_tokens(void)
{
    print_line("| presets | capacity | retry / throttled / timeout | failure | above | success | minute | refund |");
    print_line("|---|---|---|---|---|---|---|---|");
    print_grouped(token_cells);
}

static struct text window_cells(enum bide_preset preset)
{
    struct bide_target_config c = config_of(preset);
    const struct bide_budget_config *b = &c.budget;
    if (b->kind == BIDE_BUDGET_TOKENS)
        return text("%s", "");
    if (b->kind == BIDE_BUDGET_NONE)
        return text("none | | | | |");
    bool window = b->kind == BIDE_BUDGET_WINDOW;
    return text("%s | %s | %u | %s | %s | %s", budgets[b->kind], format_ppm(b->ratio_ppm).text, b->reserve,
                window ? text("%u", b->min_volume).text : "", window ? format_duration(b->window_ns).text : "",
                window ? format_duration(b->cooldown_ns).text : "");
}

static void preset_windows(void)
{
    print_line("| presets | kind | ratio | reserve | min volume | window | cooldown |");
    print_line("|---|---|---|---|---|---|---|");
    print_grouped(window_cells);
}

static struct text gate_cells(enum bide_preset preset)
{
    struct bide_target_config c = config_of(preset);
    bool off = c.breaker.kind == BIDE_BREAKER_OFF;
    return text(
        "%s | %s | %s | %s", breakers[c.breaker.kind], off ? "" : format_duration(c.breaker.probe_timeout_ns).text,
        c.hold_off_max_ns > 0 ? format_duration(c.hold_off_max_ns).text : "not shared",
        c.key_retries > 0 ? text("%u in %s", c.key_retries, format_duration(c.key_interval_ns).text).text : "none");
}

static void preset_gates(void)
{
    print_line("| presets | breaker | probe timeout | longest hold-off | retries per key |");
    print_line("|---|---|---|---|---|");
    print_grouped(gate_cells);
}

/* ---- fields: meaning, default, accepted values ---- */

enum type { COUNT, MILLI, TIME, CHOICE, FLAG, BITS };

#define UNCHECKED INT64_MIN /* any value is valid */

struct field {
    const char *name;
    size_t offset;
    enum type type;
    int64_t bad; /* a value that the check must reject */
    const char *meaning;
    const char *const *words; /* for a CHOICE */
};

#define P(field) #field, offsetof(struct bide_policy, field)
#define T(field) #field, offsetof(struct bide_target_config, field)

static const struct field policy_table[] = {
    {P(attempts_max), COUNT, 0, "attempts of a call, including the first and hedges", NULL},
    {P(backoff), CHOICE, 99, "how the envelope grows", backoffs},
    {P(jitter), CHOICE, 99, "how the wait is drawn from the envelope", jitters},
    {P(base_ns), TIME, 0, "first envelope", NULL},
    {P(cap_ns), TIME, 0, "largest envelope", NULL},
    {P(floor_ns), TIME, -1, "shortest wait", NULL},
    {P(throttled_base_ns), TIME, -1, "base after a throttled outcome", NULL},
    {P(jitter_add_ns), TIME, -1, "additive jitter: width", NULL},
    {P(multiplier_milli), COUNT, 1000, "exponential: growth per step, in thousandths", NULL},
    {P(jitter_lo_permille), COUNT, 10001, "proportional jitter: lower end, in ‰ of the envelope", NULL},
    {P(jitter_hi_permille), COUNT, 0, "proportional jitter: upper end, in ‰ of the envelope", NULL},
    {P(hedges_max), COUNT, 4, "hedges beside an attempt", NULL},
    {P(hedge_delay_ns), TIME, -1, "a hedge starts this long after the previous attempt", NULL},
    {P(hedge_quantile_permille), COUNT, 1000, "or after this quantile of latency", NULL},
    {P(layer), CHOICE, 99, "may this layer retry if its caller retries as well", layers},
    {P(attempt_timeout_ns), TIME, 0, "time limit of an attempt", NULL},
    {P(connect_timeout_ns), TIME, 0, "time limit of its connection", NULL},
    {P(call_timeout_ns), TIME, 0, "time limit of the call", NULL},
    {P(waits_max_ns), TIME, 0, "time limit of all its waits together", NULL},
    {P(attempt_min_ns), TIME, -1, "time that a useful attempt needs; 0: connect_timeout_ns", NULL},
    {P(hint_rule), CHOICE, 99, "effect of a hint on the wait", hint_rules},
    {P(hint_long), CHOICE, 99, "effect of a hint above hint_max_ns", hint_longs},
    {P(hint_step), CHOICE, 99, "effect of a hinted wait on the backoff sequence", hint_steps},
    {P(hint_jitter_permille), COUNT, 10001, "floor rule: up to this share longer", NULL},
    {P(hint_max_ns), TIME, 0, "longest hint that is followed", NULL},
    {P(hint_over_ns), TIME, -1, "clamp rule: at most this much longer than the backoff", NULL},
    {P(when_refused), CHOICE, 99, "what the call does when a gate of the target refuses", when_refuseds},
    {P(observe), BITS, 0x10, "gates of the policy in observe mode", NULL},
    {P(require_key), FLAG, UNCHECKED, "a mutating request needs a key", NULL},
    {P(conflict_at_once), FLAG, UNCHECKED, "retry the first conflict without a wait", NULL},
    {P(throttled_needs_hint), FLAG, UNCHECKED, "give up after a throttled outcome without a hint", NULL},
    {P(jitter_past_cap), FLAG, UNCHECKED, "proportional jitter may exceed the cap", NULL},
    {P(last_wait), FLAG, UNCHECKED, "shorten a wait once, for a last attempt before the deadline", NULL},
    {P(long_poll), FLAG, UNCHECKED, "with an empty budget wait the backoff, then give up", NULL},
};

static const struct field config_table[] = {
    {T(observe), BITS, 1, "gates of the target in observe mode", NULL},
    {T(trust), BITS, 4, "responses after which an unsafe request certainly did not run", NULL},
    {T(in_flight_max), COUNT, UNCHECKED, "in-flight limit of attempts (bulkhead); 0: no limit", NULL},
    {T(key_retries), COUNT, 256, "retries per retry key and interval", NULL},
    {T(key_interval_ns), TIME, 0, "interval of key_retries", NULL},
    {T(throttle_k_milli), COUNT, 1000, "adaptive throttling: K, in thousandths", NULL},
    {T(throttle_max_permille), COUNT, 0, "largest share that is refused", NULL},
    {T(throttle_min_volume), COUNT, UNCHECKED, "attempts before any is refused", NULL},
    {T(throttle_window_ns), TIME, 1, "window of the counts of attempts and accepts", NULL},
    {T(hold_off_max_ns), TIME, -1, "longest hold-off, from its request", NULL},
    {T(hold_off_first), FLAG, UNCHECKED, "the hold-off applies to first attempts, too", NULL},
    {T(latency), FLAG, UNCHECKED, "record latencies, for hedging by quantile", NULL},
};

static const struct field budget_table[] = {
    {T(budget.kind), CHOICE, 99, "tokens, window, concurrency or none", budgets},
    {T(budget.on_empty), CHOICE, 99, "refuse, or also open the breaker", on_empties},
    {T(budget.capacity_milli), MILLI, INT64_C(1) << 28, "tokens: capacity; 0: no retry ever", NULL},
    {T(budget.initial_milli), MILLI, 20000, "tokens: initial number", NULL},
    {T(budget.cost_milli), MILLI, INT64_C(1) << 28,
     "cost of a hedge, and of a retry after a transient failure or conflict", NULL},
    {T(budget.cost_throttled_milli), MILLI, INT64_C(1) << 28, "cost of a retry after a throttled outcome", NULL},
    {T(budget.cost_timeout_milli), MILLI, INT64_C(1) << 28, "cost of a retry after a timeout", NULL},
    {T(budget.cost_failure_milli), MILLI, INT64_C(1) << 28, "cost of each retryable failure", NULL},
    {T(budget.threshold_milli), MILLI, INT64_C(1) << 28, "a retry needs more than this; 0: off", NULL},
    {T(budget.earn_success_milli), MILLI, INT64_C(1) << 28, "earned by a successful call", NULL},
    {T(budget.earn_first_milli), MILLI, INT64_C(1) << 28, "earned by each first attempt", NULL},
    {T(budget.refill_per_minute_milli), MILLI, 100000001, "refill over time", NULL},
    {T(budget.refund_permille), COUNT, 1001, "refunded when a retried call succeeds", NULL},
    {T(budget.ratio_ppm), COUNT, 1000001, "window, concurrency: retries per request", NULL},
    {T(budget.reserve), COUNT, UNCHECKED, "window: additional retries. concurrency: minimum limit", NULL},
    {T(budget.min_volume), COUNT, UNCHECKED, "window: below this number of requests every retry is allowed", NULL},
    {T(budget.window_ns), TIME, 9, "window: length", NULL},
    {T(budget.cooldown_ns), TIME, -1, "window: no retry for this long after a refusal", NULL},
};

static const struct field breaker_table[] = {
    {T(breaker.kind), CHOICE, 99, "condition that opens the breaker", breakers},
    {T(breaker.consecutive), COUNT, 0, "consecutive: number of failures that opens it", NULL},
    {T(breaker.ratio_permille), COUNT, 0, "windows: share of failures that opens it", NULL},
    {T(breaker.min_volume), COUNT, 0, "windows: votes before the ratio applies", NULL},
    {T(breaker.count_window), COUNT, 257, "count window: number of votes", NULL},
    {T(breaker.window_ns), TIME, 9, "time window: length", NULL},
    {T(breaker.slow_ns), TIME, 0, "a success that takes this long counts as a failure", NULL},
    {T(breaker.open_ns), TIME, 0, "open time of the first opening", NULL},
    {T(breaker.open_growth_milli), COUNT, 999, "growth from one opening to the next, in thousandths", NULL},
    {T(breaker.open_max_ns), TIME, 0, "longest open time, before jitter", NULL},
    {T(breaker.open_jitter_permille), COUNT, 901, "jitter, plus or minus", NULL},
    {T(breaker.probes), COUNT, 9, "probes while half open", NULL},
    {T(breaker.probe_timeout_ns), TIME, 0, "a probe without an outcome by then frees its slot", NULL},
    {T(breaker.ramp_ns), TIME, -1, "ramp-up after closing, until all traffic passes", NULL},
};

static int64_t value_of(const void *base, const struct field *f)
{
    const void *at = (const char *)base + f->offset;
    if (f->type == TIME)
        return *(const int64_t *)at;
    return f->type == FLAG ? *(const bool *)at : *(const uint32_t *)at;
}

static void set_value(void *base, const struct field *f, int64_t value)
{
    void *at = (char *)base + f->offset;
    if (f->type == TIME)
        *(int64_t *)at = value;
    else if (f->type == FLAG)
        *(bool *)at = value != 0;
    else
        *(uint32_t *)at = (uint32_t)value;
}

static struct text format_value(const struct field *f, int64_t value)
{
    switch (f->type) {
    case MILLI: return value == BIDE_FULL ? text("`BIDE_FULL`") : text("%" PRId64, value);
    case TIME: return format_duration(value);
    case CHOICE: return text("%s", f->words[value]);
    case FLAG: return text("%s", yes_no(value != 0));
    case COUNT:
    case BITS: break;
    }
    return text("%" PRId64, value);
}

/* A policy or a configuration, and which of the two checks applies. */
union subject {
    struct bide_policy policy;
    struct bide_target_config config;
};
struct check {
    bool policy;
    union subject subject;
};

static struct check check_begin(bool policy)
{
    struct check c = {.policy = policy};
    if (policy)
        c.subject.policy = policy_of(BIDE_PRESET_SERVICE);
    else
        c.subject.config = config_of(BIDE_PRESET_SERVICE);
    return c;
}

static enum bide_err run_check(const struct check *c, struct bide_problem *problem)
{
    return c->policy ? bide_policy_check(&c->subject.policy, problem)
                     : bide_target_config_check(&c->subject.config, problem);
}

/* Formats the accepted values. Explanations after a semicolon, and the common limit of durations, are left to the
 * page. */
static struct text format_accepted(const struct field *f, bool policy)
{
    struct check c = check_begin(policy);
    struct bide_problem problem = {0};
    if (f->bad == UNCHECKED)
        return text("%s", f->type == FLAG ? "yes or no" : "any");
    set_value(&c.subject, f, f->bad);
    if (run_check(&c, &problem) == BIDE_OK || strcmp(problem.field, f->name) != 0)
        fail("an invalid value is not rejected", f->name);
    struct text w = text("%s", problem.want);
    char *limit = strstr(w.text, ", at most about 31 years"), *more = strchr(w.text, ';');
    if (limit != NULL)
        *limit = '\0';
    if (more != NULL)
        more[0] = ')', more[1] = '\0';
    return w;
}

static void print_fields(const struct field *table, size_t count, bool policy)
{
    struct check c = check_begin(policy);
    print_line("| field | meaning | `service` | accepted |");
    print_line("|---|---|---|---|");
    for (const struct field *f = table; f < table + count; f++) {
        const char *dot = strrchr(f->name, '.');
        print_line("| `%s` | %s | %s | %s |", dot != NULL ? dot + 1 : f->name, f->meaning,
                   format_value(f, value_of(&c.subject, f)).text, format_accepted(f, policy).text);
    }
}

static void policy_fields(void)
{
    print_fields(policy_table, LENGTH(policy_table), true);
}

static void config_fields(void)
{
    print_fields(config_table, LENGTH(config_table), false);
}

static void budget_fields(void)
{
    print_fields(budget_table, LENGTH(budget_table), false);
}

static void breaker_fields(void)
{
    print_fields(breaker_table, LENGTH(breaker_table), false);
}

/* ---- keys of a policy file ---- */

static const char *const forms[] = {
    [CONF_TIME] = "time",     [CONF_COUNT] = "number",   [CONF_TOKENS] = "amount", [CONF_RATE] = "rate",
    [CONF_FACTOR] = "factor", [CONF_PERMILLE] = "share", [CONF_PPM] = "share",     [CONF_FLAG] = "yes, no",
    [CONF_BITS] = "words",    [CONF_WORD] = "word",
};

/* Prints the keys of the policy or of the target that begin with `prefix`, or without prefix those that have none. */
static void print_file_keys(bool of_target, const char *prefix)
{
    const struct conf_field *field;
    struct conf_pair service;
    conf_pair_init(&service, BIDE_PRESET_SERVICE);
    print_line("| key | form | in `service` | |");
    print_line("|---|---|---|---|");
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        char text[256];
        bool format_accepted =
            prefix[0] != '\0' ? strncmp(field->key, prefix, strlen(prefix)) == 0 : strchr(field->key, '.') == NULL;
        if (format_accepted && field->of_target == of_target)
            print_line("| `%s` | %s | `%s` | %s |", field->key, forms[field->form],
                       conf_field_format(text, field, &service), field->about);
    }
}

static void file_call(void)
{
    print_file_keys(false, "");
}

static void file_target(void)
{
    print_file_keys(true, "");
}

static void file_budget(void)
{
    print_file_keys(true, "budget.");
}

static void file_breaker(void)
{
    print_file_keys(true, "breaker.");
}

static void file_words(void)
{
    const struct conf_field *field;
    print_line("| key | words |");
    print_line("|---|---|");
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        struct text list = text("%s", "");
        for (size_t j = 0; field->words != NULL && field->words[j] != NULL; j++)
            text_append(&list, " ", text("`%s`", field->words[j]).text);
        if (field->words != NULL)
            print_line("| `%s` | %s%s |", field->key, list.text, field->form == CONF_BITS ? ", or `none`" : "");
    }
}

/* ---- keys of a scenario file ---- */

static const char *const sim_forms[] = {
    [SIM_FORM_TIME] = "time",       [SIM_FORM_SHAPE] = "duration",  [SIM_FORM_RATE] = "rate",
    [SIM_FORM_COUNT] = "number",    [SIM_FORM_COUNT_64] = "number", [SIM_FORM_COUNT_NEVER] = "number",
    [SIM_FORM_MILLI] = "decimal",   [SIM_FORM_PERMILLE] = "share",  [SIM_FORM_PPM] = "share",
    [SIM_FORM_PPM_USUAL] = "share", [SIM_FORM_WORD] = "word",       [SIM_FORM_FLAG] = "yes, no",
    [SIM_FORM_SERVICE] = "service", [SIM_FORM_CALLS] = "service",   [SIM_FORM_POLICY] = "policy",
    [SIM_FORM_TEXT] = "text",       [SIM_FORM_METRIC] = "metric",   [SIM_FORM_METRICS] = "metrics",
};

static void print_scenario_keys(const char *section)
{
    const struct sim_field *field;
    print_line("| key | form | default | |");
    print_line("|---|---|---|---|");
    for (size_t i = 0; (field = sim_field(i)) != NULL; i++) {
        bool named = field->form == SIM_FORM_SERVICE || field->key.standard[0] == '\0';
        if (strcmp(field->key.section, section) == 0)
            print_line("| `%s` | %s | %s | %s |", field->key.key, sim_forms[field->form],
                       named ? field->key.standard : text("`%s`", field->key.standard).text, field->key.about);
    }
}

static void scenario_head(void)
{
    print_scenario_keys("scenario");
}

static void scenario_clients(void)
{
    print_scenario_keys("clients");
}

static void scenario_network(void)
{
    print_scenario_keys("network");
}

static void scenario_fleet(void)
{
    print_scenario_keys("fleet");
}

static void scenario_service(void)
{
    print_scenario_keys("service");
}

static void scenario_outage(void)
{
    print_scenario_keys("outage");
}

static void scenario_words(void)
{
    const struct sim_field *field;
    print_line("| key | words |");
    print_line("|---|---|");
    for (size_t i = 0; (field = sim_field(i)) != NULL; i++) {
        struct text list = text("%s", "");
        for (size_t j = 0; field->words != NULL && field->words[j] != NULL; j++)
            text_append(&list, " ", text("`%s`", field->words[j]).text);
        if (field->words != NULL)
            print_line("| `%s.%s` | %s |", field->key.section, field->key.key, list.text);
    }
}

/* ---- fields that contradict each other ---- */

#define CONTRADICTION_MOST 4

struct contradiction {
    struct {
        const char *field;
        int64_t value;
    } set[CONTRADICTION_MOST];
};

static const struct contradiction policy_contradiction_table[] = {
    {{{"cap_ns", 100 * BIDE_MS}}},
    {{{"throttled_base_ns", 60 * BIDE_S}}},
    {{{"floor_ns", 300 * BIDE_MS}}},
    {{{"floor_ns", 100 * BIDE_MS}, {"throttled_base_ns", 50 * BIDE_MS}}},
    {{{"jitter", BIDE_JITTER_PROPORTIONAL}, {"jitter_lo_permille", 900}, {"jitter_hi_permille", 800}}},
    {{{"jitter", BIDE_JITTER_PROPORTIONAL}, {"jitter_hi_permille", 1200}}},
    {{{"jitter", BIDE_JITTER_ADDITIVE}}},
    {{{"jitter", BIDE_JITTER_ADDITIVE}, {"jitter_add_ns", 60 * BIDE_S}}},
    {{{"attempts_max", 1}, {"hedges_max", 1}}},
};

static const struct contradiction config_contradiction_table[] = {
    {{{"budget.cost_milli", 0}, {"budget.cost_throttled_milli", 0}, {"budget.cost_timeout_milli", 0}}},
    {{{"budget.cost_milli", 0}, {"budget.cost_failure_milli", 1000}}},
    {{{"budget.initial_milli", 20000}}},
    {{{"budget.threshold_milli", 20000}}},
    {{{"breaker.open_ns", 120 * BIDE_S}}},
    {{{"breaker.kind", BIDE_BREAKER_BY_COUNT}, {"breaker.count_window", 10}}},
};

static const struct field *field_in(const struct field *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static const struct field *field_named(const char *name)
{
    const struct field *f = field_in(policy_table, LENGTH(policy_table), name);
    f = f != NULL ? f : field_in(budget_table, LENGTH(budget_table), name);
    f = f != NULL ? f : field_in(breaker_table, LENGTH(breaker_table), name);
    if (f == NULL)
        fail("no such field", name);
    return f;
}

static void contradiction(const struct contradiction *b, bool policy)
{
    struct check c = check_begin(policy);
    struct bide_problem problem;
    struct text changed = text("%s", "");
    for (size_t i = 0; i < CONTRADICTION_MOST && b->set[i].field != NULL; i++) {
        const struct field *f = field_named(b->set[i].field);
        set_value(&c.subject, f, b->set[i].value);
        text_append(&changed, ", `", f->name);
        text_append(&changed, "` ", format_value(f, b->set[i].value).text);
    }
    if (run_check(&c, &problem) == BIDE_OK)
        fail("a contradiction is not rejected", changed.text);
    print_line("- `%s:", changed.text);
    print_line("  *%s*", problem.text);
}

static void policy_contradictions(void)
{
    for (size_t i = 0; i < LENGTH(policy_contradiction_table); i++)
        contradiction(&policy_contradiction_table[i], true);
}

static void config_contradictions(void)
{
    for (size_t i = 0; i < LENGTH(config_contradiction_table); i++)
        contradiction(&config_contradiction_table[i], false);
}

/* ---- waits ---- */

/* Prints the windows of each kind of jitter. For decorrelated jitter the previous wait is the longest possible. */
static void backoff_windows(void)
{
    print_line("| jitter | step 0 | 1 | 2 | 3 | 4 |");
    print_line("|---|---|---|---|---|---|");
    for (unsigned jitter = 0; jitter < LENGTH(jitters); jitter++) {
        struct bide_policy p = policy_of(jitter == BIDE_JITTER_PROPORTIONAL ? BIDE_PRESET_GRPC : BIDE_PRESET_SERVICE);
        struct text cells = text("%s", "");
        int64_t previous_ns = 0;
        p.jitter = (enum bide_jitter)jitter;
        p.base_ns = 100 * BIDE_MS;
        p.cap_ns = BIDE_S;
        p.jitter_add_ns = 50 * BIDE_MS;
        for (uint32_t step = 0; step < 5; step++) {
            struct bide_range w = bide_backoff_window(&p, (struct bide_step){step, false, previous_ns});
            text_append(&cells, " | ", text("%" PRId64 "–%" PRId64, w.lo_ns / BIDE_MS, w.hi_ns / BIDE_MS).text);
            previous_ns = w.hi_ns;
        }
        print_line("| %s | %s |", jitters[jitter], cells.text);
    }
}

/* ---- reasons and gates ---- */

/* A call and a target, prepared so that one gate refuses. */
struct world {
    struct bide_policy policy;
    struct bide_target_config config;
    struct bide_target target;
    struct bide_request request;
    struct bide_call call, other;
    int64_t now_ns;
};

static void make_target(struct world *w)
{
    if (bide_policy_check(&w->policy, NULL) != BIDE_OK ||
        bide_target_init(&w->target, &w->config, w->now_ns, NULL) != BIDE_OK)
        fail("invalid scenario", "policy or target");
}

static struct bide_verdict call_begin(struct world *w, struct bide_call *call)
{
    w->request.seed++;
    return bide_call_begin(call, &w->policy, &w->target, &w->request, w->now_ns);
}

/* Begins a call and fails its first attempt with an HTTP status. */
static struct bide_verdict begin_and_fail(struct world *w, struct bide_call *call, int status, struct bide_hint hint)
{
    struct bide_outcome outcome = bide_classify_http(status, NULL);
    outcome.hint = hint;
    struct bide_verdict v = call_begin(w, call);
    return v.action == BIDE_ACTION_START ? bide_call_outcome(call, v.attempt, &outcome, w->now_ns) : v;
}

static const struct bide_hint no_hint = {BIDE_HINT_NONE, 0};

static struct bide_verdict refuse_without_key(struct world *w)
{
    w->policy.require_key = true;
    w->request.safety = BIDE_UNSAFE;
    make_target(w);
    return call_begin(w, &w->call);
}

static struct bide_verdict refuse_unsafe_request(struct world *w)
{
    w->request.safety = BIDE_UNSAFE;
    make_target(w);
    return begin_and_fail(w, &w->call, 500, no_hint);
}

static struct bide_verdict refuse_server_stop(struct world *w)
{
    make_target(w);
    return begin_and_fail(w, &w->call, 503, (struct bide_hint){BIDE_HINT_STOP, 0});
}

static struct bide_verdict refuse_hint_missing(struct world *w)
{
    w->policy.throttled_needs_hint = true;
    make_target(w);
    return begin_and_fail(w, &w->call, 429, no_hint);
}

static struct bide_verdict refuse_hint_too_long(struct world *w)
{
    make_target(w);
    return begin_and_fail(w, &w->call, 429, (struct bide_hint){BIDE_HINT_WAIT, 60 * BIDE_MINUTE});
}

static struct bide_verdict refuse_inner_layer(struct world *w)
{
    w->request.inbound.attempt = 2;
    make_target(w);
    return begin_and_fail(w, &w->call, 503, no_hint);
}

/* Begins calls, which fail if they start, until a call is refused. */
static struct bide_verdict until_refused(struct world *w, int status)
{
    struct bide_verdict v = {0};
    w->policy.attempts_max = 1;
    for (int i = 0; i < 1000 && (v.action != BIDE_ACTION_GIVE_UP || v.attempt != 0); i++)
        v = begin_and_fail(w, &w->call, status, no_hint);
    return v;
}

static struct bide_verdict refuse_throttle(struct world *w)
{
    w->config.breaker.kind = BIDE_BREAKER_OFF;
    w->config.throttle_k_milli = 2000;
    make_target(w);
    return until_refused(w, 503);
}

static struct bide_verdict refuse_in_flight_full(struct world *w)
{
    w->config.in_flight_max = 1;
    make_target(w);
    call_begin(w, &w->other);
    return call_begin(w, &w->call);
}

static struct bide_verdict refuse_breaker_open(struct world *w)
{
    make_target(w);
    bide_breaker_hold(&w->target, BIDE_HOLD_OPEN);
    return call_begin(w, &w->call);
}

/* Opens the breaker by a failure and lets the open time pass: the next call is the probe. */
static struct bide_verdict begin_probe(struct world *w)
{
    w->config.breaker.kind = BIDE_BREAKER_BY_RUN;
    w->config.breaker.consecutive = 1;
    w->config.breaker.ramp_ns = 60 * BIDE_MINUTE;
    w->policy.attempts_max = 1;
    make_target(w);
    begin_and_fail(w, &w->call, 503, no_hint);
    w->now_ns += 2 * w->config.breaker.open_ns;
    return call_begin(w, &w->other);
}

static struct bide_verdict refuse_breaker_probing(struct world *w)
{
    begin_probe(w);
    return call_begin(w, &w->call);
}

static struct bide_verdict refuse_breaker_ramping(struct world *w)
{
    static const struct bide_outcome fine = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_verdict v = begin_probe(w);
    bide_call_outcome(&w->other, v.attempt, &fine, w->now_ns);
    return until_refused(w, 400);
}

static struct bide_verdict refuse_key_limit(struct world *w)
{
    w->config.key_retries = 1;
    w->request.retry_key = bide_hash("segment 7", 9);
    make_target(w);
    begin_and_fail(w, &w->other, 503, no_hint);
    return begin_and_fail(w, &w->call, 503, no_hint);
}

static struct bide_verdict refuse_budget_empty(struct world *w)
{
    w->config.budget.capacity_milli = 0;
    make_target(w);
    return begin_and_fail(w, &w->call, 503, no_hint);
}

static const struct {
    enum bide_reason reason;
    struct bide_verdict (*run)(struct world *w);
} scenarios[] = {
    {BIDE_REASON_KEY_REQUIRED, refuse_without_key},
    {BIDE_REASON_NOT_REPEATABLE, refuse_unsafe_request},
    {BIDE_REASON_SERVER_STOP, refuse_server_stop},
    {BIDE_REASON_HINT_TOO_LONG, refuse_hint_too_long},
    {BIDE_REASON_HINT_MISSING, refuse_hint_missing},
    {BIDE_REASON_INNER_LAYER, refuse_inner_layer},
    {BIDE_REASON_THROTTLE, refuse_throttle},
    {BIDE_REASON_IN_FLIGHT_FULL, refuse_in_flight_full},
    {BIDE_REASON_BREAKER_OPEN, refuse_breaker_open},
    {BIDE_REASON_BREAKER_PROBING, refuse_breaker_probing},
    {BIDE_REASON_BREAKER_RAMPING, refuse_breaker_ramping},
    {BIDE_REASON_KEY_LIMIT, refuse_key_limit},
    {BIDE_REASON_BUDGET_EMPTY, refuse_budget_empty},
};

static enum bide_gate gate_that_refused(const struct bide_target *target)
{
    unsigned print_gates = 0;
    for (unsigned i = 0; i < BIDE_GATE_COUNT; i++)
        if (bide_target_get(target, 0).refused[i] > 0)
            print_gates |= 1u << i;
    return (enum bide_gate)print_gates;
}

/* Returns the gate that gives up with this reason; 0 if there is none. */
static enum bide_gate gate_of(enum bide_reason reason)
{
    for (size_t i = 0; i < LENGTH(scenarios); i++) {
        if (scenarios[i].reason != reason)
            continue;
        struct world w = {.policy = policy_of(BIDE_PRESET_SERVICE),
                          .config = config_of(BIDE_PRESET_SERVICE),
                          .request.safety = BIDE_SAFE,
                          .now_ns = 60 * BIDE_MINUTE};
        struct bide_verdict v = scenarios[i].run(&w);
        enum bide_gate gate = gate_that_refused(&w.target);
        bool one = gate != 0 && ((unsigned)gate & ((unsigned)gate - 1)) == 0;
        if (v.action != BIDE_ACTION_GIVE_UP || v.reason != reason || !one)
            fail("a scenario has another outcome", bide_reason_label(reason));
        return gate;
    }
    return (enum bide_gate)0;
}

static void print_reasons(void)
{
    print_line("| reason | sentence | gate |");
    print_line("|---|---|---|");
    for (unsigned i = 0; i < BIDE_REASON_COUNT; i++) {
        enum bide_gate gate = gate_of((enum bide_reason)i);
        print_line("| `%s` | %s | %s |", bide_reason_label((enum bide_reason)i), bide_reason_text((enum bide_reason)i),
                   gate != 0 ? bide_gate_label(gate) : "");
    }
}

/* Prints the heads of the entries of a page about reasons: a label and its sentence in each line. */
static void print_reason_heads(void)
{
    for (unsigned i = 0; i < BIDE_REASON_COUNT; i++)
        print_line("%s %s", bide_reason_label((enum bide_reason)i), bide_reason_text((enum bide_reason)i));
}

static void print_shared_reasons(void)
{
    print_line("| reason | meaning |");
    print_line("|---|---|");
    for (unsigned i = BIDE_SHARED_REASON_NOTHING + 1; i < BIDE_SHARED_REASON_COUNT; i++)
        print_line("| `%s` | %s |", bide_shared_reason_label((enum bide_shared_reason)i),
                   bide_shared_reason_text((enum bide_shared_reason)i));
}

static void print_gates(void)
{
    print_line("| gate | bit | observed by | gives up with |");
    print_line("|---|---|---|---|");
    for (unsigned i = 0; i < BIDE_GATE_COUNT; i++) {
        enum bide_gate gate = (enum bide_gate)(1u << i);
        struct text list = text("%s", "");
        for (unsigned reason = 0; reason < BIDE_REASON_COUNT; reason++)
            if (gate_of((enum bide_reason)reason) == gate)
                text_append(&list, " ", text("`%s`", bide_reason_label((enum bide_reason)reason)).text);
        print_line("| %s | 0x%03x | %s | %s |", bide_gate_label(gate), 1u << i,
                   (1u << i) & BIDE_POLICY_GATES ? "policy" : "target", list.text);
    }
}

/* ---- classification ---- */

static struct text flags_of(uint32_t flags)
{
    static const char *const print_names[] = {"timed_out",  "unavailable", "once", "fresh",
                                              "body_spent", "key_409",     "local"};
    struct text w = text("%s", "");
    for (size_t i = 0; i < LENGTH(print_names); i++)
        if (flags & 1u << i)
            text_append(&w, " ", print_names[i]);
    return w;
}

static struct text outcome_cells(struct bide_outcome o)
{
    return text("%s | %s | %s", bide_kind_label(o.kind), bide_evidence_label(o.evidence), flags_of(o.flags).text);
}

typedef struct bide_outcome classifier(int number, const struct bide_rules *rules);

/* Adjacent numbers with the same classification are one row. */
static void print_ranges(const char *title, classifier *classify, int first, int last)
{
    print_line("| %s | kind | evidence | flags |", title);
    print_line("|---|---|---|---|");
    for (int from = first, to; from <= last; from = to + 1) {
        struct text mine = outcome_cells(classify(from, NULL));
        for (to = from; to < last && strcmp(outcome_cells(classify(to + 1, NULL)).text, mine.text) == 0;)
            to++;
        struct text span = to > from ? text("%d–%d", from, to) : text("%d", from);
        print_line("| %s | %s |", span.text, mine.text);
    }
}

static void print_http(void)
{
    print_ranges("status", bide_classify_http, 100, 599);
}

static void print_exits(void)
{
    print_ranges("exit status", bide_classify_exit, 0, 255);
}

struct named {
    const char *name;
    int number;
    bool done;
};

/* Like presets_alike, for names of numbers. */
static bool same_meaning(classifier *classify, struct named *first, const struct named *end, struct text *list)
{
    struct text mine = outcome_cells(classify(first->number, NULL));
    *list = text("%s", "");
    for (struct named *n = first; n < end && strlen(list->text) < LIST_MOST; n++)
        if (!n->done && strcmp(mine.text, outcome_cells(classify(n->number, NULL)).text) == 0) {
            text_append(list, " ", n->name);
            n->done = true;
        }
    return list->text[0] != '\0';
}

static void print_names(const char *title, classifier *classify, struct named *table, size_t count)
{
    struct text list;
    print_line("| %s | kind | evidence | flags |", title);
    print_line("|---|---|---|---|");
    for (struct named *n = table; n < table + count; n++)
        while (same_meaning(classify, n, table + count, &list))
            print_line("| %s | %s |", list.text, outcome_cells(classify(n->number, NULL)).text);
}

#define NAMED(number)                                                                                                  \
    {                                                                                                                  \
#number, number, false                                                                                         \
    }

static void print_grpc(void)
{
    static struct named codes[] = {{"OK (0)", 0, false},
                                   {"CANCELLED (1)", 1, false},
                                   {"UNKNOWN (2)", 2, false},
                                   {"INVALID_ARGUMENT (3)", 3, false},
                                   {"DEADLINE_EXCEEDED (4)", 4, false},
                                   {"NOT_FOUND (5)", 5, false},
                                   {"ALREADY_EXISTS (6)", 6, false},
                                   {"PERMISSION_DENIED (7)", 7, false},
                                   {"RESOURCE_EXHAUSTED (8)", 8, false},
                                   {"FAILED_PRECONDITION (9)", 9, false},
                                   {"ABORTED (10)", 10, false},
                                   {"OUT_OF_RANGE (11)", 11, false},
                                   {"UNIMPLEMENTED (12)", 12, false},
                                   {"INTERNAL (13)", 13, false},
                                   {"UNAVAILABLE (14)", 14, false},
                                   {"DATA_LOSS (15)", 15, false},
                                   {"UNAUTHENTICATED (16)", 16, false}};
    print_names("code", bide_classify_grpc, codes, LENGTH(codes));
}

static struct bide_outcome classify_curl(int code, const struct bide_rules *rules)
{
    return bide_classify_curl((CURLcode)code, rules);
}

/* The names come from the library's table; "(20)" is unused. */
static void print_curl(void)
{
    static struct named codes[128];
    const size_t prefix = strlen("CURLE_");
    size_t count = 0;
    for (int code = 0; http_curl_row(code) && count < LENGTH(codes); code++)
        if (http_curl_row(code)->name[0] == 'C')
            codes[count++] = (struct named){http_curl_row(code)->name + prefix, code, false};
    print_names("CURLE_...", classify_curl, codes, count);
}

static void print_errnos(void)
{
    static struct named numbers[] = {
        {"0", 0, false},   NAMED(ECONNREFUSED), NAMED(EHOSTUNREACH), NAMED(ENETUNREACH),  NAMED(EHOSTDOWN),
        NAMED(ENETDOWN),   NAMED(ENONET),       NAMED(ETIMEDOUT),    NAMED(EAGAIN),       NAMED(EINPROGRESS),
        NAMED(ECONNRESET), NAMED(ECONNABORTED), NAMED(ENETRESET),    NAMED(EPIPE),        NAMED(EADDRNOTAVAIL),
        NAMED(EADDRINUSE), NAMED(EMFILE),       NAMED(ENFILE),       NAMED(ENOBUFS),      NAMED(ENOMEM),
        NAMED(EINTR),      NAMED(ECANCELED),    NAMED(EACCES),       NAMED(EPERM),        NAMED(EBADF),
        NAMED(EINVAL),     NAMED(ENOENT),       NAMED(EPROTO),       NAMED(EAFNOSUPPORT), NAMED(EPROTONOSUPPORT),
        NAMED(EPROTOTYPE), NAMED(EISCONN),      NAMED(ENOTCONN),     NAMED(EALREADY),     NAMED(EMSGSIZE),
        NAMED(EOPNOTSUPP)};
    print_names("errno", bide_classify_errno, numbers, LENGTH(numbers));
}

static void print_dns(void)
{
    static struct named numbers[] = {{"0", 0, false},    NAMED(EAI_AGAIN),    NAMED(EAI_MEMORY),  NAMED(EAI_SYSTEM),
                                     NAMED(EAI_INTR),    NAMED(EAI_CANCELED), NAMED(EAI_NONAME),  NAMED(EAI_FAIL),
                                     NAMED(EAI_FAMILY),  NAMED(EAI_SOCKTYPE), NAMED(EAI_SERVICE), NAMED(EAI_BADFLAGS),
                                     NAMED(EAI_OVERFLOW)};
    print_names("`getaddrinfo` result", bide_classify_dns, numbers, LENGTH(numbers));
}

static void print_mysql(void)
{
    static struct named errors[] = {{"0", 0, false},
                                    {"DISK_FULL (1021)", 1021, false},
                                    {"OUTOFMEMORY (1037)", 1037, false},
                                    {"CON_COUNT_ERROR (1040)", 1040, false},
                                    {"OUT_OF_RESOURCES (1041)", 1041, false},
                                    {"UNKNOWN_COM_ERROR (1047)", 1047, false},
                                    {"SERVER_SHUTDOWN (1053)", 1053, false},
                                    {"CANT_CREATE_THREAD (1135)", 1135, false},
                                    {"NET_… (1158–1161)", 1158, false},
                                    {"ERROR_DURING_COMMIT (1180)", 1180, false},
                                    {"TOO_MANY_USER_CONNECTIONS (1203)", 1203, false},
                                    {"LOCK_WAIT_TIMEOUT (1205)", 1205, false},
                                    {"LOCK_DEADLOCK (1213)", 1213, false},
                                    {"USER_LIMIT_REACHED (1226)", 1226, false},
                                    {"OPTION_PREVENTS_STATEMENT (1290)", 1290, false},
                                    {"QUERY_INTERRUPTED (1317)", 1317, false},
                                    {"XA_RBDEADLOCK (1614)", 1614, false},
                                    {"READ_ONLY_MODE (1836)", 1836, false},
                                    {"CONNECTION_KILLED (1927)", 1927, false},
                                    {"SOCKET_CREATE_ERROR (2001)", 2001, false},
                                    {"CONNECTION_ERROR (2002)", 2002, false},
                                    {"CONN_HOST_ERROR (2003)", 2003, false},
                                    {"IPSOCK_ERROR (2004)", 2004, false},
                                    {"UNKNOWN_HOST (2005)", 2005, false},
                                    {"SERVER_GONE_ERROR (2006)", 2006, false},
                                    {"OUT_OF_MEMORY (2008)", 2008, false},
                                    {"SERVER_HANDSHAKE_ERR (2012)", 2012, false},
                                    {"SERVER_LOST (2013)", 2013, false},
                                    {"SERVER_LOST_EXTENDED (2055)", 2055, false},
                                    {"QUERY_TIMEOUT (3024)", 3024, false},
                                    {"TRANSACTION_ROLLBACK_DURING_COMMIT (3101)", 3101, false},
                                    {"SESSION_WAS_KILLED (3169)", 3169, false},
                                    {"LOCK_NOWAIT (3572)", 3572, false},
                                    {"CLIENT_INTERACTION_TIMEOUT (4031)", 4031, false}};
    print_names("error", bide_classify_mysql, errors, LENGTH(errors));
}

/* Texts are classified through their index in one of these two lists. */
static const char *const sqlstates[] = {"00000", "01000", "02000", "08000", "08001", "08003", "08004", "08006", "08007",
                                        "08P01", "23505", "25006", "25P03", "40000", "40001", "40002", "40003", "40P01",
                                        "42601", "53000", "53100", "53200", "53300", "53400", "55P03", "57014", "57P01",
                                        "57P02", "57P03", "57P04", "57P05", "58000", "58030", "XX000"};
static const char *const redis_codes[] = {"ASK",         "BUSY",
                                          "CLUSTERDOWN", "CROSSSLOT",
                                          "ERR",         "ERR max number of clients",
                                          "EXECABORT",   "LOADING",
                                          "MASTERDOWN",  "MISCONF",
                                          "MOVED",       "NOAUTH",
                                          "NOPERM",      "NOREPLICAS",
                                          "NOSCRIPT",    "OOM",
                                          "READONLY",    "TRYAGAIN",
                                          "UNBLOCKED",   "UNBLOCKED force unblock",
                                          "UNKILLABLE",  "WRONGTYPE"};

static struct bide_outcome classify_sqlstate_at(int i, const struct bide_rules *rules)
{
    (void)rules;
    return bide_classify_sqlstate(sqlstates[i]);
}

static struct bide_outcome classify_redis_at(int i, const struct bide_rules *rules)
{
    (void)rules;
    return bide_classify_redis((struct bide_text){redis_codes[i], strlen(redis_codes[i])});
}

static void print_texts(const char *title, classifier *classify, const char *const *names, size_t count)
{
    struct named rows[64];
    struct text quoted[64];
    for (size_t i = 0; i < count; i++) {
        quoted[i] = text("`%s`", names[i]);
        rows[i] = (struct named){quoted[i].text, (int)i, false};
    }
    print_names(title, classify, rows, count);
}

static void print_sqlstates(void)
{
    print_texts("SQLSTATE", classify_sqlstate_at, sqlstates, LENGTH(sqlstates));
}

static void print_redis(void)
{
    print_texts("error reply", classify_redis_at, redis_codes, LENGTH(redis_codes));
}

/* ---- metrics ---- */

/* Prints the items of a list, with their markup, over lines that fit into a page. */
static void print_item(const char *item)
{
    char line[4 * COLUMNS_MAX + 8] = "-";
    while (*item != '\0') {
        size_t used = strlen(line), word = strcspn(item, " ");
        snprintf(line + used, sizeof line - used, " %.*s", (int)word, item);
        if (columns_of(line) > COLUMNS_MAX) {
            line[used] = '\0';
            print_line("%s", line);
            memcpy(line, " ", 2);
            continue;
        }
        item += word;
        item += strspn(item, " ");
    }
    print_line("%s", line);
}

static struct text metric_labels(const struct telemetry_metric *metric)
{
    struct text list = text("%s", metric->has_target ? "`target`" : "");
    for (size_t i = 0; i < TELEMETRY_LABELS_MAX && metric->labels[i] != NULL; i++)
        text_append(&list, ", ", text("`%s`", metric->labels[i]).text);
    return list;
}

static void print_metrics(void)
{
    print_line("| metric | type | labels | in OTLP | unit |");
    print_line("|---|---|---|---|---|");
    for (size_t i = 0; i < telemetry_metric_count(); i++) {
        const struct telemetry_metric *metric = telemetry_metric_at(i);
        print_line("| `%s` | %s | %s | `%s` | `%s` |", metric->name, telemetry_type_label(metric->type),
                   metric_labels(metric).text, metric->otlp_name, metric->unit);
    }
}

static void print_metric_notes(void)
{
    for (size_t i = 0; i < telemetry_metric_count(); i++) {
        const struct telemetry_metric *metric = telemetry_metric_at(i);
        char item[1024];
        int n = snprintf(item, sizeof item, "`%s`: %s. %s", metric->name, metric->help, metric->note);
        if (n < 0 || (size_t)n >= sizeof item)
            fail("a note is too long", metric->name);
        print_item(item);
    }
}

static void print_metric_causes(void)
{
    print_line("| `cause` | lost because |");
    print_line("|---|---|");
#define ROW(NAME, label, sentence) print_line("| `%s` | %s |", label, sentence);
    TELEMETRY_CAUSE_LIST(ROW)
#undef ROW
}

/* ---- requests and sizes ---- */

static void print_methods(void)
{
    static const char *const all[] = {"GET",    "HEAD", "OPTIONS", "TRACE",   "QUERY", "PUT",
                                      "DELETE", "POST", "PATCH",   "CONNECT", "get"};
    print_line("| method | safety |");
    print_line("|---|---|");
    for (size_t i = 0; i < LENGTH(all); i++)
        print_line("| %s | %s |", all[i], safeties[bide_method_safety(all[i], strlen(all[i]))]);
}

static void print_sizes(void)
{
    print_line("| struct | bytes |");
    print_line("|---|---|");
#define SIZE(name) print_line("| `struct %s` | %zu |", #name, sizeof(struct name));
    SIZE(bide_call)
    SIZE(bide_target)
    SIZE(bide_target_config)
    SIZE(bide_policy)
    SIZE(bide_request)
    SIZE(bide_outcome)
    SIZE(bide_verdict)
#undef SIZE
}

static const struct {
    const char *name;
    void (*print)(void);
} tables[] = {
    {"preset-list", preset_list},
    {"preset-waits", preset_waits},
    {"preset-hints", preset_hints},
    {"preset-rules", preset_rules},
    {"preset-tokens", preset_tokens},
    {"preset-windows", preset_windows},
    {"preset-gates", preset_gates},
    {"policy-fields", policy_fields},
    {"policy-contradictions", policy_contradictions},
    {"config-fields", config_fields},
    {"config-contradictions", config_contradictions},
    {"budget-fields", budget_fields},
    {"breaker-fields", breaker_fields},
    {"file-call", file_call},
    {"file-target", file_target},
    {"file-budget", file_budget},
    {"file-breaker", file_breaker},
    {"file-words", file_words},
    {"scenario-head", scenario_head},
    {"scenario-clients", scenario_clients},
    {"scenario-network", scenario_network},
    {"scenario-fleet", scenario_fleet},
    {"scenario-service", scenario_service},
    {"scenario-outage", scenario_outage},
    {"scenario-words", scenario_words},
    {"backoff-windows", backoff_windows},
    {"reasons", print_reasons},
    {"reason-heads", print_reason_heads},
    {"shared-reasons", print_shared_reasons},
    {"gates", print_gates},
    {"http", print_http},
    {"grpc", print_grpc},
    {"curl", print_curl},
    {"exits", print_exits},
    {"errnos", print_errnos},
    {"dns", print_dns},
    {"sqlstates", print_sqlstates},
    {"mysql", print_mysql},
    {"redis", print_redis},
    {"methods", print_methods},
    {"sizes", print_sizes},
    {"metrics", print_metrics},
    {"metric-notes", print_metric_notes},
    {"metric-causes", print_metric_causes},
};

int main(int count, char **words)
{
    for (size_t i = 0; i < LENGTH(tables); i++)
        if (count < 2)
            puts(tables[i].name);
        else if (strcmp(words[1], tables[i].name) == 0) {
            tables[i].print();
            return 0;
        }
    if (count >= 2)
        fail("no such table", words[1]);
    return 0;
}
