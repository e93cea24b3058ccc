/* show.c - a report for people: short, aligned, within the width of the terminal.
 *
 * Columns are padded by bytes, so what stands in them is plain ASCII; blocks and marks come last in a line or alone. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "conf/diagnostics.h"
#include "core/saturate.h"

#define ROWS_MAX  10u /* waits shown one by one */
#define BAR_LEAST 10u
#define BAR_MOST  40u

/* ---- words ---- */

enum colour { PLAIN, DIM, BOLD, RED, GREEN, YELLOW };

static const char *paint(const struct explain_screen *s, enum colour colour)
{
    static const char *const sequence[] = {"\033[0m", "\033[2m", "\033[1m", "\033[31m", "\033[32m", "\033[33m"};
    return s->colour ? sequence[colour] : "";
}

struct words {
    char text[2 * CONF_VALUE_SIZE];
};

static const char *in(struct words *w, int64_t ns)
{
    return conf_duration_format_short(w->text, ns);
}

/* "0..200ms", or one value where both ends are the same. */
static const char *range(struct words *w, struct bide_range r)
{
    struct words lo, hi;
    if (r.lo_ns == r.hi_ns)
        return in(w, r.lo_ns);
    snprintf(w->text, sizeof w->text, "%s..%s", in(&lo, r.lo_ns), in(&hi, r.hi_ns));
    return w->text;
}

/* A field's value as a policy file has it. */
static const char *value(char text[256], const struct conf_pair *pair, const char *key)
{
    const struct conf_field *field = conf_field_find(key, strlen(key));
    return field != NULL ? conf_field_format(text, field, pair) : "?";
}

/* "full", for "full jitter"; "no" where a policy file has none. */
static const char *kind(char text[256], const struct conf_pair *pair, const char *key)
{
    const char *word = value(text, pair, key);
    return strcmp(word, "none") == 0 ? "no" : word;
}

static void heading(const struct explain_screen *s, const char *text)
{
    fprintf(s->out, "\n%s%s%s\n", paint(s, BOLD), text, paint(s, PLAIN));
}

/* Text broken between words; further lines begin at the indent. The line is already begun, up to `at`. */
struct margin {
    unsigned indent, at;
};

static void flow_on(const struct explain_screen *s, struct margin margin, const char *text)
{
    unsigned at = margin.at, width = (unsigned)core_max(s->width, margin.indent + 20);
    while (*text != '\0') {
        unsigned length = (unsigned)strcspn(text, " ");
        bool first = at == margin.indent;
        if (!first && at + 1 + length > width) {
            fprintf(s->out, "\n%*s", (int)margin.indent, "");
            at = margin.indent;
            first = true;
        }
        at += (unsigned)fprintf(s->out, "%s%.*s", first ? "" : " ", (int)length, text);
        text += length + strspn(text + length, " ");
    }
    fputc('\n', s->out);
}

static void flow(const struct explain_screen *s, unsigned column, const char *text)
{
    flow_on(s, (struct margin){column, column}, text);
}

static void labelled(const struct explain_screen *s, const char *label, const char *text)
{
    fprintf(s->out, "  %-12s", label);
    flow(s, 14, text);
}

/* ---- the schedule ---- */

static void show_head(const struct explain_screen *s, const struct explain_report *r)
{
    const struct conf_policy *c = r->policy;
    char a[256], b[256];
    struct words base, cap, timeout, deadline;
    const struct bide_policy *p = &c->pair.policy;
    fprintf(s->out, "%s%s%s", paint(s, BOLD), c->name, paint(s, PLAIN));
    if (c->line > 0)
        fprintf(s->out, "  %s:%u, from %s\n", c->file, c->line, bide_preset_label(c->preset));
    else
        fprintf(s->out, "  %s\n", bide_preset_purpose(c->preset));
    fprintf(s->out, "%u attempt%s, %s backoff, %s jitter, base %s, cap %s\n", p->attempts_max,
            p->attempts_max == 1 ? "" : "s", kind(a, &c->pair, "backoff"), kind(b, &c->pair, "jitter"),
            in(&base, p->base_ns), in(&cap, p->cap_ns));
    fprintf(s->out, "attempt timeout %s, deadline %s\n", in(&timeout, p->attempt_timeout_ns),
            in(&deadline, p->deadline_ns));
}

/* Where a wait may end, of the longest there is: nothing, then the window, with its mean marked. */
static void show_window(const struct explain_screen *s, const struct explain_wait *w, int64_t longest_ns,
                        unsigned cells)
{
    double scale = longest_ns > 0 ? cells / (double)longest_ns : 0;
    unsigned lo = (unsigned)((double)w->window.lo_ns * scale), hi = (unsigned)((double)w->window.hi_ns * scale + 0.5);
    unsigned mean = (unsigned)((double)w->mean_ns * scale), first = lo < cells ? lo : cells - 1;
    unsigned end = hi > first ? hi : first + 1;
    fprintf(s->out, "%*s", (int)first, "");
    for (unsigned i = first; i < end; i++) {
        bool marked = i == (mean < end ? mean : end - 1);
        fputs(s->utf8 ? (marked ? "\u2588" : "\u2591") : (marked ? "#" : "-"), s->out);
    }
}

/* When the attempt after this wait starts at the latest, or that it may not. */
static const char *latest(struct words *text, const struct explain_schedule *schedule, const struct explain_wait *w)
{
    struct words deadline;
    if (w->earliest_ns >= schedule->deadline_ns)
        snprintf(text->text, sizeof text->text, "never");
    else if (w->latest_ns >= schedule->deadline_ns && schedule->deadline_ns != BIDE_NEVER)
        snprintf(text->text, sizeof text->text, "past %s", in(&deadline, schedule->deadline_ns));
    else if (w->latest_ns == BIDE_NEVER)
        snprintf(text->text, sizeof text->text, "no limit");
    else
        return in(text, w->latest_ns);
    return text->text;
}

static void show_wait(const struct explain_screen *s, const struct explain_schedule *schedule,
                      const struct explain_wait *w, int64_t longest_ns)
{
    struct words window, mean, last;
    unsigned cells = s->width > 50 + BAR_LEAST ? s->width - 50 : BAR_LEAST;
    fprintf(s->out, "  %7u  %-16s %8s  %9s  ", w->attempt, range(&window, w->window), in(&mean, w->mean_ns),
            latest(&last, schedule, w));
    fputs(paint(s, DIM), s->out);
    show_window(s, w, longest_ns, cells < BAR_MOST ? cells : BAR_MOST);
    fprintf(s->out, "%s\n", paint(s, PLAIN));
}

static void show_waits(const struct explain_screen *s, const struct explain_report *r)
{
    const struct explain_schedule *schedule = &r->schedule;
    uint32_t rows = schedule->waits <= ROWS_MAX + 1 ? schedule->waits : ROWS_MAX;
    int64_t longest_ns = 0;
    struct words window;
    if (schedule->waits == 0)
        return;
    for (uint32_t i = 0; i < rows; i++)
        longest_ns = core_max(longest_ns, schedule->wait[i].window.hi_ns);
    heading(s, "schedule, if every attempt fails");
    fprintf(s->out, "  %7s  %-16s %8s  %9s\n", "attempt", "after a wait of", "mean", "latest at");
    fprintf(s->out, "  %7d  %-16s %8s  %9s\n", 1, "-", "-", "0");
    for (uint32_t i = 0; i < rows; i++)
        show_wait(s, schedule, &schedule->wait[i], longest_ns);
    if (rows < schedule->attempts - 1)
        fprintf(s->out, "  %7s  %-16s and %u more like it\n", "...",
                range(&window, schedule->wait[schedule->waits - 1].window), schedule->attempts - 1 - rows);
}

static void show_slo(const struct explain_screen *s, const struct explain_report *r)
{
    struct words slo_text, take, third, off;
    char label[CONF_VALUE_SIZE + 8], text[256];
    struct explain_slo slo = explain_slo(&r->schedule, r->subject.slo_ns);
    snprintf(label, sizeof label, "SLO %s", in(&slo_text, r->subject.slo_ns));
    if (slo.retries_ns == BIDE_NEVER)
        snprintf(text, sizeof text, "does not fit: retries have no limit in time; a third is %s",
                 in(&third, slo.third_ns));
    else if (slo.fits)
        snprintf(text, sizeof text, "fits: retries take up to %s, a third is %s, %s to spare",
                 in(&take, slo.retries_ns), in(&third, slo.third_ns), in(&off, slo.third_ns - slo.retries_ns));
    else
        snprintf(text, sizeof text, "does not fit: retries take up to %s, a third is %s, %s too much",
                 in(&take, slo.retries_ns), in(&third, slo.third_ns), in(&off, slo.retries_ns - slo.third_ns));
    labelled(s, label, text);
}

static void show_sample(const struct explain_screen *s, const struct explain_report *r)
{
    char label[32], text[EXPLAIN_SAMPLE_MAX * 24] = "";
    struct words wait;
    size_t length = 0;
    snprintf(label, sizeof label, "seed %llu", (unsigned long long)r->seed);
    for (uint32_t i = 0; i < r->samples && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? ", " : "",
                                   in(&wait, r->sample_ns[i]));
    labelled(s, label, r->samples > 0 ? text : "no wait: nothing is retried");
}

static void show_totals(const struct explain_screen *s, const struct explain_report *r)
{
    const struct explain_schedule *schedule = &r->schedule;
    struct words mean, worst, slow;
    char text[256];
    fputc('\n', s->out);
    if (schedule->waits_worst_ns == BIDE_NEVER)
        snprintf(text, sizeof text, "up to 292 years and more");
    else
        snprintf(text, sizeof text, "%s on average, %s at most%s", in(&mean, schedule->waits_mean_ns),
                 in(&worst, schedule->waits_worst_ns), schedule->rough ? ", or more: the last ones still grow" : "");
    labelled(s, "waits", text);
    if (schedule->worst_ns == BIDE_NEVER)
        snprintf(text, sizeof text, "%s",
                 schedule->timeout_ns == BIDE_NEVER ? "no limit: attempts have no timeout, and there is no deadline"
                                                    : "up to 292 years and more");
    else if (schedule->slow_mean_ns == schedule->deadline_ns)
        snprintf(text, sizeof text, "at most %s, the deadline, and about that on average, if every attempt times out",
                 in(&worst, schedule->deadline_ns));
    else if (schedule->uncut_ns > schedule->deadline_ns)
        snprintf(text, sizeof text, "at most %s, the deadline, %s on average, if every attempt times out",
                 in(&worst, schedule->deadline_ns), in(&slow, schedule->slow_mean_ns));
    else
        snprintf(text, sizeof text, "at most %s, %s on average, if every attempt times out",
                 in(&worst, schedule->worst_ns), in(&slow, schedule->slow_mean_ns));
    labelled(s, "whole call", text);
    if (r->subject.slo_ns > 0)
        show_slo(s, r);
    if (r->sampled)
        show_sample(s, r);
}

/* ---- the load ---- */

static void load_row(const struct explain_screen *s, const char *label, const double *x)
{
    fprintf(s->out, "  %-34s", label);
    for (size_t i = 0; i < EXPLAIN_LOADS; i++)
        x[i] < 1e6 ? fprintf(s->out, " %10.2f", x[i]) : fprintf(s->out, " %10.3g", x[i]);
    fputc('\n', s->out);
}

static void budget_words(char *text, size_t size, const struct explain_report *r)
{
    const struct conf_pair *pair = &r->policy->pair;
    char a[256], b[256], c[256];
    if (pair->target.observe & BIDE_GATE_BUDGET)
        snprintf(text, size, "only observed: it refuses nothing");
    else if (pair->target.budget.kind == BIDE_BUDGET_TOKENS)
        snprintf(text, size, "%lld retries at once from a full bucket of %s; %s earned by a success, %s by time",
                 (long long)r->amplification.burst, value(a, pair, "budget.capacity"),
                 value(b, pair, "budget.earn_success"), value(c, pair, "budget.refill_per_minute"));
    else if (pair->target.budget.kind == BIDE_BUDGET_WINDOW)
        snprintf(text, size, "retries up to %s of requests and %s more, over %s", value(a, pair, "budget.ratio"),
                 value(b, pair, "budget.reserve"), value(c, pair, "budget.window"));
    else if (pair->target.budget.kind == BIDE_BUDGET_CONCURRENCY)
        snprintf(text, size, "retries in flight up to %s of calls in flight, at least %s",
                 value(a, pair, "budget.ratio"), value(b, pair, "budget.reserve"));
    else
        snprintf(text, size, "none");
}

static void breaker_words(char *text, size_t size, const struct conf_pair *pair)
{
    char a[256], b[256], c[256];
    const struct bide_target_config *t = &pair->target;
    if (t->observe & BIDE_GATE_BREAKER)
        snprintf(text, size, "only observed: it refuses nothing");
    else if (t->breaker.kind == BIDE_BREAKER_BY_TIME)
        snprintf(text, size, "opens when %s of at least %s attempts fail in %s", value(a, pair, "breaker.ratio"),
                 value(b, pair, "breaker.min_volume"), value(c, pair, "breaker.window"));
    else if (t->breaker.kind == BIDE_BREAKER_BY_COUNT)
        snprintf(text, size, "opens when %s of the last %s attempts fail, at least %s", value(a, pair, "breaker.ratio"),
                 value(b, pair, "breaker.count_window"), value(c, pair, "breaker.min_volume"));
    else if (t->breaker.kind == BIDE_BREAKER_BY_RUN)
        snprintf(text, size, "opens when %s attempts in a row fail", value(a, pair, "breaker.consecutive"));
    else
        snprintf(text, size, "none");
}

static void show_load(const struct explain_screen *s, const struct explain_report *r)
{
    const struct explain_amplification *a = &r->amplification;
    double plain[EXPLAIN_LOADS], budgeted[EXPLAIN_LOADS], layers_plain[EXPLAIN_LOADS], layers_budgeted[EXPLAIN_LOADS];
    char label[64], text[256];
    for (size_t i = 0; i < EXPLAIN_LOADS; i++) {
        plain[i] = a->load[i].plain;
        budgeted[i] = a->load[i].budgeted;
        layers_plain[i] = a->load[i].layers_plain;
        layers_budgeted[i] = a->load[i].layers_budgeted;
    }
    heading(s, "requests at the server for each one made");
    fprintf(s->out, "  %-34s %9u%% %9u%% %9u%%\n", "when so many attempts fail", a->load[0].fail_permille / 10,
            a->load[1].fail_permille / 10, a->load[2].fail_permille / 10);
    load_row(s, "attempts alone", plain);
    load_row(s, "with the budget, in the long run", budgeted);
    if (a->layers > 1) {
        snprintf(label, sizeof label, "%u layers, each with all attempts", a->layers);
        load_row(s, label, layers_plain);
        snprintf(label, sizeof label, "%u layers of this policy, at most", a->layers);
        load_row(s, label, layers_budgeted);
    }
    budget_words(text, sizeof text, r);
    labelled(s, "budget", text);
    if (a->retries_per_second >= 0) {
        snprintf(text, sizeof text, "%.3g/s in the long run, when all of %g requests/s fail", a->retries_per_second,
                 explain_rate(&r->subject));
        labelled(s, "retries", text);
    }
    breaker_words(text, sizeof text, &r->policy->pair);
    labelled(s, "breaker", text);
}

/* ---- classes ---- */

static bool is_retry(const struct explain_answer *a)
{
    return a->verdict.action == BIDE_WAIT && a->verdict.reason != BIDE_REASON_BUDGET_EMPTY;
}

/* "yes", "no", or where it depends on how far the request got, "some". */
static const char *word_for(const struct explain_answer *cells, size_t count)
{
    size_t retried = 0;
    for (size_t i = 0; i < count; i++)
        retried += is_retry(&cells[i]);
    return retried == count ? "yes" : retried == 0 ? "no" : "some";
}

/* The wait of those that are retried, then the whys of those that are not, each once. */
static void list_whys(char *text, size_t size, const struct explain_class *c)
{
    uint64_t told = 0;
    struct words wait;
    size_t length = 0;
    for (size_t i = 0; i < EXPLAIN_COLUMNS && length == 0; i++)
        if (is_retry(&c->cell[i]))
            length = (size_t)snprintf(text, size, "%s",
                                      c->cell[i].wait.hi_ns == 0 ? "at once" : range(&wait, c->cell[i].wait));
    for (size_t i = 0; i < EXPLAIN_COLUMNS; i++) {
        enum bide_reason reason = c->cell[i].verdict.reason;
        if (is_retry(&c->cell[i]) || told >> reason & 1)
            continue;
        length +=
            (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? "; " : "", bide_reason_label(reason));
        told |= UINT64_C(1) << reason;
    }
}

static void show_classes(const struct explain_screen *s, const struct explain_report *r)
{
    char text[256];
    heading(s, "is a failure retried?");
    fprintf(s->out, "  %-30s unsafe, if it was\n", "");
    fprintf(s->out, "  %-18s %-5s %-5s %-6s %-4s %-8s  %s\n", "failure", "safe", "keyed", "unsent", "sent", "answered",
            "wait; why not");
    for (size_t i = 0; i < EXPLAIN_CLASSES; i++) {
        const struct explain_class *c = &r->classes[i];
        fprintf(s->out, "  %-18s %-5s %-5s %-6s %-4s %-8s  ", c->name, word_for(&c->cell[0], 3),
                word_for(&c->cell[3], 3), word_for(&c->cell[6], 1), word_for(&c->cell[7], 1), word_for(&c->cell[8], 1));
        list_whys(text, sizeof text, c);
        flow(s, 55, text);
    }
}

/* ---- findings and advice ---- */

static void show_findings(const struct explain_screen *s, const struct explain_findings *all)
{
    static const enum colour colours[] = {PLAIN, YELLOW, RED};
    char text[512];
    heading(s, "findings");
    for (size_t i = 0; i < all->count; i++) {
        const struct explain_finding *f = &all->finding[i];
        fprintf(s->out, "  %s%-8s%s ", paint(s, colours[f->severity]), explain_severity_label(f->severity),
                paint(s, PLAIN));
        snprintf(text, sizeof text, "%s [%s]", f->text, f->id);
        flow(s, 11, text);
        if (f->fix[0] == '\0')
            continue;
        fprintf(s->out, "%11s%s ", "", s->utf8 ? "\u2192" : "->");
        flow(s, s->utf8 ? 13 : 14, f->fix);
    }
    if (all->count == 0)
        fputs("  none\n", s->out);
}

static size_t show_differences(const struct explain_screen *s, const struct conf_pair *from, const struct conf_pair *to)
{
    size_t count = 0;
    char text[256], old[256];
    const struct conf_field *field;
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        if (conf_field_equal(field, from, to))
            continue;
        fprintf(s->out, "  %s%s = %s%s  (now %s)\n", paint(s, GREEN), field->key, conf_field_format(text, field, to),
                paint(s, PLAIN), conf_field_format(old, field, from));
        count++;
    }
    return count;
}

static void show_advice(const struct explain_screen *s, const struct explain_report *r)
{
    const struct explain_advice *a = &r->advice;
    char text[128];
    heading(s, "advice");
    for (size_t i = 0; i < a->branches; i++) {
        fprintf(s->out, "  %-31s ", a->branch[i].question);
        flow(s, 34, a->branch[i].answer);
    }
    if (a->herd_per_second > 0) {
        snprintf(text, sizeof text, "%.0f/s while the first window lasts", a->herd_per_second);
        fprintf(s->out, "  %-31s ", "if all clients fail at once");
        flow(s, 34, text);
    }
    fputc('\n', s->out);
    if (show_differences(s, &r->policy->pair, &a->pair) == 0)
        fputs("  nothing to change\n", s->out);
    for (size_t i = 0; i < a->remarks; i++) {
        fputs("  ", s->out);
        flow(s, 2, a->remark[i].text);
    }
}

void explain_show_report(const struct explain_screen *s, const struct explain_report *r)
{
    show_head(s, r);
    show_waits(s, r);
    show_totals(s, r);
    show_load(s, r);
    show_classes(s, r);
    show_findings(s, &r->findings);
    if (r->advises)
        show_advice(s, r);
}

/* ---- one outcome ---- */

static const char *const safeties[] = {
    [BIDE_UNSAFE] = "unsafe", [BIDE_IDEMPOTENT] = "idempotent", [BIDE_SAFE] = "safe", [BIDE_KEYED] = "keyed"};

static const char *asked_for(struct words *w, int64_t ns)
{
    if (ns == 0)
        return "no wait, or for one that is over: our own holds";
    return ns > BIDE_DURATION_MAX ? "more than 31 years" : in(w, ns);
}

static void show_situation(const struct explain_screen *s, const struct explain_verdict *v)
{
    const struct bide_outcome *o = &v->situation.outcome;
    struct words elapsed, hint;
    char text[256];
    struct conf_printable said = conf_printable(v->hint != NULL ? v->hint : "", v->hint != NULL ? strlen(v->hint) : 0);
    fprintf(s->out, "%s%s%s", paint(s, BOLD), v->event.name, paint(s, PLAIN));
    if (v->method != NULL)
        fprintf(s->out, " to a %s", v->method);
    fprintf(s->out, " (%s), attempt %u of %u after %s, policy %s\n", safeties[v->situation.request.safety],
            v->situation.attempt, v->situation.pair.policy.attempts_max, in(&elapsed, v->answer.elapsed_ns),
            v->policy->name);
    size_t length = (size_t)snprintf(text, sizeof text, "is %s, reach %s", bide_kind_label(o->kind),
                                     bide_evidence_label(o->evidence));
    if (v->hint != NULL && o->hint.kind == BIDE_HINT_NONE)
        snprintf(text + length, sizeof text - length, "; Retry-After: %s is malformed, which is as absent", said.text);
    else if (v->hint != NULL)
        snprintf(text + length, sizeof text - length, "; Retry-After: %s asks for %s", said.text,
                 asked_for(&hint, o->hint.wait_ns));
    flow(s, 0, text);
    fputc('\n', s->out);
}

static void show_answer(const struct explain_screen *s, const struct explain_verdict *v)
{
    const struct bide_verdict *said = &v->answer.verdict;
    bool retried = is_retry(&v->answer), done = said->action == BIDE_DONE;
    struct words window, drawn;
    char deed[128], text[256];
    if (!v->answer.reached)
        fprintf(s->out, "The call does not get that far: it is over %s.\n",
                said->attempt == 0 ? "before anything is sent" : "earlier");
    if (retried && v->sampled)
        snprintf(deed, sizeof deed, "retried after %s (seed %llu: %s):", range(&window, v->answer.wait),
                 (unsigned long long)v->situation.request.seed, in(&drawn, v->answer.wait_ns));
    else if (retried)
        snprintf(deed, sizeof deed, "retried after %s:", range(&window, v->answer.wait));
    else
        snprintf(deed, sizeof deed, "%s:", done ? "done" : "given up");
    fprintf(s->out, "%s%s%s", paint(s, retried || done ? GREEN : RED), deed, paint(s, PLAIN));
    snprintf(text, sizeof text, "%s [%s]", bide_reason_text(said->reason), bide_reason_label(said->reason));
    flow_on(s, (struct margin){0, (unsigned)strlen(deed)}, text);
    if (!done)
        fputc('\n', s->out);
}

static void show_gate(const struct explain_screen *s, const struct explain_gate *g)
{
    static const char *const words[] = {"passes", "refuses", "would too", "only observes"};
    static const enum colour colours[] = {PLAIN, RED, DIM, YELLOW};
    fprintf(s->out, "  %-10s %-39s %s%s%s", g->name, g->asks, paint(s, colours[g->said]), words[g->said],
            paint(s, PLAIN));
    if (g->said != EXPLAIN_PASSES)
        fprintf(s->out, ": %s", bide_reason_label(g->reason));
    fputc('\n', s->out);
}

void explain_show_verdict(const struct explain_screen *s, const struct explain_verdict *v)
{
    show_situation(s, v);
    show_answer(s, v);
    for (size_t i = 0; i < EXPLAIN_GATES && v->answer.verdict.action != BIDE_DONE; i++)
        show_gate(s, &v->gates[i]);
    if (v->change_count > 0)
        fputc('\n', s->out);
    for (size_t i = 0; i < v->change_count; i++)
        fprintf(s->out, "%s\n", v->changes[i].text);
}

/* ---- lists ---- */

void explain_show_list(const struct explain_screen *s, const struct conf *conf)
{
    for (size_t i = 0; i < conf->count; i++) {
        const struct conf_policy *c = &conf->policy[i];
        fprintf(s->out, "%s%-20s%s from %s, %s:%u\n", paint(s, BOLD), c->name, paint(s, PLAIN),
                bide_preset_label(c->preset), c->file, c->line);
    }
    for (enum bide_preset i = 0; i < BIDE_PRESET_COUNT; i++)
        fprintf(s->out, "%s%-20s%s %s\n", paint(s, BOLD), bide_preset_label(i), paint(s, PLAIN),
                bide_preset_purpose(i));
}
