/* print_text.c - prints a report as text: short, aligned, within the width of the terminal.
 *
 * Columns are padded by bytes, so their content is ASCII; UTF-8 blocks and marks are last in a line or alone. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "conf/diagnostics.h"
#include "core/saturate.h"

#define ROWS_MAX  10u /* waits listed individually */
#define BAR_LEAST 10u
#define BAR_MOST  40u

/* ---- formatting ---- */

struct time_text {
    char text[2 * TEXT_VALUE_SIZE];
};

static const char *format_time(struct time_text *w, int64_t ns)
{
    return text_duration_format_short(w->text, ns);
}

/* Formats "0..200ms", or a single value if both ends are equal. */
static const char *format_range(struct time_text *w, struct bide_range r)
{
    struct time_text lo, hi;
    if (r.lo_ns == r.hi_ns)
        return format_time(w, r.lo_ns);
    snprintf(w->text, sizeof w->text, "%s..%s", format_time(&lo, r.lo_ns), format_time(&hi, r.hi_ns));
    return w->text;
}

/* Formats the value of a field as in a policy file. */
static const char *field_text(char text[256], const struct conf_pair *pair, const char *key)
{
    const struct conf_field *field = conf_field_find(key, strlen(key));
    return field != NULL ? conf_field_format(text, field, pair) : "?";
}

/* Returns "full", as in "full jitter", or "no" for the value none. */
static const char *kind_text(char text[256], const struct conf_pair *pair, const char *key)
{
    const char *word = field_text(text, pair, key);
    return strcmp(word, "none") == 0 ? "no" : word;
}

static void print_heading(const struct cli_term *term, const char *text)
{
    fprintf(term->out, "\n%s%s%s\n", cli_colour(term, CLI_BOLD), text, cli_colour(term, CLI_PLAIN));
}

/* Returns a paragraph that begins at this column and is indented to it. */
static struct cli_paragraph paragraph_at(const struct cli_term *term, unsigned column)
{
    unsigned width = (unsigned)core_max(term->width, column + 20);
    return (struct cli_paragraph){.out = term->out, .utf8 = term->utf8, .at = column, .left = column, .right = width};
}

static void print_wrapped(const struct cli_term *term, unsigned column, const char *text)
{
    struct cli_paragraph paragraph = paragraph_at(term, column);
    cli_print_paragraph(&paragraph, text, strlen(text));
}

static void print_labelled(const struct cli_term *term, const char *label, const char *text)
{
    fprintf(term->out, "  %-12s", label);
    print_wrapped(term, 14, text);
}

/* ---- schedule ---- */

static void print_head(const struct cli_term *term, const struct explain_report *r)
{
    const struct conf_policy *c = r->policy;
    char a[256], b[256], n[256];
    struct time_text base, cap, timeout, deadline, waits;
    const struct bide_policy *p = &c->pair.policy;
    fprintf(term->out, "%s%s%s", cli_colour(term, CLI_BOLD), c->name, cli_colour(term, CLI_PLAIN));
    if (c->line > 0)
        fprintf(term->out, "  %s:%u, from %s\n", c->file, c->line, bide_preset_label(c->preset));
    else
        fprintf(term->out, "  %s\n", bide_preset_purpose(c->preset));
    fprintf(term->out, "%s attempt%s, %s backoff, %s jitter, base %s, cap %s\n", kind_text(n, &c->pair, "attempts"),
            p->attempts_max == 1 ? "" : "s", kind_text(a, &c->pair, "backoff"), kind_text(b, &c->pair, "jitter"),
            format_time(&base, p->base_ns), format_time(&cap, p->cap_ns));
    fprintf(term->out, "attempt timeout %s, deadline %s", format_time(&timeout, p->attempt_timeout_ns),
            format_time(&deadline, p->call_timeout_ns));
    if (p->waits_max_ns != BIDE_NEVER)
        fprintf(term->out, ", all waits at most %s", format_time(&waits, p->waits_max_ns));
    fputc('\n', term->out);
}

/* Prints the window of a wait as a bar, scaled to the longest wait, with the mean marked. */
static void print_window(const struct cli_term *term, const struct explain_wait *w, int64_t longest_ns, unsigned cells)
{
    double scale = longest_ns > 0 ? cells / (double)longest_ns : 0;
    unsigned lo = (unsigned)((double)w->window.lo_ns * scale), hi = (unsigned)((double)w->window.hi_ns * scale + 0.5);
    unsigned mean = (unsigned)((double)w->mean_ns * scale), first = lo < cells ? lo : cells - 1;
    unsigned end = hi > first ? hi : first + 1;
    fprintf(term->out, "%*s", (int)first, "");
    for (unsigned i = first; i < end; i++) {
        bool marked = i == (mean < end ? mean : end - 1);
        fputs(term->utf8 ? (marked ? "\u2588" : "\u2591") : (marked ? "#" : "-"), term->out);
    }
}

/* Formats the latest start of the attempt after this wait, or that it may not start. */
static const char *format_latest(struct time_text *text, const struct explain_schedule *schedule,
                                 const struct explain_wait *w)
{
    struct time_text deadline;
    bool waits_exceed = w->earliest_ns > schedule->waits_max_ns; /* attempts that fail at once: waits alone */
    if (w->earliest_ns >= schedule->deadline_ns || waits_exceed)
        snprintf(text->text, sizeof text->text, "never");
    else if (w->latest_ns >= schedule->deadline_ns && schedule->deadline_ns != BIDE_NEVER)
        snprintf(text->text, sizeof text->text, "past %s", format_time(&deadline, schedule->deadline_ns));
    else if (w->latest_ns == BIDE_NEVER)
        snprintf(text->text, sizeof text->text, "no limit");
    else
        return format_time(text, w->latest_ns);
    return text->text;
}

static unsigned bar_cells(const struct cli_term *term)
{
    unsigned cells = term->width > 50 + BAR_LEAST ? term->width - 50 : BAR_LEAST;
    return cells < BAR_MOST ? cells : BAR_MOST;
}

static void print_wait(const struct cli_term *term, const struct explain_schedule *schedule,
                       const struct explain_wait *w, int64_t longest_ns)
{
    struct time_text window, mean, last;
    fprintf(term->out, "  %7u  %-16s %8s  %9s  ", w->attempt, format_range(&window, w->window),
            format_time(&mean, w->mean_ns), format_latest(&last, schedule, w));
    fputs(cli_colour(term, CLI_DIM), term->out);
    print_window(term, w, longest_ns, bar_cells(term));
    fprintf(term->out, "%s\n", cli_colour(term, CLI_PLAIN));
}

/* Explains the bars. */
static void print_legend(const struct cli_term *term, int64_t longest_ns)
{
    struct time_text scale;
    char text[256];
    snprintf(text, sizeof text, "%s possible lengths of the wait, %s their mean; from 0 at the left, %u cells are %s",
             term->utf8 ? "\u2591" : "-", term->utf8 ? "\u2588" : "#", bar_cells(term),
             format_time(&scale, longest_ns));
    fputs("  ", term->out);
    print_wrapped(term, 2, text);
}

static void print_waits(const struct cli_term *term, const struct explain_report *r)
{
    const struct explain_schedule *schedule = &r->schedule;
    uint32_t rows = schedule->waits <= ROWS_MAX + 1 ? schedule->waits : ROWS_MAX;
    int64_t longest_ns = 0;
    struct time_text window;
    if (schedule->waits == 0)
        return;
    for (uint32_t i = 0; i < rows; i++)
        longest_ns = core_max(longest_ns, schedule->wait[i].window.hi_ns);
    print_heading(term, "schedule, if every attempt fails");
    fprintf(term->out, "  %7s  %-16s %8s  %9s\n", "attempt", "after a wait of", "mean", "latest at");
    fprintf(term->out, "  %7d  %-16s %8s  %9s\n", 1, "-", "-", "0");
    for (uint32_t i = 0; i < rows; i++)
        print_wait(term, schedule, &schedule->wait[i], longest_ns);
    if (schedule->attempts == UINT32_MAX)
        fprintf(term->out, "  %7s  %-16s and so on, without limit\n", "...",
                format_range(&window, schedule->wait[schedule->waits - 1].window));
    else if (rows < schedule->attempts - 1)
        fprintf(term->out, "  %7s  %-16s and %u more like it\n", "...",
                format_range(&window, schedule->wait[schedule->waits - 1].window), schedule->attempts - 1 - rows);
    if (longest_ns > 0)
        print_legend(term, longest_ns);
}

static void print_slo(const struct cli_term *term, const struct explain_report *r)
{
    struct time_text slo_text, take, third, off;
    char label[TEXT_VALUE_SIZE + 8], text[256];
    struct explain_slo slo = explain_slo(&r->schedule, r->subject.slo_ns);
    snprintf(label, sizeof label, "SLO %s", format_time(&slo_text, r->subject.slo_ns));
    if (slo.retries_ns == BIDE_NEVER)
        snprintf(text, sizeof text, "does not fit: retries have no time limit; a third is %s",
                 format_time(&third, slo.third_ns));
    else if (slo.fits)
        snprintf(text, sizeof text, "fits: retries take up to %s, a third is %s, %s to spare",
                 format_time(&take, slo.retries_ns), format_time(&third, slo.third_ns),
                 format_time(&off, slo.third_ns - slo.retries_ns));
    else
        snprintf(text, sizeof text, "does not fit: retries take up to %s, a third is %s, %s too much",
                 format_time(&take, slo.retries_ns), format_time(&third, slo.third_ns),
                 format_time(&off, slo.retries_ns - slo.third_ns));
    print_labelled(term, label, text);
}

static void print_sample(const struct cli_term *term, const struct explain_report *r)
{
    char label[32], text[EXPLAIN_SAMPLE_MAX * 24] = "";
    struct time_text wait;
    size_t length = 0;
    snprintf(label, sizeof label, "seed %llu", (unsigned long long)r->seed);
    for (uint32_t i = 0; i < r->samples && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? ", " : "",
                                   format_time(&wait, r->sample_ns[i]));
    print_labelled(term, label, r->samples > 0 ? text : "no wait: nothing is retried");
}

static void print_hedges(const struct cli_term *term, const struct conf_pair *pair)
{
    const struct bide_policy *p = &pair->policy;
    struct time_text delay;
    char text[256], quantile[256];
    bool measured = p->hedge_quantile_permille > 0 && pair->target.latency;
    size_t length = (size_t)snprintf(text, sizeof text, "up to %u beside a slow attempt, each ", p->hedges_max);
    if (measured)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "later than %s of the responses take, or, until that is known, ",
                                   field_text(quantile, pair, "hedge_quantile"));
    snprintf(text + length, sizeof text - length, "%s after the previous; they count as attempts",
             format_time(&delay, p->hedge_delay_ns));
    print_labelled(term, "hedges", text);
}

static void print_totals(const struct cli_term *term, const struct explain_report *r)
{
    const struct explain_schedule *schedule = &r->schedule;
    struct time_text mean, worst, slow;
    char text[256];
    fputc('\n', term->out);
    if (schedule->waits_worst_ns == BIDE_NEVER)
        snprintf(text, sizeof text, "more than 292 years");
    else
        snprintf(text, sizeof text, "%s on average, %s at most%s", format_time(&mean, schedule->waits_mean_ns),
                 format_time(&worst, schedule->waits_worst_ns),
                 schedule->underestimates ? ", or more: the last waits still grow" : "");
    print_labelled(term, "waits", text);
    if (schedule->worst_ns == BIDE_NEVER)
        snprintf(text, sizeof text, "%s",
                 schedule->timeout_ns == BIDE_NEVER ? "no limit: attempts have no timeout, and there is no deadline"
                                                    : "more than 292 years");
    else if (schedule->slow_mean_ns == schedule->deadline_ns)
        snprintf(text, sizeof text, "at most %s, the deadline, and about that on average, if every attempt times out",
                 format_time(&worst, schedule->deadline_ns));
    else if (schedule->worst_without_deadline_ns > schedule->deadline_ns)
        snprintf(text, sizeof text, "at most %s, the deadline, %s on average, if every attempt times out",
                 format_time(&worst, schedule->deadline_ns), format_time(&slow, schedule->slow_mean_ns));
    else
        snprintf(text, sizeof text, "at most %s, %s on average, if every attempt times out",
                 format_time(&worst, schedule->worst_ns), format_time(&slow, schedule->slow_mean_ns));
    print_labelled(term, "whole call", text);
    if (r->policy->pair.policy.hedges_max > 0)
        print_hedges(term, &r->policy->pair);
    if (r->subject.slo_ns > 0)
        print_slo(term, r);
    if (r->sampled)
        print_sample(term, r);
}

/* ---- load ---- */

static void print_load_row(const struct cli_term *term, const char *label, const double *x)
{
    fprintf(term->out, "  %-34s", label);
    for (size_t i = 0; i < EXPLAIN_LOADS; i++)
        x[i] < 1e6 ? fprintf(term->out, " %10.2f", x[i]) : fprintf(term->out, " %10.3g", x[i]);
    fputc('\n', term->out);
}

static void format_budget(char *text, size_t size, const struct explain_report *r)
{
    const struct conf_pair *pair = &r->policy->pair;
    char a[256], b[256], c[256];
    if (pair->target.observe & BIDE_GATE_BUDGET)
        snprintf(text, size, "observe mode: refuses nothing");
    else if (pair->target.budget.kind == BIDE_BUDGET_TOKENS)
        snprintf(text, size, "%lld retries at once from a full bucket of %s; %s earned by a success, %s by time",
                 (long long)r->amplification.burst, field_text(a, pair, "budget.capacity"),
                 field_text(b, pair, "budget.earn_success"), field_text(c, pair, "budget.refill_per_minute"));
    else if (pair->target.budget.kind == BIDE_BUDGET_WINDOW)
        snprintf(text, size, "retries up to %s of requests and %s more, over %s", field_text(a, pair, "budget.ratio"),
                 field_text(b, pair, "budget.reserve"), field_text(c, pair, "budget.window"));
    else if (pair->target.budget.kind == BIDE_BUDGET_CONCURRENCY)
        snprintf(text, size, "retries in flight up to %s of calls in flight, at least %s",
                 field_text(a, pair, "budget.ratio"), field_text(b, pair, "budget.reserve"));
    else
        snprintf(text, size, "none");
}

static void format_breaker(char *text, size_t size, const struct conf_pair *pair)
{
    char a[256], b[256], c[256];
    const struct bide_target_config *t = &pair->target;
    if (t->observe & BIDE_GATE_BREAKER)
        snprintf(text, size, "observe mode: refuses nothing");
    else if (t->breaker.kind == BIDE_BREAKER_BY_TIME)
        snprintf(text, size, "opens when %s of at least %s attempts fail in %s", field_text(a, pair, "breaker.ratio"),
                 field_text(b, pair, "breaker.min_volume"), field_text(c, pair, "breaker.window"));
    else if (t->breaker.kind == BIDE_BREAKER_BY_COUNT)
        snprintf(text, size, "opens when %s of the last %s attempts fail, at least %s",
                 field_text(a, pair, "breaker.ratio"), field_text(b, pair, "breaker.count_window"),
                 field_text(c, pair, "breaker.min_volume"));
    else if (t->breaker.kind == BIDE_BREAKER_BY_RUN)
        snprintf(text, size, "opens when %s attempts in a row fail", field_text(a, pair, "breaker.consecutive"));
    else
        snprintf(text, size, "none");
}

static void print_load(const struct cli_term *term, const struct explain_report *r)
{
    const struct explain_amplification *a = &r->amplification;
    double plain[EXPLAIN_LOADS], hedged[EXPLAIN_LOADS], budgeted[EXPLAIN_LOADS], layers_plain[EXPLAIN_LOADS],
        layers_budgeted[EXPLAIN_LOADS];
    char label[64], text[256];
    for (size_t i = 0; i < EXPLAIN_LOADS; i++) {
        plain[i] = a->load[i].plain;
        hedged[i] = a->load[i].hedged;
        budgeted[i] = a->load[i].budgeted;
        layers_plain[i] = a->load[i].layers_plain;
        layers_budgeted[i] = a->load[i].layers_budgeted;
    }
    print_heading(term, "requests at the server per request of a user");
    fprintf(term->out, "  %-34s %9u%% %9u%% %9u%%\n", "attempts that fail, retryable", a->load[0].fail_permille / 10,
            a->load[1].fail_permille / 10, a->load[2].fail_permille / 10);
    print_load_row(term, "attempts alone", plain);
    if (r->policy->pair.policy.hedges_max > 0)
        print_load_row(term, "with hedges, if all are slow", hedged);
    print_load_row(term, "with the budget, in the long run", budgeted);
    if (a->layers > 1) {
        snprintf(label, sizeof label, "%u layers, each with all attempts", a->layers);
        print_load_row(term, label, layers_plain);
        snprintf(label, sizeof label, "%u layers of this policy, at most", a->layers);
        print_load_row(term, label, layers_budgeted);
    }
    format_budget(text, sizeof text, r);
    print_labelled(term, "budget", text);
    if (a->retries_per_second >= 0) {
        snprintf(text, sizeof text, "%.3g/s in the long run, when all of %g requests/s fail", a->retries_per_second,
                 explain_rate(&r->subject));
        print_labelled(term, "retries", text);
    }
    format_breaker(text, sizeof text, &r->policy->pair);
    print_labelled(term, "breaker", text);
}

/* ---- classes ---- */

static bool prediction_is_retry(const struct explain_prediction *a)
{
    return a->verdict.action == BIDE_ACTION_WAIT && a->verdict.reason != BIDE_REASON_BUDGET_EMPTY;
}

/* Returns "yes" or "no", or "some" if it depends on the evidence. */
static const char *retried_word(const struct explain_prediction *cells, size_t count)
{
    size_t retried = 0;
    for (size_t i = 0; i < count; i++)
        retried += prediction_is_retry(&cells[i]);
    return retried == count ? "yes" : retried == 0 ? "no" : "some";
}

/* Formats the wait of the cells that are retried, then the reasons of the others, each once. */
static void format_reasons(char *text, size_t size, const struct explain_class *c)
{
    uint64_t listed = 0;
    struct time_text wait;
    size_t length = 0;
    for (size_t i = 0; i < EXPLAIN_COLUMNS && length == 0; i++)
        if (prediction_is_retry(&c->cell[i]))
            length = (size_t)snprintf(text, size, "%s",
                                      c->cell[i].wait.hi_ns == 0 ? "at once" : format_range(&wait, c->cell[i].wait));
    for (size_t i = 0; i < EXPLAIN_COLUMNS; i++) {
        enum bide_reason reason = c->cell[i].verdict.reason;
        if (prediction_is_retry(&c->cell[i]) || listed >> reason & 1)
            continue;
        length +=
            (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? "; " : "", bide_reason_label(reason));
        listed |= UINT64_C(1) << reason;
    }
}

/* Prints what the lists of the policy retry. */
static void print_lists(const struct cli_term *term, const struct conf_policy *policy)
{
    struct explain_list_summary summary;
    char text[256];
    for (size_t i = 0; i < EXPLAIN_LISTS; i++) {
        if (!explain_list_summary(&summary, policy, i))
            continue;
        snprintf(text, sizeof text, "retried by the lists of the policy: %s", summary.retried);
        print_labelled(term, summary.name, text);
    }
}

static void print_classes(const struct cli_term *term, const struct explain_report *r)
{
    char text[256];
    print_heading(term, "is a failure retried?");
    fprintf(term->out, "  %-30s unsafe, if it was\n", "");
    fprintf(term->out, "  %-18s %-5s %-5s %-6s %-4s %-8s  %s\n", "failure", "safe", "keyed", "unsent", "sent",
            "answered", "wait; reason if not");
    for (size_t i = 0; i < r->class_count; i++) {
        const struct explain_class *c = &r->classes[i];
        fprintf(term->out, "  %-18s %-5s %-5s %-6s %-4s %-8s  ", c->name, retried_word(&c->cell[0], 3),
                retried_word(&c->cell[3], 3), retried_word(&c->cell[6], 1), retried_word(&c->cell[7], 1),
                retried_word(&c->cell[8], 1));
        format_reasons(text, sizeof text, c);
        print_wrapped(term, 55, text);
    }
    print_lists(term, r->policy);
}

/* ---- findings and advice ---- */

static void print_findings(const struct cli_term *term, const struct explain_findings *all)
{
    static const enum cli_colour colours[] = {CLI_PLAIN, CLI_YELLOW, CLI_RED};
    char text[512];
    print_heading(term, "findings");
    for (size_t i = 0; i < all->count; i++) {
        const struct explain_finding *f = &all->finding[i];
        fprintf(term->out, "  %s%-8s%s ", cli_colour(term, colours[f->severity]), explain_severity_label(f->severity),
                cli_colour(term, CLI_PLAIN));
        snprintf(text, sizeof text, "%s [%s]", f->text, f->id);
        print_wrapped(term, 11, text);
        if (f->fix[0] == '\0')
            continue;
        fprintf(term->out, "%11s%s ", "", term->utf8 ? "\u2192" : "->");
        print_wrapped(term, term->utf8 ? 13 : 14, f->fix);
    }
    if (all->count == 0)
        fputs("  none\n", term->out);
}

static size_t print_differences(const struct cli_term *term, const struct conf_pair *from, const struct conf_pair *to)
{
    size_t count = 0;
    char text[256], old[256];
    const struct conf_field *field;
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        if (conf_field_equal(field, from, to))
            continue;
        fprintf(term->out, "  %s%s = %s%s  (now %s)\n", cli_colour(term, CLI_GREEN), field->key,
                conf_field_format(text, field, to), cli_colour(term, CLI_PLAIN), conf_field_format(old, field, from));
        count++;
    }
    return count;
}

static void print_advice(const struct cli_term *term, const struct explain_report *r)
{
    const struct explain_advice *a = &r->advice;
    char text[128];
    print_heading(term, "advice");
    for (size_t i = 0; i < a->branches; i++) {
        fprintf(term->out, "  %-31s ", a->branch[i].question);
        print_wrapped(term, 34, a->branch[i].answer);
    }
    if (a->herd_per_second > 0) {
        snprintf(text, sizeof text, "%.0f/s while the first window lasts", a->herd_per_second);
        fprintf(term->out, "  %-31s ", "if all clients fail at once");
        print_wrapped(term, 34, text);
    }
    fputc('\n', term->out);
    if (print_differences(term, &r->policy->pair, &a->pair) == 0)
        fputs("  nothing to change\n", term->out);
    for (size_t i = 0; i < a->remarks; i++) {
        fputs("  ", term->out);
        print_wrapped(term, 2, a->remark[i].text);
    }
}

void explain_print_report(const struct cli_term *term, const struct explain_report *r)
{
    print_head(term, r);
    print_waits(term, r);
    print_totals(term, r);
    print_load(term, r);
    print_classes(term, r);
    print_findings(term, &r->findings);
    if (r->has_advice)
        print_advice(term, r);
}

/* ---- prediction ---- */

static const char *const safeties[] = {
    [BIDE_UNSAFE] = "unsafe", [BIDE_IDEMPOTENT] = "idempotent", [BIDE_SAFE] = "safe", [BIDE_KEYED] = "keyed"};

static const char *format_hint(struct time_text *w, int64_t ns)
{
    if (ns == 0)
        return "no wait, or one in the past: the backoff of the policy applies";
    return ns > BIDE_DURATION_MAX ? "more than 31 years" : format_time(w, ns);
}

static void print_situation(const struct cli_term *term, const struct explain_verdict *v)
{
    const struct bide_outcome *o = &v->situation.outcome;
    struct time_text elapsed, hint;
    char text[256];
    struct conf_printable hint_text =
        conf_printable(v->hint != NULL ? v->hint : "", v->hint != NULL ? strlen(v->hint) : 0);
    fprintf(term->out, "%s%s%s", cli_colour(term, CLI_BOLD), v->outcome_name.name, cli_colour(term, CLI_PLAIN));
    if (v->method != NULL)
        fprintf(term->out, " to a %s", v->method);
    fprintf(term->out, " (%s), attempt %u of %u after %s, policy %s\n", safeties[v->situation.request.safety],
            v->situation.attempt, v->situation.pair.policy.attempts_max,
            format_time(&elapsed, v->prediction.elapsed_ns), v->policy->name);
    size_t length = (size_t)snprintf(text, sizeof text, "is %s, evidence %s", bide_kind_label(o->kind),
                                     bide_evidence_label(o->evidence));
    if (v->hint != NULL && o->hint.kind == BIDE_HINT_NONE)
        snprintf(text + length, sizeof text - length, "; Retry-After: %s is malformed and ignored", hint_text.text);
    else if (v->hint != NULL)
        snprintf(text + length, sizeof text - length, "; Retry-After: %s requests %s", hint_text.text,
                 format_hint(&hint, o->hint.wait_ns));
    print_wrapped(term, 0, text);
    fputc('\n', term->out);
}

static void print_prediction(const struct cli_term *term, const struct explain_verdict *v)
{
    const struct bide_verdict *verdict = &v->prediction.verdict;
    bool retried = prediction_is_retry(&v->prediction), done = verdict->action == BIDE_ACTION_DONE;
    struct time_text window, drawn;
    char action_text[128], text[256];
    if (!v->prediction.reached)
        fprintf(term->out, "The call does not get that far: it ends %s.\n",
                verdict->attempt == 0 ? "before anything is sent" : "earlier");
    if (retried && v->sampled)
        snprintf(action_text, sizeof action_text,
                 "retried after %s (seed %llu: %s):", format_range(&window, v->prediction.wait),
                 (unsigned long long)v->situation.request.seed, format_time(&drawn, v->prediction.wait_ns));
    else if (retried)
        snprintf(action_text, sizeof action_text, "retried after %s:", format_range(&window, v->prediction.wait));
    else
        snprintf(action_text, sizeof action_text, "%s:", done ? "done" : "given up");
    fprintf(term->out, "%s%s%s", cli_colour(term, retried || done ? CLI_GREEN : CLI_RED), action_text,
            cli_colour(term, CLI_PLAIN));
    snprintf(text, sizeof text, "%s [%s]", bide_reason_text(verdict->reason), bide_reason_label(verdict->reason));
    struct cli_paragraph paragraph = paragraph_at(term, 0);
    paragraph.at = (unsigned)cli_text_columns(action_text);
    paragraph.after_word = true;
    cli_print_paragraph(&paragraph, text, strlen(text));
    if (!done)
        fputc('\n', term->out);
}

static void print_gate(const struct cli_term *term, const struct explain_gate *g)
{
    static const char *const result_texts[] = {"passes", "refuses", "would refuse", "only observes"};
    static const enum cli_colour colours[] = {CLI_PLAIN, CLI_RED, CLI_DIM, CLI_YELLOW};
    fprintf(term->out, "  %-10s %-39s %s%s%s", g->name, g->question, cli_colour(term, colours[g->result]),
            result_texts[g->result], cli_colour(term, CLI_PLAIN));
    if (g->result != EXPLAIN_PASSES)
        fprintf(term->out, ": %s", bide_reason_label(g->reason));
    fputc('\n', term->out);
}

void explain_print_verdict(const struct cli_term *term, const struct explain_verdict *v)
{
    print_situation(term, v);
    print_prediction(term, v);
    for (size_t i = 0; i < EXPLAIN_GATES && v->prediction.verdict.action != BIDE_ACTION_DONE; i++)
        print_gate(term, &v->gates[i]);
    if (v->change_count > 0)
        fputc('\n', term->out);
    for (size_t i = 0; i < v->change_count; i++)
        fprintf(term->out, "%s\n", v->changes[i].text);
}

/* ---- lists ---- */

void explain_print_list(const struct cli_term *term, const struct conf *conf)
{
    for (size_t i = 0; i < conf->count; i++) {
        const struct conf_policy *c = &conf->policy[i];
        fprintf(term->out, "%s%-20s%s from %s, %s:%u\n", cli_colour(term, CLI_BOLD), c->name,
                cli_colour(term, CLI_PLAIN), bide_preset_label(c->preset), c->file, c->line);
    }
    for (enum bide_preset i = 0; i < BIDE_PRESET_COUNT; i++)
        fprintf(term->out, "%s%-20s%s %s\n", cli_colour(term, CLI_BOLD), bide_preset_label(i),
                cli_colour(term, CLI_PLAIN), bide_preset_purpose(i));
}
